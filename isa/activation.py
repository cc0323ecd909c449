"""Activation functions: built-in ones (exact), and piecewise quadratics whose table is their definition.

Built in (`Func`): identity, relu = maximum(x, +0), square = mul(x, x), abs, sign (-1, +0 or 1; both zeros give +0,
NaN gives NaN).

A table slot is 388 words: mode, f(0), f(+inf), f(-inf), then 128 segments of c2, c1, c0 (fp32 patterns). Only the low
three bits of the mode count; 6 and 7 mean DIRECT. For an input y (flushed) with sign s, exponent field E and
fraction F (23 bits, F[22] the highest), and e = E - 127, the result is the first that applies:

1.  NaN                              NaN
2.  zero                             f(0); in mode RECIP with the sign bit inverted where s is set
3.  +infinity, -infinity             f(+inf), f(-inf)
4.  s set in SQRT, RSQRT, LOG        NaN
5.  EXP and |mul(y, log2e)| >= 256   +infinity, or +0 where s is set
6.  otherwise p = add(mul(add(mul(c2, r), c1), r), c0) with r and the segment's 7-bit index from the mode, then scaled:

mode     r                           index                            result
DIRECT   y                           s, group (3), sub (3)            p
EXP      1 + fraction of t           fraction[22:16]                  scale(p, floor of t)
RECIP    1.F                         F[22:16]                         scale(p, -e), sign bit inverted where s is set
SQRT     1.F, doubled for odd e      e[0], F[22:17]                   scale(p, floor(e / 2))
RSQRT    as SQRT                     as SQRT                          scale(p, -floor(e / 2))
LOG      1.F - 1; 1.F/2 - 1 if F[22] F[22:16]                         add(mul(k, ln2), p)

DIRECT   group 0: |y| < 0.5, sub = floor(16 |y|); group 1..6: 2^(group-2) <= |y| < 2^(group-1), sub = F[22:20];
         group 7: |y| >= 32, sub = F[22:20].
EXP      t = mul(y, log2e), its magnitude truncated to a multiple of 2^-23, then as a signed fixed-point number.
LOG      r is exact. k is e, or e + 1 where F[22] is set, as fp32 (zero is +0).
scale    p unchanged if its exponent field is 0 or 255; else the field plus the count, but at most 0 gives zero of p's
         sign, at least 255 infinity of p's sign.
Constants: log2e = 0x3fb8aa3b, ln2 = 0x3f317218. Every mul and add is the one of `isa.numerics`; header words are
flushed, and their NaN made canonical, where they are used.
"""

from collections.abc import Mapping

import numpy as np

from isa import numerics as num
from isa.ops import AluOp, Func, TableMode

HEADER_WORDS = 4
SEGMENTS = 128
SLOT_WORDS = HEADER_WORDS + 3 * SEGMENTS
LOG2E = np.uint32(0x3FB8AA3B)
LN2 = np.uint32(0x3F317218)
FRACTION = np.uint32(0x7FFFFF)


def builtin(func, x):
    """identity, relu, square, abs or sign of fp32 patterns; sign of a zero is +0, of NaN is NaN."""
    x = num.canonical(x)
    zero = np.uint32(0)
    if func == Func.IDENTITY:
        return x
    if func == Func.RELU:
        return num.maximum(x, zero)
    if func == Func.SQUARE:
        return num.mul(x, x)
    if func == Func.ABS:
        return num.absolute(x)
    one = np.where(x & num.SIGN != 0, np.uint32(0xBF800000), np.uint32(0x3F800000))
    return np.where(num.is_nan(x), num.NAN, np.where(num.compare(AluOp.EQ, x, zero), zero, one))


def _direct(y):
    exponent = (y >> 23 & 0xFF).astype(np.int64)
    significand = (y & FRACTION | 1 << 23).astype(np.int64)
    small = significand >> np.clip(127 - exponent + 19, 0, 40)  # floor(16 |y|)
    inner = exponent < 126
    group = np.where(inner, 0, np.minimum(exponent - 125, 7))
    sub = np.where(inner, small, significand >> 20 & 7)
    return (y >> 31).astype(np.int64) << 6 | group << 3 | sub


