"""Static legality in hardware: a loop over the instruction table's rules.

`illegal(m, bits, queue, config)` gives the trap code of the first rule that the instruction breaks, in the table's
order; 0 if it may start. Combinational; the issue stage registers it.
"""

from amaranth import C, Const, Mux, Signal, unsigned
from amaranth.hdl import ValueLike

from hw.interfaces import fields
from isa.dtypes import DType
from isa.fields import INSTRUCTION_BITS
from isa.legality import ALU_FLOAT, ALU_INT, NO_OPERAND, PE_TYPES, TRAP_OF
from isa.registers import Trap
from isa.table import INT_TYPES, Mode, for_queue

FLAG_BITS = 8


def one_of(value, choices):
    """`value` is one of `choices`, as a single expression."""
    return value.matches(*sorted(choices)) if choices else C(0)


def _types(choices):
    return frozenset(int(t) for t in choices)


def misaligned(addr, dtype):
    """`addr` is no multiple of the size of the type with code `dtype`."""
    four = one_of(dtype, [t for t in DType if t.size_bytes == 4])
    two = one_of(dtype, [t for t in DType if t.size_bytes == 2])
    return (four & addr[:2].any()) | (two & addr[0])


def _reserved(bits, instruction):
    """Some bit that belongs to no field or flag is set."""
    used = 0
    for f in instruction.all_fields.values():
        used |= ((1 << f.bits) - 1) << f.offset
    flags = sum(1 << b for b, name in enumerate(instruction.flags) if name)
    used &= ~(((1 << FLAG_BITS) - 1) << 8) | flags << 8
    return (bits & Const(~used & ((1 << INSTRUCTION_BITS) - 1), INSTRUCTION_BITS)).any()


class _Rules:
    """One method per rule kind; each returns an expression that is 1 when the rule is broken."""

    def __init__(self, f, config):
        self.f, self.config = f, config

    def get(self, name):
        return getattr(self.f, name)

    def partitions(self, first, count):
        return self.get(first) + self.get(count) >= self.config.lanes

    def lane(self, first):
        return self.get(first) >= self.config.lanes

    def aligned(self, addr, kind):
        if isinstance(kind, int):
            return self.get(addr)[:kind.bit_length() - 1].any()
        return misaligned(self.get(addr), self.get(kind))

    def types(self, name, choices):
        return ~one_of(self.get(name), choices)

    values = types

    def psum32(self, name):
        four = one_of(self.get(f"{name}_type"), [t for t in DType if t.size_bytes == 4])
        return self.get(f"{name}_space").bool() & ~four

    def pe_types(self, name):
        return ~one_of(self.get(name), _types(PE_TYPES[self.config.pe]))

    def free512(self, *names):
        n = [self.get(name) + 1 for name in names]
        # Each factor is checked first, so the product stays narrow.
        small = [v[:10] for v in n]
        return (n[0] > 512) | (n[1] > 512) | (n[2] > 512) | (small[0] * small[1] * small[2] > 512)

    def scalar(self, mode, name):
        value = self.get(name)
        return (self.get(mode) == Mode.PARTITION) & (
            value[22:].any() | value[21] | misaligned(value[:18], value[18:22]))

    def b_operand(self, mode, name):
        dtype, addr = self.get(f"{name}_type"), self.get(f"{name}_addr")
        uses = (self.get(mode) == Mode.PARTITION) | (self.get(mode) == Mode.TENSOR)
        four = one_of(dtype, [t for t in DType if t.size_bytes == 4])
        return uses & (dtype[3] | misaligned(addr, dtype) | (self.get(f"{name}_space").bool() & ~four))

    def alu_op(self, name, mode):
        op = self.get(name)
        lacks = (self.get(mode) == Mode.NONE) & ~one_of(op, _types(NO_OPERAND))
        return lacks | Mux(self.f.flag_int, ~one_of(op, _types(ALU_INT)), ~one_of(op, _types(ALU_FLOAT)))

    def int_types(self, *names):
        bad = C(0)
        for name in names:
            bad |= ~one_of(self.get(f"{name}_type"), INT_TYPES)
        return self.f.flag_int & bad

    def one_psum(self, first, second):
        return self.get(f"{first}_space") & self.get(f"{second}_space")

    def same(self, first, second):
        return self.get(first) != self.get(second)


def illegal(m, bits: ValueLike, queue, config):
    """Trap code of `bits` on `queue`; 0 for a legal instruction."""
    code = Signal(unsigned(8))
    with m.Switch(bits[:8]):
        for instruction in for_queue(queue):
            with m.Case(instruction.opcode):
                rules = _Rules(fields(bits, instruction), config)
                with m.If(_reserved(bits, instruction)):
                    m.d.comb += code.eq(Trap.RESERVED)
                for rule in instruction.rules:
                    with m.Elif(getattr(rules, rule.kind)(*rule.args)):
                        m.d.comb += code.eq(TRAP_OF[rule.kind])
        with m.Default():
            m.d.comb += code.eq(Trap.OPCODE)
    return code


__all__ = ["illegal", "one_of", "misaligned"]
