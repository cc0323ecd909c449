"""DMA queue: random instructions of every kind against NumPy copies, on several shapes of core and bus."""

import numpy as np
import pytest

from hw.dma import DmaQueue
from isa.config import Config, preset
from tests.hw.datapath import generator
from tests.hw.dma_bench import apply, run, word
from tests.hw.dma_programs import index_row, random_instruction

SBUF, DRAM = 1024, 4096  # bytes used; the index row of gather and scatter follows
CONFIGS = {
    "tiny": preset("tiny"),
    "narrow": Config(lanes=8, axi_data_bits=32, sbuf_kib=4, dma_queues=1),
    "wide": Config(lanes=4, axi_data_bits=256, sbuf_kib=4, dma_queues=1),
    "base": preset("base"),
}
# (configuration, instruction or any, instructions in one program, bus latency, probability of a stall)
CASES = [("tiny", op, 14, 9, 0.25) for op in ("ld", "st", "mv", "cp", "gat", "sca")]
CASES += [("tiny", None, 24, 1, 0.0), ("narrow", None, 16, 30, 0.3), ("wide", None, 16, 3, 0.1), ("base", None, 12, 20, 0.1),
          ("narrow", "ld", 10, 5, 0.0), ("narrow", "st", 10, 5, 0.0), ("wide", "ld", 12, 5, 0.0), ("wide", "st", 12, 5, 0.0)]


@pytest.mark.parametrize("config,op,count,latency,stall", CASES, ids=lambda v: str(v))
def test_random(config, op, count, latency, stall):
    rng = generator(f"dma {config} {op}")
    config = CONFIGS[config]
    sbuf = rng.integers(0, 256, (config.lanes, SBUF + 4), dtype=np.uint8)
    dram = rng.integers(0, 256, DRAM, dtype=np.uint8)
    program = [random_instruction(rng, config, SBUF, DRAM, op) for _ in range(count)]
    limits = [v["row_limit"] for _, v in program if "row_limit" in v]
    sbuf[:, SBUF:] = index_row(rng, config, min(limits, default=100))
    expected_sbuf, expected_dram = sbuf.copy(), dram.copy()
    for name, values in program:
        apply(name, values, expected_sbuf, expected_dram)
    assert (expected_sbuf != sbuf).any() or (expected_dram != dram).any()
    bus = run(DmaQueue(config), [word(n, **v) for n, v in program], sbuf, dram, rng, latency=latency, stall=stall)
    assert not bus.traps
    np.testing.assert_array_equal(sbuf, expected_sbuf)
    np.testing.assert_array_equal(dram, expected_dram)
