"""The arithmetic unit of a vector lane: every operation of `isa.ops.AluOp`, float and integer, in one latency."""

from types import SimpleNamespace as Values

from amaranth import C, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.fp import QUIET_NAN, FpAdd
from hw.fp_mul import FpMul
from hw.pipeline import Pipeline
from isa.ops import COMPARES, AluOp

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

    `op` is an AluOp code; `integer` selects int32 (wrapping, signed compares, 1 or 0) instead of fp32 (compares give
    1.0 or 0.0). In both, bypass gives x and abs |x|; float results are flushed and canonical, bypass included. The
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
        v = pipe.cut(self._candidates(pipe, v))
        early = pipe.register(self._choose(m, v), "early")
        sums, products = pipe.register(v.sums, "sums"), pipe.register(v.products, "products")

        # The multiplier joins at its own latency, the adder at the end.
        later = self._add_stages - mul.latency
        joined = pipe.delay(Mux(products, mul.o, early), "joined", later)
        sums = pipe.delay(sums, "sums", later)
        m.d.comb += self.o.eq(pipe.register(Mux(sums, add.o, joined), "result"))
        return m

    def _operands(self, pipe):
        """First stage: canonical operands; the integer sum, which is also |x|."""
        floats, integer = ~self.integer, self.integer
        (fx, nan_x), (fa, nan_a) = canonical(self.x), canonical(self.a)
        absolute = _is(self.op, AluOp.ABS)
        negate = absolute & integer & self.x[31]
        minus = _is(self.op, AluOp.SUB)
        total = Cat(minus | negate, self.x ^ negate.replicate(32)) + Cat(
            minus | negate, (self.a ^ minus.replicate(32)) & ~absolute.replicate(32))
        magnitude = Cat(fx[:31], fx[31] & ~absolute)
        return Values(
            x=Mux(integer, self.x, magnitude), a=Mux(integer, self.a, fa), total=total[1:33],
            op=self.op, integer=integer, nan=floats & (nan_x | nan_a),
            sums=floats & _is(self.op, AluOp.ADD, AluOp.SUB), products=floats & _is(self.op, AluOp.MUL))

    def _candidates(self, pipe, v):
        """Second stage: the comparison and the shift."""
        x, a, op = v.x, v.a, v.op
        key_x, key_a = keys(x, a, v.integer)
        zeros = ~v.integer & ~x[:31].any() & ~a[:31].any()  # -0 equals +0, though it is below it for max and min

        # One shifter, to the left; a right shift is one of the reversed word, filled with copies of the sign.
        left = _is(op, AluOp.SHL)
        fill = pipe.name(x[31] & _is(op, AluOp.SAR), "fill")
        word = pipe.name(Mux(left, x, x[::-1]), "shift_word")
        for bit in reversed(range(5)):
            step = 1 << bit
            word = pipe.name(Mux(a[bit], Cat(fill.replicate(step), word)[:32], word), f"shift_by_{step}")
        return Values(
            **vars(v), below=key_x < key_a, same=(x == a) | zeros, less=(key_x < key_a) & ~zeros, moved=word, left=left)

    def _choose(self, m, v):
        """Third stage: the result, but for float sums and products."""
        x, a, op = v.x, v.a, v.op
        true = Signal()
        with m.Switch(op):
            for o, value in ((AluOp.EQ, v.same), (AluOp.NE, ~v.same), (AluOp.GT, ~v.same & ~v.less),
                             (AluOp.GE, ~v.less), (AluOp.LT, v.less), (AluOp.LE, v.less | v.same)):
                with m.Case(o.value):
                    m.d.comb += true.eq(Mux(v.nan, o == AluOp.NE, value))
        flag = Mux(v.integer, C(1, 32), C(ONE, 32)) & true.replicate(32)
        extreme = Mux(v.nan, QUIET_NAN, Mux(v.below ^ (op == AluOp.MIN.value), a, x))
        table = {AluOp.ADD: v.total, AluOp.SUB: v.total, AluOp.ABS: Mux(v.integer, v.total, x),
                 AluOp.MAX: extreme, AluOp.MIN: extreme,
                 AluOp.AND: x & a, AluOp.OR: x | a, AluOp.XOR: x ^ a,
                 AluOp.SHL: v.moved, AluOp.SHR: v.moved[::-1], AluOp.SAR: v.moved[::-1]}
        table |= dict.fromkeys(COMPARES, flag)
        result = Signal(32, name="chosen")
        with m.Switch(op):
            for o, value in table.items():
                with m.Case(o.value):
                    m.d.comb += result.eq(value)
            with m.Default():
                m.d.comb += result.eq(x)
        return result