def _exp(y):
    """r, index, floor of t, |t| >= 256."""
    t = num.mul(y, LOG2E)
    exponent = (t >> 23 & 0xFF).astype(np.int64)
    far = exponent >= 135
    significand = (t & FRACTION | 1 << 23).astype(np.int64) << 7
    magnitude = np.where(exponent == 0, 0, significand >> np.clip(134 - exponent, 0, 40))
    fixed = np.where(t & num.SIGN != 0, -magnitude, magnitude)
    fraction = fixed & 0x7FFFFF
    return fraction.astype(np.uint32) | num.ONE, fraction >> 16, fixed >> 23, far


def _log(fraction, exponent):
    """r and k, both as fp32 patterns."""
    upper = fraction >> 22 != 0
    with np.errstate(all="ignore"):
        r = np.where(upper, fraction - 2.0 ** 23, 2.0 * fraction) * 2.0 ** -24
    k = (exponent - 127 + upper).astype(np.float32)
    return r.astype(np.float32).view(np.uint32), k.view(np.uint32)


def _scale(p, count):
    exponent = (p >> 23 & 0xFF).astype(np.int64)
    moved = exponent + count
    sign = p & num.SIGN
    inside = p & np.uint32(0x807FFFFF) | (np.clip(moved, 0, 255).astype(np.uint32) << np.uint32(23))
    result = np.where(moved <= 0, sign, np.where(moved >= 255, sign | num.INFINITY, inside))
    return np.where((exponent == 0) | (exponent == 255), p, result)


def evaluate(table, x):
    """f of fp32 patterns `x`, by the slot `table` (uint32[388]): the definition above."""
    table = num.bits(table)
    mode, at_zero, at_plus, at_minus = int(table[0]) & 7, *num.canonical(table[1:HEADER_WORDS])
    c2, c1, c0 = table[HEADER_WORDS:SLOT_WORDS].reshape(SEGMENTS, 3).T
    y = num.canonical(x)
    negative = y & num.SIGN != 0
    exponent = (y >> 23 & 0xFF).astype(np.int64)
    fraction = (y & FRACTION).astype(np.int64)
    significand = (y & FRACTION) | num.ONE  # 1.F
    odd = ~exponent & 1                     # of e
    half = (exponent - 127) >> 1
    far = None
    if mode == TableMode.EXP:
        r, index, count, far = _exp(y)
    elif mode == TableMode.RECIP:
        r, index, count = significand, fraction >> 16, 127 - exponent
    elif mode in (TableMode.SQRT, TableMode.RSQRT):
        r, index = significand + (odd.astype(np.uint32) << np.uint32(23)), odd << 6 | fraction >> 17
        count = half if mode == TableMode.SQRT else -half
    elif mode == TableMode.LOG:
        (r, k), index = _log(fraction, exponent), fraction >> 16
    else:
        r, index = y, _direct(y)
    result = num.add(num.mul(num.add(num.mul(c2[index], r), c1[index]), r), c0[index])
    if mode in (TableMode.EXP, TableMode.RECIP, TableMode.SQRT, TableMode.RSQRT):
        result = _scale(result, count)
    if mode == TableMode.LOG:
        result = num.add(num.mul(k, LN2), result)
    flip = np.where(negative & (mode == TableMode.RECIP), num.SIGN, np.uint32(0))
    result = result ^ flip
    if far is not None:
        result = np.where(far, np.where(negative, np.uint32(0), num.INFINITY), result)
    if mode in (TableMode.SQRT, TableMode.RSQRT, TableMode.LOG):
        result = np.where(negative, num.NAN, result)
    result = np.where(y == num.INFINITY, at_plus, np.where(y == (num.INFINITY | num.SIGN), at_minus, result))
    result = np.where(exponent == 0, at_zero ^ flip, result)
    return num.canonical(np.where(num.is_nan(y), num.NAN, result))


class _Tables(Mapping):
    """Table slots (read-only uint32[388]) by function name, fitted when first asked for."""

    def __getitem__(self, name):
        from isa import activation_fit  # late: most programs need no table, none needs all
        return activation_fit.table(name)

    def __iter__(self):
        from isa import activation_fit
        return iter(activation_fit.FUNCTIONS)

    def __len__(self):
        return sum(1 for _ in self)


TABLES = _Tables()
