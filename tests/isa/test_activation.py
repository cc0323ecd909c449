"""isa.activation: accuracy of every table against float64, and each special case of the definition."""

import math
import time

import numpy as np
import pytest

from isa import activation, activation_fit
from isa import numerics as num
from isa.ops import Func, TableMode

SEED = 20261201
RELATIVE = ("exp", "reciprocal", "sqrt", "rsqrt", "log")
ALL = tuple(activation_fit.FUNCTIONS)
INF = math.inf
MIN, MAX = 2.0 ** -126, float(np.finfo(np.float32).max)


def evaluate(name, x):
    """float64 results of the table for float32 inputs."""
    x = np.asarray(x, np.float32)
    return activation.evaluate(activation.TABLES[name], x.view(np.uint32)).view(np.float32).astype(np.float64)


def inputs(name):
    """Every segment densely, its ends and their neighbours; all exponents where the mode reduces the range."""
    rng = np.random.default_rng(SEED + len(name))
    mode = activation_fit.FUNCTIONS[name].mode
    if mode == TableMode.DIRECT:
        magnitude = np.concatenate([rng.uniform(2.0 ** k, 2.0 ** (k + 1), 8000) for k in range(-6, 6)]
                                   + [np.exp(rng.uniform(-80, 80, 4000)), np.arange(1, 512) / 16])
    elif mode == TableMode.EXP:
        magnitude = np.concatenate([rng.uniform(0, 87.3, 100_000), np.exp(rng.uniform(-80, 2, 10_000))])
    else:
        magnitude = np.concatenate([2.0 ** rng.uniform(-125.9, 125.9, 100_000), rng.uniform(0.5, 2, 50_000),
                                    np.arange(128, 513) / 128])
    magnitude = magnitude.astype(np.float32)
    magnitude = np.concatenate([magnitude, np.nextafter(magnitude, np.float32(0)), np.nextafter(magnitude, INF)])
    magnitude = magnitude[magnitude >= MIN]
    return magnitude if name in ("sqrt", "rsqrt", "log") else np.concatenate([magnitude, -magnitude])


@pytest.mark.parametrize("name", ALL)
def test_accuracy(name):
    x = inputs(name)
    with np.errstate(under="ignore"):
        want = activation_fit.FUNCTIONS[name].reference(x.astype(np.float64))
    x, want = x[np.abs(want) < MAX], want[np.abs(want) < MAX]
    assert x.size > 50_000
    error = np.abs(evaluate(name, x) - want)
    if name in RELATIVE:
        normal = np.abs(want) >= MIN
        error, bound = error[normal] / np.abs(want[normal]), 2.0 ** -16
    else:
        error, bound = error / np.maximum(1, np.abs(want)), 2.0 ** -14
    worst = int(error.argmax())
    assert error[worst] <= bound, f"{name}({x[worst]}): error 2^{math.log2(error[worst]):.2f}"


@pytest.mark.parametrize("name, bound", [("sigmoid", -12), ("tanh", -12), ("erf", -12), ("silu", -12),
                                         ("softplus", -12), ("gelu", -7), ("gelu_tanh", -6)])
def test_relative_error_near_zero(name, bound):
    """For |x| < 4 also the relative error is bounded, so products of small values keep their sign and size."""
    x = inputs(name)
    x = x[np.abs(x) < 4]
    want = activation_fit.FUNCTIONS[name].reference(x.astype(np.float64))
    error = np.abs(evaluate(name, x) - want) / np.abs(want)
    assert 0 < error.max() < 2.0 ** bound


@pytest.mark.parametrize("name", [n for n in ALL if n not in RELATIVE])
def test_limits(name):
    """The header is f at 0 and infinity; beyond 32 the straight lines meet float64 to an ulp."""
    f = activation_fit.FUNCTIONS[name].reference
    want = np.float32(f(np.zeros(1))[0])
    assert np.all(evaluate(name, [0.0, -0.0, 1e-39]) == want)
    for sign in (1, -1):
        x = np.float32(sign) * np.array([32, 33.5, 100, 1e20, MAX], np.float32)
        with np.errstate(all="ignore"):
            want = f(x.astype(np.float64))
        want = np.where(np.isnan(want), 0, want)  # the reference's own 0 * inf, far in a tail that is 0
        assert np.allclose(evaluate(name, x), want, rtol=1e-6, atol=1e-12), (x, want)
        limit = evaluate(name, [sign * INF])[0]
        assert limit == (sign * INF if abs(want[-1]) > 1e30 else want[-1])


SPECIAL = [
    ("exp", [0, -0.0, INF, -INF, 88.8, 200, 1e30, -88, -104, -200, -1e30], [1, 1, INF, 0, INF, INF, INF, 0, 0, 0, 0]),
    ("reciprocal", [0.0, -0.0, INF, -INF, 1e-40, -1e-40, MAX, -MAX, 2.0 ** -126],
     [INF, -INF, 0.0, -0.0, INF, -INF, 0.0, -0.0, 2.0 ** 126]),
    ("sqrt", [0.0, -0.0, INF, -INF, -1, -1e30, -1e-40, 4, 0.25], [0, 0, INF, np.nan, np.nan, np.nan, 0, 2, 0.5]),
    ("rsqrt", [0.0, -0.0, INF, -INF, -1, 4, 0.25], [INF, INF, 0, np.nan, np.nan, 0.5, 2]),
    ("log", [0.0, -0.0, INF, -INF, -1, 1, 1e-40], [-INF, -INF, INF, np.nan, np.nan, 0, -INF]),
]


