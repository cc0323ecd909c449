"""Builder: a Python program emits instructions; the builder orders them and places the data.

    b = Builder(preset("tiny"))
    a = b.dram("a", (4, 64), "fp32", "input")
    ...
    b.emit("dma0", "ld", p0=0, pn=4, x=(addr, "fp32", (n0, n1, n2), (s0, s1, s2)), d=...)

`emit` takes the fields of the instruction table; operands are `View`s (on chip) and `DramView`s. Waits are derived
from the bytes that instructions touch. `program()` gives a `sw.program.Program`.
"""

from dataclasses import dataclass

import numpy as np

from isa.dtypes import DType
from isa.encode import encode
from isa.table import BY_NAME, QUEUES
from sw.asm_order import problem
from sw.dependencies import Dependencies
from sw.errors import BuildError
from sw.memory import Allocator
from sw.program import DramTensor, Program

DRAM_ALIGN = 64
TAGS = 1 << 16
SAFE_LENGTH = 0x7FFF  # instructions of a queue whose counts cannot wrap


def padded(shape, strides):
    """Three sizes and strides, ones and zeros in front."""
    if len(shape) > 3:
        raise BuildError(f"shape {tuple(shape)} has {len(shape)} free axes: at most 3")
    return (1,) * (3 - len(shape)) + tuple(shape), (0,) * (3 - len(strides)) + tuple(strides)


@dataclass(frozen=True)
class View:
    """A tensor on chip: byte address, type, free shape and strides in elements; `memory` is 'sbuf' or 'psum'."""

    memory: str
    addr: int
    dtype: DType
    shape: tuple
    strides: tuple

    @property
    def span(self):
        """(memory, first byte, one past the last) that the walk can touch."""
        steps = [s * (n - 1) for s, n in zip(self.strides, self.shape)]
        size = self.dtype.size_bytes
        return (self.memory, self.addr + size * sum(s for s in steps if s < 0),
                self.addr + size * (1 + sum(s for s in steps if s > 0)))


@dataclass(frozen=True)
class DramView:
    """A tensor in DRAM: name, byte offset, strides in elements (partition first for ld and st)."""

    name: str
    addr: int
    strides: tuple


class Builder:
    """Collects a program for one configuration."""

    def __init__(self, config):
        self.config = config
        self.words = {q: [] for q in config.queues}
        self.depend = Dependencies(config)
        self.sbuf = Allocator("sbuf", config.sbuf_bytes, 4 * config.sbuf_banks)
        self.psum = Allocator("psum", config.psum_bytes, 4)
        self.tensors = {}
        self.images = {}
        self.dram_end = 0
        self.source = []
        self._next_dma = 0

    def dram(self, name, shape, dtype, role, data=None):
        """Place a DRAM tensor; `role` is input, output, const or temp; `data` (const) its values."""
        dtype = DType.parse(dtype) if isinstance(dtype, str) else DType(dtype)
        if name in self.tensors:
            raise BuildError(f"tensor {name!r} exists already")
        if any(int(n) < 1 for n in shape):
            raise BuildError(f"tensor {name!r}: shape {tuple(shape)} has a size below 1")
        if (data is not None) != (role == "const"):
            raise BuildError(f"tensor {name!r}: data belong to const tensors and only to them")
        offset = self.dram_end
        size = int(np.prod(shape)) * dtype.size_bytes
        self.dram_end = -(-(offset + size) // DRAM_ALIGN) * DRAM_ALIGN
        self.tensors[name] = (dtype, tuple(int(n) for n in shape), offset, role)
        if data is not None:
            data = np.ascontiguousarray(data)
            if data.nbytes != size:
                raise BuildError(f"tensor {name!r}: {data.nbytes} bytes of data for {size}")
            self.images[name] = data
        return DramView(name, offset, ())

    def dma_queue(self):
        """The queues in turn."""
        self._next_dma = (self._next_dma + 1) % self.config.dma_queues
        return f"dma{self._next_dma}"

    def emit(self, queue, name, note="", disjoint=False, **operands):
        """Append one instruction. Operands: View, DramView, ints and flags by the table's names.

        `note` goes to the source map. `disjoint`: its DRAM writes overlap no other write to the tensor.
        """
        instruction = BY_NAME[name]
        fields, reads, writes = {}, [], []
        destination = {"ld": "x", "gat": "x", "cp": "e", "st": "d", "sca": "d"}.get(name, "y")
        for key, value in operands.items():
            if isinstance(value, View):
                self._view(instruction, fields, key, value)
                (writes if key == destination else reads).append(value.span)
            elif isinstance(value, DramView):
                fields[f"{key}_addr"] = value.addr
                dims = "p012" if name in ("ld", "st") else "012"
                fields |= {f"{key}_s{d}": s for d, s in zip(dims, value.strides)}
                (writes if key == destination else reads).append((f"dram:{value.name}", 0, 1))
            else:
                fields[key] = value
        if name == "mm" and operands.get("accumulate"):
            reads.append(operands["y"].span)
        for key in ("scale", "bias", "a"):
            if fields.get(f"{key}_mode") == 2:
                reads.append(("sbuf", fields[key] & 0x3FFFF, (fields[key] & 0x3FFFF) + 4))
        if name == "tab":
            reads.append(("sbuf", fields["x_addr"], fields["x_addr"] + 388 * 4))
        waits = self.depend.add(queue, reads, writes, not disjoint, own_read_after_write=name != "mm")
        for q, count in waits.items():
            slot = QUEUES.index(q)
            fields["wait_mask"] = fields.get("wait_mask", 0) | 1 << slot
            fields[f"wait{slot}"] = count & 0xFFFF
        fields["tag"] = self._tag(note)
        try:
            self.words[queue].append(encode(name, **fields))
        except ValueError as error:
            raise BuildError(f"{note or name}: {error}") from error

    def _tag(self, note):
        if not self.source or self.source[-1] != note:
            if len(self.source) < TAGS:
                self.source.append(note)
        return len(self.source) - 1

    @staticmethod
    def _view(instruction, fields, key, view):
        shape, strides = padded(view.shape, view.strides)
        has = instruction.placed
        fields[f"{key}_addr"] = view.addr
        if f"{key}_type" in has:
            fields[f"{key}_type"] = int(view.dtype)
        if f"{key}_s" in has:
            fields[f"{key}_s"] = view.strides[-1]
            return
        fields |= {f"{key}_s{d}": s for d, s in enumerate(strides)}
        if f"{key}_space" in has:
            fields[f"{key}_space"] = int(view.memory == "psum")
        sizes = "m" if key == "y" and instruction.name == "mv" else "n"
        if key == "x" or f"{sizes}0" not in fields:
            fields |= {f"{sizes}{d}": n for d, n in enumerate(shape)}

    def program(self):
        """The finished Program; BuildError if a 16-bit wait count could be misread."""
        if max(map(len, self.words.values())) > SAFE_LENGTH and (found := problem(self.words)):
            queue, index, message = found
            raise BuildError(f"{queue}[{index}]: {message}; split the program")
        tensors = {n: DramTensor(n, dtype, shape, offset, role) for n, (dtype, shape, offset, role) in
                   self.tensors.items()}
        return Program(self.config, {q: w for q, w in self.words.items() if w}, tensors, dict(self.images),
                       list(self.source))
