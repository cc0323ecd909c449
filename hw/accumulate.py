"""Accumulation into PSUM: the row of sums that leaves the array is written, or added to what is there."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, fifo, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.cell import place
from hw.delay import delayed
from hw.fp import FpAdd
from hw.interfaces import SBUF_READ_LATENCY, WALK, RowRead, RowWrite
from hw.walker import Walker

TILES = 8  # matmuls between the start of their stream and the end of their writes


def tile_layout(lanes):
    """Where a matmul's result goes."""
    return data.StructLayout({"walk": WALK, "lanes": lanes, "accumulate": 1})


class SaturatingAdd(wiring.Component):
    """o = a + b in int32, saturating; one cycle."""

    latency = 1

    def __init__(self):
        super().__init__({"a": In(32), "b": In(32), "o": Out(32)})

    def elaborate(self, platform):
        m = Module()
        total = Signal(33)
        m.d.comb += total.eq(self.a.as_signed() + self.b.as_signed())
        with m.If(total[32] == total[31]):
            m.d.sync += self.o.eq(total[:32])
        with m.Else():
            m.d.sync += self.o.eq(Mux(total[32], 0x80000000, 0x7FFFFFFF))
        return m


class Accumulate(wiring.Component):
    """`announce` comes SBUF_READ_LATENCY cycles before its row of `sums`, for every moving column, in order.

    `tile` queues the results' places; it is taken at the stream's start. `done` pulses when a tile's last row is
    written. `delay` cycles after an announcement a row of the same address may be announced again (the A of the
    accumulation rule).
    """

    def __init__(self, config):
        self.config = config
        self.adder_latency = SaturatingAdd.latency if config.pe == "int8" else FpAdd().latency
        self.delay = SBUF_READ_LATENCY + self.adder_latency + 1
        n = config.lanes
        super().__init__({
            "tile": In(stream.Signature(tile_layout(n))),
            "announce": In(1), "sums": In(32 * n),
            "acc_read": Out(RowRead(n, 12)), "acc_write": Out(RowWrite(n, 12)),
            "done": Out(1), "trap_valid": Out(1), "trap_index": Out(32), "trap_addr": Out(22)})

    def elaborate(self, platform):
        m = Module()
        n = self.config.lanes
        layout = tile_layout(n)
        m.submodules.tiles = tiles = fifo.SyncFIFO(width=layout.size, depth=TILES)
        m.submodules.walker = walker = Walker(self.config.psum_bytes)
        m.d.comb += [tiles.w_data.eq(self.tile.payload), tiles.w_en.eq(self.tile.valid),
                     self.tile.ready.eq(tiles.w_rdy)]
        head, now = data.View(layout, tiles.r_data), Signal(layout)
        m.d.comb += [walker.cmd.payload.eq(head.walk), walker.cmd.valid.eq(tiles.r_rdy),
                     tiles.r_en.eq(walker.cmd.ready), walker.out.ready.eq(self.announce)]
        with m.If(tiles.r_rdy & tiles.r_en):
            m.d.sync += now.eq(head)
        e = walker.out.payload
        good = self.announce & ~e.oob
        m.d.comb += [
            self.acc_read.valid.eq(good & now.accumulate), self.acc_read.addr.eq(e.addr[2:]), self.acc_read.urgent.eq(1),
            self.trap_valid.eq(self.announce & e.oob), self.trap_index.eq(e.index), self.trap_addr.eq(e.addr)]
        late = delayed(m, "read_delay", Cat(now.accumulate), SBUF_READ_LATENCY)
        neutral = 0 if self.config.pe == "int8" else 0x80000000
        results = []
        for p in range(n):
            at = slice(32 * p, 32 * p + 32)
            adder = place(m, f"add_{p}", SaturatingAdd() if self.config.pe == "int8" else FpAdd(),
                          "psum_add_int" if self.config.pe == "int8" else "psum_add_lane")
            m.d.comb += [adder.a.eq(self.sums[at]),
                         adder.b.eq(Mux(late, self.acc_read.rsp_data[at], Const(neutral, 32)))]
            if hasattr(adder, "en"):
                m.d.comb += adder.en.eq(1)
            results.append(adder.o)
        where = Cat(good, self.announce & e.last, e.addr[2:14], now.lanes)
        write = delayed(m, "write_delay", where, SBUF_READ_LATENCY + self.adder_latency)
        m.d.comb += [self.acc_write.valid.eq(write[0]), self.acc_write.addr.eq(write[2:14]),
                     self.acc_write.lanes.eq(write[14:]), self.acc_write.bytes.eq(0xF),
                     self.acc_write.data.eq(Cat(*results)), self.done.eq(write[1])]
        return m


__all__ = ["Accumulate", "SaturatingAdd", "tile_layout", "TILES"]
