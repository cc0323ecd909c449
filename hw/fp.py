"""The fp32 adder. Rounding, flushing and NaN rules: docs of `isa.numerics.add`."""

from types import SimpleNamespace as Values

from amaranth import C, Cat, Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.leading import choose, leading_zeros_by_edge, shift_left, shift_right_sticky
from hw.pipeline import Pipeline

QUIET_NAN = 0x7FC00000

_CUTS = {  # registers after: order, align, add, count (the output is always registered)
    3: (True, False, True, False),
    4: (True, True, False, True),
    5: (True, True, True, True),
}


def order(a, b):
    """Larger and smaller magnitude, their distance, and what decides the special cases.

    Raw bits are compared: a subnormal is below every normal number, and of two subnormals both become zero.
    """
    swap = a[:31] < b[:31]
    down, up = (a[23:31] - b[23:31])[:8], (b[23:31] - a[23:31])[:8]
    big, small = choose(swap, b, a), choose(swap, a, b)
    return Values(big=big, small=small, swap=swap, distance=choose(swap, up, down), subtract=a[31] ^ b[31])


def align(pipe, v):
    """Both significands with three more bits (guard, round, sticky); the smaller one shifted, inverted to subtract.

    From distance 32 on, all that matters is that the smaller one is below a quarter of the last place: no sticky bit.
    """
    exponent, top = v.big[23:31], v.big[23:31].all()
    small = Cat(v.small[:23], C(1, 1)) & v.small[23:31].any().replicate(24)
    far = v.distance[5:].any()
    small = pipe.name(small, "small_significand")
    shifted, lost = shift_right_sticky(pipe, Cat(C(0, 2), small), v.distance[:5])
    shifted = shifted & ~far.replicate(26)
    return Values(
        big=Cat(v.big[:23], C(1, 1)) & exponent.any().replicate(24),
        small=Cat(lost, shifted) ^ v.subtract.replicate(27),
        exponent=exponent, subtract=v.subtract, sign=v.big[31], infinite=top,
        nan=top & (v.big[:23].any() | (v.subtract & v.small[23:31].all())))


def add(pipe, v):
    """28-bit sum, carry at bit 27. The carry into a subtraction is one more bit at the low end."""
    total = Cat(v.subtract, C(0, 3), v.big) + Cat(v.subtract, v.small)
    return Values(
        total=Cat(total[1:28], total[28] & ~v.subtract),
        exponent=v.exponent, above=(v.exponent + 1)[:8], below=(v.exponent - 1)[:8],
        subtract=v.subtract, sign=v.sign, infinite=v.infinite, nan=v.nan)


def count(pipe, v):
    """Prepare two results: one that may round (shifted by at most one place), one that is exact (shifted further).

    More than one place is lost only when the exponents differ by at most one, and then nothing was shifted out.
    """
    t = v.total
    kept = pipe.name((t[1:27] >> Cat(t[26] & ~t[27], t[27]))[:24], "kept")  # fraction and guard bit
    fraction, odd, guard = kept[1:], kept[1], kept[0]
    sticky = t[0] | (t[1] & t[26:28].any()) | (t[2] & t[27])
    exponent = Mux(t[27], v.above, Mux(t[26], v.exponent, v.below))
    zeros, all_zero = leading_zeros_by_edge(pipe, t[2:25])
    exact = ~t[25:].any()
    infinite = v.infinite | (exponent.all() & ~exact)
    return Values(
        fraction=fraction, exponent=exponent, increment=guard & (odd | sticky), low=t[2:25], zeros=zeros,
        below=v.below, exact=exact, infinite=infinite, nan=v.nan,
        vanished=(exact & all_zero) | (~exact & ~exponent.any() & ~infinite),
        sign=v.sign & ~(v.subtract & exact & all_zero))


def finish(pipe, v):
    """Round, choose, pack."""
    rounded = (Cat(v.fraction, v.exponent) + v.increment)[:31]
    shifted = shift_left(pipe, v.low, v.zeros)
    exponent = Cat(v.below, C(0, 1)) - v.zeros - 1  # of the exact result; not positive means too small
    tiny = v.exact & (exponent[8] | ~exponent[:8].any())
    clear = v.vanished | tiny | v.infinite | v.nan
    fraction = choose(v.exact, Cat(C(0, 1), shifted[:22]), rounded[:23]) & ~clear.replicate(23)
    top = choose(v.exact, exponent[:8], rounded[23:]) & ~clear.replicate(8) | (v.infinite | v.nan).replicate(8)
    return Cat(fraction[:22], fraction[22] | v.nan, top, v.sign & ~v.nan)


class FpAdd(wiring.Component):
    """o = a + b in fp32, `latency` (3, 4 or 5) enabled cycles later; one operation a cycle.

    Nearest even; subnormal inputs count as zero, exact sums below 2^-126 become zero of their sign; NaN is 0x7fc00000.
    """

    def __init__(self, stages=4):
        self.latency = stages
        self._cuts = _CUTS[stages]
        super().__init__({"a": In(32), "b": In(32), "en": In(1, init=1), "o": Out(32)})

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.en)
        v = order(self.a, self.b)
        for step, registered in zip((align, add, count, finish), self._cuts, strict=True):
            v = step(pipe, pipe.cut(v, registered))
        m.d.comb += self.o.eq(pipe.register(v, "result"))
        return m
