"""DRAM writer: elements to memory through single-beat AXI writes; consecutive pieces of a beat become one."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, fifo, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.dram_walker import PIECE
from hw.interfaces import axi_write

BEATS = 16     # beats buffered
PENDING = 255  # responses awaited


class DramWriter(wiring.Component):
    """Pairs `piece`s with raw `element`s, one a cycle. `flush` sends what is held; `idle` when every response came.

    Pieces outside DRAM are dropped. `error` pulses on a bad response, with the address of the oldest write awaited.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "piece": In(stream.Signature(PIECE)), "element": In(stream.Signature(32)), "flush": In(1),
            "base": In(48), "halt": In(1), "axi": Out(axi_write(config.axi_data_bits)),
            "error": Out(1), "error_addr": Out(48), "idle": Out(1)})

    def elaborate(self, platform):
        m = Module()
        width, bytes_ = self.config.axi_data_bits, self.config.axi_bytes
        low = (bytes_ - 1).bit_length()
        p = self.piece.payload
        address = Signal(48)
        m.d.comb += address.eq(p.offset + self.base)
        layout = data.StructLayout({"addr": 48, "data": width, "strb": bytes_})
        m.submodules.queue = queue = fifo.SyncFIFO(width=layout.size, depth=BEATS)
        m.submodules.sent = sent = fifo.SyncFIFO(width=48, depth=PENDING + 1)
        held, valid = Signal(layout), Signal()
        raw = Signal(32)
        m.d.comb += raw.eq(self.element.payload >> (p.byte << 3))
        spread = Mux(p.size == 0, raw[:8].replicate(4), Mux(p.size == 1, raw[:16].replicate(2), raw))
        ones = Mux(p.size == 0, 1, Mux(p.size == 1, 3, 15)) << address[:low]
        strb = Signal(bytes_)
        m.d.comb += strb.eq(Mux(p.oob | self.halt, 0, ones))
        same = valid & (held.addr[low:] == address[low:]) & ~(strb & held.strb).any()
        both = self.piece.valid & self.element.valid
        take = both & (p.oob | ~valid | same | queue.w_rdy)
        push = valid & queue.w_rdy & ((both & ~p.oob & ~same) | (self.flush & ~both))
        mask = Cat(*(strb[b].replicate(8) for b in range(bytes_)))
        fresh = Signal(width)
        m.d.comb += [fresh.eq(spread.replicate(bytes_ // 4)),
                     self.piece.ready.eq(take), self.element.ready.eq(take & p.last),
                     queue.w_data.eq(held), queue.w_en.eq(push)]
        with m.If(push):
            m.d.sync += valid.eq(0)
        with m.If(take & ~p.oob):
            m.d.sync += valid.eq(1)
            with m.If(same):
                m.d.sync += [held.data.eq((held.data & ~mask) | (fresh & mask)), held.strb.eq(held.strb | strb)]
            with m.Else():
                m.d.sync += [held.addr.eq(address >> low << low), held.data.eq(fresh), held.strb.eq(strb)]
        head = data.View(layout, queue.r_data)
        told = Signal()  # the address of the head was taken
        waiting = Signal(range(PENDING + 2))
        m.d.comb += [
            self.axi.aw_valid.eq(queue.r_rdy & ~told & (waiting < PENDING) & sent.w_rdy),
            self.axi.aw_addr.eq(head.addr), self.axi.aw_len.eq(0),
            self.axi.w_valid.eq(queue.r_rdy & told), self.axi.w_data.eq(head.data), self.axi.w_strb.eq(head.strb),
            self.axi.w_last.eq(1), queue.r_en.eq(self.axi.w_valid & self.axi.w_ready),
            sent.w_data.eq(head.addr), sent.w_en.eq(self.axi.aw_valid & self.axi.aw_ready), sent.r_en.eq(self.axi.b_valid),
            self.error.eq(self.axi.b_valid & self.axi.b_resp[1]), self.error_addr.eq(sent.r_data),
            self.idle.eq(~valid & ~queue.r_rdy & (waiting == 0))]
        with m.If(self.axi.aw_valid & self.axi.aw_ready):
            m.d.sync += told.eq(1)
        with m.If(self.axi.w_valid & self.axi.w_ready):
            m.d.sync += told.eq(0)
        m.d.sync += waiting.eq(waiting + (self.axi.aw_valid & self.axi.aw_ready) - self.axi.b_valid)
        return m
