"""DMA queue of the base core: a beat a cycle, within an instruction and across instructions; long bursts."""

import numpy as np
import pytest

from hw.dma import DmaQueue
from isa.config import preset
from isa.dtypes import DType
from tests.hw.datapath import generator
from tests.hw.dma_bench import apply, run, word

CONFIG = preset("base")
ELEMENTS = 40     # of each partition and instruction
INSTRUCTIONS = 3
START = 60        # cycles from the first instruction to the first beat, less the bus latency, at most
PATTERNS = {
    "rows": dict(d_sp=ELEMENTS, d_s2=1),
    "apart": dict(d_sp=ELEMENTS + 12, d_s2=1),
    "columns": dict(d_sp=1, d_s2=CONFIG.lanes, inner=True),
}


@pytest.mark.parametrize("name,pattern", [("ld", "rows"), ("ld", "apart"), ("st", "rows"), ("st", "columns")])
def test_rate(name, pattern):
    """At least 95 % of a beat a cycle from first to last beat, and no burst shorter than the pattern allows."""
    rng = generator(f"dma rate {name} {pattern}")
    latency = 30
    sbuf = rng.integers(0, 256, (CONFIG.lanes, 1024), dtype=np.uint8)
    dram = rng.integers(0, 256, 16384, dtype=np.uint8)
    dram_step = 4 * CONFIG.lanes * (ELEMENTS + 12)
    program = [(name, dict(p0=0, pn=CONFIG.lanes, n0=1, n1=1, n2=ELEMENTS, x_type=int(DType.FP32), x_s0=0, x_s1=0, x_s2=1,
                           x_addr=4 * ELEMENTS * n, d_addr=dram_step * n, d_s0=0, d_s1=0, **PATTERNS[pattern]))
               for n in range(INSTRUCTIONS)]
    expected_sbuf, expected_dram = sbuf.copy(), dram.copy()
    for _, values in program:
        apply(name, values, expected_sbuf, expected_dram)
    bus = run(DmaQueue(CONFIG), [word(n, **v) for n, v in program], sbuf, dram, rng, latency=latency)
    np.testing.assert_array_equal(sbuf, expected_sbuf)
    np.testing.assert_array_equal(dram, expected_dram)
    beats = bus.read_cycles if name == "ld" else bus.write_cycles
    least = INSTRUCTIONS * CONFIG.lanes * ELEMENTS * 4 // CONFIG.axi_bytes
    assert least <= len(beats) <= least * 1.01
    assert len(beats) / (beats[-1] - beats[0] + 1) >= 0.95
    assert beats[0] <= START + latency and bus.done[-1] - beats[-1] <= START + latency
    bursts = bus.read_bursts if name == "ld" else bus.write_bursts
    assert len(beats) / bursts >= 4.7  # runs of 8 and 2 beats, and few are cut by a page


def test_bytes_not_aligned():
    """At an odd DRAM address a run costs one beat more, never a cycle more."""
    rng = generator("dma rate odd")
    sbuf = rng.integers(0, 256, (CONFIG.lanes, 1024), dtype=np.uint8)
    dram = rng.integers(0, 256, 8192, dtype=np.uint8)
    values = dict(p0=0, pn=CONFIG.lanes, n2=256, n1=1, n0=1, x_type=int(DType.INT8), x_addr=0, x_s0=0, x_s1=0, x_s2=1,
                  d_addr=7, d_s0=0, d_s1=0, d_sp=300, d_s2=1)
    expected = sbuf.copy()
    apply("ld", values, expected, dram)
    bus = run(DmaQueue(CONFIG), [word("ld", **values)], sbuf, dram, rng)
    np.testing.assert_array_equal(sbuf, expected)
    assert bus.read_beats <= CONFIG.lanes * 2 * (128 // 16 + 1)
    assert bus.read_cycles[-1] - bus.read_cycles[0] + 1 == bus.read_beats


def test_broadcast():
    """A load with a partition stride of zero reads its row once, whatever order it names."""
    rng = generator("dma rate broadcast")
    dut = DmaQueue(CONFIG)
    for inner, stride in ((False, 1), (True, 1), (True, -2)):
        sbuf = rng.integers(0, 256, (CONFIG.lanes, 1024), dtype=np.uint8)
        dram = rng.integers(0, 256, 1024, dtype=np.uint8)
        values = dict(p0=1, pn=13, n0=1, n1=2, n2=70, x_type=int(DType.BF16), x_addr=6, x_s0=0, x_s1=80, x_s2=1,
                      d_addr=500, d_s0=0, d_s1=71, d_sp=0, d_s2=stride, inner=inner)
        expected = sbuf.copy()
        apply("ld", values, expected, dram)
        bus = run(dut, [word("ld", **values)], sbuf, dram, rng)
        np.testing.assert_array_equal(sbuf, expected)
        assert bus.read_beats <= (2 * 10 + 2 if stride == 1 else 150)
