"""One physical lane of the vector engine: two arithmetic units between converters, and the partial sums of `red`."""

from amaranth import C, Cat, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from hw.convert import TYPE_BITS, FromFp32, ToFp32
from hw.intalu import OP_BITS, Alu
from hw.pipeline import Pipeline
from isa.dtypes import DType

PARTIALS = 8  # partial sums of an output
ADD_STAGES = 4
OP_CYCLES = ADD_STAGES + 1  # latency of an arithmetic unit
BANKS = 2     # outputs whose partial sums are kept: one that gathers elements, one that is being added up
B_IMM, B_PARTITION, B_TENSOR = range(3)


def fold_bits(fold):
    """Width of the number of a beat within a row."""
    return max(1, (fold - 1).bit_length())


def partial_bits(fold):
    """Width of a partial sum's address: slot (3 bits), bank (1), beat of the row."""
    return 4 + (fold - 1).bit_length()


def extend(raw, dtype):
    """A raw element as int32: int8 extends its sign; other types keep their bits, low-aligned."""
    byte = (dtype == DType.INT8.value) | (dtype == DType.UINT8.value)
    upper = ((dtype == DType.INT8.value) & raw[7]).replicate(24)
    return Cat(raw[:8], Mux(byte, upper, raw[8:32]))


def saturate(value, dtype):
    """int32 as an element of an integer type; other types keep their bits."""
    sign = value[31]
    over8 = Mux(sign, ~value[7:31].all(), value[7:31].any())
    int8 = Mux(over8, Cat((~sign).replicate(7), sign), value[:8])
    uint8 = Mux(sign, C(0, 8), Mux(value[8:31].any(), C(0xFF, 8), value[:8]))
    return Mux(dtype == DType.INT8.value, int8, Mux(dtype == DType.UINT8.value, uint8, value))


