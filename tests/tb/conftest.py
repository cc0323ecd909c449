"""Fixtures of the test bench's own tests."""

import numpy as np
import pytest
from copy_core import BASE, CopyRun, copy_core

from tb.runner import Rtl


@pytest.fixture
def make_copy():
    """Factory of `CopyRun`s; closes their simulations at the end."""
    made = []

    def make(data_bits=128, rounds=8, **options):
        rtl = Rtl(copy_core(data_bits), **options)
        made.append(rtl)
        half = 32 * rounds * data_bits // 8
        memory = np.random.default_rng(data_bits).integers(0, 256, 2 * half, dtype=np.uint8)
        rtl.set_memory(memory, BASE)
        rtl.reset()
        return CopyRun(rtl=rtl, memory=memory, rounds=rounds)

    yield make
    for rtl in made:
        rtl.close()
