"""Random instructions, drawn from the instruction table: operands by their fields, then each rule made to hold.

Nothing here names an instruction: a new one is drawn like the others. What the drawing gets wrong the caller finds out
(`isa.legality`, the golden machine) and draws again.
"""

from collections import deque
from dataclasses import dataclass

from isa.dtypes import DType
from isa.encode import decode, encode
from isa.fields import DRAM_ADDR_BITS
from isa.legality import ALU_FLOAT, ALU_INT, MOVING_MAX, NO_OPERAND, PE_TYPES
from isa.table import INT_TYPES, Mode
from sw.asm_check import walks
from sw.asm_syntax import operands
from tb.fuzz_values import ROWS, immediate

SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 127, 128, 256)
REFERENCE = 0x3FFFF  # address bits of a scalar's reference
RECENT = 8


@dataclass(frozen=True)
class Style:
    """How a program is drawn.

    elements    most elements a partition of one instruction
    reuse       how often a tensor operand is one that a recent instruction had: dependents at distance 1 to `distance`
    own         how often a queue stays in its own part of SBUF, so that queues run side by side
    waits       how often an instruction waits for more than it must
    unaligned   how often a DRAM address is any byte
    """

    elements: int
    reuse: float
    distance: int
    own: float
    waits: float
    unaligned: float

    @classmethod
    def draw(cls, rng, slow):
        """`slow`: a bus on which many elements would take too long."""
        sizes = (4, 16) if slow else (4, 16, 64, 256)
        return cls(int(rng.choice(sizes)), float(rng.choice((0, 0.3, 0.8))), int(rng.integers(1, RECENT + 1)),
                   float(rng.choice((0, 0.95))), float(rng.choice((0, 0, 0.3))), float(rng.choice((0, 0.5))))


def strides(rng, shape):
    """Strides in elements for a walk over `shape`: packed in some order, with gaps, backwards, or repeated."""
    order = list(range(len(shape)))[::-1]
    if rng.random() < 0.25:
        rng.shuffle(order)
    step, out = int(rng.choice((1, 1, 1, 2, 3))), [0] * len(shape)
    for axis in order:
        out[axis] = step
        step = step * shape[axis] + int(rng.choice((0, 0, 0, 1, 5)))
    for axis in range(len(shape)):
        kind = rng.random()
        if kind < 0.1:
            out[axis] = -out[axis]
        elif kind < 0.14:
            out[axis] = 0
        elif kind < 0.3 and shape[axis] == 1:
            out[axis] = int(rng.integers(-9, 10))
    return out


