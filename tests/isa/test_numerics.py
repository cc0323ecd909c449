"""isa.numerics against rational arithmetic, IEEE float32 and plain Python integers."""

import operator
import time

import numpy as np
import pytest

from isa import numerics as num
from isa.convert import PE_FRACTION
from isa.dtypes import DType
from isa.ops import FLOAT_OPS, INT_OPS, AluOp
from tests.isa.values import CORNERS, exact, pairs, random_fp32, rng, round_fp32

NAN, INF, SIGN = 0x7FC00000, 0x7F800000, 0x80000000
COMPARE = {AluOp.EQ: operator.eq, AluOp.NE: operator.ne, AluOp.GT: operator.gt, AluOp.GE: operator.ge,
           AluOp.LT: operator.lt, AluOp.LE: operator.le}


def is_nan(a):
    return a & 0x7FFFFFFF > INF


def flush(a):
    return a & SIGN if a & INF == 0 else a


def want_add(a, b):
    a, b = flush(a), flush(b)
    if is_nan(a) or is_nan(b) or (a ^ b == SIGN and a & INF == INF):
        return NAN
    for x in (a, b):
        if x & INF == INF:
            return x
    return round_fp32(exact(a) + exact(b), zero_sign=a == b == SIGN)


def want_mul(a, b):
    a, b = flush(a), flush(b)
    infinite, zero = INF in (a & ~SIGN, b & ~SIGN), not (a & ~SIGN and b & ~SIGN)
    if is_nan(a) or is_nan(b) or (infinite and zero):
        return NAN
    sign = (a ^ b) & SIGN
    return sign | INF if infinite else round_fp32(exact(a) * exact(b), zero_sign=bool(sign))


def test_add_and_mul_are_exactly_rounded():
    r = rng("rational")
    a, b = pairs()
    x, y = random_fp32(r, 12_000), random_fp32(r, 12_000)
    tiny = (x & 0x807FFFFF) | (r.integers(40, 88, x.size, np.uint32) << np.uint32(23))  # products around 2^-126
    other = (y & 0x807FFFFF) | ((127 - (tiny >> 23 & 0xFF)).astype(np.uint32) << np.uint32(23))
    near = x ^ np.uint32(SIGN) ^ (y >> np.uint32(20))                                    # sums that cancel
    a, b = np.concatenate([a, x, tiny, x]), np.concatenate([b, y, other, near])
    for name, got, want in (("add", num.add(a, b), want_add), ("mul", num.mul(a, b), want_mul)):
        expected = np.array([want(int(p), int(q)) for p, q in zip(a, b, strict=True)], np.uint32)
        bad = np.flatnonzero(got != expected)
        assert not bad.size, [f"{name} {a[i]:#x} {b[i]:#x}: {got[i]:#x} {expected[i]:#x}" for i in bad[:5]]


def test_add_and_mul_equal_ieee_where_nothing_flushes():
    r = rng("ieee")
    a, b = random_fp32(r, 400_000), random_fp32(r, 400_000)
    with np.errstate(all="ignore"):
        for got, native in ((num.add(a, b), np.add), (num.mul(a, b), np.multiply)):
            want = native(a.view(np.float32), b.view(np.float32))
            normal = (np.abs(want) > 2.0 ** -126) & np.isfinite(want) & ((a & INF) != 0) & ((b & INF) != 0)
            assert normal.sum() > 100_000
            assert np.array_equal(got[normal], want.view(np.uint32)[normal])


def test_tiny_products():
    assert num.mul(np.uint32(0x3F7FFFFF), np.uint32(0x00800000)) == 0  # native multiply rounds up to 2^-126
    assert num.mul(np.uint32(0xBF7FFFFF), np.uint32(0x00800000)) == SIGN
    assert num.mul(np.uint32(1), np.uint32(INF)) == NAN


def key(a):
    """What max and min order by: value, and -0 below +0."""
    a = flush(a)
    return (exact(a) if a & INF != INF else (float("-inf") if a & SIGN else float("inf")), 0 if a & SIGN else 1)


