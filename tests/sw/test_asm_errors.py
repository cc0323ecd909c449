"""Malformed assembly: each kind is an AsmError with file:line:column, what was expected, and a suggestion."""

import re
from pathlib import Path

import numpy as np
import pytest

from isa.config import preset
from sw.asm import assemble, assemble_file
from sw.errors import AsmError

EXAMPLES = Path(__file__).parents[2] / "examples"
HEAD = """.config tiny
.tensor A dram bf16 [8, 64] input
.tensor W dram fp32 [2] const
.init W 1 2
.tensor xs sbuf bf16 [4, 16]
.tensor fs sbuf fp32 [4, 16]
.tensor acc psum fp32 [4, 16]
.const two 2.0
first: pe nop
"""
LINES = HEAD.count("\n")

CASES = [
    # text, column, parts of the message
    ("pe nop ; pe nop", 8, ["';' does not belong"]),
    ("peh nop", 1, ["expected a queue", "'peh'", "did you mean 'pe'?"]),
    ("dma2 nop", 1, ["tiny has no queue 'dma2'", "dma0, dma1"]),
    ("ext nop", 1, ["expected a queue"]),
    ("pe", 3, ["expected an instruction", "the end of the line"]),
    ("pe mn", 4, ["no instruction 'mn' on pe", "did you mean 'mm'?"]),
    ("pe ld x=xs d=A", 4, ["'ld' runs on dma queues, not on pe"]),
    ("vec scan", 5, ["reserved"]),
    ("dma0 ld x=xs dd=A", 14, ["no operand 'dd'", "did you mean 'd'?", "p, shape, x, d"]),
    ("dma0 ld x=xs", 6, ["needs the operand 'd'"]),
    ("dma0 ld x=xs x=xs d=A", 14, ["'x' is given twice"]),
    ("pe mm x=xs w=xs y=acc acumulate", 23, ["no flag 'acumulate'", "did you mean 'accumulate'?"]),
    ("pe mm x=xs w=xs y=acc keep keep", 28, ["'keep' is given twice"]),
    ("dma0 ld x=ys d=A", 11, ["no tensor or constant 'ys'", "did you mean 'xs'?"]),
    ("dma0 ld x=A d=A", 11, ["expected a tensor in SBUF", "DRAM"]),
    ("vec alu x=A y=xs", 11, ["x is on chip"]),
    ("dma0 ld x=xs d=xs", 16, ["expected a tensor in DRAM", "SBUF"]),
    ("pe mm x=xs w=xs y=xs", 19, ["expected a tensor in PSUM"]),
    ("dma0 ld x=0x10 d=A", 11, ["x needs an element type"]),
    ("dma0 ld x=0x10:bf17:1 d=A", 16, ["expected an element type", "'bf17'", "did you mean 'bf16'?"]),
    ("dma0 ld x=xs d=A:fp32", 18, ["d has no type of its own"]),
    ("dma0 ld x=fs d=A[0:4, 0:16]", 16, ["elements of 2 bytes", "elements of 4"]),
    ("dma0 ld x=xs d=A[0:4, 0:65]", 23, ["0 to 64", "64 elements"]),
    ("dma0 ld x=xs d=A[0:4, 0:16, 1]", 29, ["one too many"]),
    ("dma0 ld x=xs d=A[4:4, 0:16]", 18, ["nothing"]),
    ("dma0 ld x=xs d=A[0:4:0]", 18, ["step of a slice must not be 0"]),
    ("dma0 ld x=xs[*, 0] d=A", 17, ["partitions come first"]),
    ("dma0 ld x=xs d=A[0:4, 0:8]", 16, ["shape is (1, 1, 8) by A and (1, 1, 16) by xs"]),
    ("dma0 ld x=xs d=A[0:3, 0:16]", 16, ["p is (*, 3) by A and (0, 4) by xs"]),
    ("dma0 ld x=xs d=A[0:4, 0:16", 27, ["',' or ']'"]),
    ("dma0 ld shape=16 x=0:bf16 d=0", 6, ["needs the operand 'p'"]),
    ("dma0 ld p=2:2 x=xs d=A", 9, ["p = 2:2", "beyond the first"]),
    ("dma0 ld p=0:200 x=xs d=A", 9, ["pn = 200: must be 1 to 128"]),
    ("dma0 ld p=2:6 x=xs d=A[0:4, 0:16]", 9, ["p0 + pn = 6: there are 4 partitions"]),
    ("dma0 ld p=0:1 shape=(1, 1, 1, 1) x=xs d=A", 21, ["at most 3 numbers, found 4"]),
    ("dma0 ld p=0:1.5 x=xs d=A", 13, ["found the fraction 1.5"]),
    ("dma0 ld p=0:1 shape=0 x=xs d=A", 15, ["n2 = 0: must be 1 to 65536"]),
    ("dma0 ld p=0:1 shape=2 x=0x3:bf16 d=A:(0, 1)", 23, ["x_addr = 0x3: must be a multiple of 2"]),
    ("dma0 ld x=xs:bf16:200000 d=A[0:4, 0:16]", 9, ["x_s2 = 200000"]),
    ("dma0 ld x=xs[0:4, 0:2]:bf16:4000 d=A[0:4, 0:2]", 9, ["SBUF bytes", "there are 0x1000"]),
    ("dma0 ld x=xs d=960:(16, 1)", 14, ["DRAM bytes", "there are"]),
    ("dma0 ld x=xs:bf16:0 d=A[0:4, 0:16]", 9, ["one address more than once"]),
    ("dma0 st x=xs d=A:(0, 1)", 14, ["one address more than once"]),
    ("vec alu x=xs[0:4, 0:8] y=2:bf16:1", 24, ["overlaps x"]),
    ("dma0 mv p=0:4 x=xs q=0:2 y=0x200:1 mshape=16", 26, ["64 elements, the destination 32"]),
    ("act act x=xs y=xs func=rely", 24, ["a value of func", "did you mean 'relu'?"]),
    ("act act x=xs y=xs func=5", 19, ["func = 5: must be one of"]),
    ("act act x=xs y=xs scale=fs", 25, ["found the tensor 'fs'", "part:fs"]),
    ("act act x=xs y=xs scale=tow", 25, ["no constant 'tow'", "did you mean 'two'?"]),
    ("act act x=xs y=xs scale=1e99", 25, ["beyond fp32"]),
    ("act act x=xs y=xs scale=part:0x40", 34, ["':' and an element type"]),
    ("vec red x=fs y=xs[0:4, 0] axes=3", 5, ["red needs the operand 'op'"]),
    ("vec red x=fs y=xs axes=3 op=add", 16, ["1 free axes; 0 are left"]),
    ("vec alu x=fs y=fs op0=and", 19, ["op0 = 13: no such operation in the float class"]),
    ("vec alu x=fs y=fs op0=add a=1 int", 9, ["integer-class operands"]),
    ("vec alu p=0:1 x=0:int32 y=0:int32 op0=add a=1.5 int", 45, ["a = 1.5: the integer class takes"]),
    ("dma0 cp d=0 e=8", 6, ["needs the operand 'x_type'"]),
    ("pe nop after frist", 14, ["no label 'frist'", "did you mean 'first'?"]),
    ("pe nop after later\nlater: pe nop", 14, ["'later' names a later instruction"]),
    ("me: pe nop after me", 18, ["'me' names this instruction itself"]),
    ("pe nop after", 13, ["expected a label"]),
    ("first: pe nop", 1, ["'first' is defined twice", "test.sys:9"]),
    ("lost:", 1, ["'lost' names no instruction"]),
    ("pe nop wait=(pe:70000)", 14, ["count 70000: must be 0 to 65535"]),
    ("pe nop wait=(pq:1)", 14, ["expected a queue", "did you mean 'pe'?"]),
    ("pe nop wait=(act:1)", 4, ["deadlock", "act to complete 1 (it stops at 0)"]),
    ("pe nop tag=65536", 8, ["tag = 65536: must be 0 to 65535"]),
    ("pe nop tag=1 tag=2", 14, ["'tag' is given twice"]),
    ("pe word 0x401", 4, ["reserved bit"]),
    ("pe word 0x1 keep", 13, ["the end of the line"]),
    (".tenser B dram bf16 [4] input", 1, ["no directive '.tenser'", "did you mean '.tensor'?"]),
    (".tensor A dram bf16 [4] input", 9, ["'A' is defined twice"]),
    (".tensor part dram bf16 [4] input", 9, ["a meaning of its own"]),
    (".tensor B drum bf16 [4] input", 11, ["expected a memory", "did you mean 'dram'?"]),
    (".tensor B dram bf16 [4]", 24, ["expected a role"]),
    (".tensor B dram bf16 [4] imput", 25, ["did you mean 'input'?"]),
    (".tensor B dram bf16 [0] input", 22, ["size 0"]),
    (".tensor B sbuf bf16 [5, 1]", 22, ["5 partitions; tiny has 4"]),
    (".tensor B sbuf bf16 [4, 4096]", 9, ["of SBUF; there are 0x1000"]),
    (".tensor B psum bf16 [4, 4]", 22, ["four bytes"]),
    (".tensor B sbuf fp32 [4, 4] @2", 9, ["must be a multiple of 4"]),
    (".tensor B dram fp32 [2] const", 9, ["const tensor B has 8 bytes; `.init` lines give 0"]),
    (".init A 1", 7, ["not a const tensor"]),
    (".init W 3", 7, ["12 bytes of values for W"]),
    (".init W hex 0q", 13, ["hexadecimal"]),
    (".tensor B dram int8 [1] const\n.init B 300", 9, ["300 is not a value of int8"]),
    (".config smal", 9, ["no configuration 'smal'", "did you mean 'small'?"]),
    (".config small", 9, ["it was tiny"]),
    (".config odd lanes=5", 9, ["lanes = 5: must be a power of two"]),
    (".const three", 13, ["expected a number"]),
    (".source 1 net", 11, ["double quotes"]),
    (".source 1 \"a\\q\"", 11, ["JSON"]),
    ("pe nop (", 8, ["expected an operand"]),
]


