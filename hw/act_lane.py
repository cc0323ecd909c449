"""One physical lane of the activation engine: convert, scale, bias, function, convert."""

from amaranth import Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.act_function import CONTROL, SLOTS, ActFunction
from hw.convert import FromFp32, ToFp32
from hw.fp import FpAdd
from hw.fp_mul import FpMul
from hw.pipeline import Pipeline
from isa.activation import SEGMENTS

AT_SCALE = ToFp32.latency
AT_BIAS = AT_SCALE + FpMul.latency
AT_FUNCTION = AT_BIAS + FpAdd().latency
AT_VALUE = AT_FUNCTION + ActFunction.latency
AT_OUT = AT_VALUE + FromFp32.latency
"""Enabled cycles from an element's entry to: its scaling, its bias, its function, f's fp32 value, its output."""


class ActLane(wiring.Component):
    """o = convert(f(convert(raw) * scale + bias)), one element a cycle, AT_OUT (42) enabled cycles.

    Every other input belongs to the element that is at its stage: x_type at entry, scale at AT_SCALE, use_scale (else
    the step passes its input through) and bias at AT_BIAS, use_bias and control at AT_FUNCTION, y_type at AT_VALUE.
    `converted` is the element as fp32 at AT_SCALE (scalars end there), `value` f's at AT_VALUE.
    """

    def __init__(self):
        super().__init__({
            "en": In(1), "raw": In(32), "x_type": In(3), "scale": In(32), "use_scale": In(1), "bias": In(32),
            "use_bias": In(1), "control": In(CONTROL), "y_type": In(3),
            "table_en": In(3), "table_addr": In(range(SLOTS * SEGMENTS)), "table_data": In(32),
            "converted": Out(32), "value": Out(32), "o": Out(32)})

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.en)
        m.submodules.load = load = ToFp32()
        m.submodules.scale_mul = scale = FpMul()
        m.submodules.bias_add = bias = FpAdd()
        m.submodules.function = function = ActFunction()
        m.submodules.store = store = FromFp32()
        m.d.comb += [unit.en.eq(self.en) for unit in (load, scale, bias, function, store)]
        m.d.comb += [load.raw.eq(self.raw), load.dtype.eq(self.x_type), self.converted.eq(load.o),
                     scale.a.eq(load.o), scale.b.eq(self.scale)]
        scaled = pipe.name(Mux(self.use_scale, scale.o, pipe.delay(load.o, "unscaled", scale.latency)), "scaled")
        m.d.comb += [bias.a.eq(scaled), bias.b.eq(self.bias)]
        biased = Mux(self.use_bias, bias.o, pipe.delay(scaled, "unbiased", bias.latency))
        m.d.comb += [
            function.v.eq(biased), function.control.eq(self.control), function.table_en.eq(self.table_en),
            function.table_addr.eq(self.table_addr), function.table_data.eq(self.table_data),
            self.value.eq(function.o), store.x.eq(function.o), store.dtype.eq(self.y_type), self.o.eq(store.o)]
        return m