class VectorLane(wiring.Component):
    """o = ((x op0 a) op1 b) as y's type; one beat a cycle. The engine says what each beat is.

    Front (advances with `en_front`): x and b to fp32 or int32 (3), op0 (5). Back (`en_back`): operand register (1),
    op1 (5), to y's type (4). Ports are named after the point where they are used; all but the raw inputs are common to
    the lanes. `integer0`, `integer2`, `integer3`: no conversion, at op0, behind op1, at the output.

    `a_load`: the converted b of this beat becomes the scalar a of beat number `fold0`; `b_load`: the scalar b, at op1.
    `tree`: both operands of op1 are partial sums; `gather`: the second is. An absent one counts as `init`.
    """

    convert_in, convert_out = ToFp32.latency, FromFp32.latency

    def __init__(self, fold):
        self._fold = fold
        f, at = fold_bits(fold), partial_bits(fold)
        super().__init__({
            "en_front": In(1), "en_back": In(1),
            "x": In(32), "x_type": In(TYPE_BITS), "b": In(32), "b_type": In(TYPE_BITS),
            "integer0": In(1), "fold0": In(f), "a_load": In(1), "a_partition": In(1), "a_imm": In(32), "rev0": In(1),
            "op0": In(OP_BITS),
            "fold1": In(f), "b_load": In(1), "b_source": In(2), "b_imm": In(32), "rev1": In(1),
            "tree": In(1), "gather": In(1), "absent_x": In(1), "absent_a": In(1), "init": In(32),
            "at_x": In(at), "at_a": In(at),
            "op1": In(OP_BITS), "integer1": In(1),  # one cycle later than the ports above: with the operands
            "write": In(1), "write_at": In(at), "integer2": In(1), "y_type": In(TYPE_BITS), "integer3": In(1),
            "o": Out(32)})

    def elaborate(self, platform):
        m = Module()
        value, b = self._front(m)
        x, a = self._operands(m, value, b)
        self._back(m, x, a)
        return m

    def _scalar(self, m, name, load, fold, value):
        """The scalar of each beat of a row; written while `load`."""
        held = [Signal(32, name=f"{name}{i}", reset_less=True) for i in range(self._fold)]
        chosen = Signal(32, name=f"{name}_chosen")
        with m.Switch(fold):
            for i, register in enumerate(held):
                with m.Case(i):
                    m.d.comb += chosen.eq(register)
                    with m.If(load):
                        m.d.sync += register.eq(value)
        return chosen

    def _front(self, m):
        """Conversion and op0: (its result, the converted b of the same beat)."""
        pipe = Pipeline(m, self.en_front)
        converted = []
        for name, raw, dtype in (("x", self.x, self.x_type), ("b", self.b, self.b_type)):
            m.submodules[f"{name}_to_fp32"] = to_fp32 = ToFp32()
            m.d.comb += [to_fp32.raw.eq(raw), to_fp32.dtype.eq(dtype), to_fp32.en.eq(self.en_front)]
            whole = pipe.delay(extend(raw, dtype), f"{name}_int", ToFp32.latency)
            converted.append(pipe.name(Mux(self.integer0, whole, to_fp32.o), f"{name}_value"))
        x, b = converted
        scalar = self._scalar(m, "a_scalar", self.en_front & self.a_load, self.fold0, b)
        a = pipe.name(Mux(self.a_partition, scalar, self.a_imm), "a_value")
        m.submodules.alu0 = alu = Alu(ADD_STAGES)
        m.d.comb += [alu.x.eq(Mux(self.rev0, a, x)), alu.a.eq(Mux(self.rev0, x, a)), alu.op.eq(self.op0),
                     alu.integer.eq(self.integer0), alu.en.eq(self.en_front)]
        return alu.o, pipe.delay(b, "b_beside_op0", alu.latency)

    def _operands(self, m, value, b):
        """Both operands of op1, registered."""
        pipe = Pipeline(m, self.en_back)
        m.submodules.partials = partials = memory.Memory(shape=32, depth=PARTIALS * BANKS * self._fold, init=[])
        self._partial_write = partials.write_port()
        read_x, read_a = partials.read_port(domain="comb"), partials.read_port(domain="comb")
        m.d.comb += [read_x.addr.eq(self.at_x), read_a.addr.eq(self.at_a)]
        sum_x = Mux(self.absent_x, self.init, read_x.data)
        sum_a = Mux(self.absent_a, self.init, read_a.data)
        scalar = self._scalar(m, "b_scalar", self.b_load, self.fold1, b)
        second = Signal(32, name="b_value")
        with m.Switch(self.b_source):
            with m.Case(B_TENSOR):
                m.d.comb += second.eq(b)
            with m.Case(B_PARTITION):
                m.d.comb += second.eq(scalar)
            with m.Default():
                m.d.comb += second.eq(self.b_imm)
        x = Mux(self.tree, sum_x, Mux(self.rev1, second, value))
        a = Mux(self.tree | self.gather, sum_a, Mux(self.rev1, value, second))
        return pipe.register(x, "op1_x"), pipe.register(a, "op1_a")

    def _back(self, m, x, a):
        """op1, and what becomes of its result: a partial sum or an output element."""
        pipe = Pipeline(m, self.en_back)
        m.submodules.alu1 = alu = Alu(ADD_STAGES)
        assert alu.latency == OP_CYCLES
        assert OP_CYCLES + 2 <= PARTIALS, "a partial sum must be written before its next element needs it"
        m.d.comb += [alu.x.eq(x), alu.a.eq(a), alu.op.eq(self.op1), alu.integer.eq(self.integer1),
                     alu.en.eq(self.en_back)]
        port = self._partial_write
        m.d.comb += [port.addr.eq(self.write_at), port.data.eq(alu.o), port.en.eq(self.write & self.en_back)]
        m.submodules.from_fp32 = from_fp32 = FromFp32()
        m.d.comb += [from_fp32.x.eq(alu.o), from_fp32.dtype.eq(self.y_type), from_fp32.en.eq(self.en_back)]
        whole = pipe.delay(saturate(alu.o, self.y_type), "whole", FromFp32.latency)
        integer = pipe.register(self.integer3, "integer_out")
        m.d.comb += self.o.eq(Mux(integer, whole, from_fp32.o))


__all__ = ["VectorLane", "PARTIALS", "BANKS", "OP_CYCLES", "B_IMM", "B_PARTITION", "B_TENSOR", "fold_bits",
           "partial_bits"]
