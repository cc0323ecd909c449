"""The cell of the array: one stationary value, one multiplication and one addition a cycle."""

from amaranth import C, Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.convert import PE_MANTISSA_BITS, PE_WIDTH
from hw.fp import FpAdd
from hw.fp_mul import exponents, special
from hw.pipeline import Pipeline


class PE(wiring.Component):
    """One array cell for `pe` operands (formats: `hw.convert.PeRound`): sum_out = sum_in + x*w.

    Time, with x in cycle t:
      t                    x, x_valid, swap are sampled; with `swap` high the stationary value becomes the shadow
                           value (as it is before a shift in the same cycle), and this very x is multiplied by it
      t + 1                x_out, x_valid_out, swap_out repeat them for the right neighbour
      t + sum_delay        sum_in, from the cell above, is sampled
      t + sum_delay + L    sum_out = sum_in + x*w, where L = `latency`

    So in one row, x reaches column c at t + c, and row r + 1 is fed L cycles after row r. sum_delay is 3 for floats
    (registers after operand, product, normalisation) and 2 for int8. L is 4 for floats and 1 for int8.

    Where x_valid is low the sum passes unchanged, whatever x and the weight hold (floats: the product is -0, so that
    the sum's subnormals and NaN patterns are made canonical and nothing else happens). Floats: both operations per
    `isa.numerics`, the product exact, the sum fp32. int8: sums in int32, which no legal instruction can overflow.

    `w_shift` moves the row's shadow registers by one cell: shadow takes w_in; w_out is the shadow register. It is not
    delayed from cell to cell.
    """

    def __init__(self, pe):
        self._pe = pe
        self.width = PE_WIDTH[pe]
        self.latency = 1 if pe == "int8" else 4
        self.sum_delay = 2 if pe == "int8" else 3
        super().__init__({
            "x": In(self.width), "x_valid": In(1), "swap": In(1),
            "x_out": Out(self.width), "x_valid_out": Out(1), "swap_out": Out(1),
            "w_in": In(self.width), "w_shift": In(1), "w_out": Out(self.width),
            "sum_in": In(32), "sum_out": Out(32)})

    def elaborate(self, platform):
        m = Module()
        weight = Signal(self.width, reset_less=True)
        shadow = Signal(self.width, reset_less=True)
        x = Signal(self.width, reset_less=True)
        m.d.sync += [x.eq(self.x), self.x_valid_out.eq(self.x_valid), self.swap_out.eq(self.swap)]
        m.d.comb += [self.x_out.eq(x), self.w_out.eq(shadow)]
        with m.If(self.w_shift):
            m.d.sync += shadow.eq(self.w_in)
        with m.If(self.swap):
            m.d.sync += weight.eq(shadow)
        (self._integer if self._pe == "int8" else self._float)(m, x, weight)
        return m

    def _integer(self, m, x, weight):
        product = Signal(signed(16), reset_less=True)
        total = Signal(32, reset_less=True)
        # Zeroed at the adder: the multiplier is the longest path, and a register that is reset by every cell's own signal
        # cannot be placed beside it.
        valid = Signal()
        m.d.sync += [product.eq(x.as_signed() * weight.as_signed()), valid.eq(self.x_valid_out),
                     total.eq(self.sum_in + Mux(valid, product, 0))]
        m.d.comb += self.sum_out.eq(total)

    def _float(self, m, x, weight):
        pipe = Pipeline(m)
        mantissa_bits = PE_MANTISSA_BITS[self._pe]
        v = exponents(x, weight, exponent_at=mantissa_bits)
        v.product = Cat(x[:mantissa_bits], C(1, 1)) * Cat(weight[:mantissa_bits], C(1, 1))
        v.above = (v.exponent + 1)[:10]
        v.valid = self.x_valid_out
        v = pipe.cut(v)

        carry = v.product[-1]
        exponent = pipe.name(Mux(carry, v.above, v.exponent), "product_exponent")
        clear, infinite = special(v, exponent)
        top = Mux(carry, v.product[:-1], Cat(C(0, 1), v.product[:-2]))
        kept = Cat(C(0, 23 - len(top)), top, exponent[:8]) & ~(clear | v.nan | ~v.valid).replicate(31)
        over = ((infinite | v.nan) & v.valid).replicate(8)
        product = pipe.register(
            Cat(kept[:22], kept[22] | (v.nan & v.valid), kept[23:] | over, (v.sign & ~v.nan) | ~v.valid),
            "product_fp32")

        m.submodules.add = add = FpAdd(self.latency)
        m.d.comb += [add.a.eq(self.sum_in), add.b.eq(product), add.en.eq(1), self.sum_out.eq(add.o)]
