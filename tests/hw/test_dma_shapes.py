"""DMA queue on other shapes: fewer lanes than a beat has elements, a bus as narrow as a word, the base core."""

import pytest

from isa.config import Config, preset
from tests.hw.dma_programs import check_random

NARROW = Config(lanes=8, axi_data_bits=32, sbuf_kib=4, dma_queues=1)
WIDE = Config(lanes=4, axi_data_bits=256, sbuf_kib=4, dma_queues=1)
CASES = [(NARROW, None, 12, 30, 0.3), (NARROW, "st", 8, 5, 0.0), (WIDE, None, 12, 3, 0.1), (WIDE, "ld", 8, 5, 0.0),
         (preset("base"), None, 10, 20, 0.1)]


@pytest.mark.parametrize("config,op,count,latency,stall", CASES,
                         ids=[f"{c.lanes}x{c.axi_data_bits}-{op}" for c, op, *_ in CASES])
def test_random(config, op, count, latency, stall):
    check_random(config, op, count, latency, stall)
