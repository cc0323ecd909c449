"""The engine of a queue that has only nop and mark: they complete as soon as they start."""

from amaranth import Module
from amaranth.lib import wiring

from hw.interfaces import engine_signature


class WaitEngine(wiring.Component):
    """Executes nop and mark, one a cycle."""

    def __init__(self):
        super().__init__(engine_signature())

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [self.insn.ready.eq(1), self.done.eq(self.insn.valid), self.idle.eq(1)]
        return m
