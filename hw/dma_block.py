"""DMA commands and the blocks they are cut into.

A block is one (i, j) of the shape and a chunk of the innermost axis, over all partitions: as much as half a corner
buffer holds. Both ends of a queue cut the same command into the same blocks, so the byte stream between them
needs no marks. A chunk starts at the byte of its word in which SBUF holds it (`phase`), so that SBUF words stay
words in the buffer; only the first chunk of a row can have a phase.
"""

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

ENTRIES = 8  # entries of half a corner buffer; an entry is as wide as the bus
OFFSET = signed(53)  # any sum of a 48-bit offset and strides, so that none wraps back into range

COMMAND = data.StructLayout({
    "dram": 48, "dsp": signed(32), "ds0": signed(32), "ds1": signed(32), "ds2": signed(32),
    "addr": 18, "xs0": signed(18), "xs1": signed(18), "xs2": signed(18), "n0": 16, "n1": 16, "n2": 16,
    "p0": 7, "pn": 7, "size": 2, "inner": 1, "serial": 1, "same": 1, "rows": 1, "index": 32})
"""DRAM byte offset and strides, SBUF byte address and strides (elements), sizes and partitions less one, log2 of
the element size; `inner`: partitions are the innermost stream axis; `serial`: they are the outermost, so a block
has one partition; `same`: the stream holds one partition's bytes, which all of them receive; `rows`: each
partition's DRAM offset comes from the row table."""


def half_bytes(config):
    """Bytes a lane of half a corner buffer holds."""
    return ENTRIES * config.axi_bytes


def block_layout(config):
    """`dram`, `sbuf`: where the chunk begins (partition p0); `count` elements; `last` of its instruction."""
    return data.StructLayout({
        "dram": OFFSET, "sbuf": signed(22), "count": half_bytes(config).bit_length(), "phase": 2, "last": 1,
        "p0": 7, "pn": 7, "sp": signed(32), "s2": signed(32), "xs2": signed(18), "unit": 1, "size": 2, "inner": 1,
        "same": 1, "rows": 1, "index": 32})


class BlockWalker(wiring.Component):
    """One block a cycle, without a bubble between commands. Latency 1.

    The innermost step is a shift: all chunks but the last of a row are half_bytes - phase long.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({"cmd": In(stream.Signature(COMMAND)), "out": Out(stream.Signature(block_layout(config)))})

    def elaborate(self, platform):
        m = Module()
        half = half_bytes(self.config)
        shift = half.bit_length() - 1
        c, busy = Signal(COMMAND), Signal()
        dram = [Signal(OFFSET, name=f"dram{d}") for d in range(3)]
        sbuf = [Signal(signed(22), name=f"sbuf{d}") for d in range(3)]
        i, j, left, lane = Signal(16), Signal(16), Signal(17), Signal(7)
        unit, phase, cap = Signal(), Signal(2), Signal(range(half + 1))
        m.d.comb += [unit.eq(c.xs2 == 1), phase.eq(Mux(unit, sbuf[2][:2], 0)), cap.eq((half - phase) >> c.size)]
        row_end, end_j, end_i, end_p = (Signal(name=n) for n in ("row_end", "end_j", "end_i", "end_p"))
        m.d.comb += [row_end.eq(left <= cap), end_j.eq(j == c.n1), end_i.eq(i == c.n0),
                     end_p.eq(~c.serial | (lane == c.pn))]
        b = self.out.payload
        last = row_end & end_j & end_i & end_p
        m.d.comb += [
            self.out.valid.eq(busy), b.dram.eq(dram[2]), b.sbuf.eq(sbuf[2]), b.count.eq(Mux(row_end, left, cap)),
            b.phase.eq(phase), b.last.eq(last), b.p0.eq(c.p0 + lane), b.pn.eq(Mux(c.serial, 0, c.pn)), b.sp.eq(c.dsp),
            b.s2.eq(c.ds2), b.xs2.eq(c.xs2), b.unit.eq(unit), b.size.eq(c.size), b.inner.eq(c.inner), b.same.eq(c.same),
            b.rows.eq(c.rows), b.index.eq(c.index), self.cmd.ready.eq(~busy | (last & self.out.ready))]

        def chunk(stride):
            back = Mux(phase[0], stride, 0) + Mux(phase[1], stride << 1, 0)
            return (stride << shift) - back

        def restart(at, value):
            return [a.eq(value) for a in at]

        with m.If(busy & self.out.ready):
            with m.If(~row_end):
                m.d.sync += [dram[2].eq(dram[2] + chunk(c.ds2)), sbuf[2].eq(sbuf[2] + chunk(c.xs2)),
                             left.eq(left - cap)]
            with m.Else():
                m.d.sync += left.eq(c.n2 + 1)
                with m.If(~end_j):
                    m.d.sync += [*restart(dram[1:], dram[1] + (c.ds1 << c.size)), j.eq(j + 1),
                                 *restart(sbuf[1:], sbuf[1] + (c.xs1 << c.size))]
                with m.Elif(~end_i):
                    m.d.sync += [*restart(dram, dram[0] + (c.ds0 << c.size)), j.eq(0), i.eq(i + 1),
                                 *restart(sbuf, sbuf[0] + (c.xs0 << c.size))]
                with m.Else():  # the next partition of a serial walk, which has no DRAM end
                    m.d.sync += [*restart(sbuf, c.addr), j.eq(0), i.eq(0), lane.eq(lane + 1), busy.eq(~end_p)]
        with m.If(self.cmd.valid & self.cmd.ready):
            n = self.cmd.payload
            m.d.sync += [c.eq(n), busy.eq(1), i.eq(0), j.eq(0), lane.eq(0), left.eq(n.n2 + 1), *restart(dram, n.dram),
                         *restart(sbuf, n.addr)]
        return m
