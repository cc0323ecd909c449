"""hw.intalu against isa.numerics: every operation of both classes, mixed from cycle to cycle, with stalls."""

import numpy as np
import pytest

from hw.intalu import Alu
from isa import numerics
from isa.ops import FLOAT_OPS, INT_OPS
from tests.hw.datapath import CORNERS, assert_same, generator, pairs, random_fp32, stream


def vectors(rng, n):
    """All operations on sampled corner pairs, random pairs, equal operands, small integers."""
    columns = []
    for integer, ops in ((0, FLOAT_OPS), (1, INT_OPS)):
        for op in sorted(ops):
            x, a = pairs()
            chosen = rng.permutation(x.size)[:n]
            small = rng.integers(-40, 40, (2, n // 4)).astype(np.int32).view(np.uint32)
            same = np.concatenate([rng.choice(CORNERS, n // 8), random_fp32(rng, n // 8)])
            x = np.concatenate([x[chosen], random_fp32(rng, n // 2), same, small[0]])
            a = np.concatenate([a[chosen], random_fp32(rng, n // 2), same, small[1]])
            want = (numerics.alu_int if integer else numerics.alu_float)(op, x, a)
            columns.append((x, a, np.full(x.size, op.value), np.full(x.size, integer), want))
    x, a, op, integer, want = (np.concatenate(c) for c in zip(*columns, strict=True))
    mixed = rng.permutation(x.size)
    return {"x": x[mixed], "a": a[mixed], "op": op[mixed], "integer": integer[mixed]}, want[mixed]


@pytest.mark.parametrize("stages, n", [(4, 64), (5, 8)])
def test_every_operation(stages, n):
    inputs, want = vectors(generator(f"alu{stages}"), n)
    dut = Alu(stages)
    assert_same(stream(dut, dut.latency, inputs, enable=[1, 1, 0, 1, 1]), want, inputs)
