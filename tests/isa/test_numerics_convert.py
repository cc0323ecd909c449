"""isa.convert and isa.dtypes against ml_dtypes, exhaustively where the format has at most 16 bits."""

import numpy as np
import pytest

from isa import convert
from isa.dtypes import DType
from tests.isa.values import CORNERS, random_fp32, rng

NAN, INF = 0x7FC00000, 0x7F800000
SMALL_FLOATS = (DType.BF16, DType.FP16, DType.FP8E4, DType.FP8E5)
INTS = (DType.INT8, DType.UINT8, DType.INT32)


def everything(dtype):
    """All patterns of a type of at most 16 bits."""
    return np.arange(1 << 8 * dtype.size_bytes, dtype=np.uint32).astype(dtype.bits_numpy)


def between(dtype):
    """fp32 patterns that decide rounding: every value of the type, the midpoints, and both neighbours of each."""
    with np.errstate(all="ignore"):
        values = np.unique(everything(dtype).view(dtype.numpy).astype(np.float32))
    values = values[np.isfinite(values)].astype(np.float64)
    points = np.concatenate([values, (values[1:] + values[:-1]) / 2])
    with np.errstate(all="ignore"):
        points = points.astype(np.float32)
        return np.concatenate([points, np.nextafter(points, np.float32(np.inf)),
                               np.nextafter(points, np.float32(-np.inf))]).view(np.uint32)


def inputs(name):
    return np.concatenate([CORNERS, random_fp32(rng(name), 300_000)])


def flushed(bits):
    return np.where(bits & INF == 0, bits & 0x80000000, bits).astype(np.uint32)


@pytest.mark.parametrize("dtype", SMALL_FLOATS)
def test_to_fp32(dtype):
    raw = everything(dtype)
    with np.errstate(all="ignore"):
        want = raw.view(dtype.numpy).astype(np.float32).view(np.uint32)
    want = np.where(want & 0x7FFFFFFF > INF, NAN, flushed(want))
    assert np.array_equal(convert.to_fp32(raw, dtype), want)


@pytest.mark.parametrize("dtype", SMALL_FLOATS)
def test_from_fp32(dtype):
    bits = np.concatenate([inputs(dtype.label), between(dtype)])
    x = flushed(bits).view(np.float32)
    with np.errstate(all="ignore"):
        if dtype in convert.LARGEST:  # the oracle does not saturate
            limit = np.array(convert.LARGEST[dtype], dtype.bits_numpy).view(dtype.numpy).astype(np.float32)
            x = np.where(np.isnan(x), x, np.clip(x, -limit, limit))
        want = x.astype(dtype.numpy).view(dtype.bits_numpy)
    want = np.where(np.isnan(x), np.array(convert.NANS[dtype], dtype.bits_numpy), want)
    got = convert.from_fp32(bits, dtype)
    bad = np.flatnonzero(got != want)
    assert got.dtype == dtype.bits_numpy and not bad.size, [(hex(bits[i]), hex(got[i]), hex(want[i])) for i in bad[:5]]


@pytest.mark.parametrize("dtype", SMALL_FLOATS)
def test_round_trip(dtype):
    """Every value of a small float survives fp32, except NaN patterns, bf16 subnormals, and fp8e5's infinities."""
    raw = everything(dtype)
    back = convert.from_fp32(convert.to_fp32(raw, dtype), dtype)
    nan = np.isnan(raw.view(dtype.numpy).astype(np.float32))
    kept = ~nan
    if dtype == DType.BF16:
        kept &= (raw & 0x7F80 != 0) | (raw & 0x7FFF == 0)
    if dtype == DType.FP8E5:
        kept &= raw & 0x7F != 0x7C
        assert back[0x7C] == 0x7B and back[0xFC] == 0xFB
    assert np.array_equal(back[kept], raw[kept])
    assert np.all(back[nan] == convert.NANS[dtype])


def test_fp32_is_flushed_and_canonical():
    want = np.where(CORNERS & 0x7FFFFFFF > INF, NAN, flushed(CORNERS))
    assert np.array_equal(convert.to_fp32(CORNERS, DType.FP32), want)
    assert np.array_equal(convert.from_fp32(CORNERS, DType.FP32), want)


