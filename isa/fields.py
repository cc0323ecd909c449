"""Fields: the bits of an instruction word, as data.

An instruction is 512 bits, little-endian. The head is the same for all; the body's fields follow from bit 168 in
the order they are declared. A field stores an unsigned or two's complement value; `minus_one` fields store
their value less one.
"""

from dataclasses import dataclass, field

INSTRUCTION_BITS = 512
INSTRUCTION_BYTES = INSTRUCTION_BITS // 8
DRAM_ADDR_BITS = 48
WAITS = 8  # seven queues and the external count


@dataclass(frozen=True)
class Field:
    """`bits` wide at `offset`; `over` names the field whose place this one shares (a union)."""

    name: str
    bits: int
    doc: str = ""
    signed: bool = False
    minus_one: bool = False
    over: str = ""
    offset: int = field(default=-1)

    @property
    def low(self):
        """Smallest value that can be written."""
        return -(1 << (self.bits - 1)) if self.signed else int(self.minus_one)

    @property
    def high(self):
        """Largest value that can be written."""
        if self.signed:
            return (1 << (self.bits - 1)) - 1
        return (1 << self.bits) - 1 + int(self.minus_one)

    def insert(self, word, value):
        """`word` with this field set; ValueError names the field and its range."""
        value = int(value)
        if not self.low <= value <= self.high:
            raise ValueError(f"{self.name} = {value}: must be {self.low} to {self.high}")
        stored = (value - int(self.minus_one)) & ((1 << self.bits) - 1)
        mask = ((1 << self.bits) - 1) << self.offset
        return (word & ~mask) | (stored << self.offset)

    def extract(self, word):
        """Value of this field in `word`."""
        value = (word >> self.offset) & ((1 << self.bits) - 1)
        if self.signed and value >> (self.bits - 1):
            value -= 1 << self.bits
        return value + int(self.minus_one)


def place(fields, start=0):
    """Give each field its offset, in order from `start`; unions share their partner's."""
    placed, at, end = {}, start, start
    for f in fields:
        where = placed[f.over].offset if f.over else end
        placed[f.name] = Field(f.name, f.bits, f.doc, f.signed, f.minus_one, f.over, where)
        at = where + f.bits
        end = max(end, at)
    return placed, end


HEAD, HEAD_BITS = place([
    Field("opcode", 8, "which instruction"),
    Field("flags", 8, "named per instruction; bits 6 and 7 are reserved for rounding"),
    Field("tag", 16, "source location and profiling; the core only reports it"),
    Field("wait_mask", 8, "bit q: compare the count of queue q"),
    *(Field(f"wait{q}", 16, f"completions of queue {q} to see before the start") for q in range(WAITS)),
])


def partitions():
    """First partition and how many."""
    return [Field("p0", 7, "first partition"), Field("pn", 7, "number of partitions", minus_one=True)]


def shape(prefix="n"):
    """Three sizes, outermost first; unused ones are 1."""
    return [Field(f"{prefix}{d}", 16, f"size of free axis {d}", minus_one=True) for d in range(3)]


def tensor(name, space=True, bits=18, type_=True, stride_bits=18):
    """An on-chip operand: byte address per partition, element type, three strides in elements."""
    out = [Field(f"{name}_addr", bits, f"{name}: byte address in each partition")]
    if type_:
        out.append(Field(f"{name}_type", 4, f"{name}: element type"))
    out += [Field(f"{name}_s{d}", stride_bits, f"{name}: stride of axis {d}, elements", signed=True)
            for d in range(3)]
    if space:
        out.append(Field(f"{name}_space", 1, f"{name}: 0 SBUF, 1 PSUM"))
    return out


def dram(name, dims):
    """A DRAM operand: byte offset from `dram_base` and strides in elements; `dims` names the strides."""
    return [Field(f"{name}_addr", DRAM_ADDR_BITS, f"{name}: byte offset in DRAM"),
            *(Field(f"{name}_s{d}", 32, f"{name}: stride of {'the partitions' if d == 'p' else f'axis {d}'}, elements",
                    signed=True) for d in dims)]
