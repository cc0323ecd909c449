"""Activation functions: built-in ones (exact) and piecewise quadratics from a table."""

import numpy as np

from isa import numerics as num
from isa.ops import AluOp, Func

SLOT_WORDS = 4 + 3 * 128
TABLES = {}


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
