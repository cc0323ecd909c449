"""DRAM addresses: blocks to contiguous runs, runs to bursts."""

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.dma_block import OFFSET, block_layout

BURST_BEATS = 16
PAGE_BYTES = 4096  # no AXI burst crosses a multiple of this

RUN = data.StructLayout({"offset": OFFSET, "bytes": 17, "drop": 1, "last": 1, "index": 32})
"""Contiguous bytes at a DRAM offset; `drop`: a gather or scatter row beyond the limit; `last` of its instruction."""


def burst_layout(config):
    """`bytes` at bus address `addr` in `beats` (less one); `drop`: no access, but the bytes are in the stream."""
    return data.StructLayout({
        "addr": 48, "bytes": (BURST_BEATS * config.axi_bytes).bit_length(), "beats": 4, "drop": 1, "last": 1,
        "index": 32})


class RunWalker(wiring.Component):
    """The runs of a block in stream order, one a cycle, without a bubble between blocks. Latency 2.

    The stream's inner axis makes one run where its stride is one element; the outer axis joins it where
    its stride is the length of the inner one. `row` asks for the table entry (`row_offset`, `row_drop`) of a partition.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "block": In(stream.Signature(block_layout(config))), "out": Out(stream.Signature(RUN)),
            "row": Out(7), "row_offset": In(OFFSET), "row_drop": In(1)})

    def elaborate(self, platform):
        m = Module()
        n = self.block.payload
        lanes = Mux(n.same, 0, n.pn)
        outer_n, inner_n = Mux(n.inner, n.count - 1, lanes), Mux(n.inner, lanes, n.count - 1)
        outer_s, inner_s = Mux(n.inner, n.s2, n.sp), Mux(n.inner, n.sp, n.s2)
        line, whole = Signal(), Signal()
        m.d.comb += [line.eq((inner_s == 1) | (inner_n == 0)),
                     whole.eq(line & ((outer_s == inner_n + 1) | (outer_n == 0)) & ~n.rows)]
        busy, rows, last, index, p0 = Signal(), Signal(), Signal(), Signal(32), Signal(7)
        bytes_, at, start = Signal(17), Signal(OFFSET), Signal(OFFSET)
        step, outer_step = Signal(signed(35)), Signal(signed(35))
        count, outer_count, size, outer_size = Signal(16), Signal(16), Signal(16), Signal(16)
        end, outer_end, go = Signal(), Signal(), Signal()
        out = self.out
        m.d.comb += [
            end.eq(count == size), outer_end.eq(outer_count == outer_size), go.eq(busy & (~out.valid | out.ready)),
            self.block.ready.eq(~busy | (go & end & outer_end)), self.row.eq(p0 + outer_count)]
        with m.If(out.ready):
            m.d.sync += out.valid.eq(0)
        with m.If(go):
            m.d.sync += [
                out.valid.eq(1), out.payload.offset.eq(at + Mux(rows, self.row_offset, 0)),
                out.payload.bytes.eq(bytes_), out.payload.drop.eq(rows & self.row_drop),
                out.payload.last.eq(last & end & outer_end), out.payload.index.eq(index),
                at.eq(at + step), count.eq(count + 1)]
            with m.If(end):
                m.d.sync += [count.eq(0), outer_count.eq(outer_count + 1), at.eq(start + outer_step),
                             start.eq(start + outer_step), busy.eq(~outer_end)]
        with m.If(self.block.valid & self.block.ready):
            elements = Mux(whole, n.count * (lanes + 1), Mux(line, inner_n + 1, 1))
            m.d.sync += [
                busy.eq(1), rows.eq(n.rows), last.eq(n.last), index.eq(n.index), p0.eq(n.p0),
                bytes_.eq(elements << n.size), at.eq(n.dram), start.eq(n.dram),
                step.eq(inner_s << n.size), outer_step.eq(outer_s << n.size), count.eq(0), outer_count.eq(0),
                size.eq(Mux(line, 0, inner_n)), outer_size.eq(Mux(whole, 0, outer_n))]
        return m


class BurstSplitter(wiring.Component):
    """Runs to bursts, one a cycle, without a bubble between runs. Latency 1.

    No burst has more than 16 beats or crosses 4 KiB. A run that is not wholly inside 0 .. `limit`
    pulses `trap_valid`, and its bursts are dropped. Bus address = `base` + offset.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "run": In(stream.Signature(RUN)), "out": Out(stream.Signature(burst_layout(config))),
            "base": In(48), "limit": In(48), "trap_valid": Out(1), "trap_index": Out(32), "trap_addr": Out(48)})

    def elaborate(self, platform):
        m = Module()
        width = self.config.axi_bytes
        window = BURST_BEATS * width
        low = (width - 1).bit_length()
        busy, addr, left = Signal(), Signal(48), Signal(17)
        drop, last, index = Signal(), Signal(), Signal(32)
        room, bytes_, end = Signal(range(window + 1)), Signal(range(window + 1)), Signal()
        page, most = PAGE_BYTES - addr[:12], window - addr[:low]
        r, b, outside = self.run.payload, self.out.payload, Signal()
        m.d.comb += [
            room.eq(Mux(page < most, page, most)), end.eq(left <= room), bytes_.eq(Mux(end, left, room)),
            self.out.valid.eq(busy), b.addr.eq(addr), b.bytes.eq(bytes_), b.drop.eq(drop), b.last.eq(last & end),
            b.beats.eq((addr[:low] + bytes_ - 1) >> low), b.index.eq(index),
            self.run.ready.eq(~busy | (end & self.out.ready)),
            outside.eq((r.offset < 0) | (r.offset + r.bytes > self.limit)),
            self.trap_valid.eq(self.run.valid & self.run.ready & outside & ~r.drop),
            self.trap_index.eq(r.index), self.trap_addr.eq(r.offset[:48])]
        with m.If(busy & self.out.ready):
            m.d.sync += [addr.eq(addr + bytes_), left.eq(left - bytes_), busy.eq(~end)]
        with m.If(self.run.valid & self.run.ready):
            m.d.sync += [busy.eq(1), addr.eq(self.base + r.offset), left.eq(r.bytes), drop.eq(r.drop | outside),
                         last.eq(r.last), index.eq(r.index)]
        return m