class Drawer:
    """Draws instructions of one program. `windows`: memory -> [(first byte, end)] where operands go; `zones`:
    [(first byte, end, DType or ROWS)] of SBUF; `owned`: queue -> windows of SBUF."""

    def __init__(self, rng, config, style, windows, zones, owned):
        self.rng, self.config, self.style = rng, config, style
        self.windows, self.zones, self.owned = windows, zones, owned
        self.recent = deque(maxlen=style.distance)  # walks of what was accepted, with the values around them
        self.last = {}                              # instruction name -> values

    def draw(self, instruction, queue):
        """Word without waits; ValueError where the drawn fields do not fit the encoding."""
        rng, specs = self.rng, operands(instruction.name)
        v, redraw = {n: f.low for n, f in instruction.placed.items()}, set(specs)
        flags = [f for f in instruction.flags if f]
        previous = self.last.get(instruction.name)
        if previous and rng.random() < 0.3:
            v |= previous
            redraw = {k for k in specs if rng.random() < 0.5}
        v |= {f: bool(rng.integers(2)) for f in flags if previous is None or rng.random() < 0.7 or f not in v}
        self._sizes([specs[k] for k in specs if k in redraw], v)
        for key in specs:
            if key in redraw and specs[key].kind in ("field", "scalar"):
                self._field(instruction, specs[key], v)
        fixed = set()
        for key, spec in specs.items():
            if key in redraw and spec.kind in ("tensor", "dram"):
                self._tensor(spec, v, fixed)
        for rule in instruction.rules:
            self._repair(rule.kind, rule.args, v)
        self._place(instruction, queue, specs, v, fixed)
        return self.encode(instruction, v)

    @staticmethod
    def encode(instruction, v):
        """The word of drawn values; of fields that share a place, the one that the mode means."""
        unions = {f.name for f in instruction.placed.values() if f.over}
        last = {n: v[n] for n in unions if v[n.replace("_imm", "_mode")] == Mode.IMM}
        return encode(instruction.name, **{k: x for k, x in v.items() if k not in unions}, **last)

    def accept(self, word):
        """Remember an instruction that became part of the program: later ones depend on it."""
        instruction, v = decode(word)
        self.last[instruction.name] = {k: v[k] for k in (*instruction.placed, *filter(None, instruction.flags))}
        around = {k: v[k] for k in ("p0", "pn", "n0", "n1", "n2") if k in v}
        for key, walk in walks(instruction, v).items():
            code = v.get(f"{key}_type", v.get("x_type", int(DType.FP32)))
            if walk.memory != "dram" and len(walk.strides) == 3:
                self.recent.append((walk, code, around))

    def _sizes(self, specs, v):
        rng, first = self.rng, None
        limit = int(min(rng.choice((self.style.elements, 4 * self.style.elements), p=(0.9, 0.1)), MOVING_MAX))
        ranges, shapes = ([s for s in specs if s.kind == kind] for kind in ("range", "shape"))
        for spec in ranges:
            count = int(rng.choice((1, self.config.lanes, rng.integers(1, self.config.lanes + 1))))
            v[spec.fields[1]], v[spec.fields[0]] = count, int(rng.integers(self.config.lanes - count + 1))
        for spec in shapes:
            sizes, left = [1, 1, 1], limit
            for axis in (2, 1, 0)[:rng.integers(1, 4)]:
                sizes[axis] = int(rng.choice([s for s in SIZES if s <= left] + [left]))
                left //= sizes[axis]
            if first is not None and len(ranges) > 1 and rng.random() < 0.9:  # as many elements as the first shape
                sizes = self._permuted(v, ranges, first)
            v |= dict(zip(spec.fields, sizes))
            first = first or spec

    def _permuted(self, v, ranges, first):
        numbers = [v[ranges[0].fields[1]], *(v[f] for f in first.fields)]
        count = int(self.rng.choice([n for n in numbers if n <= self.config.lanes]))
        numbers.remove(count)
        self.rng.shuffle(numbers)
        v[ranges[1].fields[1]], v[ranges[1].fields[0]] = count, int(self.rng.integers(self.config.lanes - count + 1))
        return [int(n) for n in numbers]

    def _field(self, instruction, spec, v):
        rng, name = self.rng, spec.addr
        f = instruction.placed[name]
        if spec.mode:
            v[spec.mode] = int(rng.integers(4))
        if f.bits == DRAM_ADDR_BITS:
            v[name] = self._address("dram", "", 0, 1, 4)
        elif f.signed:
            elements = v.get("n0", 1) * v.get("n1", 1) * v.get("n2", 1)
            v[name] = int(rng.choice((elements, -elements, elements + 3, rng.integers(-8, 9), f.low, f.high), p=(
                0.4, 0.2, 0.1, 0.2, 0.05, 0.05)))
        elif f.bits == 32:
            v[name] = immediate(rng) if rng.random() < 0.7 or spec.mode else f.high
        elif f.bits < 8:
            v[name] = int(rng.integers(f.low, f.high + 1))
        if spec.mode and v[spec.mode] == Mode.PARTITION:
            v[name] = int(rng.integers(8)) << 18

    def _shape(self, spec, v):
        """Sizes that the operand's strides go over."""
        if len(spec.strides) == 1:
            return [v.get("mn", 1)]
        stem = "m" if "m0" in v and "m2" in v and spec.key == "y" else "n"
        sizes = [v[f"{stem}{d}"] for d in range(3)]
        return [v["pn"], *sizes] if len(spec.strides) == 4 else sizes

    def _tensor(self, spec, v, fixed):
        rng, memory = self.rng, "psum" if spec.psum else "sbuf"
        if spec.mode:
            v[spec.mode] = int(rng.choice((0, 1, 2, 3, 3)))
        if spec.imm:
            v[spec.imm] = immediate(rng)
        v |= dict(zip(spec.strides, strides(rng, self._shape(spec, v))))
        if spec.kind == "dram" and rng.random() < 0.5:  # along the rows, as most transfers
            v[spec.strides[-1]] = 1
        if spec.type:
            v[spec.type] = int(rng.integers(8))
        if spec.space:
            v[spec.space] = int(rng.random() < 0.25 and spec.key != "y")
            memory = "psum" if v[spec.space] else memory
        if spec.kind == "dram" or len(spec.strides) != 3 or rng.random() >= self.style.reuse:
            return
        choices = [r for r in self.recent if r[0].memory == memory]
        if choices:
            walk, code, around = choices[rng.integers(len(choices))]
            v |= {spec.addr: walk.addr, **dict(zip(spec.strides, walk.strides))}
            fixed.add(spec.key)
            if spec.type and rng.random() < 0.8:
                v[spec.type] = code
            if len(fixed) == 1 and rng.random() < 0.6 and not any(k in v for k in ("m0", "q0")):
                v |= {k: n for k, n in around.items() if k in v}

    def _choose(self, choices):
        return int(self.rng.choice(sorted(choices)))

    def _repair(self, kind, args, v):
        if kind in ("values", "types") and v[args[0]] not in args[1]:
            v[args[0]] = self._choose(args[1])
        elif kind == "pe_types" and v[args[0]] not in PE_TYPES[self.config.pe]:
            v[args[0]] = self._choose(PE_TYPES[self.config.pe])
        elif kind in ("psum32", "b_operand") and v[f"{args[-1]}_space"]:
            if DType(v[f"{args[-1]}_type"]).size_bytes != 4:
                v[f"{args[-1]}_type"] = self._choose({DType.FP32, DType.INT32})
        elif kind == "alu_op":
            op, mode = args
            allowed = ALU_INT if v["int"] else ALU_FLOAT
            if v[op] not in allowed:
                v[op] = self._choose(allowed)
            if v[mode] == Mode.NONE and v[op] not in NO_OPERAND:
                v[op] = self._choose(NO_OPERAND)
        elif kind == "int_types" and v["int"]:
            for name in args:
                if v[f"{name}_type"] not in INT_TYPES:
                    v[f"{name}_type"] = int(DType.INT32) if v[f"{name}_space"] else self._choose(INT_TYPES)
        elif kind == "one_psum" and v[f"{args[0]}_space"]:
            v[f"{args[1]}_space"] = 0
        elif kind == "same":
            v[args[1]] = v[args[0]]
        elif kind == "scalar" and v[args[0]] == Mode.PARTITION:
            v[args[1]] = (v[args[1]] >> 18 & 7) << 18

    def _place(self, instruction, queue, specs, v, fixed):
        """Addresses, so that every walk is inside a window."""
        in_place = {"x", "y"} <= set(specs) and not fixed and self.rng.random() < 0.15
        if in_place:
            v |= {f"y_s{d}": v[f"x_s{d}"] for d in range(3)}
            if "y_type" in v:
                v["y_type"] = v["x_type"]
        for key, walk in walks(instruction, v).items():
            spec = specs[key]
            if key in fixed:
                address = v[spec.addr] - v[spec.addr] % walk.size
            elif key == "y" and in_place:
                address = v["x_addr"]
            else:
                low, high = (edge - walk.addr for edge in walk.span)
                code = v.get(spec.type, ROWS if spec.kind == "field" else v.get("x_type"))
                address = self._address(walk.memory, queue, low, high, walk.size, code)
            if spec.kind == "scalar":
                address |= v[spec.addr] & ~REFERENCE
            v[spec.addr] = address

    def _address(self, memory, queue, low, high, size, code=None):
        """An address whose walk covers bytes `low` to `high` around it, inside a window."""
        rng, windows = self.rng, self.windows[memory]
        if memory == "sbuf":
            if rng.random() < self.style.own:
                windows = self.owned[queue]
            elif rng.random() < 0.6:
                windows = [z[:2] for z in self.zones if z[2] == code] or windows
            if not any(end - first >= high - low for first, end in windows):
                windows = self.windows[memory]
        ranges = [(first - low, end - high) for first, end in windows if end - first >= high - low]
        if not ranges:
            raise ValueError(f"no window of {memory} holds {high - low} bytes")
        first, last = ranges[rng.integers(len(ranges))]
        if memory == "dram" and rng.random() < self.style.unaligned:
            return int(rng.integers(first, last + 1))
        return int(rng.integers(-(-first // size), max(last // size, -(-first // size)) + 1)) * size


