"""Patterns for tests of numbers: corners, random words, and exact values."""

from fractions import Fraction

import numpy as np

SEED = 20261201
POSITIVE = np.array(
    [0, 1, 0x00400000, 0x007FFFFF, 0x00800000, 0x00800001, 0x00FFFFFF, 0x01000000, 0x01800000, 0x0B800000, 0x0C000000,
     0x33800000, 0x34000000, 0x3EFFFFFF, 0x3F000000, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3F800002, 0x3FC00000,
     0x3FFFFFFF, 0x40000000, 0x42FE0000, 0x43000000, 0x437F8000, 0x43E00000, 0x43F00000, 0x477FEFFF, 0x477FF000,
     0x47600000, 0x47700000, 0x4B000000, 0x4B7FFFFF, 0x4B800000, 0x4EFFFFFF, 0x4F000000, 0x7E800000, 0x7F7F7FFF,
     0x7F7F8000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF], np.uint32)
CORNERS = np.concatenate([POSITIVE, POSITIVE | np.uint32(0x80000000)])


def rng(name):
    """A seeded generator; the seed is printed, so that a failure shows it."""
    seed = SEED + sum(name.encode())
    print(f"{name}: seed {seed}")
    return np.random.default_rng(seed)


def pairs():
    """Every corner with every corner."""
    a, b = np.meshgrid(CORNERS, CORNERS)
    return a.ravel(), b.ravel()


def random_fp32(r, n):
    """Random patterns: uniform bits, exponents near 127, and sparse fractions, a third each."""
    bits = r.integers(0, 1 << 32, n, np.uint32)
    near = (bits & np.uint32(0x807FFFFF)) | (r.integers(115, 140, n, np.uint32) << np.uint32(23))
    sparse = bits & r.integers(0, 1 << 32, n, np.uint32) & r.integers(0, 1 << 32, n, np.uint32)
    return np.choose(r.integers(0, 3, n), [bits, near, sparse]).astype(np.uint32)


def exact(pattern):
    """The Fraction a finite, flushed fp32 pattern stands for."""
    pattern = int(pattern)
    exponent, fraction = pattern >> 23 & 0xFF, pattern & 0x7FFFFF
    if exponent == 0:
        return Fraction(0)
    value = Fraction(fraction | 1 << 23) * Fraction(2) ** (exponent - 150)
    return -value if pattern >> 31 else value


def round_fp32(value, zero_sign):
    """Nearest-even fp32 pattern of a Fraction, with zeros below 2^-126 (`zero_sign` for exact zero)."""
    sign = 0x80000000 if (value < 0 or (value == 0 and zero_sign)) else 0
    value = abs(value)
    if value < Fraction(2) ** -126:
        return sign
    e = value.numerator.bit_length() - value.denominator.bit_length()
    e = e if Fraction(2) ** e <= value else e - 1
    scaled = value / Fraction(2) ** (e - 23)
    whole = scaled.numerator // scaled.denominator
    rest = scaled - whole
    whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1)
    pattern = ((e + 127) << 23) + whole - (1 << 23)
    return sign | min(pattern, 0x7F800000)