def test_max_min_compare_abs():
    a, b = pairs()
    got = {op: num.compare(op, a, b) for op in COMPARE}
    high, low = num.maximum(a, b), num.minimum(a, b)
    for i, (p, q) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        nan = is_nan(p) or is_nan(q)
        for op, function in COMPARE.items():
            want = op == AluOp.NE if nan else function(key(p)[0], key(q)[0])
            assert got[op][i] == want, (op, hex(p), hex(q))
        assert high[i] == (NAN if nan else flush(max(p, q, key=key))), (hex(p), hex(q))
        assert low[i] == (NAN if nan else flush(min(p, q, key=key))), (hex(p), hex(q))
    assert [int(v) for v in num.absolute(CORNERS)] == [NAN if is_nan(c) else flush(c) & ~SIGN for c in CORNERS.tolist()]
    assert [int(v) for v in num.canonical(CORNERS)] == [NAN if is_nan(c) else flush(c) for c in CORNERS.tolist()]


def test_alu_float():
    a, b = pairs()
    table = {AluOp.BYPASS: num.canonical(a), AluOp.ADD: num.add(a, b), AluOp.SUB: num.add(a, b ^ np.uint32(SIGN)),
             AluOp.MUL: num.mul(a, b), AluOp.MAX: num.maximum(a, b), AluOp.MIN: num.minimum(a, b),
             AluOp.ABS: num.absolute(a)}
    table |= {op: np.where(num.compare(op, a, b), 0x3F800000, 0) for op in COMPARE}
    assert set(table) == FLOAT_OPS
    for op, want in table.items():
        got = num.alu_float(op, a, b)
        assert got.dtype == np.uint32 and np.array_equal(got, want), op


def wrap(v):
    return (v + 2 ** 31) % 2 ** 32 - 2 ** 31


INTEGER = {
    AluOp.BYPASS: lambda x, a: x, AluOp.ADD: lambda x, a: x + a, AluOp.SUB: lambda x, a: x - a, AluOp.MAX: max,
    AluOp.MIN: min, AluOp.ABS: lambda x, a: abs(x), AluOp.AND: lambda x, a: x & a, AluOp.OR: lambda x, a: x | a,
    AluOp.XOR: lambda x, a: x ^ a, AluOp.SHL: lambda x, a: x << (a & 31),
    AluOp.SHR: lambda x, a: (x & 0xFFFFFFFF) >> (a & 31), AluOp.SAR: lambda x, a: x >> (a & 31), **COMPARE}


def test_alu_int():
    r = rng("int")
    edge = [0, 1, -1, 2, 31, 32, 33, 127, 128, -128, 2 ** 31 - 1, -2 ** 31, -2 ** 31 + 1, 0x55555555]
    x, a = (v.ravel() for v in np.meshgrid(edge, edge))
    x = np.concatenate([x, r.integers(-2 ** 31, 2 ** 31, 3000)]).astype(np.int32)
    a = np.concatenate([a, r.integers(-2 ** 31, 2 ** 31, 3000)]).astype(np.int32)
    assert set(INTEGER) == INT_OPS
    for op, function in INTEGER.items():
        got = num.alu_int(op, x.view(np.uint32), a.view(np.uint32))
        want = [wrap(int(function(p, q))) for p, q in zip(x.tolist(), a.tolist(), strict=True)]
        assert got.dtype == np.uint32 and got.view(np.int32).tolist() == want, op


def slow_matmul(w, x):
    """Row by row with the scalar rules; fp32 patterns [K, M] and [K, F]."""
    total = np.zeros((w.shape[1], x.shape[1]), np.uint32)
    for row_w, row_x in zip(w, x, strict=True):
        total = num.add(total, num.mul(row_w[:, None], row_x[None, :]))
    return total


