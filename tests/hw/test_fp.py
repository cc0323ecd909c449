"""hw.fp and hw.fp_mul against isa.numerics: every pair of corners, cancellation, ties, and random streams."""

import numpy as np
import pytest

from hw.fp import FpAdd
from hw.fp_mul import FpMul
from isa import numerics
from tests.hw.datapath import SEED, assert_same, generator, pairs, random_fp32, stream

N = 1500
STALLS = [1, 1, 0, 1, 0, 0, 1]


def vectors(name):
    """Corner pairs, random pairs, and pairs that nearly cancel or nearly tie."""
    rng = generator(name)
    a, b = pairs()
    x, y = random_fp32(rng, N), random_fp32(rng, N)
    flip = rng.integers(0, 1 << 25, N, np.uint32) >> rng.integers(0, 24, N, np.uint32)
    return {"a": np.concatenate([a, x, x]), "b": np.concatenate([b, y, x ^ np.uint32(0x80000000) ^ flip])}


@pytest.mark.parametrize("stages", [3, 4, 5])
def test_add(stages):
    inputs, dut = vectors(f"add{stages}"), FpAdd(stages)
    if stages != 4:  # the steps are the same: fewer vectors prove the cuts
        inputs = {k: v[::7] for k, v in inputs.items()}
    got = stream(dut, dut.latency, inputs, enable=[1] if stages == 4 else STALLS)
    assert_same(got, numerics.add(inputs["a"], inputs["b"]), inputs)


def test_add_far_and_near():
    """Exponent distances 0 to 40 with both signs: alignment, sticky bit, rounding after a one-place shift."""
    rng = generator("far")
    distance = np.repeat(np.arange(41), 40).astype(np.uint32)
    sign = rng.integers(0, 2, (2, distance.size), np.uint32) << np.uint32(31)
    fraction = rng.choice(np.array([0, 1, 0x7FFFFF, 0x400000, 0x3FFFFF, 0x555555], np.uint32), (2, distance.size))
    base = rng.integers(41, 254, distance.size, np.uint32)
    a = sign[0] | (base << np.uint32(23)) | fraction[0]
    b = sign[1] | ((base - distance) << np.uint32(23)) | fraction[1]
    inputs = {"a": np.where(distance % 2, a, b).astype(np.uint32), "b": np.where(distance % 2, b, a).astype(np.uint32)}
    assert_same(stream(FpAdd(4), 4, inputs, enable=STALLS), numerics.add(a, b), inputs)


def test_mul():
    inputs = vectors("mul")
    assert_same(stream(FpMul(), FpMul.latency, inputs, enable=STALLS), numerics.mul(inputs["a"], inputs["b"]), inputs)


def test_mul_ties():
    """Products of 25 or 26 bits: exactly half a last place above or below, even and odd, for both normalisations."""
    rng = generator("ties")
    width = rng.integers(2, 24, N).astype(np.uint32)
    other = np.minimum(np.uint32(26) - width, np.uint32(24))
    a, b = ((rng.integers(0, 1 << 24, N, np.uint32) >> (24 - w) | 1 << (w - 1) | 1) << (24 - w) for w in (width, other))
    a, b = (v.astype(np.uint32) & np.uint32(0x7FFFFF) | np.uint32(127 << 23) for v in (a, b))
    product = a.view(np.float32).astype(np.float64) * b.view(np.float32)
    scaled = product * np.where(product >= 2, 2.0 ** 22, 2.0 ** 23)
    assert (scaled % 1 == 0.5).sum() > N // 4
    inputs = {"a": a, "b": b}
    assert_same(stream(FpMul(), FpMul.latency, inputs), numerics.mul(a, b), inputs)


def test_mul_flushes_the_unrounded_product():
    """Products beside 2^-126, where rounding first would give the smallest normal number."""
    rng = generator("flush")
    a = np.uint32(0x3F000000) | rng.integers(0, 1 << 23, N, np.uint32)
    b = np.uint32(0x00800000) | rng.integers(0, 1 << 24, N, np.uint32)
    a[:3], b[:3] = (0x3F7FFFFF, 0x3F800000, 0x3F7FFFFF), (0x00800000, 0x00800000, 0x00800001)
    inputs = {"a": a, "b": b}
    want = numerics.mul(a, b)
    assert want[0] == 0 and want[1] == 0x00800000
    assert_same(stream(FpMul(), FpMul.latency, inputs), want, inputs)


def test_seed_is_fixed():
    assert np.array_equal(random_fp32(np.random.default_rng(SEED), 9), random_fp32(np.random.default_rng(SEED), 9))
