"""Fetch: streams each queue's instructions from memory into its FIFO.

Bursts of up to four 64-byte instructions, none across 4 KiB, several in flight. A burst is requested only when its
FIFO has room for all of it, so the read channel is never held up. DMA queues are served before the others.
"""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.interfaces import axi_read
from isa.fields import INSTRUCTION_BYTES

BURST = 4         # instructions
IN_FLIGHT = 8     # bursts
DEPTH = {"pe": 32}
PAGE = 4096 // INSTRUCTION_BYTES


class Fetch(wiring.Component):
    """`base{i}`, `count{i}` are read at `start`; `beats{i}` feed the queues, in the order of config.queues.

    `stop` ends requesting; bursts in flight still arrive. `error` pulses with `error_queue` on a bad response.
    `idle` is high when nothing is in flight. Start to first beat: four cycles and the memory's latency.
    """

    def __init__(self, config):
        self.config = config
        n = len(config.queues)
        super().__init__({
            "start": In(1), "stop": In(1),
            **{f"base{i}": In(48) for i in range(n)}, **{f"count{i}": In(32) for i in range(n)},
            **{f"beats{i}": Out(stream.Signature(config.axi_data_bits)) for i in range(n)},
            "axi": Out(axi_read(config.axi_data_bits)),
            "error": Out(1), "error_queue": Out(3), "idle": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        per = INSTRUCTION_BYTES // self.config.axi_bytes
        queues = self.config.queues
        m.submodules.flight = flight = fifo.SyncFIFOBuffered(width=3, depth=IN_FLIGHT)  # whose burst comes next

        pending = Signal()  # an address is on offer
        ready, wants, picks, addrs = [], [], [], []
        order = [i for i, q in enumerate(queues) if q.startswith("dma")]
        order += [i for i in range(len(queues)) if i not in order]
        for i, queue in enumerate(queues):
            depth = DEPTH.get(queue, 16) * per
            m.submodules[f"fifo_{queue}"] = f = fifo.SyncFIFOBuffered(width=self.config.axi_data_bits, depth=depth)
            out = getattr(self, f"beats{i}")
            m.d.comb += [out.payload.eq(f.r_data), out.valid.eq(f.r_rdy), f.r_en.eq(out.ready)]
            mine = (flight.r_data == i) & flight.r_rdy
            m.d.comb += [f.w_data.eq(self.axi.r_data), f.w_en.eq(mine & self.axi.r_valid)]

            at, left = Signal(48, name=f"at_{queue}"), Signal(32, name=f"left_{queue}")
            want, fresh = Signal(range(BURST + 1), name=f"want_{queue}"), Signal(name=f"fresh_{queue}")
            reserved = Signal(range(depth + 1), name=f"reserved_{queue}")  # beats asked for and not yet taken out
            pick = Signal(name=f"pick_{queue}")
            page = Signal(range(PAGE + 1), name=f"page_{queue}")  # instructions up to the 4 KiB boundary
            few = Mux(left < BURST, left[:3], BURST)
            m.d.comb += page.eq(PAGE - at[6:12])
            m.d.sync += [want.eq(Mux(page < few, page, few)), fresh.eq(1),
                         reserved.eq(reserved + Mux(pick, want * per, 0) - (f.r_rdy & f.r_en))]
            with m.If(pick):
                m.d.sync += [at.eq(at + (want << 6)), left.eq(left - want), fresh.eq(0)]
            with m.If(self.start):
                m.d.sync += [at.eq(getattr(self, f"base{i}")), left.eq(getattr(self, f"count{i}")), fresh.eq(0)]
            ready.append(fresh & (left != 0) & (reserved <= depth - BURST * per))
            wants.append(want)
            picks.append(pick)
            addrs.append(at)

        with m.If(self.axi.ar_ready):
            m.d.sync += pending.eq(0)
        free = ~self.stop & flight.w_rdy & ~pending
        taken = False
        for i in order:
            m.d.comb += picks[i].eq(free & ready[i] & ~taken)
            taken = ready[i] | taken
            with m.If(picks[i]):
                m.d.sync += [pending.eq(1), self.axi.ar_addr.eq(addrs[i]), self.axi.ar_len.eq(wants[i] * per - 1)]
                m.d.comb += flight.w_data.eq(i)
        m.d.comb += [
            flight.w_en.eq(Cat(*picks).any()), self.axi.ar_valid.eq(pending), self.axi.r_ready.eq(1),
            flight.r_en.eq(self.axi.r_valid & self.axi.r_last),
            self.error.eq(self.axi.r_valid & (self.axi.r_resp[1])), self.error_queue.eq(flight.r_data),
            self.idle.eq(~flight.r_rdy & ~pending & (flight.level == 0)),
        ]
        return m
