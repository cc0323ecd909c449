"""Each rule kind: a legal instruction, and one that breaks exactly that rule."""

import numpy as np
import pytest

from isa.config import preset
from isa.dtypes import DType
from isa.encode import encode
from isa.legality import TRAP_OF, check, used_bits
from isa.ops import AluOp
from isa.registers import Trap
from isa.table import INSTRUCTIONS, Mode, for_queue
from tests.isa.legal_words import LEGAL, legal

TINY, EDGE = preset("tiny"), preset("edge")
PART = Mode.PARTITION


def mm(**f):
    return encode("mm", **{**dict(pn=4, mn=4, n2=16, x_s2=1, w_s=1, y_s2=1), **f})


def act(**f):
    return encode("act", **{**dict(pn=4, n2=16, x_s2=1, y_s2=1), **f})


def alu(**f):
    return encode("alu", **{**dict(pn=4, n2=16, x_s2=1, y_s2=1), **f})


def red(**f):
    return encode("red", **{**dict(pn=4, n2=16, x_s2=1, op=AluOp.ADD, axes=1), **f})


def sel(**f):
    return encode("sel", **{**dict(pn=4, n2=16, x_s2=1, y_s2=1), **f})


BROKEN = [
    ("pe", mm(p0=1), Trap.PARTITION), ("pe", mm(m0=1), Trap.PARTITION), ("pe", mm(x_type=DType.INT32), Trap.TYPE),
    ("pe", mm(w_type=9), Trap.TYPE), ("pe", mm(x_addr=2), Trap.ALIGN), ("pe", mm(w_addr=1), Trap.ALIGN),
    ("pe", mm(y_addr=2), Trap.ALIGN), ("pe", mm(n0=2, n1=16, n2=17), Trap.OPERATION),
    ("act", act(pn=5), Trap.PARTITION), ("act", act(x_type=8), Trap.TYPE), ("act", act(y_space=1), Trap.OPERATION),
    ("act", act(x_space=1, x_type=DType.BF16), Trap.TYPE), ("act", act(func=5), Trap.OPERATION),
    ("act", act(func=12), Trap.OPERATION), ("act", act(acc=3), Trap.OPERATION),
    ("act", act(scale_mode=Mode.TENSOR), Trap.OPERATION), ("act", act(scale_mode=PART, scale=2), Trap.ALIGN),
    ("act", act(bias_mode=PART, bias=9 << 18), Trap.ALIGN), ("act", act(bias_mode=PART, bias=1 << 22), Trap.ALIGN),
    ("act", act(acc_addr=1), Trap.ALIGN), ("act", encode("tab", p0=4), Trap.PARTITION),
    ("act", encode("tab", x_addr=2), Trap.ALIGN),
    ("vec", alu(op0=AluOp.ADD), Trap.OPERATION), ("vec", alu(op1=AluOp.MAX), Trap.OPERATION),
    ("vec", red(op0=AluOp.MUL), Trap.OPERATION), ("vec", alu(op0=AluOp.AND, a_mode=Mode.IMM), Trap.OPERATION),
    ("vec", alu(op1=19, b_mode=Mode.IMM), Trap.OPERATION),
    ("vec", alu(int=True, op0=AluOp.MUL, a_mode=Mode.IMM, x_type=7, y_type=7), Trap.OPERATION),
    ("vec", alu(int=True, op0=AluOp.ABS), Trap.TYPE), ("vec", alu(int=True, x_type=7, y_type=1), Trap.TYPE),
    ("vec", alu(a_mode=Mode.TENSOR), Trap.OPERATION), ("vec", alu(b_mode=Mode.TENSOR, b_addr=2), Trap.ALIGN),
    ("vec", alu(b_mode=Mode.TENSOR, b_type=8), Trap.ALIGN),
    ("vec", alu(b_mode=Mode.TENSOR, b_space=1, b_type=DType.BF16), Trap.ALIGN),
    ("vec", alu(x_space=1, b_mode=Mode.TENSOR, b_space=1), Trap.OPERATION),
    ("vec", red(op=AluOp.SUB), Trap.OPERATION), ("vec", red(axes=0), Trap.OPERATION),
    ("vec", sel(x_type=1), Trap.TYPE), ("vec", sel(x_space=1, b_space=1), Trap.OPERATION),
    ("vec", encode("gen", pn=4, y_space=1), Trap.OPERATION), ("vec", encode("scan"), Trap.OPCODE),
    ("dma0", encode("ld", x_addr=1), Trap.ALIGN), ("dma0", encode("mv", q0=3, qn=2), Trap.PARTITION),
    ("dma0", encode("mv", x_type=DType.BF16, y_addr=1), Trap.ALIGN), ("dma0", encode("cp", x_type=15), Trap.TYPE),
    ("dma0", encode("gat", i_addr=2), Trap.ALIGN), ("dma1", encode("snd"), Trap.OPCODE),
    ("dma0", mm(), Trap.OPCODE), ("pe", encode("ld"), Trap.OPCODE), ("pe", 0, Trap.OPCODE), ("pe", 0xEE, Trap.OPCODE),
    ("pe", mm() | 1 << 10, Trap.RESERVED), ("pe", mm() | 1 << 14, Trap.RESERVED), ("pe", mm() | 1 << 511, Trap.RESERVED),
    ("vec", red() | 1 << 9, Trap.RESERVED), ("dma0", encode("nop") | 1 << 168, Trap.RESERVED),
]


