"""Element types: codes, sizes, names, and their NumPy types."""

from enum import IntEnum

import ml_dtypes
import numpy as np


class DType(IntEnum):
    """Element type; the value is its code in instructions."""

    FP32 = 0
    BF16 = 1
    FP16 = 2
    FP8E4 = 3  # OCP e4m3, no infinity
    FP8E5 = 4  # OCP e5m2
    INT8 = 5
    UINT8 = 6
    INT32 = 7

    @property
    def label(self):
        """Name in assembly, e.g. 'bf16'."""
        return self.name.lower()

    @property
    def size_bytes(self):
        return _SIZES[self]

    @property
    def size_log2(self):
        return self.size_bytes.bit_length() - 1

    @property
    def is_int(self):
        return self in (DType.INT8, DType.UINT8, DType.INT32)

    @property
    def is_float(self):
        return not self.is_int

    @property
    def numpy(self):
        """Array type of its values."""
        return _NUMPY[self]

    @property
    def bits_numpy(self):
        """Unsigned array type of its bit patterns."""
        return {1: np.uint8, 2: np.uint16, 4: np.uint32}[self.size_bytes]

    @classmethod
    def parse(cls, name):
        """The type called `name`; ValueError lists the names."""
        for t in cls:
            if t.label == name:
                return t
        raise ValueError(f"no element type {name!r}: must be one of {', '.join(t.label for t in cls)}")

    @classmethod
    def of(cls, dtype):
        """The type of an array's elements; ValueError if there is none."""
        for t in cls:
            if np.dtype(t.numpy) == np.dtype(dtype):
                return t
        raise ValueError(f"no element type for arrays of {np.dtype(dtype)}")


_SIZES = {DType.FP32: 4, DType.BF16: 2, DType.FP16: 2, DType.FP8E4: 1, DType.FP8E5: 1, DType.INT8: 1, DType.UINT8: 1,
          DType.INT32: 4}
_NUMPY = {DType.FP32: np.float32, DType.BF16: ml_dtypes.bfloat16, DType.FP16: np.float16,
          DType.FP8E4: ml_dtypes.float8_e4m3fn, DType.FP8E5: ml_dtypes.float8_e5m2, DType.INT8: np.int8,
          DType.UINT8: np.uint8, DType.INT32: np.int32}
