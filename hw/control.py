"""Run control: start, completion counts, first error, watchdog, soft reset.

A run ends in `done` (all counts reached, bus idle) or in `error` (first trap kept; nothing more starts; everything
in progress drains). If the drain makes no progress for as long as the watchdog allows, the run ends all the
same and `bus_idle` stays low, so the host can tell. An error is cleared by a soft reset, which waits for the bus.
"""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.interfaces import TRAP
from isa.fields import WAITS
from isa.registers import Trap
from isa.table import QUEUES

DRAIN_CYCLES = 1 << 16  # patience of the drain when the watchdog is off
RESET_CYCLES = 8
CLEAR_CYCLES = 1024  # longer than any delay line, so that all run empty under reset


class Control(wiring.Component):
    """`traps` has two sources a queue (issue, engine), then fetch. One clock, in the host's reset domain."""

    def __init__(self, config):
        self.config = config
        self.n = n = len(config.queues)
        self.sources = 2 * n + 1
        super().__init__({
            "start": In(1), "soft_reset": In(1), "watchdog": In(32),
            "external": In(32), "external_strobe": In(1),
            "limit": In(data.ArrayLayout(32, n)),      # instructions of each queue
            "completed": In(n), "waiting": In(n), "busy": In(n),
            "index": In(data.ArrayLayout(32, n)),      # instruction that each queue will start next
            "traps": In(data.ArrayLayout(TRAP, self.sources)),
            "progress": In(1), "drained": In(1), "bus_quiet": In(1),
            "begin": Out(1), "stop": Out(1), "halt": Out(1), "core_reset": Out(1),
            "running": Out(1), "done": Out(1), "error": Out(1), "resetting": Out(1),
            "error_code": Out(8), "error_queue": Out(8), "error_index": Out(32), "error_addr": Out(48),
            "cycles": Out(64),
            "counts": Out(data.ArrayLayout(16, WAITS)),
            "done_counts": Out(data.ArrayLayout(32, n)),
            "busy_counts": Out(data.ArrayLayout(32, n)), "stall_counts": Out(data.ArrayLayout(32, n)),
        })

    def elaborate(self, platform):
        m = Module()
        all_done, trap = Signal(), Signal(TRAP)
        trap_queue = Signal(8)
        idle_cycles = Signal(32)
        patience = Signal(32)
        m.d.comb += patience.eq(Mux(self.watchdog == 0, DRAIN_CYCLES, self.watchdog))
        m.d.sync += all_done.eq(Cat(self.done_counts[q] == self.limit[q] for q in range(self.n)).all())
        self._merge(m, trap, trap_queue)
        self._count(m)
        with m.If(self.progress | self.begin):
            m.d.sync += idle_cycles.eq(0)
        with m.Else():
            m.d.sync += idle_cycles.eq(idle_cycles + 1)

        settle = Signal(range(CLEAR_CYCLES + 1))
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.stop.eq(self.error)  # what waits for the failed instruction must not start now
                with m.If(self.soft_reset):
                    m.next = "RESETTING"
                with m.Elif(self.start & ~self.error):
                    m.d.comb += self.begin.eq(1)
                    m.d.sync += [self.done.eq(0), settle.eq(0)]
                    m.next = "RUN"
            with m.State("RUN"):
                m.d.comb += self.running.eq(1)
                with m.If(settle != RESET_CYCLES):
                    m.d.sync += settle.eq(settle + 1)  # fetch and counts have taken the start in
                with m.If(self.soft_reset):
                    m.next = "RESETTING"
                with m.Elif(trap.valid):
                    self._keep(m, trap, trap_queue)
                    m.next = "STOPPING"
                with m.Elif((settle == RESET_CYCLES) & all_done & self.drained):
                    m.d.sync += self.done.eq(1)
                    m.next = "IDLE"
                with m.Elif((self.watchdog != 0) & (idle_cycles >= self.watchdog)):
                    self._bark(m)
                    m.next = "STOPPING"
            with m.State("STOPPING"):
                m.d.comb += [self.running.eq(1), self.stop.eq(1)]
                with m.If(settle != 0):
                    m.d.sync += settle.eq(settle - 1)  # instructions that started in this very cycle become busy
                with m.If(self.soft_reset):
                    m.next = "RESETTING"
                with m.Elif((settle == 0) & (self.drained | (idle_cycles >= patience))):
                    m.d.sync += self.error.eq(1)
                    m.next = "IDLE"
            with m.State("RESETTING"):
                m.d.comb += [self.resetting.eq(1), self.stop.eq(1), self.halt.eq(1)]
                m.d.sync += settle.eq(Mux(self.bus_quiet, settle + 1, 0))
                with m.If((settle == RESET_CYCLES) & self.bus_quiet):
                    m.d.sync += settle.eq(0)
                    m.next = "CLEAR"
            with m.State("CLEAR"):
                m.d.comb += [self.resetting.eq(1), self.stop.eq(1), self.core_reset.eq(1)]
                m.d.sync += [settle.eq(settle + 1), self.error.eq(0), self.done.eq(0), self.error_code.eq(0),
                             self.counts[WAITS - 1].eq(0)]
                with m.If(settle == CLEAR_CYCLES):
                    m.d.sync += settle.eq(0)
                    m.next = "IDLE"
        return m

    def _merge(self, m, trap, trap_queue):
        """The first valid source, registered; a trap that comes in the same cycle and later in the list is lost."""
        m.d.sync += trap.valid.eq(0)
        for source in reversed(range(self.sources)):
            with m.If(self.traps[source].valid):
                queue = source >> 1 if source < 2 * self.n else 0
                m.d.sync += [trap.eq(self.traps[source]), trap_queue.eq(queue)]
        fetch = self.traps[self.sources - 1]
        with m.If(fetch.valid):
            m.d.sync += [trap.eq(fetch), trap_queue.eq(fetch.addr[:3])]

    def _keep(self, m, trap, queue):
        m.d.sync += [self.error_code.eq(trap.code), self.error_queue.eq(queue),
                     self.error_index.eq(trap.index), self.error_addr.eq(trap.addr)]

    def _bark(self, m):
        """The watchdog names the oldest unfinished instruction of the first queue that is busy, else of the first that waits
        the one that waits."""
        m.d.sync += [self.error_code.eq(Trap.WATCHDOG), self.error_addr.eq(0)]
        for chosen, index in ((self.waiting, self.index), (self.busy, self.done_counts)):
            for q in reversed(range(self.n)):
                with m.If(chosen[q]):
                    m.d.sync += [self.error_queue.eq(q), self.error_index.eq(index[q])]

    def _count(self, m):
        for q, queue in enumerate(self.config.queues):
            slot = QUEUES.index(queue)
            m.d.comb += self.counts[slot].eq(self.done_counts[q])
            with m.If(self.begin):
                m.d.sync += [self.done_counts[q].eq(0), self.busy_counts[q].eq(0), self.stall_counts[q].eq(0)]
            with m.Else():
                m.d.sync += [self.done_counts[q].eq(self.done_counts[q] + self.completed[q]),
                             self.busy_counts[q].eq(self.busy_counts[q] + self.busy[q]),
                             self.stall_counts[q].eq(self.stall_counts[q] + (self.waiting[q] & ~self.busy[q]))]
        external = self.counts[WAITS - 1]
        with m.If(self.external_strobe):
            m.d.sync += external.eq(external + self.external[:16])
        with m.If(self.begin):
            m.d.sync += self.cycles.eq(0)
        with m.Elif(self.running):
            m.d.sync += self.cycles.eq(self.cycles + 1)
