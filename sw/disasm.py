"""The disassembler: words to text that assembles to the same words.

Operands are written as `sw.asm_syntax` says; what they leave out of a word (bits of an operand that its mode makes
idle) follows as `field=value`. A word that is no legal instruction becomes `queue word 0x...`.
"""

import json
import struct

import numpy as np

from isa.config import PRESETS
from isa.encode import decode
from isa.legality import check
from isa.table import QUEUES, Mode
from sw.asm_directives import is_name
from sw.asm_fields import fp32_bits
from sw.asm_syntax import SPACES, TYPES, operands, optional, value_names

INIT_BYTES = 32
NAME_OF_TYPE = {v: k for k, v in TYPES.items()}
NAME_OF_SPACE = {v: k for k, v in SPACES.items()}


def _tuple(values):
    """Without the idle ones in front; a single number without parentheses."""
    return str(values[0]) if len(values) == 1 else f"({', '.join(map(str, values))})"


def _trim(values, idle):
    values = list(values)
    while len(values) > 1 and values[0] == idle:
        values.pop(0)
    return values


def immediate(bits, integer):
    """A 32-bit immediate as a number, or in hexadecimal where no number gives exactly these bits."""
    if integer:
        return str(bits - (1 << 32) if bits >> 31 else bits)
    value = struct.unpack("<f", struct.pack("<I", bits))[0]
    text = str(np.float32(value)).replace("e+", "e")
    if np.isfinite(value) and fp32_bits(float(text)) == bits:
        return text
    return f"{bits:#x}"


class _Text:
    """Text of one instruction; remembers the value of every field that the text implies."""

    def __init__(self, instruction, v):
        self.instruction, self.v = instruction, v
        self.words, self.implied = [], dict.fromkeys(instruction.placed, None)

    def _implies(self, **fields):
        self.implied.update(fields)

    def render(self):
        for key, spec in operands(self.instruction.name).items():
            getattr(self, f"_{spec.kind}")(key, spec)
        self.words += [f for f in self.instruction.flags if f and self.v[f]]
        return self.words

    def _copy(self, *names):
        self._implies(**{n: self.v[n] for n in names if n})

    def _range(self, key, spec):
        first, count = (self.v[f] for f in spec.fields)
        self.words.append(f"{key}={first}:{first + count}")
        self._copy(*spec.fields)

    def _shape(self, key, spec):
        self.words.append(f"{key}={_tuple(_trim([self.v[f] for f in spec.fields], 1))}")
        self._copy(*spec.fields)

    def _field(self, key, spec):
        value = self.v[key]
        names = {v: k for k, v in value_names(key).items()}
        if value or not optional(spec, self.instruction, ()):
            self.words.append(f"{key}={names.get(value, f'{value:#x}' if key.endswith('addr') else value)}")
        self._copy(key)

    def _scalar(self, key, spec):
        mode, bits = self.v[spec.mode], self.v[spec.addr]
        self._copy(spec.mode, spec.addr)
        if mode == Mode.IMM:
            self.words.append(f"{key}={immediate(bits, self.v.get('int', False))}")
        elif mode == Mode.PARTITION:
            self.words.append(f"{key}=part:{bits & 0x3FFFF:#x}:{NAME_OF_TYPE[bits >> 18]}")
        elif bits:
            self.words.append(f"{key}=none:{bits:#x}")

    def _tensor(self, key, spec):
        mode = self.v[spec.mode] if spec.mode else Mode.TENSOR
        if mode == Mode.NONE:
            self._implies(**dict.fromkeys(spec.all_fields, 0))
        elif mode == Mode.IMM:
            self.words.append(f"{key}={immediate(self.v[spec.imm], self.v.get('int', False))}")
            self._union(spec)
        elif mode == Mode.PARTITION:
            self.words.append(f"{key}=part:{self.v[spec.addr]:#x}:{NAME_OF_TYPE[self.v[spec.type]]}")
            self._implies(**dict.fromkeys((*spec.strides, spec.space), 0))
            self._copy(spec.addr, spec.type)
        else:
            self._whole(key, spec)
        if spec.mode:
            self._copy(spec.mode)

    _dram = _tensor

    def _union(self, spec):
        """The immediate's bits, as the fields that share its place see them."""
        word = self.instruction.placed[spec.imm].insert(0, self.v[spec.imm])
        self._implies(**{n: self.instruction.placed[n].extract(word)
                         for n in (spec.addr, spec.type, *spec.strides, spec.space)})

    def _whole(self, key, spec):
        parts = [f"{self.v[spec.addr]:#x}"]
        if spec.space:
            parts.insert(0, NAME_OF_SPACE[self.v[spec.space]])
        if spec.type:
            parts.append(NAME_OF_TYPE[self.v[spec.type]])
        strides = [self.v[s] for s in spec.strides]
        rows = strides[:1] if spec.strides[0] == f"{key}_sp" else []
        parts.append(_tuple(rows + _trim(strides[len(rows):], 0)))
        self.words.append(f"{key}={':'.join(parts)}")
        self._copy(*spec.all_fields)

    def rest(self):
        """`field=value` for every field whose value the operands do not imply."""
        placed = self.instruction.placed
        return [f"{n}={self.v[n]}" for n, value in self.implied.items()
                if not placed[n].over and value != self.v[n]]


def _waits(v):
    waits = [f"{q}:{v[f'wait{i}']}" for i, q in enumerate(QUEUES) if v["wait_mask"] >> i & 1]
    idle = [f"wait{i}={v[f'wait{i}']}" for i in range(len(QUEUES)) if v[f"wait{i}"] and not v["wait_mask"] >> i & 1]
    return ([f"wait=({', '.join(waits)})"] if waits else []) + idle


def instruction_text(word, queue, config, tag=True):
    """One line, with the queue in front; `tag=False` leaves the tag out."""
    if check(word, queue, config):
        return f"{queue} word {word:#x}"
    instruction, v = decode(word)
    text = _Text(instruction, v)
    words = [queue, instruction.name, *text.render(), *text.rest(), *_waits(v)]
    if tag:
        words.append(f"tag={v['tag']}")
    return " ".join(words)


def _config_line(config):
    if config.name in PRESETS and PRESETS[config.name].hash == config.hash:
        return f".config {config.name}"
    name = config.name if config.name.isidentifier() and config.name not in PRESETS else "custom"
    values = {k: v for k, v in config.to_json().items() if k != "name"}
    return f".config {name} " + " ".join(f"{k}={v}" for k, v in values.items())


def _init_lines(name, array):
    raw = np.ascontiguousarray(array).tobytes()
    if not any(raw):
        return [f".init {name} fill 0"]
    return [f".init {name} hex {raw[i:i + INIT_BYTES].hex()}" for i in range(0, len(raw), INIT_BYTES)]


def disassemble(program):
    """The whole program as text: configuration, tensors, constants, source map, and the queues one after the other."""
    lines = [_config_line(program.config)]
    for t in program.tensors.values():
        shape = ", ".join(map(str, t.shape))
        name = t.name if is_name(t.name) else json.dumps(t.name)
        lines.append(f".tensor {name} dram {t.dtype.label} [{shape}] {t.role} @{t.offset:#x}")
        if t.name in program.constants:
            lines += _init_lines(name, program.constants[t.name])
    lines += [f".source {tag} {json.dumps(place)}" for tag, place in enumerate(program.source)]
    for queue, words in program.queues.items():
        lines += ["", f"# {queue}: {len(words)} instructions"]
        lines += [instruction_text(w, queue, program.config) for w in words]
    return "\n".join(lines) + "\n"
