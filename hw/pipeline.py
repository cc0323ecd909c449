"""Registers between the steps of a pipelined datapath."""

from types import SimpleNamespace

from amaranth import Signal


class Pipeline:
    """Adds register stages to a module; all of them advance in the cycles in which `en` is high.

    Data registers have no reset: validity travels beside them, in their user.
    """

    def __init__(self, m, en=None):
        self.m, self.en = m, en
        self.stage = 0

    def register(self, value, name):
        """`value` one (enabled) cycle later."""
        reg = Signal(value.shape(), name=name, reset_less=True)
        if self.en is None:
            self.m.d.sync += reg.eq(value)
        else:
            with self.m.If(self.en):
                self.m.d.sync += reg.eq(value)
        return reg

    def delay(self, value, name, cycles):
        """`value` some (enabled) cycles later."""
        for i in range(cycles):
            value = self.register(value, f"{name}_{i}")
        return value

    def cut(self, values, registered=True):
        """A namespace with every member of `values` one cycle later (or the same cycle, where a cut is left out)."""
        self.stage += 1
        step = self.register if registered else self.name
        return SimpleNamespace(**{n: step(v, f"{n}_s{self.stage}") for n, v in vars(values).items()})

    def name(self, value, name):
        """A named signal that equals `value`: widths are truncated in one visible place."""
        signal = Signal(value.shape(), name=name)
        self.m.d.comb += signal.eq(value)
        return signal