@pytest.mark.parametrize("text,column,parts", CASES, ids=[c[0] for c in CASES])
def test_malformed(text, column, parts):
    with pytest.raises(AsmError) as error:
        assemble(HEAD + text + "\n", file="test.sys")
    message = str(error.value)
    bad = LINES + 1 + (text.startswith(".tensor B dram int8"))
    assert re.match(rf"test\.sys:{bad}:{column}: ", message), message
    for part in parts:
        assert part in message, message
    shown = message.split("\n")
    assert shown[1].strip() == text.split("\n")[bad - LINES - 1].strip(), message
    assert shown[2].index("^") == 4 + column - 1


def test_enough_kinds():
    assert len(CASES) >= 20


def test_configuration_comes_first():
    with pytest.raises(AsmError, match=r"<text>:1:1: a `.config` line must come before"):
        assemble("pe nop")
    with pytest.raises(AsmError, match="no `.config`"):
        assemble("# nothing\n")
    with pytest.raises(AsmError, match="the one asked for is small"):
        assemble(".config tiny\n", config=preset("small"))


def test_unreadable_files(tmp_path):
    with pytest.raises(AsmError, match="cannot be read"):
        assemble_file(tmp_path / "none.sys")
    (tmp_path / "binary.sys").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(AsmError, match="cannot be read"):
        assemble_file(tmp_path / "binary.sys")


