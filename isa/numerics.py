"""Exactly what is right: arithmetic on bit patterns (uint32 arrays), the law for golden model and hardware.

fp32 add and multiply round to nearest even; subnormal inputs and results are zeros of their sign; every NaN result is
0x7fc00000. Conversions live in `isa.convert`. Sources: IEEE 754 arithmetic through NumPy float32 and float64, with
the deviations stated beside each function.
"""

import numpy as np

from isa.convert import from_fp32, int_convert, load, pe_round, to_fp32
from isa.ops import AluOp

NAN = np.uint32(0x7FC00000)
SIGN = np.uint32(0x80000000)
MAGNITUDE = np.uint32(0x7FFFFFFF)
INFINITY = np.uint32(0x7F800000)
ONE = np.uint32(0x3F800000)
MIN_NORMAL = np.uint32(0x00800000)
NEGATIVE_ZERO = SIGN
PARTIAL_SUMS = 8


def bits(a):
    """uint32 array (or scalar) of patterns."""
    return np.asarray(a, np.uint32)


def flush(a):
    """Subnormals become zeros of their sign."""
    a = bits(a)
    return np.where((a & INFINITY) == 0, a & SIGN, a)


def canonical(a):
    """Flush, and make every NaN 0x7fc00000."""
    a = flush(a)
    return np.where((a & MAGNITUDE) > INFINITY, NAN, a)


def _float(a):
    return np.ascontiguousarray(flush(a)).view(np.float32)


def _bits(x):
    return np.ascontiguousarray(x, np.float32).view(np.uint32)


def add(a, b):
    """a + b."""
    with np.errstate(all="ignore"):
        return canonical(_bits(_float(a) + _float(b)))


def mul(a, b):
    """a * b; zero of its sign if the exact magnitude is below 2^-126."""
    a, b = np.broadcast_arrays(flush(a), flush(b))
    with np.errstate(all="ignore"):
        exact = _float(a).astype(np.float64) * _float(b).astype(np.float64)
        tiny = (np.abs(exact) < 2.0 ** -126) & np.isfinite(exact)
        return np.where(tiny, (a ^ b) & SIGN, canonical(_bits(exact.astype(np.float32))))


def _key(a):
    """Signed integers in the order of the values, -0 below +0 (no NaN)."""
    a = flush(a)
    return np.where(a & SIGN != 0, -1 - (a & MAGNITUDE).astype(np.int64), a.astype(np.int64))


def is_nan(a):
    return (bits(a) & MAGNITUDE) > INFINITY


def maximum(a, b):
    """The larger; NaN if either is NaN; -0 < +0."""
    return _extreme(a, b, _key(a) >= _key(b))


def minimum(a, b):
    """The smaller; NaN if either is NaN; -0 < +0."""
    return _extreme(a, b, _key(a) <= _key(b))


def _extreme(a, b, first):
    return np.where(is_nan(a) | is_nan(b), NAN, np.where(first, flush(a), flush(b)))


def absolute(a):
    """|a|; NaN is canonical."""
    return canonical(bits(a) & MAGNITUDE)


_COMPARE = {AluOp.EQ: np.equal, AluOp.NE: np.not_equal, AluOp.GT: np.greater, AluOp.GE: np.greater_equal,
            AluOp.LT: np.less, AluOp.LE: np.less_equal}


def compare(op, a, b):
    """IEEE comparison of fp32 patterns, as bool; subnormals are zeros."""
    with np.errstate(all="ignore"):
        return _COMPARE[op](_float(a), _float(b))


def alu_float(op, x, a):
    """One float-class operation; `bypass` flushes and makes NaN canonical, like every conversion."""
    if op in _COMPARE:
        return np.where(compare(op, x, a), ONE, np.uint32(0))
    return {AluOp.BYPASS: lambda: canonical(x), AluOp.ABS: lambda: absolute(x), AluOp.ADD: lambda: add(x, a),
            AluOp.SUB: lambda: add(x, bits(a) ^ SIGN), AluOp.MUL: lambda: mul(x, a),
            AluOp.MAX: lambda: maximum(x, a), AluOp.MIN: lambda: minimum(x, a)}[op]()


def _signed(a):
    return np.ascontiguousarray(bits(a)).view(np.int32)


