"""One lane of the activation engine: convert, scale, bias, function, convert."""

from amaranth import Cat, Const, Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.convert import FromFp32, ToFp32
from hw.fp import FpAdd
from hw.fp_mul import FpMul
from hw.pipeline import Pipeline
from isa.ops import Func

NAN = 0x7FC00000


class ActLane(wiring.Component):
    """y = func(x*scale + bias), one element a cycle, `latency` enabled cycles.

    Everything but `raw` stays as it is while elements are in the pipeline. `converted` is `raw` as fp32,
    `ToFp32.latency` cycles later (for scalars). Steps that are absent pass their input through.
    """

    latency = ToFp32.latency + FpMul.latency + FpAdd().latency + FpMul.latency + 1 + FromFp32.latency

    def __init__(self):
        super().__init__({
            "en": In(1), "raw": In(32), "x_type": In(3), "y_type": In(3), "scale": In(32), "bias": In(32),
            "use_scale": In(1), "use_bias": In(1), "func": In(4), "converted": Out(32), "o": Out(32)})

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.en)
        m.submodules.load = load = ToFp32()
        m.submodules.scale_mul = scale = FpMul()
        m.submodules.bias_add = bias = FpAdd()
        m.submodules.square_mul = square = FpMul()
        m.submodules.store = store = FromFp32()
        m.d.comb += [unit.en.eq(self.en) for unit in (load, scale, bias, square, store)]
        m.d.comb += [load.raw.eq(self.raw), load.dtype.eq(self.x_type), self.converted.eq(load.o),
                     scale.a.eq(load.o), scale.b.eq(self.scale)]
        scaled = pipe.name(Mux(self.use_scale, scale.o, pipe.delay(load.o, "unscaled", scale.latency)), "scaled")
        m.d.comb += [bias.a.eq(scaled), bias.b.eq(self.bias)]
        v = pipe.name(Mux(self.use_bias, bias.o, pipe.delay(scaled, "unbiased", bias.latency)), "biased")
        m.d.comb += [square.a.eq(v), square.b.eq(v)]
        simple = pipe.delay(pipe.name(self._simple(v), "simple"), "function", square.latency)
        chosen = pipe.register(Mux(self.func == Func.SQUARE, square.o, simple), "chosen")
        m.d.comb += [store.x.eq(chosen), store.dtype.eq(self.y_type), self.o.eq(store.o)]
        return m

    def _simple(self, v):
        """identity, relu, abs, sign of a canonical fp32."""
        nan = v[:31] > 0x7F800000
        zero = v[:31] == 0
        relu = Mux(v[31] & ~nan, 0, v)
        sign = Mux(nan, NAN, Mux(zero, 0, Cat(Const(0x3F800000, 31), v[31])))
        return Mux(self.func == Func.RELU, relu, Mux(self.func == Func.ABS, Mux(nan, v, v[:31]),
                                                     Mux(self.func == Func.SIGN, sign, v)))