@pytest.mark.parametrize("name, x, want", SPECIAL)
def test_special(name, x, want):
    got = evaluate(name, x)
    assert np.allclose(got, want, rtol=2.0 ** -16, atol=0, equal_nan=True), got
    zero = np.array(want) == 0
    assert np.array_equal(np.signbit(got[zero]), np.signbit(np.array(want)[zero]))


@pytest.mark.parametrize("name", ALL)
def test_nan(name):
    x = np.array([0x7F800001, 0x7FC00000, 0xFFC00000, 0xFFFFFFFF], np.uint32)
    assert np.all(activation.evaluate(activation.TABLES[name], x) == num.NAN)


def slot(mode, header=(0, 0, 0), coefficients=(0, 0, 0), at=range(128)):
    """A hand-made slot: the same three patterns in the segments `at`."""
    words = np.zeros(activation.SLOT_WORDS, np.uint32)
    words[:4] = mode, *header
    words[4:].reshape(128, 3)[list(at)] = coefficients
    return words


def run(table, x):
    return activation.evaluate(table, np.array(x, np.float32).view(np.uint32))


TO_INPUT = {TableMode.DIRECT: lambda r: r, TableMode.EXP: lambda r: (r - 1) * math.log(2), TableMode.RECIP: lambda r: r,
            TableMode.SQRT: lambda r: r, TableMode.RSQRT: lambda r: r, TableMode.LOG: lambda r: 1 + r}


@pytest.mark.parametrize("mode", TO_INPUT)
def test_segments(mode):
    """The inputs of each segment of the fit select that segment: p is its number, and nothing is scaled or added."""
    low, high = activation_fit.segments(mode)
    index = np.flatnonzero(~np.isnan(low))
    low, high = low[index], high[index]
    table = slot(mode)
    table[6::3] = (np.arange(128) + 1).astype(np.float32).view(np.uint32)
    for part in (0.001, 0.3, 0.999):
        y = TO_INPUT[mode](low + part * (high - low))
        assert np.array_equal(run(table, y).view(np.float32), index + 1)
    if mode not in (TableMode.DIRECT, TableMode.EXP):
        first = TO_INPUT[mode](low)  # the lower end belongs to the segment
        assert np.array_equal(run(table, first[first != 0]).view(np.float32), (index + 1)[first != 0])


def test_scale_limits():
    """Exponents that leave the range: zero or infinity of the polynomial's sign; 0 and infinity are kept."""
    one, minus, inf = 0x3F800000, 0xBF800000, 0x7F800000
    assert list(run(slot(TableMode.EXP, coefficients=(0, 0, one)), [88, 89, -87, -88])) \
        == [(127 + 126) << 23, inf, 1 << 23, 0]
    assert list(run(slot(TableMode.EXP, coefficients=(0, 0, minus)), [89, -89])) == [0xFF800000, 0x80000000]
    assert list(run(slot(TableMode.EXP, coefficients=(0, 0, inf)), [-5, 5])) == [inf, inf]
    assert list(run(slot(TableMode.EXP), [-5, 5])) == [0, 0]
    assert list(run(slot(TableMode.RECIP, coefficients=(0, 0, one)), [-MAX, MAX, -1])) == [0x80000000, 0, minus]


def test_modes_6_and_7_are_direct_and_high_bits_are_ignored():
    direct = activation.TABLES["tanh"].copy()
    x = np.linspace(-9, 9, 1000).astype(np.float32).view(np.uint32)
    want = activation.evaluate(direct, x)
    for mode in (6, 7, 8, 0x80):
        direct[0] = mode
        assert np.array_equal(activation.evaluate(direct, x), want)


def test_header_is_canonical():
    table = slot(TableMode.DIRECT, header=(1, 0x7F800001, 0x80000001))
    assert list(run(table, [0, INF, -INF])) == [0, num.NAN, 0x80000000]


def test_builtin():
    x = np.array([0.0, -0.0, 1.5, -1.5, INF, -INF, np.nan, 1e-40, -1e-40, 3e38], np.float32)
    bits = x.view(np.uint32)
    inf, nan = 0x7F800000, 0x7FC00000
    minus = 0x80000000
    big = int(bits[-1])
    assert list(activation.builtin(Func.IDENTITY, bits)) == [0, minus, 0x3FC00000, 0xBFC00000, inf, inf | minus, nan, 0,
                                                             minus, big]
    assert list(activation.builtin(Func.RELU, bits)) == [0, 0, 0x3FC00000, 0, inf, 0, nan, 0, 0, big]
    assert list(activation.builtin(Func.SQUARE, bits)) == [0, 0, 0x40100000, 0x40100000, inf, inf, nan, 0, 0, inf]
    assert list(activation.builtin(Func.ABS, bits)) == [0, 0, 0x3FC00000, 0x3FC00000, inf, inf, nan, 0, 0, big]
    one = 0x3F800000
    assert list(activation.builtin(Func.SIGN, bits)) == [0, 0, one, one | minus, one, one | minus, nan, 0, 0, one]


def test_tables_are_fast_and_named():
    activation_fit.table.cache_clear()
    start = time.perf_counter()
    for name in ALL:
        table = activation.TABLES[name]
        assert table.shape == (activation.SLOT_WORDS,) and table.dtype == np.uint32 and not table.flags.writeable
    assert time.perf_counter() - start < 3
    assert len(activation.TABLES) == len(ALL) == 18 and "tan" not in activation.TABLES
    with pytest.raises(KeyError, match="sigmoid"):
        activation.TABLES["tan"]
