"""Static legality: interprets the rules of the instruction table, as the hardware's decoder does.

`check` gives the trap that the hardware would raise: unknown opcode, reserved bits, then the table's rules in
order. Addresses that depend on strides are checked access by access, at run time.
"""

from functools import lru_cache

from isa.dtypes import DType
from isa.encode import decode
from isa.fields import INSTRUCTION_BITS
from isa.ops import FLOAT_OPS, INT_OPS, UNARY
from isa.registers import Trap
from isa.table import ALL_TYPES, BY_NAME, INT_TYPES, Mode, for_queue

PE_TYPES = {"tf32": ALL_TYPES - {DType.INT32}, "bf16": ALL_TYPES - {DType.INT32}, "int8": frozenset({DType.INT8})}
ALU_FLOAT, ALU_INT, NO_OPERAND = FLOAT_OPS, INT_OPS, UNARY
MOVING_MAX = 512
TRAP_OF = {"partitions": Trap.PARTITION, "lane": Trap.PARTITION, "aligned": Trap.ALIGN, "types": Trap.TYPE,
           "psum32": Trap.TYPE, "pe_types": Trap.TYPE, "int_types": Trap.TYPE, "same": Trap.TYPE,
           "scalar": Trap.ALIGN, "b_operand": Trap.ALIGN, "values": Trap.OPERATION, "alu_op": Trap.OPERATION,
           "free512": Trap.OPERATION, "one_psum": Trap.OPERATION}


_on_queue = lru_cache(maxsize=None)(for_queue)


def used_bits(instruction):
    """Mask of the bits that a field or a flag of the instruction occupies."""
    return _used_bits(instruction.name)


@lru_cache(maxsize=None)
def _used_bits(name):
    instruction, used = BY_NAME[name], 0
    for f in instruction.all_fields.values():
        used |= ((1 << f.bits) - 1) << f.offset
    return used & ~(0xFF << 8) | sum(1 << (8 + b) for b, name in enumerate(instruction.flags) if name)


def _size(code):
    return DType(code).size_bytes if code in ALL_TYPES else 1


class _Rules:
    """One method a rule kind; each returns a message when the rule is broken, else None."""

    def __init__(self, values, config):
        self.v, self.config = values, config

    def partitions(self, first, count):
        end = self.v[first] + self.v[count]
        if end > self.config.lanes:
            return f"{first} + {count} = {end}: there are {self.config.lanes} partitions"

    def lane(self, first):
        if self.v[first] >= self.config.lanes:
            return f"{first} = {self.v[first]}: there are {self.config.lanes} partitions"

    def aligned(self, addr, kind):
        size = kind if isinstance(kind, int) else _size(self.v[kind])
        if self.v[addr] % size:
            return f"{addr} = {self.v[addr]:#x}: must be a multiple of {size}"

    def types(self, name, choices):
        if self.v[name] not in choices:
            return f"{name} = {self.v[name]}: no such element type"

    def values(self, name, choices):
        if self.v[name] not in choices:
            return f"{name} = {self.v[name]}: must be one of {', '.join(map(str, sorted(choices)))}"

    def psum32(self, name):
        if self.v[f"{name}_space"] and _size(self.v[f"{name}_type"]) != 4:
            return f"{name}_type: operands in PSUM have a four-byte type"

    def pe_types(self, name):
        if self.v[name] not in PE_TYPES[self.config.pe]:
            return f"{name} = {self.v[name]}: {self.config.pe} PEs do not take this type"

    def free512(self, *names):
        total = 1
        for name in names:
            total *= self.v[name]
        if total > MOVING_MAX:
            return f"{total} moving columns: at most {MOVING_MAX}"

    def scalar(self, mode, name):
        if self.v[mode] == Mode.PARTITION:
            value = self.v[name]
            addr, code = value & 0x3FFFF, value >> 18
            if code not in ALL_TYPES or addr % _size(code):
                return f"{name} = {value:#x}: must hold an aligned address and a type"

    def b_operand(self, mode, name):
        if self.v[mode] in (Mode.PARTITION, Mode.TENSOR):
            code = self.v[f"{name}_type"]
            if code not in ALL_TYPES or self.v[f"{name}_addr"] % _size(code):
                return f"{name}: must have a type and an aligned address"
            return self.psum32(name)

    def alu_op(self, name, mode):
        allowed = ALU_INT if self.v["int"] else ALU_FLOAT
        if self.v[name] not in allowed:
            return f"{name} = {self.v[name]}: no such operation in the {'integer' if self.v['int'] else 'float'} class"
        if self.v[mode] == Mode.NONE and self.v[name] not in NO_OPERAND:
            return f"{name} = {self.v[name]}: needs a second operand, and {mode} says there is none"

    def int_types(self, *names):
        if self.v["int"]:
            for name in names:
                if self.v[f"{name}_type"] not in INT_TYPES:
                    return f"{name}_type: integer-class operands are int8, uint8 or int32"

    def one_psum(self, first, second):
        if self.v[f"{first}_space"] and self.v[f"{second}_space"]:
            return f"{first} and {second}: only one operand may be in PSUM"

    def same(self, first, second):
        if self.v[first] != self.v[second]:
            return f"{first} = {self.v[first]}, {second} = {self.v[second]}: must be equal"


def check(word, queue, config):
    """(Trap, message) of the first rule that `word` breaks on `queue`; None for a legal instruction."""
    try:
        instruction, values = decode(word)
    except ValueError as error:
        return Trap.OPCODE, str(error)
    if instruction not in _on_queue(queue):
        return Trap.OPCODE, f"{instruction.name} does not exist on queue {queue}"
    if word & ~used_bits(instruction) & ((1 << INSTRUCTION_BITS) - 1):
        return Trap.RESERVED, f"{instruction.name}: a reserved bit is set"
    rules = _Rules(values, config)
    for rule in instruction.rules:
        message = getattr(rules, rule.kind)(*rule.args)
        if message:
            return TRAP_OF[rule.kind], f"{instruction.name}: {message}"
    return None
