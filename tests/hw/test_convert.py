"""hw.convert against isa.numerics: every pattern of the 8-bit types, corners and random patterns of the others."""

import numpy as np
import pytest

from hw.convert import PE_MANTISSA_BITS, FromFp32, PeRound, ToFp32
from isa import numerics
from isa.dtypes import DType
from tests.hw.datapath import CORNERS, assert_same, generator, random_fp32, stream

N = 300
STALLS = [1, 0, 1]


def raw_vectors(rng, types):
    """Raw elements with garbage above their size, types mixed from cycle to cycle."""
    raw, codes = [], []
    for t in types:
        bytes_ = np.arange(256, dtype=np.uint32) | (rng.integers(0, 1 << 24, 256, np.uint32) << np.uint32(8))
        top = CORNERS >> np.uint32(16)  # corners of the 16-bit types
        ints = (np.uint32(1) << np.arange(32, dtype=np.uint32))
        ints = np.concatenate([ints, ints - 1, -ints.view(np.int32).astype(np.int64) & 0xFFFFFFFF]).astype(np.uint32)
        raw.append(np.concatenate([bytes_, CORNERS, top, ints, random_fp32(rng, N)]))
        codes.append(np.full(len(raw[-1]), t.value))
    raw, codes = np.concatenate(raw), np.concatenate(codes)
    mixed = rng.permutation(raw.size)
    return {"raw": raw[mixed], "dtype": codes[mixed]}


def expected_fp32(inputs):
    want = np.zeros(inputs["raw"].size, np.uint32)
    for t in DType:
        chosen = inputs["dtype"] == t.value
        mask = np.uint32((1 << 8 * t.size_bytes) - 1)
        want[chosen] = numerics.to_fp32(inputs["raw"][chosen] & mask, t)
    return want


@pytest.mark.parametrize("int32", [True, False])
def test_to_fp32(int32):
    inputs = raw_vectors(generator("to"), [t for t in DType if int32 or t != DType.INT32])
    dut = ToFp32(int32=int32)
    assert_same(stream(dut, dut.latency, inputs, enable=[1] if int32 else STALLS), expected_fp32(inputs), inputs)


def fp32_vectors(rng, t):
    """Corners, random numbers in the range of `t`, exact ties and their neighbours, all powers of two."""
    wide = {DType.FP32: (0, 255), DType.BF16: (0, 255)}.get(t, (95, 162))
    bits = rng.integers(0, 1 << 32, N, np.uint32)
    inside = (bits & np.uint32(0x807FFFFF)) | (rng.integers(*wide, N, np.uint32) << np.uint32(23))
    short = inside & np.uint32(0xFFF80000)
    near = inside & np.uint32(0xFFFF0000) | rng.integers(0, 3, N, np.uint32) - np.uint32(1) & np.uint32(0xFFFF)
    halves = (np.arange(-300, 301) / 2).astype(np.float32).view(np.uint32)
    powers = np.arange(0, 256, dtype=np.uint32) << np.uint32(23)
    return np.concatenate([CORNERS, random_fp32(rng, N // 3), inside, short, near, halves, powers, powers - 1])


def test_from_fp32():
    rng = generator("from")
    groups = [(t, fp32_vectors(rng, t)) for t in DType]
    x = np.concatenate([g for _, g in groups])
    codes = np.concatenate([np.full(len(g), t.value) for t, g in groups])
    want = np.concatenate([numerics.from_fp32(g, t).astype(np.uint32) for t, g in groups])
    mixed = rng.permutation(x.size)
    inputs = {"x": x[mixed], "dtype": codes[mixed]}
    dut = FromFp32()
    assert_same(stream(dut, dut.latency, inputs, enable=[1, 1, 1, 0]), want[mixed], inputs)


def test_round_trip():
    """Every 8-bit float and int8, uint8 value survives the way to fp32 and back."""
    for t in (DType.FP8E4, DType.FP8E5, DType.INT8, DType.UINT8):
        raw = np.arange(256, dtype=np.uint32)
        inputs = {"x": numerics.to_fp32(raw, t), "dtype": np.full(256, t.value)}
        if t in (DType.FP8E4, DType.FP8E5):  # NaN is canonical; fp8e5 infinities saturate
            keep = np.isfinite(inputs["x"].view(np.float32))
            raw, inputs = raw[keep], {k: v[keep] for k, v in inputs.items()}
        assert_same(stream(FromFp32(), FromFp32.latency, inputs), raw, inputs)


@pytest.mark.parametrize("pe", sorted(PE_MANTISSA_BITS))
def test_pe_round(pe):
    inputs = raw_vectors(generator(pe), [t for t in DType if t != DType.INT32])
    dut = PeRound(pe)
    want = numerics.pe_round(expected_fp32(inputs), pe) >> np.uint32(23 - PE_MANTISSA_BITS[pe])
    assert_same(stream(dut, dut.latency, inputs, enable=STALLS), want, inputs)


def test_pe_round_int8():
    inputs = raw_vectors(generator("int8"), [DType.INT8])
    dut = PeRound("int8")
    assert_same(stream(dut, dut.latency, inputs, enable=STALLS), inputs["raw"] & 0xFF, inputs)
