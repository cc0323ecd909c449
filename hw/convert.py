"""Conversions between element types and fp32, and to the array's operand formats. The law: `isa.numerics`.

A raw element is its bits, low-aligned in 32; what lies above its size is ignored. All converters take one element a
cycle and deliver `latency` enabled cycles later.
"""

from types import SimpleNamespace as Values

from amaranth import C, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.leading import leading_zeros, normalise, shift_right_sticky
from hw.pipeline import Pipeline
from isa.dtypes import DType

TYPE_BITS = 3
PE_MANTISSA_BITS = {"tf32": 10, "bf16": 7}
PE_WIDTH = {"tf32": 19, "bf16": 16, "int8": 8}


def _is(dtype, *types):
    value = C(0, 1)
    for t in types:
        value = value | (dtype == t.value)
    return value


def _pick(m, name, width, dtype, table):
    """A signal that is `table[t]` for the type `dtype` says, and zero for types that are not in the table."""
    out = Signal(width, name=name)
    with m.Switch(dtype):
        for t, value in table.items():
            with m.Case(t.value):
                m.d.comb += out.eq(value)
    return out


class ToFp32(wiring.Component):
    """o = `raw`, of type `dtype`, as fp32.

    Exact, except that fp32 and bf16 subnormals become zero of their sign and int32 rounds to nearest even. NaN becomes
    0x7fc00000. With `int32` false that type is left out, which makes the normaliser 24 instead of 32 bits wide.
    """

    latency = 3

    def __init__(self, int32=True):
        self._int32 = int32
        super().__init__({"raw": In(32), "dtype": In(TYPE_BITS), "en": In(1, init=1), "o": Out(32)})

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.en)
        v = pipe.cut(self._decode(m, self.raw, self.dtype))
        zeros, all_zero = leading_zeros(pipe, v.magnitude)
        v = pipe.cut(Values(
            magnitude=normalise(pipe, v.magnitude, zeros),
            exponent=(v.exponent - zeros)[:8] & ~all_zero.replicate(8),
            sign=v.sign, infinite=v.infinite, nan=v.nan))
        low = v.magnitude[:-24]  # empty without int32: everything else has at most 24 bits
        rounded = Cat(v.magnitude[-24:-1], v.exponent)
        if len(low):
            rounded = (rounded + (low[-1] & (low[:-1].any() | v.magnitude[-24])))[:31]
        kept = rounded & ~(v.infinite | v.nan).replicate(31)
        o = Cat(kept[:22], kept[22] | v.nan, kept[23:] | (v.infinite | v.nan).replicate(8), v.sign & ~v.nan)
        m.d.comb += self.o.eq(pipe.register(o, "result"))
        return m

    def _decode(self, m, raw, dtype):
        """Sign, magnitude (integer bit on top), exponent of its top bit, special cases."""
        width = 32 if self._int32 else 24
        wide = Mux(_is(dtype, DType.BF16), raw << 16, raw)[:32]
        half = Mux(_is(dtype, DType.FP8E5), raw << 8, raw)[:16]  # fp8e5 is the upper half of fp16
        quarter = raw[:8]

        def significand(exponent, fraction):
            top = Cat(fraction, exponent.any())
            return Cat(C(0, width - len(top)), top)

        def biased(exponent, bias):  # a subnormal has the exponent of the smallest normal number
            return (Cat(exponent[0] | ~exponent.any(), exponent[1:]) + (127 - bias))[:8]

        word = significand(wide[23:31], wide[:23]) & wide[23:31].any().replicate(width)
        floats = {
            (DType.FP32, DType.BF16): (word, wide[23:31], wide[31], wide[23:31].all(), wide[:23].any()),
            (DType.FP16, DType.FP8E5): (significand(half[10:15], half[:10]), biased(half[10:15], 15), half[15],
                                        half[10:15].all(), half[:10].any()),
            (DType.FP8E4,): (significand(quarter[3:7], quarter[:3]), biased(quarter[3:7], 7), quarter[7],
                             quarter[:7].all(), C(1, 1)),
        }
        signed8 = _is(dtype, DType.INT8) & raw[7]
        if self._int32:
            negative = signed8 | (_is(dtype, DType.INT32) & raw[31])
            upper = Mux(_is(dtype, DType.INT32), raw[8:32], signed8.replicate(24))
            absolute = ((Cat(raw[:8], upper) ^ negative.replicate(32)) + negative)[:32]
            integers = {DType.INT8: absolute, DType.UINT8: absolute, DType.INT32: absolute}
        else:
            negative = signed8
            absolute = Cat(C(0, 16), ((raw[:8] ^ negative.replicate(8)) + negative)[:8])
            integers = {DType.INT8: absolute, DType.UINT8: absolute}
        table = {t: row for types, row in floats.items() for t in types}
        table |= {t: (value, C(127 + (31 if self._int32 else 7), 8), negative, C(0, 1), C(0, 1))
                  for t, value in integers.items()}
        names = (("magnitude", width), ("exponent", 8), ("sign", 1), ("special", 1), ("payload", 1))
        v = Values(**{n: _pick(m, n, w, dtype, {t: row[i] for t, row in table.items()})
                      for i, (n, w) in enumerate(names)})
        return Values(magnitude=v.magnitude, exponent=v.exponent, sign=v.sign,
                      infinite=v.special & ~v.payload, nan=v.special & v.payload)


