"""Arbitration of one memory bank's port among clients."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

PATIENCE = 16  # refusals after which a client wins outright


class Arbiter(wiring.Component):
    """`grant` is one-hot or zero, combinational from `request` and `urgent`.

    Urgent requests win over others, among equals the one after the last winner (round robin). A client refused
    PATIENCE times is served before all that were not, so it waits at most PATIENCE + clients - 1 cycles.
    """

    def __init__(self, clients):
        self.clients = clients
        super().__init__({"request": In(clients), "urgent": In(clients), "grant": Out(clients)})

    def elaborate(self, platform):
        m = Module()
        n = self.clients
        if n == 1:
            m.d.comb += self.grant.eq(self.request)
            return m
        starved = Signal(n)
        after = Signal(n)  # clients behind the last winner, in order
        refusals = [Signal(range(PATIENCE + 1), name=f"refusals{i}") for i in range(n)]
        m.d.comb += starved.eq(self.request & Cat(r == PATIENCE for r in refusals))
        pressing = self.request & self.urgent
        pool = Signal(n)
        m.d.comb += pool.eq(Mux(starved.any(), starved, Mux(pressing.any(), pressing, self.request)))
        front = Signal(n)
        m.d.comb += front.eq(pool & after)
        lowest = Signal(n)
        m.d.comb += [lowest.eq(Mux(front.any(), front, pool)), self.grant.eq(lowest & (~lowest + 1)[:n])]
        with m.If(self.grant.any()):
            below = Signal(n)  # mask of the winner and everything below it
            m.d.comb += below.eq(self.grant | (self.grant - 1)[:n])
            m.d.sync += after.eq(~below)
        for i, r in enumerate(refusals):
            with m.If(~self.request[i] | self.grant[i]):
                m.d.sync += r.eq(0)
            with m.Elif(r != PATIENCE):
                m.d.sync += r.eq(r + 1)
        return m
