"""DRAM writer: a byte stream to bursts."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, fifo, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.dma_align import byte_mask
from hw.dma_walk import BURST_BEATS, burst_layout
from hw.interfaces import axi_write

BEATS = 4 * BURST_BEATS  # buffered
READY = 16     # bursts wholly buffered
PENDING = 64   # bursts whose response is awaited


class DramWriter(wiring.Component):
    """Takes the bytes of each `burst` from a byte queue (`head`, `level`, `take`), one beat a cycle.

    An address is sent when all its beats are buffered, the beats when it was taken. Dropped bursts swallow
    their bytes. `done` pulses once an instruction, when all its responses came; `error` on a bad one, with address
    and instruction. Under `halt` no further address is sent and the beats still owed go out with strobes off.
    """

    def __init__(self, config):
        self.config = config
        n = config.axi_bytes
        super().__init__({
            "burst": In(stream.Signature(burst_layout(config))), "axi": Out(axi_write(config.axi_data_bits)),
            "head": In(8 * n), "level": In(range(2 * n + 1)), "take": Out(range(n + 1)), "halt": In(1),
            "done": Out(1), "error": Out(1), "error_addr": Out(48), "error_index": Out(32)})

    def elaborate(self, platform):
        m = Module()
        beat_layout = data.StructLayout({"data": 8 * self.config.axi_bytes, "strb": self.config.axi_bytes, "last": 1})
        m.submodules.beats = beats = fifo.SyncFIFOBuffered(width=beat_layout.size, depth=BEATS)
        sent_layout = data.StructLayout({"addr": 48, "index": 32, "last": 1, "beats": 4})
        m.submodules.ready = ready = fifo.SyncFIFO(width=sent_layout.size, depth=READY)
        m.submodules.sent = sent = fifo.SyncFIFO(width=sent_layout.size, depth=PENDING)
        empty = ~ready.r_rdy & ~self.axi.aw_valid & ~sent.r_rdy
        dropped_end = self._fill(m, beats, ready, empty)
        self._send(m, beats, beat_layout, ready, sent, sent_layout)
        head = data.View(sent_layout, sent.r_data)
        m.d.comb += [sent.r_en.eq(self.axi.b_valid), self.error.eq(self.axi.b_valid & self.axi.b_resp[1]),
                     self.error_addr.eq(head.addr), self.error_index.eq(head.index),
                     self.done.eq((self.axi.b_valid & head.last) | dropped_end)]
        return m

    def _fill(self, m, beats, ready, empty):
        """Bytes to beats. Returns the pulse that ends an instruction whose last burst was dropped."""
        width = self.config.axi_bytes
        low_bits = (width - 1).bit_length()
        b, done = self.burst.payload, Signal.like(self.burst.payload.bytes)
        low, left = Mux(done == 0, b.addr[:low_bits], 0), b.bytes - done
        count, end, go = Signal(range(width + 1)), Signal(), Signal()
        # A dropped end waits for the responses before it, and holds up the next instruction meanwhile.
        settled = ~(b.drop & b.last & end) | empty
        m.d.comb += [
            end.eq(left <= width - low), count.eq(Mux(end, left, width - low)),
            go.eq(self.burst.valid & (self.level >= count) & settled & (b.drop | (beats.w_rdy & ready.w_rdy))),
            self.take.eq(Mux(go, count, 0)), self.burst.ready.eq(go & end), beats.w_en.eq(go & ~b.drop),
            beats.w_data.eq(Cat((self.head << (low << 3))[:8 * width], (byte_mask(count, width) << low)[:width], end)),
            ready.w_en.eq(go & end & ~b.drop), ready.w_data.eq(Cat(Const(0, low_bits), b.addr[low_bits:], b.index,
                                                                   b.last, b.beats))]
        with m.If(go):
            m.d.sync += done.eq(Mux(end, 0, done + count))
        return go & end & b.drop & b.last

    def _send(self, m, beats, beat_layout, ready, sent, sent_layout):
        axi, burst = self.axi, data.View(sent_layout, ready.r_data)
        owed = Signal(range(PENDING + 1))  # bursts whose address was taken and whose beats are not all sent
        flight = Signal(range(PENDING + 1))
        load, taken = Signal(), Signal()
        m.d.comb += [load.eq(ready.r_rdy & ~self.halt & (~axi.aw_valid | axi.aw_ready) & (flight != PENDING)),
                     ready.r_en.eq(load), taken.eq(axi.aw_valid & axi.aw_ready),
                     sent.w_en.eq(load), sent.w_data.eq(ready.r_data)]
        with m.If(axi.aw_ready):
            m.d.sync += axi.aw_valid.eq(0)
        with m.If(load):
            m.d.sync += [axi.aw_valid.eq(1), axi.aw_addr.eq(burst.addr), axi.aw_len.eq(burst.beats)]
        beat, go = data.View(beat_layout, beats.r_data), Signal()
        m.d.comb += [
            axi.w_valid.eq(beats.r_rdy & (owed != 0)), axi.w_data.eq(beat.data), axi.w_last.eq(beat.last),
            axi.w_strb.eq(Mux(self.halt, 0, beat.strb)), go.eq(axi.w_valid & axi.w_ready), beats.r_en.eq(go)]
        m.d.sync += [owed.eq(owed + taken - (go & beat.last)), flight.eq(flight + load - axi.b_valid)]
