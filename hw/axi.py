"""The AXI master: several readers and writers share one port; the id tells them apart."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import fifo, wiring
from amaranth.lib.wiring import In, Out

from hw.arbiter import Arbiter
from hw.interfaces import axi_read, axi_write

DATA_BURST = 16  # beats of a data reader's longest burst
AHEAD = 4        # bursts whose address is taken and whose data are not all sent


class AxiArbiter(wiring.Component):
    """Readers `rd0` (fetch, first) and `rd1`.. (DMA, in turn); writers `wr0`...

    An address, once offered, stays until it is taken. Data readers have at most `axi_read_beats` beats in flight
    together; fetch, which reserves its own space, is not held back by them. Write data go in the order of the
    addresses, a burst at a time, without a bubble between bursts. `idle`: nothing outstanding.
    Addresses and write data are registered: latency 1, one beat a cycle each way. A reader takes every beat it asked
    for, so `rready` and `bready` are always high.
    """

    def __init__(self, config):
        self.config = config
        self.n = config.dma_queues
        bits = config.axi_data_bits
        super().__init__({
            **{f"rd{i}": In(axi_read(bits)) for i in range(self.n + 1)},
            **{f"wr{i}": In(axi_write(bits)) for i in range(self.n)},
            "awid": Out(4), "awaddr": Out(48), "awlen": Out(8), "awsize": Out(3), "awburst": Out(2),
            "awvalid": Out(1), "awready": In(1), "wdata": Out(bits), "wstrb": Out(bits // 8), "wlast": Out(1),
            "wvalid": Out(1), "wready": In(1), "bid": In(4), "bresp": In(2), "bvalid": In(1), "bready": Out(1),
            "arid": Out(4), "araddr": Out(48), "arlen": Out(8), "arsize": Out(3), "arburst": Out(2),
            "arvalid": Out(1), "arready": In(1), "rid": In(4), "rdata": In(bits), "rresp": In(2), "rlast": In(1),
            "rvalid": In(1), "rready": Out(1), "idle": Out(1)})

    def elaborate(self, platform):
        m = Module()
        size = (self.config.axi_bytes - 1).bit_length()
        m.d.comb += [self.arsize.eq(size), self.awsize.eq(size), self.arburst.eq(1), self.awburst.eq(1)]
        reads = self._reads(m)
        writes = self._writes(m)
        m.d.comb += self.idle.eq(~reads & ~writes)
        return m

    def _reads(self, m):
        readers = [getattr(self, f"rd{i}") for i in range(self.n + 1)]
        m.submodules.read_arbiter = arbiter = Arbiter(self.n)
        flying, bursts = Signal(12), Signal(12)  # data beats, and all bursts
        room = flying <= self.config.axi_read_beats - DATA_BURST
        free = ~self.arvalid | self.arready
        fetch = readers[0].ar_valid
        m.d.comb += arbiter.request.eq(Mux(free & room & ~fetch, Cat(r.ar_valid for r in readers[1:]), 0))
        with m.If(self.arready):
            m.d.sync += self.arvalid.eq(0)
        takes = [fetch & free, *(arbiter.grant[i] for i in range(self.n))]
        for i, (reader, take) in enumerate(zip(readers, takes)):
            m.d.comb += [reader.ar_ready.eq(take), reader.r_valid.eq(self.rvalid & (self.rid == i)),
                         reader.r_data.eq(self.rdata), reader.r_resp.eq(self.rresp), reader.r_last.eq(self.rlast)]
            with m.If(take):
                m.d.sync += [self.arvalid.eq(1), self.arid.eq(i), self.araddr.eq(reader.ar_addr),
                             self.arlen.eq(reader.ar_len)]
        m.d.comb += self.rready.eq(1)  # every reader has room for what it asked for
        beats = 0
        for i in range(self.n):
            beats = Mux(takes[i + 1], readers[i + 1].ar_len + 1, beats)
        m.d.sync += [flying.eq(flying + beats - (self.rvalid & (self.rid != 0))),
                     bursts.eq(bursts + Cat(*takes).any() - (self.rvalid & self.rlast))]
        return bursts != 0

    def _writes(self, m):
        writers = [getattr(self, f"wr{i}") for i in range(self.n)]
        m.submodules.write_arbiter = arbiter = Arbiter(self.n)
        m.submodules.owners = owners = fifo.SyncFIFO(width=max(1, (self.n - 1).bit_length()), depth=AHEAD)
        waiting = Signal(12)
        free = (~self.awvalid | self.awready) & owners.w_rdy
        m.d.comb += [arbiter.request.eq(Mux(free, Cat(w.aw_valid for w in writers), 0)),
                     owners.w_en.eq(arbiter.grant.any())]
        with m.If(self.awready):
            m.d.sync += self.awvalid.eq(0)
        with m.If(self.wready):
            m.d.sync += self.wvalid.eq(0)
        for i, w in enumerate(writers):
            mine = owners.r_rdy & (owners.r_data == i)
            m.d.comb += [w.aw_ready.eq(arbiter.grant[i]), w.w_ready.eq(mine & (~self.wvalid | self.wready)),
                         w.b_valid.eq(self.bvalid & (self.bid == i)), w.b_resp.eq(self.bresp)]
            with m.If(arbiter.grant[i]):
                m.d.comb += owners.w_data.eq(i)
                m.d.sync += [self.awvalid.eq(1), self.awid.eq(i), self.awaddr.eq(w.aw_addr), self.awlen.eq(w.aw_len)]
            with m.If(w.w_valid & w.w_ready):
                m.d.comb += owners.r_en.eq(w.w_last)
                m.d.sync += [self.wvalid.eq(1), self.wdata.eq(w.w_data), self.wstrb.eq(w.w_strb),
                             self.wlast.eq(w.w_last)]
        m.d.comb += self.bready.eq(1)
        m.d.sync += waiting.eq(waiting + arbiter.grant.any() - self.bvalid)
        return (waiting != 0) | self.wvalid | owners.r_rdy
