"""What the golden machine refuses inside one instruction, beside what a legal neighbour does."""

import numpy as np
import pytest

from isa.config import preset
from isa.dtypes import DType
from isa.encode import encode
from isa.machine import Machine, MachineError
from isa.table import Acc, Mode

TINY = preset("tiny")
FP32 = int(DType.FP32) << 18


def machine(rows=(0, 1, 2, 3)):
    """Every byte written; word 0 of the partitions holds `rows`."""
    out = Machine(TINY, 1024)
    for memory in (out.sbuf, out.psum, out.dram):
        memory.written[:] = True
    out.sbuf.data.view(np.uint32)[:, 0] = rows
    return out


def act(**f):
    return "act", encode("act", **{**dict(pn=4, n2=4, x_addr=256, x_s2=1, y_addr=512, y_s2=1), **f})


def alu(**f):
    return "vec", encode("alu", **{**dict(pn=4, n2=4, x_addr=256, x_s2=1, y_addr=512, y_s2=1), **f})


def red(**f):
    return "vec", encode("red", **{**dict(pn=4, n2=4, x_addr=256, x_s2=1, y_addr=512, op=1, axes=3), **f})


def rows(name, **f):
    return "dma0", encode(name, **{**dict(pn=4, n2=4, x_addr=256, x_s2=1, row_stride=4, row_limit=8), **f})


REFUSED = [
    ("continue", act(acc=Acc.CONTINUE), "never started"),
    ("store", act(acc_write=True, acc_addr=64), "never started"),
    ("scale", act(scale_mode=Mode.PARTITION, scale=516 | FP32), "overlaps a source"),
    ("bias", act(bias_mode=Mode.PARTITION, bias=512 | FP32), "overlaps a source"),
    ("sum on x", act(acc=Acc.START, acc_write=True, acc_addr=260), "overlaps a source"),
    ("sum on y", act(acc=Acc.START, acc_write=True, acc_addr=524), "one of y's"),
    ("sum on half a scalar", act(acc=Acc.START, acc_write=True, acc_addr=64, bias_mode=Mode.PARTITION,
                                 bias=66 | int(DType.BF16) << 18), "overlaps a source"),
    ("a", alu(op0=1, a_mode=Mode.PARTITION, a=520 | FP32), "overlaps a source"),
    ("b", alu(op1=1, b_mode=Mode.PARTITION, b_addr=512), "overlaps a source"),
    ("one element", red(op0=1, a_mode=Mode.PARTITION, a=512 | FP32), "overlaps a source"),
    ("index", rows("gat", x_addr=0), "overlaps a source"),
    ("skipped rows, one word twice", rows("gat", x_s2=0, row_limit=0, skip=True), "more than once"),
    ("skipped rows beyond SBUF", rows("gat", x_addr=TINY.sbuf_bytes - 12, row_limit=0, skip=True), "SBUF address"),
    ("skipped rows beyond SBUF, scatter", rows("sca", x_addr=8, x_s2=-1, row_limit=0, skip=True), "SBUF address"),
    ("scatter", rows("sca", row_stride=3), "more than once"),
]
LEGAL = [act(acc=Acc.START, acc_write=True, acc_addr=64), act(bias_mode=Mode.PARTITION, bias=528 | FP32),
         act(acc=Acc.START, acc_write=True, acc_addr=64, bias_mode=Mode.PARTITION, bias=64 | FP32),
         alu(op0=1, a_mode=Mode.PARTITION, a=508 | FP32), red(op0=1, a_mode=Mode.PARTITION, a=516 | FP32),
         rows("gat", x_addr=4), rows("sca"), rows("sca", row_stride=-4, d_addr=512)]


@pytest.mark.parametrize("instruction,words", [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_refused(instruction, words):
    with pytest.raises(MachineError, match=words):
        machine().run({instruction[0]: [instruction[1]]})


@pytest.mark.parametrize("instruction", LEGAL)
def test_legal(instruction):
    assert machine().run({instruction[0]: [instruction[1]]}) == [(instruction[0], 0)]


def test_two_scatters_to_one_row():
    with pytest.raises(MachineError, match="more than once"):
        machine(rows=(0, 1, 1, 3)).run({"dma0": [rows("sca")[1]]})


def test_row_far_beyond_dram():
    """Row times stride times size needs 66 bits."""
    with pytest.raises(MachineError, match="DRAM address"):
        machine(rows=[0xFFFFFFFE] * 4).run({"dma0": [rows("gat", row_stride=-(1 << 31), row_limit=0xFFFFFFFF)[1]]})


def test_skipped_rows_meet_nothing():
    machine(rows=(0, 9, 9, 9)).run({"dma0": [rows("sca", skip=True)[1]]})


def test_running_sum_of_some_lanes():
    """A sum started in lanes 0 and 1 may be continued there and nowhere else; another program may go on with it."""
    first, again = (machine() for _ in range(2))
    first.run({"act": [act(pn=2, acc=Acc.START)[1], act(pn=2, acc=Acc.CONTINUE)[1]]})
    again.inherit(first)
    again.run({"act": [act(pn=2, acc=Acc.CONTINUE, acc_write=True)[1]]})
    with pytest.raises(MachineError, match="partition 2 was never started"):
        again.run({"act": [act(acc=Acc.CONTINUE)[1]]})
