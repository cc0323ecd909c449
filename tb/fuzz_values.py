"""Contents for random programs: every element type's corners, ordinary values and plain bits."""

import ml_dtypes
import numpy as np

from isa.dtypes import DType

STYLES = ("plain", "special", "bits")
ROWS = "rows"  # a zone of small int32 numbers: what gather and scatter can use
MOST_ROWS = 8

# Between two neighbours of a narrower type, or one off: bf16, fp16, tf32, fp8e4, fp8e5, integers; and the limits of those.
TIES = np.array([0x3F808000, 0x3F807FFF, 0x3F808001, 0x3F818000, 0x3F801000, 0x3F803000, 0x3F880000, 0x3FA00000,
                 0x3F900000, 0x3F000000, 0x3FC00000, 0x42FF0000, 0x437F8000, 0x43E80000, 0x477FF000, 0x47700000,
                 0x7F7F8000, 0x4EFFFFFF, 0x4F000000, 0x33800000, 0x38800000, 0x387FE000, 0x3C800000, 0x00800000,
                 0x00FFFFFF, 0x4B7FFFFF, 0x3F7FFFFF, 0x41000000], np.uint32)


def corners(dtype):
    """Bit patterns worth having: zeros, ones, largest, smallest, subnormals, infinities, NaN, neighbours of one, ties."""
    if dtype.is_int:
        info = np.iinfo(dtype.numpy)
        values = {0, 1, info.max, info.max - 1, info.min, info.min + 1, info.max // 2, *(1 << i for i in range(info.bits - 1))}
        if info.min:
            values |= {-v for v in values if v <= info.max}
        return np.array(sorted(values), np.int64).astype(dtype.numpy).view(dtype.bits_numpy)
    info = ml_dtypes.finfo(dtype.numpy)
    one = np.array(1, dtype.numpy).view(dtype.bits_numpy)
    small = np.array([info.smallest_normal, info.max], dtype.numpy).view(dtype.bits_numpy)
    with np.errstate(invalid="ignore", over="ignore"):
        odd = np.array([0.0, np.inf, np.nan], np.float32).astype(dtype.numpy).view(dtype.bits_numpy)
    out = [odd, small, [1, small[0] - 1, small[0] + 1, one - 1, one, one + 1, one + 2], *([TIES] if dtype == DType.FP32 else [])]
    out = np.concatenate([np.asarray(a, dtype.bits_numpy) for a in out])
    return np.concatenate([out, out | dtype.bits_numpy(1 << 8 * dtype.size_bytes - 1)])


def values(rng, dtype, count, style):
    """`count` bit patterns of a type."""
    if style == "special":
        return rng.choice(corners(dtype), count)
    if style == "bits":
        return rng.integers(0, 1 << 8 * dtype.size_bytes, count, dtype.bits_numpy)
    if dtype.is_int:
        info = np.iinfo(dtype.numpy)
        return rng.integers(max(info.min, -20), 21, count).astype(dtype.numpy).view(dtype.bits_numpy)
    plain = rng.standard_normal(count) * 2.0 ** rng.integers(-3, 4)
    return plain.astype(np.float32).astype(dtype.numpy).view(dtype.bits_numpy)


def zone(rng, kind, size):
    """`size` bytes (a multiple of 4) of one kind: a DType in a random style, or ROWS."""
    if kind == ROWS:
        return rng.integers(0, MOST_ROWS, size // 4, np.uint32).view(np.uint8)
    style = STYLES[rng.choice(3, p=(0.5, 0.35, 0.15))]
    return values(rng, kind, size // kind.size_bytes, style).view(np.uint8)


def immediate(rng):
    """32 bits: of fp32, of an int32, a small number or anything."""
    kind = rng.integers(4)
    if kind == 3:
        return int(rng.integers(0, 5))
    dtype = (DType.FP32, DType.FP32, DType.INT32)[kind]
    return int(values(rng, dtype, 1, STYLES[rng.integers(3)])[0])