def test_random_damage_is_always_an_assembly_error():
    """Valid lines with characters or whole tokens exchanged: either they assemble, or AsmError says where not."""
    rng, refused = np.random.default_rng(17), 0
    good = [ln for ln in (EXAMPLES / "relu_matmul.sys").read_text().split("\n")[1:] if ln.strip()]
    good += ["vec red p=0:4 x=x0 y=ys[0:4, 0] op=max axes=3 a=part:0x40:fp32 op0=add wait=(ext:1)",
             "dma0 gat x=x0 d_addr=x row_stride=32 row_limit=8 i_addr=bs skip tag=3", ".source 3 \"a\""]
    pieces = sorted({piece for line in good for piece in re.findall(r"\w+|[^\w\s]", line)} | {"-1", "1e400", "0x", "\"", "²"})
    print("seed 17")
    assert assemble("\n".join([".config tiny", *good])).queues["vec"]
    for _ in range(1500):
        lines = list(good)
        at = int(rng.integers(len(lines)))
        parts = re.findall(r"\s+|\w+|[^\w\s]", lines[at])
        spot = int(rng.integers(len(parts)))
        action = int(rng.integers(3))
        new = pieces[int(rng.integers(len(pieces)))]
        parts[spot:spot + (action != 1)] = [] if action == 2 else [new]
        lines[at] = "".join(parts)
        try:
            assemble("\n".join([".config tiny", *lines]), file="f.sys")
        except AsmError as error:
            assert re.match(r"f\.sys:\d+:\d+: ", str(error)), error
            refused += 1
    assert 700 < refused < 1500