@pytest.mark.parametrize("dtype", INTS)
def test_float_to_int(dtype):
    r = rng(dtype.label)
    near = (r.integers(-600, 600, 20_000) / 2).astype(np.float32)  # ties, and the limits of the 8-bit types
    edge = np.array([2.0 ** 31, -2.0 ** 31, 2.0 ** 31 - 128, -2.0 ** 31 - 256, 1e20, -1e20], np.float32)
    bits = np.concatenate([inputs(f"{dtype.label} int"), near.view(np.uint32), edge.view(np.uint32)])
    info = np.iinfo(dtype.numpy)
    got = convert.from_fp32(bits, dtype).view(dtype.numpy)
    for pattern, result in zip(bits[::7].tolist(), got[::7].tolist(), strict=True):
        x = float(np.uint32(pattern).view(np.float32))
        want = 0 if x != x else info.max if x > info.max else info.min if x < info.min else round(x)
        assert result == want, (hex(pattern), x)


def test_int_to_fp32():
    for dtype in (DType.INT8, DType.UINT8):
        raw = everything(dtype)
        assert np.array_equal(convert.to_fp32(raw, dtype).view(np.float32), raw.view(dtype.numpy).astype(np.float32))
    r = rng("int32")
    value = np.concatenate([r.integers(-2 ** 31, 2 ** 31, 100_000) >> r.integers(0, 31, 100_000),
                            [0, -1, 2 ** 24 + 1, 2 ** 24 + 3, 2 ** 31 - 1, -2 ** 31]]).astype(np.int32)
    want = value.astype(np.float64).astype(np.float32)
    assert np.array_equal(convert.to_fp32(value.view(np.uint32), DType.INT32).view(np.float32), want)


@pytest.mark.parametrize("dtype", DType)
def test_int_convert(dtype):
    r = rng("int_convert")
    value = np.concatenate([np.arange(-300, 300), r.integers(-2 ** 31, 2 ** 31, 5000), [2 ** 31 - 1, -2 ** 31]])
    value = value.astype(np.int32)
    got = convert.int_convert(value.view(np.uint32), dtype)
    if dtype.is_int:
        info = np.iinfo(dtype.numpy)
        assert np.array_equal(got.view(dtype.numpy), np.clip(value, info.min, info.max))
    else:
        assert np.array_equal(got, convert.from_fp32(value.astype(np.float32).view(np.uint32), dtype))


def test_load():
    raw = everything(DType.INT8)
    assert np.array_equal(convert.load(raw, DType.INT8).view(np.int32), raw.view(np.int8).astype(np.int32))
    assert np.array_equal(convert.load(raw, DType.UINT8), raw.astype(np.uint32))


@pytest.mark.parametrize("pe", convert.PE_FRACTION)
def test_pe_round(pe):
    fraction = convert.PE_FRACTION[pe]
    bits = inputs(pe)
    got = convert.pe_round(bits, pe)
    assert not np.any(got & ((1 << (23 - fraction)) - 1))
    with np.errstate(invalid="ignore"):
        x, y = (v.view(np.float32).astype(np.float64) for v in (flushed(bits), got))
    finite = np.isfinite(x)
    assert np.all(got[np.isnan(x)] == NAN) and np.array_equal(y[np.isinf(x)], x[np.isinf(x)])
    step = 2.0 ** (np.maximum(bits[finite] >> 23 & 0xFF, 1).astype(np.int64) - 127 - fraction)
    want = np.rint(x[finite] / step) * step
    want = np.where(np.abs(want) >= 2.0 ** 128, np.copysign(np.inf, want), want)
    assert np.array_equal(y[finite], want) and np.array_equal(np.signbit(y[finite]), np.signbit(x[finite]))
    if pe == "bf16":
        assert np.array_equal(got >> 16, convert.from_fp32(bits, DType.BF16))


def test_pe_round_keeps_small_types_exactly():
    for dtype in (DType.FP8E4, DType.FP8E5, DType.INT8, DType.UINT8):
        value = convert.to_fp32(everything(dtype), dtype)
        assert np.array_equal(convert.pe_round(value, "bf16"), value)
    for dtype in (DType.BF16, DType.FP16):
        value = convert.to_fp32(everything(dtype), dtype)
        assert np.array_equal(convert.pe_round(value, "tf32"), value)


def test_dtypes():
    for t in DType:
        assert np.dtype(t.numpy).itemsize == t.size_bytes == 1 << t.size_log2 == np.dtype(t.bits_numpy).itemsize
        assert DType.parse(t.label) is t and DType.of(t.numpy) is t and t.is_int != t.is_float
    with pytest.raises(ValueError, match="bf16"):
        DType.parse("fp64")
    with pytest.raises(ValueError, match="float64"):
        DType.of(np.float64)
