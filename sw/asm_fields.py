"""From the operands of an instruction to the values of its fields.

Named tensors give what is not written: the partition range, the shape, strides and types. Numbers without strides
mean contiguous, row-major elements.
"""

import math

import numpy as np

from isa.dtypes import DType
from isa.table import Mode
from sw.asm_operands import Scalar
from sw.asm_syntax import operands, optional
from sw.asm_tensors import Ref

MASK = 0xFFFFFFFF
# Which range and shape an operand spans, where it is not `p` and `shape`: only default sizes depend on this.
SPANS = {("mm", "y"): ("m", "shape"), ("mv", "y"): ("q", "mshape"), ("red", "y"): ("p", ""), ("mm", "w"): ("p", "")}


def front(values, count, fill):
    """`values` with `fill` in front, `count` in all."""
    return (fill,) * (count - len(values)) + tuple(values)


def fp32_bits(value):
    """The fp32 pattern nearest to a number; OverflowError beyond fp32."""
    with np.errstate(over="ignore"):
        single = np.float32(value)
    if math.isinf(single) and not math.isinf(value):
        raise OverflowError
    return 0x7FC00000 if math.isnan(value) else int(single.view(np.uint32))


class FieldBuilder:
    """Builds {field: value} for one instruction; raises AsmError at the operand that is wrong."""

    def __init__(self, line, instruction, items, mnemonic):
        self.line, self.instruction, self.items, self.mnemonic = line, instruction, items, mnemonic
        self.specs = operands(instruction.name)
        self.given = {k: v for k, (_, v) in items.values.items()}
        self.token = {k: t for k, (t, _) in items.values.items()}
        self.fields, self.where = {}, {}

    def build(self):
        """{field: value}, every value within its field."""
        refs = [(s, self.given[k]) for k, s in self.specs.items() if isinstance(self.given.get(k), Ref)]
        self._missing(refs)
        self._ranges(refs)
        self._shapes(refs)
        for key, spec in self.specs.items():
            value = self.given.get(key)
            if isinstance(value, Scalar):
                self._scalar(spec, value)
            elif isinstance(value, Ref):
                self._tensor(spec, value)
            elif spec.kind == "field" and key in self.given:
                self._put(key, value, self.token[key])
        self._sizes_agree(refs)
        for name, value in self.given.items():
            if name not in self.specs:
                self._put(name, value, self.token[name])
        return self.fields

    def _put(self, name, value, token):
        place = self.instruction.all_fields[name]
        if place.bits == 32 and not place.signed and -(1 << 31) <= value < 0:
            value &= MASK
        if not place.low <= value <= place.high:
            raise self.line.error(f"{name} = {value}: must be {place.low} to {place.high}", token)
        self.fields[name] = value

    def _missing(self, refs):
        named_type = next((r.dtype for s, r in refs if s.kind == "dram" and r.dtype is not None), None)
        for key, spec in self.specs.items():
            if key in self.given or key == "x_type" or spec.kind == "range" or optional(spec, self.instruction, self.items.flags):
                continue
            if all(f in self.given for f in spec.all_fields):
                continue
            raise self.line.error(f"{self.instruction.name} needs the operand {key!r}", self.mnemonic)
        if "x_type" in self.specs and "x_type" not in self.given:
            if named_type is None:
                raise self.line.error(f"{self.instruction.name} needs the operand 'x_type'", self.mnemonic)
            self.fields["x_type"] = int(named_type)

    def _span(self, spec):
        keys = SPANS.get((self.instruction.name, spec.key), ("p", "shape"))
        return tuple(k if k in self.specs else "" for k in keys)

    def _ranges(self, refs):
        found = {}
        for spec, ref in refs:
            key = self._span(spec)[0]
            if ref.parts and key:
                self._agree(found, key, ref.parts, ref)
            if ref.axes is None:
                continue
            if spec.kind == "dram" and key:
                if not ref.axes:
                    raise self.line.error(f"{spec.key} has no axis for the partitions", ref.token)
                self._agree(found, key, (None, ref.axes[0][0]), ref)
            if spec.strides == (f"{spec.key}_s",) and ref.axes:
                self._agree(found, "m", (None, ref.axes[-1][0]), ref)
        for key, spec in self.specs.items():
            if spec.kind != "range":
                continue
            if key in self.given:
                first, end = self.given[key]
                if end <= first:
                    raise self.line.error(f"{key} = {first}:{end}: the end must be beyond the first", self.token[key])
            else:
                first, count = found[key][0] if key in found else (None, None)
                if count is None:
                    raise self.line.error(f"{self.instruction.name} needs the operand '{key}' (or a named tensor that "
                                          "gives it)", self.mnemonic)
                first = first or 0
                end = first + count
            token = self.token.get(key, self.mnemonic)
            self._put(spec.fields[0], first, token)
            self._put(spec.fields[1], end - first, token)

    def _agree(self, found, key, value, ref):
        """Merge a tuple of sizes (None: unknown) from another operand."""
        if key in self.given:
            return
        old, other = found.get(key, (value, ref))
        for a, b in zip(old, value):
            if a is not None and b is not None and a != b:
                raise self.line.error(f"{key} is {self._show(value)} by {ref.token.text} and {self._show(old)} by "
                                      f"{other.token.text}; say which: {key}=...", ref.token)
        found[key] = tuple(a if a is not None else b for a, b in zip(old, value)), other

    @staticmethod
    def _show(value):
        return "(" + ", ".join("*" if v is None else str(v) for v in value) + ")"

    def _free(self, spec, ref):
        """Free axes of a named tensor for this operand: without the one that runs over the partitions."""
        axes = ref.axes[1:] if spec.kind == "dram" and f"{spec.key}_sp" in spec.strides else ref.axes
        room = sum(s[-1] in "012" for s in spec.strides) or 1
        if len(axes) > room:
            raise self.line.error(f"{spec.key} has {len(axes)} free axes; there is room for {room}", ref.token)
        return axes

    def _shapes(self, refs):
        found = {}
        for spec, ref in refs:
            key = self._span(spec)[1]
            if ref.axes is not None and key:
                self._agree(found, key, front([n for n, _ in self._free(spec, ref)], 3, 1), ref)
        for key, spec in self.specs.items():
            if spec.kind == "shape":
                sizes = self.given[key] if key in self.given else found.get(key, ((1, 1, 1), None))[0]
                if None in sizes:
                    raise self.line.error(f"no operand says how long the broadcast axis is; write {key}=...",
                                          self.mnemonic)
                for name, size in zip(spec.fields, front(sizes, 3, 1)):
                    self._put(name, size, self.token.get(key, self.mnemonic))

    def _scalar(self, spec, scalar):
        bits = scalar.bits
        if scalar.number is not None:
            bits = self._immediate(spec, scalar)
        if spec.mode:
            self.fields[spec.mode] = int(scalar.mode)
        if spec.kind == "scalar":
            self._put(spec.addr, bits, scalar.token)
        elif scalar.mode == Mode.IMM:
            self._put(spec.imm, bits, scalar.token)
        else:
            self._put(spec.addr, bits & 0x3FFFF, scalar.token)
            self._put(spec.type, bits >> 18, scalar.token)

    def _immediate(self, spec, scalar):
        value = scalar.number
        if "int" in self.items.flags:
            if not isinstance(value, int) or not -(1 << 31) <= value <= MASK:
                raise self.line.error(f"{spec.key} = {value}: the integer class takes 32-bit integers", scalar.token)
            return value & MASK
        try:
            return fp32_bits(value)
        except OverflowError:
            raise self.line.error(f"{spec.key} = {value}: beyond fp32", scalar.token) from None

    def _tensor(self, spec, ref):
        token = self.token[spec.key]
        self._put(spec.addr, ref.addr, token)
        if spec.type:
            self.fields[spec.type] = int(ref.dtype)
        if spec.space:
            self.fields[spec.space] = int(ref.space == "psum")
        if spec.mode:
            self.fields[spec.mode] = int(Mode.TENSOR)
        for name, stride in zip(spec.strides, self._strides(spec, ref)):
            self._put(name, stride, token)

    def _strides(self, spec, ref):
        """As many strides as the operand has fields."""
        total = len(spec.strides)
        parts = spec.strides[0] == f"{spec.key}_sp"
        if ref.strides is not None:
            if parts:
                return ref.strides[:1] + front(ref.strides[1:], total - 1, 0)
            return front(ref.strides, total, 0)
        keep = total
        if self._leading(spec):
            keep = 3 - min(self.given["axes"], 3)
        if ref.axes is not None:
            strides = [s for _, s in self._free(spec, ref)]
            if len(strides) > keep:
                raise self.line.error(f"{spec.key} has {len(strides)} free axes; {keep} are left", ref.token)
            if parts:
                return (ref.axes[0][1], *front(strides, total - 1, 0))
            return front(strides, keep, 0) + (0,) * (total - keep)
        if total == 1:
            return (1,)
        key = self._span(spec)[1] or "shape"
        sizes = [self.fields[f] for f in self.specs[key].fields][:keep]
        dense = [math.prod(sizes[i + 1:]) if n > 1 else 0 for i, n in enumerate(sizes)] + [0] * (3 - len(sizes))
        return (math.prod(sizes), *dense) if parts else tuple(dense)

    def _leading(self, spec):
        """`y` of a reduction: its strides belong to the first axes, those that stay."""
        return spec.key == "y" and "axes" in self.specs and "axes" in self.given

    def _sizes_agree(self, refs):
        """A named tensor's elements are as long as the instruction takes them to be."""
        for spec, ref in refs:
            if ref.dtype is None or spec.type:
                continue
            size = 4 if spec.psum else DType(self.fields.get("x_type", 0)).size_bytes
            if ref.dtype.size_bytes != size:
                raise self.line.error(f"{ref.token.text} has elements of {ref.dtype.size_bytes} bytes ({ref.dtype.label}); "
                                      f"{spec.key} moves elements of {size}", ref.token)
