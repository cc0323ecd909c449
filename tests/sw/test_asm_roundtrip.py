"""Disassembly assembles to the same bytes, for random legal instructions and for whole programs."""

import numpy as np
import pytest

from isa.config import preset
from isa.dtypes import DType
from isa.encode import encode
from sw.asm import assemble
from sw.compiler import Dense, compile_dense
from sw.disasm import disassemble, immediate, instruction_text
from sw.errors import AsmError
from sw.program import DramTensor, Program
from tests.isa.legal_words import LEGAL, legal

SEED = 20261201
EACH = 60


@pytest.mark.parametrize("instruction", LEGAL, ids=lambda i: i.name)
@pytest.mark.parametrize("config", ["tiny", "edge", "trn"])
def test_random_legal_instructions(instruction, config):
    config = preset(config)
    rng = np.random.default_rng(SEED + instruction.opcode)
    print("seed", SEED + instruction.opcode)
    for _ in range(EACH):
        word, queue = legal(rng, instruction, config)
        text = instruction_text(word, queue, config)
        assert " word " not in text, text
        got = assemble(text, config=config, strict=False).queues[queue]
        assert got == [word], f"{text}\n{word ^ got[0]:#x}"


@pytest.mark.parametrize("instruction", LEGAL, ids=lambda i: i.name)
def test_every_field_alone(instruction):
    """Each field at its ends, idle or not, survives; illegal words too, as bits."""
    config, base = preset("trn"), legal(np.random.default_rng(SEED), instruction, preset("trn"))
    for name, f in instruction.all_fields.items():
        if name in ("opcode", "flags"):
            continue
        for value in (f.low, f.high):
            word = f.insert(base[0], value)
            text = instruction_text(word, base[1], config)
            assert assemble(text, config=config, strict=False).queues[base[1]] == [word], text


def test_illegal_words_are_refused_by_name():
    word = encode("mm", pn=4) | 1 << 511
    text = instruction_text(word, "pe", preset("tiny"))
    assert text == f"pe word {word:#x}"
    assert assemble(text, config=preset("tiny"), strict=False).queues["pe"] == [word]
    with pytest.raises(AsmError, match="a reserved bit is set"):
        assemble(text, config=preset("tiny"))


def same(a, b):
    assert a.queues == b.queues and a.tensors == b.tensors and a.source == b.source and a.config == b.config
    assert {n: (c.tobytes(), c.dtype, c.shape) for n, c in a.constants.items()} == \
        {n: (c.tobytes(), c.dtype, c.shape) for n, c in b.constants.items()}


@pytest.mark.parametrize("config,dtype", [("tiny", "fp32"), ("edge", "int8"), ("base", "bf16")])
def test_compiled_programs(config, dtype):
    rng = np.random.default_rng(3)
    layers = [Dense(rng.integers(-9, 9, (13, 7)), rng.integers(-9, 9, 7), "relu"), Dense(rng.integers(-9, 9, (7, 3)))]
    program = compile_dense(preset(config), 9, layers, dtype)
    assert sum(map(len, program.queues.values())) > 5
    same(assemble(disassemble(program)), program)


def test_odd_names_and_configurations():
    config = preset("tiny").with_(sbuf_kib=3)
    tensor = DramTensor('odd "name" #1', DType.BF16, (2, 3), 128, "const")
    values = np.arange(6).reshape(2, 3).astype(tensor.dtype.numpy)
    program = Program(config, {"pe": [encode("nop", tag=1)]}, {tensor.name: tensor}, {tensor.name: values},
                      ["", 'a "b" \u00e9'])
    same(assemble(disassemble(program)), program)


@pytest.mark.parametrize("bits,text", [
    (0x3F800000, "1.0"), (0x80000000, "-0.0"), (0x7F800000, "0x7f800000"), (0x7FC00000, "0x7fc00000"),
    (0x7FC00001, "0x7fc00001"), (1, "1e-45"), (0x7F7FFFFF, "3.4028235e38"), (0x3DCCCCCD, "0.1")])
def test_immediates(bits, text):
    assert immediate(bits, False) == text


def test_random_immediates_are_exact():
    rng = np.random.default_rng(SEED)
    config = preset("tiny")
    for bits in rng.integers(0, 1 << 32, 300):
        word = encode("act", pn=4, scale_mode=1, scale=int(bits))
        assert assemble(instruction_text(word, "act", config), config=config, strict=False).queues["act"] == [word]
    assert immediate(0xFFFFFFFF, True) == "-1" and immediate(5, True) == "5"