def alu_int(op, x, a):
    """One integer-class operation on int32 patterns."""
    x, a = np.broadcast_arrays(bits(x), bits(a))
    if op in _COMPARE:
        return _COMPARE[op](_signed(x), _signed(a)).astype(np.uint32)
    count = a & np.uint32(31)
    with np.errstate(all="ignore"):
        return {AluOp.BYPASS: lambda: x, AluOp.ABS: lambda: np.where(x & SIGN != 0, np.uint32(0) - x, x),
                AluOp.ADD: lambda: x + a, AluOp.SUB: lambda: x - a,
                AluOp.MAX: lambda: np.maximum(_signed(x), _signed(a)).view(np.uint32),
                AluOp.MIN: lambda: np.minimum(_signed(x), _signed(a)).view(np.uint32),
                AluOp.AND: lambda: x & a, AluOp.OR: lambda: x | a, AluOp.XOR: lambda: x ^ a,
                AluOp.SHL: lambda: x << count, AluOp.SHR: lambda: x >> count,
                AluOp.SAR: lambda: (_signed(x) >> count.view(np.int32)).view(np.uint32)}[op]()


def matmul(stationary, st_dtype, moving, mv_dtype, pe):
    """One array pass: raw patterns [K, M] and [K, F] to fp32 (int8 PEs: int32) patterns [M, F].

    Float: sum = add(sum, mul(x, w)) over the rows in order, from +0. Native float32 followed by a flush is exact here,
    because products of the PE's formats have at most 22 bits. int8: exact int32.
    """
    if pe == "int8":
        w = stationary.astype(np.uint8).view(np.int8).astype(np.float64)
        x = moving.astype(np.uint8).view(np.int8).astype(np.float64)
        return (w.T @ x).astype(np.int64).astype(np.int32).view(np.uint32)
    w = pe_round(to_fp32(stationary, st_dtype), pe).view(np.float32)
    x = pe_round(to_fp32(moving, mv_dtype), pe).view(np.float32)
    total = np.zeros((w.shape[1], x.shape[1]), np.float32)
    with np.errstate(all="ignore"):
        for row_w, row_x in zip(w, x, strict=True):
            product = flush(_bits(np.multiply.outer(row_w, row_x))).view(np.float32)
            total = flush(_bits(total + product)).view(np.float32)
    return canonical(_bits(total))


def psum_accumulate(old, new, pe):
    """fp32 add, or saturating int32 add on int8 PEs."""
    if pe != "int8":
        return add(old, new)
    total = _signed(old).astype(np.int64) + _signed(new)
    return np.clip(total, -2 ** 31, 2 ** 31 - 1).astype(np.int32).view(np.uint32)


def reduce_add(x):
    """Sum over the last axis: element i into partial sum i mod 8, then a fixed tree."""
    n = x.shape[-1]
    rows = -(-n // PARTIAL_SUMS)
    padded = np.full((*x.shape[:-1], rows * PARTIAL_SUMS), NEGATIVE_ZERO, np.uint32)
    padded[..., :n] = x
    padded = padded.reshape(*x.shape[:-1], rows, PARTIAL_SUMS)
    s = np.zeros((*x.shape[:-1], PARTIAL_SUMS), np.uint32)
    for i in range(rows):
        s = add(s, padded[..., i, :])
    while s.shape[-1] > 1:
        s = add(s[..., 0::2], s[..., 1::2])
    return s[..., 0]


def reduce(op, x, integer=False):
    """Reduce the last axis by add, max or min."""
    if integer:
        if op == AluOp.ADD:
            return x.astype(np.uint64).sum(axis=-1).astype(np.uint32)
        return (np.max if op == AluOp.MAX else np.min)(_signed(x), axis=-1).view(np.uint32)
    if op == AluOp.ADD:
        return reduce_add(x)
    step, total = (maximum, INFINITY | SIGN) if op == AluOp.MAX else (minimum, INFINITY)
    total = np.full(x.shape[:-1], total, np.uint32)
    for i in range(x.shape[-1]):
        total = step(total, x[..., i])
    return total


__all__ = ["add", "mul", "maximum", "minimum", "absolute", "compare", "alu_float", "alu_int", "matmul",
           "psum_accumulate", "reduce_add", "reduce", "flush", "canonical", "is_nan", "to_fp32", "from_fp32",
           "int_convert", "load", "pe_round"]
