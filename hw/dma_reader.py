"""DRAM reader: bursts to a byte stream."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, fifo, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.dma_align import chunk_layout
from hw.dma_walk import BURST_BEATS, burst_layout
from hw.interfaces import axi_read

BURSTS = 32  # in flight


class DramReader(wiring.Component):
    """`burst` in, `out` the bytes in stream order, one beat a cycle. Dropped bursts read as zero.

    Space for every beat is reserved before it is requested. `error` pulses on a bad response, with the burst's address
    and instruction. Under `halt` nothing more is requested. Requests go on while earlier beats are awaited.
    """

    def __init__(self, config):
        self.config = config
        self.beats = max(2 * BURST_BEATS, min(128, config.axi_read_beats))
        super().__init__({
            "burst": In(stream.Signature(burst_layout(config))), "axi": Out(axi_read(config.axi_data_bits)),
            "out": Out(stream.Signature(chunk_layout(config))), "halt": In(1),
            "error": Out(1), "error_addr": Out(48), "error_index": Out(32)})

    def elaborate(self, platform):
        m = Module()
        width = self.config.axi_bytes
        low = (width - 1).bit_length()
        b, axi = self.burst.payload, self.axi
        m.submodules.beats = beats = fifo.SyncFIFOBuffered(width=8 * width, depth=self.beats)
        flight_layout = data.StructLayout({"low": low, "bytes": len(b.bytes), "drop": 1})
        m.submodules.flight = flight = fifo.SyncFIFO(width=flight_layout.size, depth=BURSTS)
        m.submodules.asked = asked = fifo.SyncFIFO(width=80, depth=BURSTS)  # for error reports
        room = Signal(range(self.beats + 1), init=self.beats)
        able, take, spent, back = Signal(), Signal(), Signal(range(BURST_BEATS + 1)), Signal()
        m.d.comb += [
            able.eq(b.drop | ((~axi.ar_valid | axi.ar_ready) & asked.w_rdy & (room > b.beats))),
            self.burst.ready.eq(able & flight.w_rdy & ~self.halt), take.eq(self.burst.valid & self.burst.ready),
            flight.w_en.eq(take), flight.w_data.eq(Cat(b.addr[:low], b.bytes, b.drop)),
            asked.w_en.eq(take & ~b.drop), asked.w_data.eq(Cat(b.addr, b.index)),
            spent.eq(Mux(take & ~b.drop, b.beats + 1, 0)), back.eq(beats.r_en & beats.r_rdy)]
        m.d.sync += room.eq(room - spent + back)
        with m.If(axi.ar_ready):
            m.d.sync += axi.ar_valid.eq(0)
        with m.If(take & ~b.drop):
            m.d.sync += [axi.ar_valid.eq(1), axi.ar_addr.eq(b.addr >> low << low), axi.ar_len.eq(b.beats)]
        m.d.comb += [
            axi.r_ready.eq(1), beats.w_en.eq(axi.r_valid), beats.w_data.eq(axi.r_data),
            asked.r_en.eq(axi.r_valid & axi.r_last), self.error.eq(axi.r_valid & axi.r_resp[1]),
            Cat(self.error_addr, self.error_index).eq(asked.r_data)]
        self._deliver(m, data.View(flight_layout, flight.r_data), flight, beats)
        return m

    def _deliver(self, m, burst, flight, beats):
        """Cut each beat to the bytes that belong to the stream."""
        width = self.config.axi_bytes
        done = Signal.like(burst.bytes)  # bytes of the burst that are delivered
        low, left = Mux(done == 0, burst.low, 0), burst.bytes - done
        count, end, go = Signal(range(width + 1)), Signal(), Signal()
        m.d.comb += [
            end.eq(left <= width - low), count.eq(Mux(end, left, width - low)),
            go.eq(flight.r_rdy & (burst.drop | beats.r_rdy) & (~self.out.valid | self.out.ready)),
            beats.r_en.eq(go & ~burst.drop), flight.r_en.eq(go & end)]
        with m.If(self.out.ready):
            m.d.sync += self.out.valid.eq(0)
        with m.If(go):
            m.d.sync += [self.out.valid.eq(1), self.out.payload.count.eq(count), done.eq(Mux(end, 0, done + count)),
                         self.out.payload.bytes.eq(Mux(burst.drop, 0, beats.r_data >> (low << 3)))]
        return m
