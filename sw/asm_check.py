"""What hardware checks access by access, and what it does not check at all, decided before the program runs.

Every SBUF, PSUM and DRAM address that an instruction forms is inside its memory; a destination names no address
twice; it overlaps a source only in place. The rows of `gat` and `sca` come from data and are left to the hardware.
"""

from dataclasses import dataclass

import numpy as np

from isa.activation import SLOT_WORDS
from isa.dtypes import DType
from isa.operands import walk
from isa.table import Mode
from sw.asm_syntax import operands

DESTINATION = {"ld": "x", "gat": "x", "st": "d", "cp": "e", "sca": ""}  # all others: y
NEVER_IN_PLACE = {"red", "mv"}


@dataclass
class Walk:
    """The bytes of one operand: `parts` on chip, and a strided walk."""

    key: str
    memory: str
    parts: range
    addr: int
    strides: tuple
    shape: tuple
    size: int

    @property
    def span(self):
        """First byte and one past the last."""
        steps = [s * (n - 1) * self.size for s, n in zip(self.strides, self.shape)]
        return (self.addr + sum(s for s in steps if s < 0),
                self.addr + self.size + sum(s for s in steps if s > 0))

    def offsets(self):
        """First byte of every element."""
        return walk(self.addr, self.strides, self.shape, self.size)[..., 0]

    @property
    def distinct(self):
        """No element is named twice. Only called for walks inside a memory."""
        axes = sorted((abs(s), n) for s, n in zip(self.strides, self.shape) if n > 1)
        reach = 0
        for stride, n in axes:
            if stride <= reach:
                break
            reach += stride * (n - 1)
        else:
            return True
        low, high = self.span
        count = int(np.prod(self.shape, dtype=np.int64))
        return count * self.size <= high - low and np.unique(self.offsets()).size == count

    def meets(self, other):
        """They share a byte, and are not the same walk."""
        if self.memory != other.memory or not set(self.parts) & set(other.parts):
            return False
        (low, high), (other_low, other_high) = self.span, other.span
        if high <= other_low or other_high <= low:
            return False
        mine, theirs = (walk(w.addr, w.strides, w.shape, w.size).ravel() for w in (self, other))
        return bool(np.intersect1d(mine, theirs).size)

    def same(self, other):
        return (self.addr, self.size, self.shape) == (other.addr, other.size, other.shape) and all(
            a == b for a, b, n in zip(self.strides, other.strides, self.shape) if n > 1)


def _parts(v, stem):
    return range(v[f"{stem}0"], v[f"{stem}0"] + v[f"{stem}n"])


def walks(instruction, v):
    """{operand key: Walk} of everything the instruction reads or writes at addresses that it states itself."""
    out, name = {}, instruction.name
    own = _parts(v, "p") if "pn" in v else range(v["p0"], v["p0"] + 1) if "p0" in v else range(1)
    for key, spec in operands(name).items():
        if spec.kind not in ("tensor", "dram") or (spec.mode and v[spec.mode] != Mode.TENSOR):
            continue
        if (name, key) == ("mm", "w") and v["keep"]:
            continue
        stem = "m" if (name, key) == ("mv", "y") else "n"
        shape = (v["mn"],) if (name, key) == ("mm", "w") else tuple(v[f"{stem}{d}"] for d in range(3))
        strides = tuple(v[s] for s in spec.strides)
        if (name, key) == ("red", "y"):
            keep = 3 - v["axes"]
            shape, strides = shape[:keep], strides[:keep]
        size = 4 if spec.psum else DType(v[spec.type or "x_type"]).size_bytes
        parts = {("mm", "y"): "m", ("mv", "y"): "q"}.get((name, key))
        memory = "dram" if spec.kind == "dram" else "psum" if spec.psum or v.get(spec.space) else "sbuf"
        if memory == "dram":
            shape = (len(own), *shape) if len(strides) == 4 else shape
        where = range(1) if memory == "dram" else _parts(v, parts) if parts else own
        out[key] = Walk(key, memory, where, v[spec.addr], strides, shape, size)
    for key, addr, size in _single(name, v):
        out[key] = Walk(key, "sbuf", own, addr, (), (), size)
    if name == "tab":
        out["x_addr"] = Walk("x_addr", "sbuf", own, v["x_addr"], (1,), (SLOT_WORDS,), 4)
    return out


def _single(name, v):
    """Operands of one element a partition."""
    for key, spec in operands(name).items():
        if spec.mode and v[spec.mode] == Mode.PARTITION:
            bits = v[spec.addr] if spec.kind == "scalar" else v[spec.addr] | v[spec.type] << 18
            yield key, bits & 0x3FFFF, DType(bits >> 18).size_bytes
    if v.get("acc_write"):
        yield "acc_addr", v["acc_addr"], 4
    if "i_addr" in v:
        yield "i_addr", v["i_addr"], 4


def problem(instruction, v, config, dram_bytes):
    """(operand key, message) of the first access that no core of this configuration can make; None if all can."""
    limits = {"sbuf": config.sbuf_bytes, "psum": config.psum_bytes, "dram": dram_bytes}
    found = walks(instruction, v)
    for key, w in found.items():
        low, high = w.span
        if low < 0 or high > limits[w.memory]:
            return key, (f"{key} touches {w.memory.upper()} bytes {low:#x} to {high - 1:#x}; there are "
                         f"{limits[w.memory]:#x}")
    if instruction.name == "mv":
        count = [len(w.parts) * int(np.prod(w.shape)) for w in (found["x"], found["y"])]
        if count[0] != count[1]:
            return "y", f"the source has {count[0]} elements, the destination {count[1]}"
    destination = found.get(DESTINATION.get(instruction.name, "y"))
    if destination is None:
        return None
    if not destination.distinct:
        return destination.key, f"{destination.key} writes one address more than once"
    for target in (destination, found.get("acc_addr")):
        for key, source in found.items():
            if target is None or source is target or key == "acc_addr":
                continue
            in_place = instruction.name not in NEVER_IN_PLACE and target.same(source)
            if not in_place and target.meets(source):
                return target.key, f"{target.key} overlaps {key} and is not in place"
    return None
