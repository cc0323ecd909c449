"""DMA queue: bad addresses, rows and bus answers trap and do nothing else; halt ends what is on the bus."""

import numpy as np
import pytest

from hw.dma import DmaQueue
from isa.config import preset
from isa.dtypes import DType
from isa.registers import Trap
from tests.hw.datapath import generator
from tests.hw.dma_bench import BASE, apply, run, word

CONFIG = preset("tiny")
SBUF, DRAM = CONFIG.sbuf_bytes, 2048
ROWS = dict(p0=0, pn=4, n0=1, n1=2, n2=5, x_type=int(DType.FP32), x_addr=64, x_s0=0, x_s1=5, x_s2=1)
COPY = ROWS | dict(d_addr=16, d_sp=10, d_s0=0, d_s1=5, d_s2=1)
TABLE = ROWS | dict(d_addr=0, row_stride=10, row_limit=40, i_addr=SBUF - 4)


def memories(name):
    rng = generator(name)
    sbuf = rng.integers(0, 256, (CONFIG.lanes, SBUF), dtype=np.uint8)
    return rng, sbuf, rng.integers(0, 256, DRAM, dtype=np.uint8)


def test_addresses():
    """Each bad instruction stands between good ones: its trap has its code, index and address, the others work."""
    rng, sbuf, dram = memories("dma traps")
    sbuf[:, SBUF - 4:] = np.array([3, 41, -1, 7], np.int32).view(np.uint8).reshape(4, 4)
    before_sbuf, before_dram = sbuf.copy(), dram.copy()
    end = DRAM - 159  # the last partition's row ends one byte beyond
    bad = [
        ("st", COPY | dict(d_addr=end, pn=4), [(Trap.DRAM, end + 140)]),
        ("st", COPY | dict(d_addr=2 ** 48 - 1), [(Trap.DRAM, 2 ** 48 - 1)]),
        ("st", COPY | dict(d_addr=20, d_sp=-10, pn=2), [(Trap.DRAM, (20 - 40) % 2 ** 48)]),
        ("ld", COPY | dict(x_addr=SBUF - 28, x_s1=7), [(Trap.ADDRESS, SBUF + 4 * i) for i in range(5)]),
        ("ld", COPY | dict(x_addr=4, x_s2=-3, n1=1, n2=2), [(Trap.ADDRESS, (4 - 12) % 2 ** 22)]),
        ("sca", TABLE | dict(row_stride=500, row_limit=2), None),
        ("sca", TABLE | dict(d_addr=DRAM - 40 * 3 - 39), [(Trap.DRAM, DRAM - 19), (Trap.ROW, 41), (Trap.ROW, 2 ** 32 - 1)]),
        ("gat", TABLE | dict(i_addr=SBUF), None),
    ]
    program = [("ld", COPY)]
    for name, values, _ in bad:
        program += [(name, values), ("ld", COPY)]
    bus = run(DmaQueue(CONFIG), [word(n, **v) for n, v in program], sbuf, dram, rng, stall=0.2)
    assert len(bus.done) == len(program)
    for n, (name, values, expected) in enumerate(bad):
        got = [(code, addr) for code, index, addr in bus.traps if index == 101 + 2 * n]
        if expected is None:  # every row is beyond
            codes = [Trap.ADDRESS] * (name == "gat") + [Trap.ROW] * 4
            assert [code for code, _ in got] == codes, (name, values)
        else:
            assert expected[0] in got and {c for c, _ in got} == {c for c, _ in expected}, (name, values, got)
            assert set(expected) <= set(got), (name, got)
    assert not [t for t in bus.traps if t[1] % 2 == 0], "a good instruction trapped"
    apply("ld", COPY, before_sbuf, dram)  # the last instruction
    np.testing.assert_array_equal(sbuf[:, 64:104], before_sbuf[:, 64:104])
    assert (dram != before_dram).any(), "the part of a bad store that is inside was written"


def test_bus_errors():
    """A failed beat or response traps with the burst's address and its instruction; the queue goes on."""
    rng, sbuf, dram = memories("dma bus errors")
    read, write = BASE + 64, BASE + 1024
    program = [("ld", COPY), ("st", COPY | dict(d_addr=1024)), ("cp", dict(n2=8, d_s2=1, e_addr=512, e_s2=1, x_type=0))]
    bus = run(DmaQueue(CONFIG), [word(n, **v) for n, v in program], sbuf, dram, rng, bad=(read, write))
    assert len(bus.done) == 3
    assert {(t[0], t[1]) for t in bus.traps} == {(Trap.BUS_READ, 100), (Trap.BUS_WRITE, 101)}
    assert [t[2] for t in bus.traps if t[0] == Trap.BUS_WRITE] == [write]


@pytest.mark.parametrize("name", ["ld", "st", "cp"])
def test_halt(name):
    """Halted in any phase, every burst on the bus ends and every response is taken; no byte is written after it."""
    long = ROWS | dict(n1=1, n2=100, x_addr=0, d_addr=3, d_sp=100, d_s2=1)
    values = dict(n2=400, d_addr=3, d_s2=1, e_addr=5, e_s2=1, x_type=0) if name == "cp" else long
    dut = DmaQueue(CONFIG)
    for cycle in (35, 60, 90):
        rng, sbuf, dram = memories(f"dma halt {name} {cycle}")
        bus = run(dut, [word(name, **values)], sbuf, dram, rng, halt_at=cycle, latency=12, stall=0.2)
        assert bus.quiet and not bus.traps and not bus.done
        assert bus.last_strobe <= cycle + 1
