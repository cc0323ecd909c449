"""The fp32 multiplier. Rounding, flushing and NaN rules: `isa.numerics.mul`."""

from types import SimpleNamespace as Values

from amaranth import C, Cat, Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.pipeline import Pipeline

HALF = 12  # a 24-bit significand is two halves: four products, one hardware multiplier each


def exponents(a, b, bias=127, exponent_at=23, exponent_bits=8):
    """Sign, exponent sum (10 bits, signed: of the product in [1, 2), and one more) and special cases of a * b."""
    ea, eb = (x[exponent_at:exponent_at + exponent_bits] for x in (a, b))
    fa, fb = (x[:exponent_at].any() for x in (a, b))
    zero = ~ea.any() | ~eb.any()
    infinite = ea.all() | eb.all()
    nan = (ea.all() & fa) | (eb.all() & fb) | (infinite & zero)
    total = (ea + eb - bias)[:exponent_bits + 2]
    return Values(sign=a[-1] ^ b[-1], exponent=total, zero=zero, infinite=infinite, nan=nan)


def special(v, exponent):
    """(clear, infinite): the result's fraction is zero; it is infinite. `exponent` is exact, 10 bits, signed."""
    infinite = v.infinite | (~exponent[9] & (exponent[8] | exponent[:8].all()))  # never where a factor is zero
    small = v.zero | exponent[9] | ~exponent[:9].any()
    return small | infinite, infinite


class FpMul(wiring.Component):
    """o = a * b in fp32, `latency` (3) enabled cycles later; one operation a cycle; four 12x12 multipliers.

    Nearest even; subnormal inputs count as zero, a product whose exact magnitude is below 2^-126 is zero of its sign
    (even where rounding would reach 2^-126); NaN is 0x7fc00000.
    """

    latency = 3

    def __init__(self):
        super().__init__({"a": In(32), "b": In(32), "en": In(1, init=1), "o": Out(32)})

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.en)
        a, b = (Cat(x[:23], C(1, 1)) for x in (self.a, self.b))
        v = exponents(self.a, self.b)
        parts = Values(ll=a[:HALF] * b[:HALF], lh=a[:HALF] * b[HALF:], hl=a[HALF:] * b[:HALF], hh=a[HALF:] * b[HALF:])
        v, parts = pipe.cut(v), pipe.cut(parts)

        # The two middle products, shifted by HALF, meet the outer two, which do not overlap.
        upper = Cat(parts.ll[HALF:], parts.hh) + (parts.lh + parts.hl)
        v.product = Cat(parts.ll[:HALF], upper[:36])
        v.above = (v.exponent + 1)[:10]
        v = pipe.cut(v)

        p, carry = v.product, v.product[47]
        exponent = pipe.name(Mux(carry, v.above, v.exponent), "final_exponent")
        fraction = Mux(carry, p[24:47], p[23:46])
        guard = Mux(carry, p[23], p[22])
        sticky = p[:22].any() | (carry & p[22])
        rounded = (Cat(fraction, exponent[:8]) + (guard & (sticky | fraction[0])))[:31]
        clear, infinite = special(v, exponent)
        kept = rounded & ~(clear | v.nan).replicate(31)
        result = Cat(kept[:22], kept[22] | v.nan, kept[23:] | (infinite | v.nan).replicate(8), v.sign & ~v.nan)
        m.d.comb += self.o.eq(pipe.register(result, "result"))
        return m
