"""DRAM reader: pieces to elements through single-beat AXI reads; consecutive pieces of a beat share it."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.dram_walker import PIECE
from hw.interfaces import axi_read

BEATS = 32  # beats requested or buffered
AHEAD = 64  # pieces walked ahead of their data


class DramReader(wiring.Component):
    """`piece` in, raw elements out, one a cycle while the bus keeps up. `fresh` marks a new walk: beats read before
    are stale. A piece outside DRAM reads as zero. `error` pulses with `error_addr` on a bad response."""

    def __init__(self, config):
        self.config = config
        super().__init__({
            "piece": In(stream.Signature(PIECE)), "fresh": In(1), "base": In(48), "halt": In(1),
            "axi": Out(axi_read(config.axi_data_bits)), "out": Out(stream.Signature(32)),
            "error": Out(1), "error_addr": Out(48), "idle": Out(1)})

    def elaborate(self, platform):
        m = Module()
        low = (self.config.axi_bytes - 1).bit_length()
        p = self.piece.payload
        beat, previous, known = Signal(48), Signal(48), Signal()
        m.d.comb += beat.eq((p.offset + self.base) >> low)
        new = ~p.oob & (~known | (beat != previous))
        credits = Signal(range(BEATS + 1), init=BEATS)
        m.submodules.beats = beats = fifo.SyncFIFO(width=self.config.axi_data_bits, depth=BEATS)
        m.submodules.ahead = ahead = fifo.SyncFIFO(width=low + 8, depth=AHEAD)
        m.submodules.asked = asked = fifo.SyncFIFO(width=48, depth=BEATS)  # addresses, for error reports
        offer, offer_addr = Signal(), Signal(48)  # the request on the bus stays until it is taken
        can = (~offer | self.axi.ar_ready) & (credits != 0)
        taken = self.piece.valid & self.piece.ready
        m.d.comb += [
            self.piece.ready.eq(ahead.w_rdy & ~self.halt & (~new | can)), ahead.w_en.eq(taken),
            ahead.w_data.eq(Cat(Cat(p.offset + self.base)[:low], p.size, p.byte, p.last, p.oob, new)),
            self.axi.ar_valid.eq(offer), self.axi.ar_addr.eq(offer_addr), self.axi.ar_len.eq(0),
            beats.w_data.eq(self.axi.r_data), beats.w_en.eq(self.axi.r_valid), self.axi.r_ready.eq(1),
            asked.w_data.eq(beat << low), asked.w_en.eq(taken & new), asked.r_en.eq(self.axi.r_valid),
            self.error.eq(self.axi.r_valid & self.axi.r_resp[1]), self.error_addr.eq(asked.r_data)]
        with m.If(self.axi.ar_ready):
            m.d.sync += offer.eq(0)
        with m.If(taken & new):
            m.d.sync += [offer.eq(1), offer_addr.eq(beat << low)]
        with m.If(self.fresh):
            m.d.sync += known.eq(0)
        with m.Elif(taken & ~p.oob):
            m.d.sync += [known.eq(1), previous.eq(beat)]
        m.d.sync += credits.eq(credits - (taken & new) + (beats.r_en & beats.r_rdy))
        self._deliver(m, low, beats, ahead)
        m.d.comb += self.idle.eq(~ahead.r_rdy & ~self.out.valid & ~offer & (credits == BEATS))
        return m

    def _deliver(self, m, low, beats, ahead):
        at, d = ahead.r_data[:low], ahead.r_data[low:]
        size, byte, last, oob, new = d[:2], d[2:4], d[4], d[5], d[6]
        held, part = Signal(self.config.axi_data_bits, reset_less=True), Signal(32)
        beat = Mux(new, beats.r_data, held)
        raw = Signal(32)
        m.d.comb += raw.eq(Mux(oob, 0, beat >> (at << 3)))
        piece = Signal(32)
        m.d.comb += piece.eq(Mux(size == 0, raw[:8] << (byte << 3), Mux(size == 1, raw[:16], raw)))
        go = ahead.r_rdy & (~new | beats.r_rdy) & (~self.out.valid | self.out.ready)
        m.d.comb += [ahead.r_en.eq(go), beats.r_en.eq(go & new)]
        with m.If(self.out.ready):
            m.d.sync += self.out.valid.eq(0)
        with m.If(go):
            whole = Mux(byte == 0, 0, part) | piece
            m.d.sync += part.eq(whole)
            with m.If(last):
                m.d.sync += [self.out.valid.eq(1), self.out.payload.eq(whole)]
            with m.If(new):
                m.d.sync += held.eq(beats.r_data)
