"""Row numbers of gather and scatter: reads the index row once, then gives each partition's DRAM offset."""

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.interfaces import WALK


class RowIndex(wiring.Component):
    """After `start`: asks for one row with `walk` (`ask`, `asked`), then `ready`. From then on `valid` rises, 33
    cycles after `lane` changed, with `offset` = base + row*stride*size in bytes, `beyond` if row >= limit."""

    def __init__(self, config):
        self.config = config
        super().__init__({
            "start": In(1), "index": In(32), "addr": In(18), "lane": In(7), "limit": In(32), "stride": In(signed(32)),
            "base": In(48), "size": In(2), "area": In(32),
            "walk": Out(WALK), "ask": Out(1), "asked": In(1), "row": In(32 * config.lanes), "row_valid": In(1),
            "busy": Out(1), "ready": Out(1), "valid": Out(1), "beyond": Out(1), "report": Out(1),
            "offset": Out(48), "number": Out(32)})

    def elaborate(self, platform):
        m = Module()
        kept, asking = Signal(32 * self.config.lanes), Signal()
        m.d.comb += [self.walk.addr.eq(self.addr), self.walk.size.eq(2), self.walk.index.eq(self.index),
                     self.ask.eq(asking), self.number.eq(kept.word_select(self.lane, 32)),
                     self.beyond.eq(self.number >= self.limit)]
        with m.If(asking & self.asked):
            m.d.sync += asking.eq(0)
        with m.If(self.start):
            m.d.sync += [self.busy.eq(1), asking.eq(1), self.ready.eq(0)]
        with m.If(self.busy & self.row_valid):
            m.d.sync += [kept.eq(self.row), self.busy.eq(0), self.ready.eq(1)]
        # row * stride by shift and add, one bit of the row number a cycle.
        product, step, bits, lane, old = Signal(48), Signal(48), Signal(32), Signal(7), Signal()
        left = Signal(range(34))
        m.d.sync += [lane.eq(self.lane), old.eq(self.ready)]
        m.d.comb += [self.valid.eq(self.ready & old & (left == 0) & (lane == self.lane)),
                     self.offset.eq(self.base + (product << self.size))]
        m.d.sync += self.report.eq(left == 1)  # once a partition
        with m.If(self.ready & (~old | (lane != self.lane))):
            m.d.sync += [left.eq(32), product.eq(0), step.eq(self.stride), bits.eq(self.number)]
        with m.Elif(left != 0):
            m.d.sync += [left.eq(left - 1), product.eq(product + Mux(bits[0], step, 0)), step.eq(step << 1),
                         bits.eq(bits >> 1)]
        return m
