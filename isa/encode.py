"""Instructions to and from their 64 bytes, by the instruction table."""

from isa.fields import INSTRUCTION_BITS, INSTRUCTION_BYTES
from isa.table import BY_NAME, BY_OPCODE

FLAGS_AT = 8


def encode(name, **values):
    """The 512-bit word of instruction `name`; fields and flags by name, sizes default to 1, everything else to 0.

    ValueError names the field and its range.
    """
    if name not in BY_NAME:
        raise ValueError(f"no instruction {name!r}; there are: {', '.join(BY_NAME)}")
    instruction = BY_NAME[name]
    word = instruction.opcode
    fields = instruction.all_fields
    for key, value in values.items():
        if key in instruction.flags:
            word |= int(bool(value)) << (FLAGS_AT + instruction.flags.index(key))
        elif key in fields:
            word = fields[key].insert(word, value)
        elif value:
            known = [*instruction.placed, *(f for f in instruction.flags if f)]
            raise ValueError(f"{name} has no field {key!r}; it has: {', '.join(known) or 'none'}")
    return word


def decode(word):
    """(Instruction, {field and flag names: values}); ValueError for an opcode that does not exist."""
    opcode = word & 0xFF
    if opcode not in BY_OPCODE:
        raise ValueError(f"opcode {opcode:#04x} does not exist")
    instruction = BY_OPCODE[opcode]
    values = {name: f.extract(word) for name, f in instruction.all_fields.items()}
    for bit, name in enumerate(instruction.flags):
        if name:
            values[name] = bool(word >> (FLAGS_AT + bit) & 1)
    return instruction, values


def to_bytes(word):
    """Little-endian bytes."""
    return word.to_bytes(INSTRUCTION_BYTES, "little")


def from_bytes(raw):
    """The word of 64 bytes."""
    if len(raw) != INSTRUCTION_BYTES:
        raise ValueError(f"{len(raw)} bytes: an instruction has {INSTRUCTION_BYTES}")
    return int.from_bytes(bytes(raw), "little")


__all__ = ["encode", "decode", "to_bytes", "from_bytes", "INSTRUCTION_BITS"]
