"""Arbitration of one memory bank's port among clients."""

from amaranth import C, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

PATIENCE = 16  # refusals after which a client wins outright


def first(value):
    """The lowest set bit of `value` alone; without a carry chain, which is slower at this width."""
    return Cat(value[i] & ~value[:i].any() for i in range(len(value)))


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
        after = Signal(n)  # clients behind the last winner, in order
        refusals = [Signal(range(PATIENCE + 1), name=f"refusals{i}") for i in range(n)]
        patient_no_more = Signal(n)
        # The winners of every class are found at once, and one class is chosen at the end: the shortest path.
        starved, pressing = Signal(n), Signal(n)
        m.d.comb += [starved.eq(self.request & patient_no_more), pressing.eq(self.request & self.urgent)]
        grant = C(0, n)
        for pool in (self.request, pressing, starved):
            front, lowest = Signal(n), Signal(n)
            m.d.comb += [front.eq(pool & after), lowest.eq(Mux(front.any(), first(front), first(pool)))]
            grant = Mux(pool.any(), lowest, grant)
        m.d.comb += self.grant.eq(grant)
        with m.If(self.request.any()):
            m.d.sync += after.eq(Cat(C(0, 1), (self.grant[:i].any() for i in range(1, n))))
        for i, r in enumerate(refusals):
            with m.If(~self.request[i] | self.grant[i]):
                m.d.sync += [r.eq(0), patient_no_more[i].eq(0)]
            with m.Elif(~patient_no_more[i]):
                m.d.sync += [r.eq(r + 1), patient_no_more[i].eq(r == PATIENCE - 1)]
        return m
