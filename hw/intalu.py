"""The arithmetic unit of a vector lane: every operation of `isa.ops.AluOp`, float and integer, in one latency."""

from types import SimpleNamespace as Values

from amaranth import C, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.fp import QUIET_NAN, FpAdd
from hw.fp_mul import FpMul
from hw.leading import shift_left
from hw.pipeline import Pipeline
from isa.ops import AluOp

OP_BITS = 5
ONE = 0x3F800000


def _is(op, *ops):
    value = C(0, 1)
    for o in ops:
        value = value | (op == o.value)
    return value


def canonical(x):
    """(x with subnormals as zero of their sign and NaN as the quiet NaN, whether it is NaN)."""
    exponent, fraction = x[23:31], x[:23]
    nan = exponent.all() & fraction.any()
    kept = Cat(fraction & exponent.any().replicate(23), exponent, x[31])
    return Mux(nan, QUIET_NAN, kept), nan


def keys(x, a, integer):
    """Unsigned numbers in the order of the values: two's complement, or sign and magnitude with -0 below +0."""
    return [Cat(v[:31] ^ (v[31] & ~integer).replicate(31), ~v[31]) for v in (x, a)]


class Alu(wiring.Component):
    """o = x op a, `latency` enabled cycles later; one operation a cycle, any mixture of operations.

    `op` is an AluOp code; `integer` selects int32 (wrapping, signed compares, 1 or 0) instead of fp32 (compares give 1.0
    or 0.0). In both, bypass gives x and abs |x|; float results are flushed and canonical, bypass included. The
    bitwise operations and shifts are integer whatever `integer` says. The multiplication is float only.
    """

    def __init__(self, add_stages=4):
        self._add_stages = add_stages
        self.latency = add_stages + 1
        super().__init__({"x": In(32), "a": In(32), "op": In(OP_BITS), "integer": In(1), "en": In(1, init=1),
                          "o": Out(32)})

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.en)
        m.submodules.add = add = FpAdd(self._add_stages)
        m.submodules.mul = mul = FpMul()
        subtract = pipe.name(_is(self.op, AluOp.SUB), "subtract")
        m.d.comb += [
            add.a.eq(self.x), add.b.eq(self.a ^ Cat(C(0, 31), subtract)), add.en.eq(self.en),
            mul.a.eq(self.x), mul.b.eq(self.a), mul.en.eq(self.en)]

        v = pipe.cut(self._operands(pipe))
        v = pipe.cut(Values(result=self._result(m, v), sums=v.sums, products=v.products))

        # The multiplier joins at its own latency, the adder at the end.
        v = pipe.cut(v)
        joined = Mux(v.products, mul.o, v.result)
        joined = pipe.delay(joined, "joined", self._add_stages - mul.latency)
        sums = pipe.delay(v.sums, "sums", self._add_stages - mul.latency)
        m.d.comb += self.o.eq(pipe.register(Mux(sums, add.o, joined), "result"))
        return m

    def _operands(self, pipe):
        """First stage: canonical operands and the integer sum."""
        floats, integer = ~self.integer, self.integer
        (fx, nan_x), (fa, nan_a) = canonical(self.x), canonical(self.a)
        x, a = Mux(integer, self.x, fx), Mux(integer, self.a, fa)
        minus = ~_is(self.op, AluOp.ADD)
        total = (Cat(minus, self.x) + Cat(minus, self.a ^ minus.replicate(32)))[1:33]
        return Values(
            x=pipe.name(x, "x_operand"), a=pipe.name(a, "a_operand"), total=pipe.name(total, "integer_sum"),
            op=self.op, integer=integer, nan=floats & (nan_x | nan_a),
            sums=floats & _is(self.op, AluOp.ADD, AluOp.SUB), products=floats & _is(self.op, AluOp.MUL))

    def _result(self, m, v):
        """Second stage: everything but float sums and products."""
        x, a, op = v.x, v.a, v.op
        key_x, key_a = keys(x, a, v.integer)
        below = Signal()
        same = Signal()
        zeros = ~v.integer & ~x[:31].any() & ~a[:31].any()  # -0 equals +0, though it is below it for max and min
        m.d.comb += [below.eq(key_x < key_a), same.eq(x == a)]
        equal, less = same | zeros, below & ~zeros

        true = Signal()
        with m.Switch(op):
            for o, value in ((AluOp.EQ, equal), (AluOp.NE, ~equal), (AluOp.GT, ~equal & ~less),
                             (AluOp.GE, ~less), (AluOp.LT, less), (AluOp.LE, less | equal)):
                with m.Case(o.value):
                    m.d.comb += true.eq(Mux(v.nan, o == AluOp.NE, value))
        flag = Mux(v.integer, C(1, 32), C(ONE, 32)) & true.replicate(32)
        larger = Mux(v.nan, QUIET_NAN, Mux(below, a, x))
        smaller = Mux(v.nan, QUIET_NAN, Mux(below, x, a))
        absolute = Mux(v.integer, Mux(x[31], (-x)[:32], x), x[:31])

        # One right shifter; a left shift is one of the reversed word.
        left = _is(op, AluOp.SHL)
        fill = x[31] & _is(op, AluOp.SAR)
        shifted = Mux(left, x, x[::-1])  # reversed, so that it moves up
        moved = shift_left(shifted, a[:5])
        ones = ~shift_left(C(0xFFFFFFFF, 32), a[:5]) & fill.replicate(32)
        shift = Mux(left, moved, (moved | ones)[::-1])

        result = Signal(32, name="early")
        table = {AluOp.ADD: v.total, AluOp.SUB: v.total, AluOp.MAX: larger, AluOp.MIN: smaller, AluOp.ABS: absolute,
                 AluOp.AND: x & a, AluOp.OR: x | a, AluOp.XOR: x ^ a}
        table |= dict.fromkeys((AluOp.EQ, AluOp.NE, AluOp.GT, AluOp.GE, AluOp.LT, AluOp.LE), flag)
        table |= dict.fromkeys((AluOp.SHL, AluOp.SHR, AluOp.SAR), shift)
        with m.Switch(op):
            for o, value in table.items():
                with m.Case(o.value):
                    m.d.comb += result.eq(value)
            with m.Default():
                m.d.comb += result.eq(x)
        return result
