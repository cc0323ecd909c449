"""Delay lines: registers when short, a circular buffer in RAM when long."""

from amaranth import Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

REGISTERS = 3  # longest line made of registers


class Delay(wiring.Component):
    """o(t) = i(t - cycles); zeros until the first input arrives.

    A RAM line cannot be cleared by a reset: its user waits until it has run empty.
    """

    def __init__(self, width, cycles):
        self.width, self.cycles = width, cycles
        super().__init__({"i": In(width), "o": Out(width)})

    def elaborate(self, platform):
        m = Module()
        if self.cycles <= REGISTERS:
            value = self.i
            for c in range(self.cycles):
                register = Signal(self.width, name=f"stage{c}")
                m.d.sync += register.eq(value)
                value = register
            m.d.comb += self.o.eq(value)
            return m
        m.submodules.ram = ram = memory.Memory(shape=self.width, depth=self.cycles, init=[])
        write, read = ram.write_port(), ram.read_port()
        at = Signal(range(self.cycles), reset_less=True)  # keeps turning in reset, so that the line empties
        after = Signal(range(self.cycles))
        m.d.comb += [after.eq(Mux(at == self.cycles - 1, 0, at + 1)), write.addr.eq(at), write.data.eq(self.i),
                     write.en.eq(1), read.addr.eq(after), read.en.eq(1), self.o.eq(read.data)]
        m.d.sync += at.eq(after)
        return m


def delayed(m, name, value, cycles):
    """`value` some cycles later."""
    m.submodules[name] = line = Delay(len(value), cycles)
    m.d.comb += line.i.eq(value)
    return line.o
