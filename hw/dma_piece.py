"""Walks over one block of a corner buffer: pieces on the stream's side, words on the SBUF's side."""

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.dma_block import block_layout, half_bytes


def piece_layout(config):
    """`count` stream bytes at byte `at` of a half: of one lane, or (`inner`) an element each of the lanes from `lane`.
    `size`: log2 of the element size; `same`: for `others` further lanes too; `end` of the block."""
    return data.StructLayout({
        "lane": 7, "at": (half_bytes(config) - 1).bit_length(), "count": config.axi_bytes.bit_length(), "size": 2,
        "inner": 1, "same": 1, "others": 7, "end": 1})


def word_layout(config):
    """A word of SBUF, all lanes: byte address `addr`, wanted `bytes`, byte `at` of a half where it lies; `unit`: whole
    words, else one element of log2 `size`. `end` of the block, `last` of the instruction."""
    return data.StructLayout({
        "addr": signed(22), "bytes": 4, "at": (half_bytes(config) - 1).bit_length(), "size": 2, "unit": 1,
        "oob": 1, "end": 1, "last": 1, "p0": 7, "pn": 7, "index": 32})


class PieceWalker(wiring.Component):
    """One piece a cycle in stream order, without a bubble between blocks. Latency 1. No piece is wider than the bus,
    crosses an entry, or (inner) holds more than one element of a lane."""

    def __init__(self, config):
        self.config = config
        super().__init__({"block": In(stream.Signature(block_layout(config))),
                          "out": Out(stream.Signature(piece_layout(config)))})

    def elaborate(self, platform):
        m = Module()
        width, half = self.config.axi_bytes, half_bytes(self.config)
        b, busy = Signal(block_layout(self.config)), Signal()
        at, stop = Signal(range(half + 1)), Signal(range(half + 1))  # byte of the half, end of the block there
        left = Signal(8)                                             # lanes left
        low_bits = (width - 1).bit_length()
        n, p = self.block.payload, self.out.payload
        row_left, in_entry, across = stop - at, width - at[:low_bits], (width >> b.size)
        outer_end, inner_end = row_left <= in_entry, left <= across
        next_k = at + (1 << b.size)
        end = Mux(b.inner, inner_end & (next_k == stop), outer_end & (left == 1))
        m.d.comb += [
            self.out.valid.eq(busy), p.lane.eq(b.p0 + Mux(b.same, 0, b.pn + 1 - left)), p.at.eq(at), p.size.eq(b.size),
            p.inner.eq(b.inner), p.same.eq(b.same), p.others.eq(b.pn), p.end.eq(end),
            p.count.eq(Mux(b.inner, Mux(inner_end, left << b.size, width), Mux(outer_end, row_left, in_entry))),
            self.block.ready.eq(~busy | (end & self.out.ready))]
        with m.If(busy & self.out.ready):
            with m.If(b.inner):
                m.d.sync += left.eq(left - across)
                with m.If(inner_end):
                    m.d.sync += [left.eq(b.pn + 1), at.eq(next_k)]
            with m.Else():
                m.d.sync += at.eq(at + in_entry)
                with m.If(outer_end):
                    m.d.sync += [left.eq(left - 1), at.eq(b.phase)]
            with m.If(end):
                m.d.sync += busy.eq(0)
        with m.If(self.block.valid & self.block.ready):
            m.d.sync += [busy.eq(1), b.eq(n), at.eq(n.phase), left.eq(Mux(n.same, 0, n.pn) + 1),
                         stop.eq(n.phase + (n.count << n.size))]
        return m


class WordWalker(wiring.Component):
    """One SBUF word a cycle, without a bubble between blocks. Latency 1. Where elements are adjacent in SBUF, a word
    holds all that lie in it, else one. `oob`: outside 0 .. `limit` bytes."""

    def __init__(self, config):
        self.config, self.limit = config, config.sbuf_bytes
        super().__init__({"block": In(stream.Signature(block_layout(config))),
                          "out": Out(stream.Signature(word_layout(config)))})

    def elaborate(self, platform):
        m = Module()
        half = half_bytes(self.config)
        b, busy = Signal(block_layout(self.config)), Signal()
        addr, at, stop, first = Signal(signed(22)), Signal(range(half + 4)), Signal(range(half + 1)), Signal()
        n, w = self.block.payload, self.out.payload
        next_at = at + Mux(b.unit, 4, 1 << b.size)
        end = next_at >= stop
        low = Mux(first, b.phase, 0)
        above = Mux(end, stop - at, 4)[:3]
        ones = Mux(b.size == 0, 1, Mux(b.size == 1, 3, 15))
        m.d.comb += [
            self.out.valid.eq(busy), w.addr.eq(addr), w.at.eq(at), w.size.eq(b.size), w.unit.eq(b.unit), w.end.eq(end),
            w.last.eq(end & b.last), w.p0.eq(b.p0), w.pn.eq(b.pn), w.index.eq(b.index),
            w.bytes.eq(Mux(b.unit, (15 << low) & ((1 << above) - 1), ones << addr[:2])),
            w.oob.eq((addr < 0) | (addr >= self.limit)), self.block.ready.eq(~busy | (end & self.out.ready))]
        with m.If(busy & self.out.ready):
            m.d.sync += [addr.eq(addr + Mux(b.unit, 4, b.xs2 << b.size)), at.eq(next_at), first.eq(0), busy.eq(~end)]
        with m.If(self.block.valid & self.block.ready):
            m.d.sync += [busy.eq(1), b.eq(n), addr.eq(n.sbuf - n.phase), at.eq(0), first.eq(1),
                         stop.eq(n.phase + (n.count << n.size))]
        return m