@pytest.mark.parametrize("pe", PE_FRACTION)
@pytest.mark.parametrize("dtype", [DType.FP32, DType.BF16, DType.FP16, DType.FP8E4, DType.INT8])
def test_matmul_is_the_scalar_rules_in_row_order(pe, dtype):
    r = rng(f"matmul {pe} {dtype.label}")
    limit = 1 << 8 * dtype.size_bytes
    for k, m, f in ((1, 1, 1), (5, 3, 7), (16, 16, 64), (128, 4, 9)):
        w, x = r.integers(0, limit, (k, m), np.uint64), r.integers(0, limit, (k, f), np.uint64)
        w, x = w.astype(dtype.bits_numpy), x.astype(dtype.bits_numpy)
        if dtype == DType.FP32:  # values that underflow and cancel
            w, x = random_fp32(r, w.size).reshape(w.shape), random_fp32(r, x.size).reshape(x.shape)
        want = slow_matmul(*(num.pe_round(num.to_fp32(v, dtype), pe) for v in (w, x)))
        assert np.array_equal(num.matmul(w, dtype, x, dtype, pe), want)


def test_matmul_extremes():
    corner = CORNERS[:, None].repeat(3, axis=1)
    for a, b in ((corner, corner), (corner, corner[::-1])):
        want = slow_matmul(num.pe_round(a, "tf32"), num.pe_round(b, "tf32"))
        assert np.array_equal(num.matmul(a, DType.FP32, b, DType.FP32, "tf32"), want)


def test_int8_matmul_and_saturating_accumulation():
    r = rng("int8")
    w, x = (r.integers(-128, 128, (128, n)).astype(np.int8) for n in (7, 33))
    w[:, 0], x[:, 0] = -128, -128
    got = num.matmul(w.view(np.uint8), DType.INT8, x.view(np.uint8), DType.INT8, "int8")
    want = w.T.astype(np.int64) @ x.astype(np.int64)
    assert np.array_equal(got.view(np.int32), want) and want[0, 0] == 128 ** 3
    old = np.array([2 ** 31 - 1, -2 ** 31, 5, 2 ** 31 - 10], np.int32).view(np.uint32)
    new = np.array([1, -1, -7, 9], np.int32).view(np.uint32)
    assert num.psum_accumulate(old, new, "int8").view(np.int32).tolist() == [2 ** 31 - 1, -2 ** 31, -2, 2 ** 31 - 1]
    assert num.psum_accumulate(np.uint32(0x80000000), np.uint32(0x80000000), "tf32") == SIGN


def test_matmul_speed():
    for k, f, limit in ((16, 512, 0.002), (128, 512, 0.2)):
        w, x = np.full((k, k), 0x3F80, np.uint16), np.full((k, f), 0x4049, np.uint16)
        best = min(_timed(lambda w=w, x=x: num.matmul(w, DType.BF16, x, DType.BF16, "tf32")) for _ in range(5))
        assert best < 4 * limit, f"{best * 1e3:.1f} ms"  # the margin is for a loaded machine


def _timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 15, 16, 17, 100])
def test_reduce_add_is_eight_partial_sums(n):
    r = rng(f"reduce {n}")
    x = np.concatenate([random_fp32(r, 20 * n).reshape(20, n), np.full((1, n), SIGN, np.uint32)])
    sums = [np.zeros(21, np.uint32) for _ in range(8)]
    for i in range(n):
        sums[i % 8] = num.add(sums[i % 8], x[:, i])
    a, b, c, d = (num.add(sums[i], sums[i + 1]) for i in (0, 2, 4, 6))
    assert np.array_equal(num.reduce(AluOp.ADD, x), num.add(num.add(a, b), num.add(c, d)))


def test_reduce_others():
    r = rng("reduce others")
    x = random_fp32(r, 600).reshape(60, 10)
    x[:30] &= np.uint32(0xBF7FFFFF)  # half without NaN
    for op, step in ((AluOp.MAX, num.maximum), (AluOp.MIN, num.minimum)):
        want = x[:, 0]
        for i in range(1, 10):
            want = step(want, x[:, i])
        assert np.array_equal(num.reduce(op, x), num.canonical(want))
    signed = x.view(np.int32).astype(np.int64)
    assert np.array_equal(num.reduce(AluOp.ADD, x, True), (signed.sum(axis=1) % 2 ** 32).astype(np.uint32))
    assert np.array_equal(num.reduce(AluOp.MAX, x, True).view(np.int32), signed.max(axis=1))
    assert np.array_equal(num.reduce(AluOp.MIN, x, True).view(np.int32), signed.min(axis=1))
