"""Tensor engine: matmuls stream through the array without a gap while the next stationary tile is loaded.

Three places hold an instruction: `next` (decoded, waiting), `prep` (its readers run; its tile moves into the shadow
registers), `stream` (its moving columns enter the array). A matmul without `keep` streams gap-free after one of
F >= 2*lanes + 12 columns; shorter ones wait for the tile.
"""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out, connect, flipped

from hw.accumulate import Accumulate
from hw.array import SystolicArray
from hw.cell import place
from hw.convert import PeRound
from hw.delay import delayed
from hw.element_reader import ElementReader
from hw.interfaces import INSN, SBUF_READ_LATENCY, RowRead, RowWrite, engine_signature, fields
from isa.registers import Trap
from isa.table import BY_NAME

MM = BY_NAME["mm"]


def size_log2(dtype):
    """log2 of the size of the type with code `dtype`."""
    return Mux(dtype.matches(0, 7), 2, Mux(dtype.matches(1, 2), 1, 0))


def lane_mask(first, count_less_one, lanes):
    """Ones at first .. first + count."""
    ones = (2 << count_less_one) - 1
    return (ones << first)[:lanes]


class TensorEngine(wiring.Component):
    """Executes mm, nop, mark. See the module's docstring; ports as in `hw.interfaces.engine_signature`."""

    def __init__(self, config):
        self.config = config
        n = config.lanes
        super().__init__({
            **engine_signature(),
            "moving": Out(RowRead(n, 16)), "stationary": Out(RowRead(n, 16)),
            "acc_read": Out(RowRead(n, 12)), "acc_write": Out(RowWrite(n, 12))})

    def elaborate(self, platform):
        m = Module()
        n = self.config.lanes
        m.submodules.x_reader = self.xr = ElementReader(self.config, self.config.sbuf_bytes)
        m.submodules.w_reader = self.wr = ElementReader(self.config, self.config.sbuf_bytes)
        m.submodules.array = self.array = SystolicArray(self.config)
        m.submodules.accumulate = self.acc = Accumulate(self.config)
        connect(m, flipped(self.moving), self.xr.port)
        connect(m, flipped(self.stationary), self.wr.port)
        connect(m, flipped(self.acc_read), self.acc.acc_read)
        connect(m, flipped(self.acc_write), self.acc.acc_write)
        # The instruction in preparation, and what is known about the one that streams (or streamed last).
        self.prep, self.prep_valid, self.asked_x, self.asked_w = Signal(INSN), Signal(), Signal(), Signal()
        self.loaded = Signal()      # the shadow registers hold prep's tile
        self.streaming = Signal()
        self.inflight = Signal(8)   # matmuls started and not completed
        f = fields(self.prep.bits, MM)
        go = self._start(m, f)
        self._prepare(m, f, go)
        self._load(m, f, go)
        self._feed(m, f, go, n)
        self._report(m)
        return m

    def _prepare(self, m, f, go):
        """Take instructions in; nop and mark wait for all before them."""
        bare = ~f.opcode.matches(MM.opcode)
        finish = self.prep_valid & bare & ~self.streaming & (self.inflight == 0)
        free = ~self.prep_valid | go | finish
        m.d.comb += self.insn.ready.eq(free)
        with m.If(go | finish):
            m.d.sync += self.prep_valid.eq(0)
        with m.If(self.insn.valid & free):
            m.d.sync += [self.prep.eq(self.insn.payload), self.prep_valid.eq(1), self.asked_x.eq(0),
                         self.asked_w.eq(0), self.loaded.eq(0)]
        self.bare, self.finish = bare, finish
        m.d.comb += [
            self.xr.cmd.valid.eq(self.prep_valid & ~bare & ~self.asked_x),
            self.xr.cmd.payload.addr.eq(f.x_addr), self.xr.cmd.payload.size.eq(size_log2(f.x_type)),
            self.xr.cmd.payload.index.eq(self.prep.index),
            *(getattr(self.xr.cmd.payload, f"s{d}").eq(getattr(f, f"x_s{d}")) for d in range(3)),
            *(getattr(self.xr.cmd.payload, f"n{d}").eq(getattr(f, f"n{d}")) for d in range(3))]
        with m.If(self.xr.cmd.valid & self.xr.cmd.ready):
            m.d.sync += self.asked_x.eq(1)

    def _load(self, m, f, go):
        """Read prep's stationary tile, last column first, and push it, once the shadow registers are free."""
        size = size_log2(f.w_type)
        last, known = Signal(18), Signal()  # address of the last column; its product takes a cycle of its own
        m.d.sync += [last.eq(f.w_addr + ((f.mn * f.w_s) << size)), known.eq(self.prep_valid & ~(self.insn.valid & self.insn.ready))]
        cmd = self.wr.cmd.payload
        m.d.comb += [
            self.wr.cmd.valid.eq(self.prep_valid & known & ~self.bare & ~f.flag_keep & ~self.asked_w),
            cmd.addr.eq(last), cmd.s2.eq(-f.w_s), cmd.n2.eq(f.mn), cmd.size.eq(size), cmd.index.eq(self.prep.index)]
        with m.If(self.wr.cmd.valid & self.wr.cmd.ready):
            m.d.sync += self.asked_w.eq(1)
        busy = Signal(9)    # cycles until the last swap has passed every column in use
        extra = Signal(7)   # pushes left to move the tile to m0
        tail = Signal()
        self.shift, self.w_type = Signal(), f.w_type
        with m.If(busy != 0):
            m.d.sync += busy.eq(busy - 1)
        m.d.comb += [self.wr.out.ready.eq((busy == 0) & ~tail & ~self.swap_waits),
                     self.shift.eq((self.wr.out.valid & self.wr.out.ready) | tail)]
        with m.If(self.wr.out.valid & self.wr.out.ready & self.wr.out.payload.last):
            m.d.sync += [extra.eq(f.m0), tail.eq(f.m0 != 0), self.loaded.eq(f.m0 == 0)]
        with m.If(tail):
            m.d.sync += [extra.eq(extra - 1)]
            with m.If(extra == 1):
                m.d.sync += [tail.eq(0), self.loaded.eq(1)]
        with m.If(self.swap):
            m.d.sync += busy.eq(self.config.lanes)

    def _start(self, m, f):
        """Whether prep may become the stream at the end of this cycle."""
        delay = self.acc.delay
        self.left_last = Signal()       # the stream's last column is taken in this cycle
        self.swap, self.swap_waits = Signal(), Signal()
        low, high, simple = Signal(15), Signal(15), Signal()      # prep's PSUM bytes, when contiguous
        was_low, was_high, was_simple = Signal(15), Signal(15), Signal()
        was_place, place_ = Signal(14 + 39 + 48), Signal(14 + 39 + 48)
        was_long, since = Signal(), Signal(range(delay + 2))
        same, apart = Signal(), Signal()
        m.d.comb += place_.eq(Cat(f.y_addr, f.y_s0, f.y_s1, f.y_s2, f.n0, f.n1, f.n2))
        m.d.sync += [low.eq(f.y_addr), high.eq(f.y_addr + ((f.n2 + 1) << 2)),
                     simple.eq((f.n0 == 0) & (f.n1 == 0) & (f.y_s2 == 1)),
                     same.eq(place_ == was_place),
                     apart.eq(simple & was_simple & ((low >= was_high) | (was_low >= high)))]
        settled = Signal(2)  # the two stages of comparison have seen this prep
        with m.If(self.insn.valid & self.insn.ready):
            m.d.sync += settled.eq(0)
        with m.Elif(settled != 3):
            m.d.sync += settled.eq(settled + 1)
        may = Signal()
        m.d.comb += may.eq(~f.flag_accumulate | ((same | apart) & was_long) | (~self.streaming & (since >= delay)))
        ready = self.prep_valid & (f.opcode == MM.opcode) & self.asked_x & (f.flag_keep | self.loaded) \
            & (settled == 3) & may & self.acc.tile.ready
        go = Signal()
        m.d.comb += go.eq(ready & (~self.streaming | self.left_last))
        with m.If(self.left_last):
            m.d.sync += since.eq(0)
        with m.Elif(since <= delay):
            m.d.sync += since.eq(since + 1)
        with m.If(go):
            m.d.sync += [was_low.eq(low), was_high.eq(high), was_simple.eq(simple), was_place.eq(place_),
                         was_long.eq(f.n2 >= delay), settled.eq(0)]
        tile = self.acc.tile.payload
        m.d.comb += [
            self.acc.tile.valid.eq(go), tile.accumulate.eq(f.flag_accumulate),
            tile.lanes.eq(lane_mask(f.m0, f.mn, self.config.lanes)),
            tile.walk.addr.eq(f.y_addr), tile.walk.size.eq(2), tile.walk.index.eq(self.prep.index),
            *(getattr(tile.walk, f"s{d}").eq(getattr(f, f"y_s{d}")) for d in range(3)),
            *(getattr(tile.walk, f"n{d}").eq(getattr(f, f"n{d}")) for d in range(3))]
        return go

    def _feed(self, m, f, go, n):
        """Columns of the stream into the converters and the array."""
        rows, x_type, fresh, keep = Signal(n), Signal(3), Signal(), Signal()
        with m.If(go):
            m.d.sync += [self.streaming.eq(1), rows.eq(lane_mask(f.p0, f.pn, n)), x_type.eq(f.x_type),
                         fresh.eq(1), keep.eq(f.flag_keep)]
        take = Signal()
        m.d.comb += [self.xr.out.ready.eq(self.streaming), take.eq(self.xr.out.valid & self.streaming),
                     self.left_last.eq(take & self.xr.out.payload.last), self.swap.eq(take & fresh & ~keep),
                     self.swap_waits.eq(self.streaming & fresh & ~keep & ~take)]
        with m.If(take & ~go):
            m.d.sync += fresh.eq(0)
        with m.If(self.left_last & ~go):
            m.d.sync += self.streaming.eq(0)
        converted = {"x": [], "w": []}
        for name, row, dtype in (("x", self.xr.out.payload.row, x_type), ("w", self.wr.out.payload.row, self.w_type)):
            for p in range(n):
                cell = place(m, f"{name}_round_{p}", PeRound(self.config.pe), f"round_{self.config.pe}_lane")
                m.d.comb += [cell.raw.eq(row[32 * p:32 * p + 32]), cell.dtype.eq(dtype), cell.en.eq(1)]
                converted[name].append(cell.o)
        latency = PeRound(self.config.pe).latency
        beside = delayed(m, "beside", Cat(self.swap, self.shift, Mux(take, rows, 0)), latency)
        m.d.comb += [self.array.x.eq(Cat(*converted["x"])), self.array.w.eq(Cat(*converted["w"])),
                     self.array.swap.eq(beside[0]), self.array.w_shift.eq(beside[1]),
                     self.array.x_valid.eq(beside[2:]), self.acc.sums.eq(self.array.sums)]
        early = latency + self.array.latency - SBUF_READ_LATENCY
        m.d.comb += self.acc.announce.eq(delayed(m, "announce", Cat(take), early)[0])
        m.d.sync += self.inflight.eq(self.inflight + go - self.acc.done)

    def _report(self, m):
        m.d.comb += [self.done.eq(self.acc.done | self.finish),
                     self.idle.eq(~self.prep_valid & ~self.streaming & (self.inflight == 0))]
        for source in (self.acc, self.wr, self.xr):
            with m.If(source.trap_valid):
                m.d.comb += [self.trap.valid.eq(1), self.trap.code.eq(Trap.ADDRESS),
                             self.trap.index.eq(source.trap_index), self.trap.addr.eq(source.trap_addr[:18])]
