"""The whole core as a block that can be measured: its Verilog as users get it, under an instance."""

from amaranth import ClockSignal, Instance, Module, ResetSignal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tb.generate import TOP, generated


class CoreInstance(wiring.Component):
    """The core of `config` without its clock and reset ports; `verilog` is the text that belongs to it."""

    def __init__(self, config):
        self.verilog, _cells, signals = generated(config)
        super().__init__({name: (In if direction == "input" else Out)(bits)
                          for name, direction, bits in signals if name not in ("clk", "rst")})

    def elaborate(self, platform):
        m = Module()
        ports = {f"{member.flow.name[0].lower()}_{name}": getattr(self, name) for name, member in self.signature.members.items()}
        m.submodules.core = Instance(TOP, i_clk=ClockSignal(), i_rst=ResetSignal(), **ports)
        return m
