"""Conversions between element types, on bit patterns.

To fp32: exact, but bf16 and fp32 subnormals count as zero and int32 rounds. From fp32 (subnormals count as zero):
nearest even; bf16, fp16, e8m10, e8m7 overflow to infinity; fp8 and integers saturate; NaN has one pattern per
type. Integer to integer saturates. Formats: IEEE 754, OCP 8-bit floating point.
"""

import numpy as np

from isa.dtypes import DType

NANS = {DType.FP32: 0x7FC00000, DType.BF16: 0x7FC0, DType.FP16: 0x7E00, DType.FP8E4: 0x7F, DType.FP8E5: 0x7E}
FORMATS = {DType.FP16: (5, 10), DType.FP8E4: (4, 3), DType.FP8E5: (5, 2)}  # exponent and fraction bits
LARGEST = {DType.FP8E4: 0x7E, DType.FP8E5: 0x7B}                          # saturating types: pattern of the maximum
INT_RANGE = {DType.INT8: (-128, 127), DType.UINT8: (0, 255), DType.INT32: (-2 ** 31, 2 ** 31 - 1)}
PE_FRACTION = {"tf32": 10, "bf16": 7}


def _fp32_clean(a):
    a = np.asarray(a, np.uint32)
    a = np.where(a & 0x7F800000, a, a & np.uint32(0x80000000))
    return np.where(a & np.uint32(0x7FFFFFFF) > 0x7F800000, np.uint32(0x7FC00000), a).astype(np.uint32)


def load(raw, dtype):
    """Integer patterns as int32 patterns: int8 extends its sign, uint8 zeros."""
    raw = np.asarray(raw)
    if dtype == DType.INT8:
        return raw.astype(np.uint8).view(np.int8).astype(np.int32).view(np.uint32)
    return raw.astype(np.uint32)


def to_fp32(raw, dtype):
    """Patterns of any type as fp32 patterns."""
    dtype = DType(dtype)
    if dtype.is_int:
        return load(raw, dtype).view(np.int32).astype(np.float32).view(np.uint32)
    raw = np.asarray(raw).astype(np.uint32)
    if dtype == DType.FP32:
        return _fp32_clean(raw)
    if dtype == DType.BF16:
        return _fp32_clean(raw << np.uint32(16))
    return _table(dtype)[raw]


def _small_float(dtype):
    """fp32 patterns of all patterns of fp16 or fp8, from the format's definition."""
    exponent_bits, fraction_bits = FORMATS[dtype]
    raw = np.arange(1 << (1 + exponent_bits + fraction_bits), dtype=np.int64)
    fraction = raw & ((1 << fraction_bits) - 1)
    exponent = raw >> fraction_bits & ((1 << exponent_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    significand = np.where(exponent == 0, fraction, fraction | 1 << fraction_bits).astype(np.float64)
    value = significand * 2.0 ** (np.maximum(exponent, 1) - bias - fraction_bits)
    top = exponent == (1 << exponent_bits) - 1
    if dtype == DType.FP8E4:
        nan = top & (fraction == 7)
    else:
        nan = top & (fraction != 0)
        value = np.where(top & (fraction == 0), np.inf, value)
    sign = (raw >> (exponent_bits + fraction_bits)).astype(np.uint32) << np.uint32(31)
    return np.where(nan, np.uint32(0x7FC00000), value.astype(np.float32).view(np.uint32) | sign).astype(np.uint32)


_tables = {}


def _table(dtype):
    if dtype not in _tables:
        _tables[dtype] = _small_float(dtype)
    return _tables[dtype]


def _round_fraction(a, drop):
    """fp32 patterns with the low `drop` fraction bits rounded away, to nearest even (carries into the exponent)."""
    half = np.uint32((1 << (drop - 1)) - 1)
    lowest = a >> np.uint32(drop) & np.uint32(1)
    nan = a & np.uint32(0x7FFFFFFF) > 0x7F800000
    return np.where(nan, a, (a + half + lowest) & np.uint32(0x100000000 - (1 << drop)))


def pe_round(a, pe):
    """fp32 patterns in the array's input format (e8m10 or e8m7), still as fp32 patterns."""
    return _round_fraction(_fp32_clean(a), 23 - PE_FRACTION[pe])


def from_fp32(a, dtype):
    """fp32 patterns as patterns of `dtype`."""
    dtype = DType(dtype)
    a = _fp32_clean(a)
    if dtype == DType.FP32:
        return a
    if dtype == DType.BF16:
        return (_round_fraction(a, 16) >> np.uint32(16)).astype(np.uint16)
    nan = a & np.uint32(0x7FFFFFFF) > 0x7F800000
    if dtype.is_int:
        low, high = INT_RANGE[dtype]
        with np.errstate(all="ignore"):
            value = np.clip(np.where(nan, 0, np.rint(a.view(np.float32).astype(np.float64))), low, high)
        return value.astype(np.int64).astype(dtype.numpy).view(dtype.bits_numpy)
    return _to_small_float(a, nan, dtype)


def _to_small_float(a, nan, dtype):
    exponent_bits, fraction_bits = FORMATS[dtype]
    bias = (1 << (exponent_bits - 1)) - 1
    with np.errstate(all="ignore"):
        value = np.abs(a.view(np.float32).astype(np.float64))
        value = np.where(nan, 0.0, np.minimum(value, 2.0 ** 100))
        exponent = np.maximum(np.frexp(value)[1] - 1, 1 - bias)  # of the last place; subnormals share the lowest
        steps = np.rint(value * 2.0 ** (fraction_bits - exponent)).astype(np.int64)
    magnitude = steps + ((exponent + bias - 1).astype(np.int64) << fraction_bits)
    magnitude = np.where(steps == 0, 0, magnitude)
    highest = LARGEST.get(dtype, ((1 << exponent_bits) - 1) << fraction_bits)  # fp16: infinity
    magnitude = np.minimum(magnitude, highest)
    sign = (a >> np.uint32(31)).astype(np.int64) << (exponent_bits + fraction_bits)
    return np.where(nan, NANS[dtype], magnitude | sign).astype(dtype.bits_numpy)


def int_convert(a, dtype):
    """int32 patterns as patterns of `dtype`: integers saturate, floats go through fp32."""
    dtype = DType(dtype)
    if dtype.is_float:
        return from_fp32(to_fp32(a, DType.INT32), dtype)
    low, high = INT_RANGE[dtype]
    value = np.ascontiguousarray(np.asarray(a, np.uint32)).view(np.int32)
    return np.clip(value, low, high).astype(dtype.numpy).view(dtype.bits_numpy)