class FromFp32(wiring.Component):
    """o = fp32 `x` as raw element of type `dtype` (bits above its size are zero).

    Nearest even; subnormal inputs count as zero, subnormal fp16 and fp8 results are formed. bf16 and fp16 overflow to
    infinity, fp8 and integers saturate, infinities too. NaN becomes the type's quiet NaN, or 0 as an integer.

    The result is base + (significand >> shift), rounded: the significand's hidden one carries into the exponent field.
    """

    latency = 4

    def __init__(self):
        super().__init__({"x": In(32), "dtype": In(TYPE_BITS), "en": In(1, init=1), "o": Out(32)})

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.en)
        v = pipe.cut(self._scale(m, pipe))

        shifted, sticky = shift_right_sticky(pipe, Cat(C(0, 1), v.significand), v.shift)
        v = pipe.cut(Values(
            quotient=shifted[1:], base=v.base, sign=v.sign, nan=v.nan, big=v.big, dtype=v.dtype,
            negate=v.sign & _is(v.dtype, DType.INT8, DType.UINT8, DType.INT32),
            increment=shifted[0] & (sticky | shifted[1])))

        # -(q + i) = ~q + (1 - i), and integers have no base.
        total = (v.base + (v.quotient ^ v.negate.replicate(32)) + (v.increment ^ v.negate))[:32]
        v = pipe.cut(Values(total=total, sign=v.sign, nan=v.nan, big=v.big, dtype=v.dtype))
        m.d.comb += self.o.eq(pipe.register(self._saturate(m, v), "result"))
        return m

    def _scale(self, m, pipe):
        """How far the 32-bit aligned significand moves, and the exponent field less its hidden one."""
        exponent, dtype = self.x[23:31], self.dtype
        below16, below8, above = (pipe.name(d[:9], n) for n, d in (
            ("below16", 113 - exponent), ("below8", 121 - exponent), ("above", 158 - exponent)))
        clamp16, clamp8 = (d[:8] & ~d[8].replicate(8) for d in (below16, below8))
        big = above[8] | ~above.any()
        far = {DType.FP32: C(8, 9), DType.BF16: C(24, 9), DType.FP16: clamp16 + 21, DType.FP8E5: clamp16 + 29,
               DType.FP8E4: clamp8 + 28, **{t: above for t in (DType.INT8, DType.UINT8, DType.INT32)}}
        shift = _pick(m, "distance", 9, dtype, far)
        less1 = (exponent - exponent.any())[:8]
        less16 = ((exponent - 113)[:8] & below16[8].replicate(8))
        less8 = ((exponent - 121)[:8] & below8[8].replicate(8))
        base = _pick(m, "base", 32, dtype, {
            DType.FP32: less1 << 23, DType.BF16: less1 << 7, DType.FP16: less16 << 10, DType.FP8E5: less16 << 2,
            DType.FP8E4: less8 << 3})
        present = exponent.any()
        return Values(
            significand=Cat(C(0, 8), self.x[:23], C(1, 1)) & present.replicate(32),
            shift=shift[:6] | shift[6:].any().replicate(6), base=base, sign=self.x[31], big=big, dtype=dtype,
            nan=exponent.all() & self.x[:23].any())

    def _saturate(self, m, v):
        t = v.total
        beyond8 = t[7:].any() & ~t[7:].all()
        table = {  # type: (bits, sign bit or none, is out of range, value when it is, NaN)
            DType.FP32: (t[:31], True, C(0, 1), C(0, 31), 0x7FC00000),
            DType.BF16: (t[:15], True, C(0, 1), C(0, 15), 0x7FC0),
            DType.FP16: (t[:15], True, t[15:].any() | t[10:15].all(), C(0x7C00, 15), 0x7E00),
            DType.FP8E4: (t[:7], True, t[7:].any() | t[:7].all(), C(0x7E, 7), 0x7F),
            DType.FP8E5: (t[:7], True, t[7:].any() | t[2:7].all(), C(0x7B, 7), 0x7E),
            DType.INT8: (t[:8], False, v.big | beyond8, Cat((~v.sign).replicate(7), v.sign), 0),
            DType.UINT8: (t[:8], False, v.big | t[8:].any(), (~v.sign).replicate(8), 0),
            DType.INT32: (t, False, v.big, Cat((~v.sign).replicate(31), v.sign), 0),
        }
        rows = {}
        for dtype, (bits, has_sign, beyond, limit, nan) in table.items():
            value = Mux(beyond, limit, bits)
            rows[dtype] = Mux(v.nan, nan, Cat(value[:len(bits)], v.sign) if has_sign else value[:len(bits)])
        return _pick(m, "saturated", 32, v.dtype, rows)


class PeRound(wiring.Component):
    """o = `raw`, of type `dtype`, in the operand format of the array: sign, 8 exponent bits, mantissa.

    tf32: 19 bits (e8m10), bf16: 16 bits (e8m7), any type but int32; int8: the 8 bits as they are. Nearest even,
    overflow to infinity, subnormal fp32 and bf16 count as zero. `latency` depends on the format: 4, for int8 1.
    """

    def __init__(self, pe):
        self._pe = pe
        self.width = PE_WIDTH[pe]
        self.latency = 1 if pe == "int8" else ToFp32.latency + 1
        super().__init__({"raw": In(32), "dtype": In(TYPE_BITS), "en": In(1, init=1), "o": Out(self.width)})

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.en)
        if self._pe == "int8":
            m.d.comb += self.o.eq(pipe.register(self.raw[:8], "result"))
            return m
        m.submodules.to_fp32 = convert = ToFp32(int32=False)
        m.d.comb += [convert.raw.eq(self.raw), convert.dtype.eq(self.dtype), convert.en.eq(self.en)]
        cut = 23 - PE_MANTISSA_BITS[self._pe]
        x = convert.o
        increment = x[cut - 1] & (x[:cut - 1].any() | x[cut])
        rounded = (x[cut:31] + increment)[:31 - cut]  # infinity and the quiet NaN have nothing to round
        m.d.comb += self.o.eq(pipe.register(Cat(rounded, x[31]), "result"))
        return m
