"""A delay line that stands still with its pipeline, in RAM."""

from amaranth import Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out


class StallDelay(wiring.Component):
    """o is i, `cycles` (at least 2) enabled cycles ago; what it held before a reset comes out first."""

    def __init__(self, width, cycles):
        if cycles < 2:
            raise ValueError(f"cycles = {cycles}: must be at least 2")
        self._width, self._cycles = width, cycles
        super().__init__({"en": In(1), "i": In(width), "o": Out(width)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.ram = ram = memory.Memory(shape=self._width, depth=self._cycles, init=[])
        write, read = ram.write_port(), ram.read_port()
        at, after = (Signal(range(self._cycles), name=n) for n in ("at", "after"))
        m.d.comb += [after.eq(Mux(at == self._cycles - 1, 0, at + 1)), write.addr.eq(at), write.data.eq(self.i),
                     write.en.eq(self.en), read.addr.eq(after), read.en.eq(self.en), self.o.eq(read.data)]
        with m.If(self.en):
            m.d.sync += at.eq(after)
        return m


def stall_delayed(m, en, name, value, cycles):
    """`value`, `cycles` enabled cycles later."""
    m.submodules[name] = line = StallDelay(len(value), cycles)
    m.d.comb += [line.en.eq(en), line.i.eq(value)]
    return line.o