@pytest.mark.parametrize("queue,word,trap", BROKEN)
def test_broken(queue, word, trap):
    found = check(word, queue, TINY)
    assert found and found[0] == trap, found
    assert len(found[1]) > 10


def test_every_kind_is_broken_somewhere():
    kinds = {r.kind for i in INSTRUCTIONS for r in i.rules}
    assert kinds == set(TRAP_OF)
    assert {t for _, _, t in BROKEN} == {*TRAP_OF.values(), Trap.OPCODE, Trap.RESERVED}


@pytest.mark.parametrize("queue,word", [
    ("pe", mm()), ("pe", mm(n0=2, n1=16, n2=16)), ("act", act(func=11)), ("act", act(x_space=1)),
    ("act", act(scale_mode=PART, scale=4 | 1 << 18)), ("act", act(scale_mode=Mode.IMM, scale=0xFFFFFFFF)),
    ("vec", alu(op0=AluOp.MUL, a_mode=Mode.IMM)), ("vec", alu(int=True, op0=AluOp.SHL, a_mode=Mode.IMM, x_type=7, y_type=5)),
    ("vec", alu(b_mode=Mode.IMM, b_imm=0xFFFFFFFF)), ("vec", red()), ("vec", sel(b_type=6)),
    ("dma1", encode("ld", x_type=DType.INT8, x_addr=3)), ("act", encode("nop")), ("vec", encode("mark", tag=9)),
])
def test_legal(queue, word):
    assert check(word, queue, TINY) is None


def test_configuration_matters():
    assert check(mm(x_type=1, w_type=1), "pe", EDGE)[0] == Trap.TYPE
    assert check(mm(x_type=DType.INT8, w_type=DType.INT8), "pe", EDGE) is None
    small = preset("small")
    assert check(mm(p0=4), "pe", small) is None and check(mm(p0=4), "pe", TINY)[0] == Trap.PARTITION


def test_first_rule_in_the_table_wins():
    """Reserved bits before partitions, partitions before alignment."""
    assert check(mm(p0=4, x_addr=1) | 1 << 511, "pe", TINY)[0] == Trap.RESERVED
    assert check(mm(p0=4, x_addr=1), "pe", TINY)[0] == Trap.PARTITION


@pytest.mark.parametrize("instruction", LEGAL, ids=lambda i: i.name)
def test_bits_outside_the_fields_trap(instruction):
    word, queue = legal(np.random.default_rng(3), instruction, TINY)
    free = ~used_bits(instruction) & ((1 << 512) - 1)
    for bit in range(512):
        if free >> bit & 1:
            assert check(word | 1 << bit, queue, TINY)[0] == Trap.RESERVED


@pytest.mark.parametrize("config", ["tiny", "small", "edge", "trn"])
def test_random_legal_words_exist_for_all(config):
    rng = np.random.default_rng(11)
    for instruction in LEGAL:
        for _ in range(5):
            word, queue = legal(rng, instruction, preset(config))
            assert instruction in for_queue(queue) and check(word, queue, preset(config)) is None
