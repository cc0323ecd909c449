"""Operands of an instruction on the golden machine's memories: strided bit patterns in and out."""

import numpy as np

from isa.dtypes import DType

TYPES = {1: np.uint8, 2: np.uint16, 4: np.uint32}


def sizes(values, prefix="n"):
    """The three sizes of an instruction's shape."""
    return tuple(values[f"{prefix}{d}"] for d in range(3))


def walk(address, strides, shape, size):
    """Byte offsets [*shape, size] of a strided walk; strides in elements of `size` bytes."""
    at = np.full(shape, address, np.int64)
    for axis, (stride, n) in enumerate(zip(strides, shape)):
        steps = np.arange(n, dtype=np.int64) * (stride * size)
        at += steps.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return at[..., None] + np.arange(size)


def to_bits(raw):
    """uint8[..., size], little-endian, to uint8/16/32[...]."""
    size = raw.shape[-1]
    return np.ascontiguousarray(raw).view(TYPES[size])[..., 0]


def to_bytes(bits, size):
    """The inverse of `to_bits`."""
    bits = np.ascontiguousarray(bits, TYPES[size])
    return bits[..., None].view(np.uint8)


def check_distinct(at, access):
    """A destination [..., size] may not name one address twice."""
    if np.unique(at).size != at.size:
        access.fail("the destination writes one address more than once")


class Operand:
    """One tensor operand `name` of an instruction: where it is, in which memory."""

    def __init__(self, machine, values, name, access, shape=None, parts=None, dtype=None):
        self.access = access
        self.memory = machine.psum if values.get(f"{name}_space") else machine.sbuf
        self.dtype = DType(values[f"{name}_type"] if dtype is None else dtype)
        self.parts = parts or slice(values["p0"], values["p0"] + values["pn"])
        self.shape = sizes(values) if shape is None else shape
        strides = [values[f"{name}_s{d}"] for d in range(len(self.shape))]
        self.at = walk(values[f"{name}_addr"], strides, self.shape, self.dtype.size_bytes)

    def read(self, own_queue_ok=False):
        """Bit patterns [partitions, *shape]."""
        return to_bits(self.memory.read(self.parts, self.at, self.access, own_queue_ok))

    def write(self, bits, mask=None):
        """Store bit patterns [partitions, *shape] where `mask` is true."""
        self.check_distinct()
        raw = to_bytes(bits, self.dtype.size_bytes)
        wide = None if mask is None else np.broadcast_to(mask[..., None], raw.shape)
        self.memory.write(self.parts, self.at, raw, self.access, wide)

    def check_distinct(self):
        """A destination may not name one address twice."""
        check_distinct(self.at, self.access)

    def check_overlap(self, source, in_place):
        """Destination `self` may overlap `source` only in place, and only where `in_place` allows it."""
        if self.memory is not source.memory or self.parts.start >= source.parts.stop \
                or source.parts.start >= self.parts.stop:
            return
        same = self.at.shape == source.at.shape and np.array_equal(self.at, source.at)
        if (not same or not in_place) and np.intersect1d(self.at, source.at).size:
            self.access.fail("the destination overlaps a source" + (" and is not in place" if in_place else ""))


class Scalar(Operand):
    """One element a partition in SBUF, bit patterns [partitions]: a scalar operand, an index, a running sum's place."""

    def __init__(self, machine, values, address, dtype, access):
        super().__init__(machine, {**values, "s_addr": address}, "s", access, (), dtype=dtype)

    @classmethod
    def of(cls, machine, values, reference, access):
        """By reference: bits 0-17 address, 18-21 type."""
        return cls(machine, values, reference & 0x3FFFF, DType(reference >> 18 & 0xF), access)


class DramOperand:
    """A DRAM operand: a walk whose first axis may be the partitions."""

    def __init__(self, machine, address, strides, shape, size, access):
        self.memory, self.access, self.size = machine.dram, access, size
        if not 0 <= address < machine.dram.size:  # a row number times a stride may be beyond NumPy's integers
            access.fail(f"DRAM address {address:#x} is outside 0 to {machine.dram.size - 1:#x}")
        self.at = walk(address, strides, shape, size)

    def read(self):
        """Raw bytes [*shape, size]."""
        return self.memory.read(slice(0, 1), self.at, self.access)[0]

    def write(self, raw):
        check_distinct(self.at, self.access)
        self.memory.write(slice(0, 1), self.at, raw[None], self.access)
