"""DMA queue of tiny: random instructions of every kind against NumPy copies."""

import pytest

from isa.config import preset
from tests.hw.dma_programs import check_random

# (instruction or any, instructions in one program, bus latency, probability of a stall)
CASES = [("ld", 12, 9, 0.25), ("st", 12, 9, 0.25), ("gat", 6, 3, 0.0), ("sca", 6, 30, 0.3), (None, 24, 1, 0.0),
         (None, 24, 40, 0.3)]


@pytest.mark.parametrize("op,count,latency,stall", CASES, ids=str)
def test_random(op, count, latency, stall):
    check_random(preset("tiny"), op, count, latency, stall)
