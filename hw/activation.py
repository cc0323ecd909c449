"""Activation engine: y = func(x*scale + bias) on rows from SBUF or PSUM; table loads; running sums.

Three instructions are in progress at a time: `prep` (its reads are requested), `enter` (its scalars, then its rows go
into the lanes) and one whose rows are still inside. What the lanes need to know of an instruction is in one of two
contexts, named by a tag that travels beside each element.
"""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, fifo, wiring
from amaranth.lib.wiring import Out, connect, flipped

from hw.act_function import CONTROL
from hw.act_lane import AT_BIAS, AT_FUNCTION, AT_OUT, AT_SCALE, AT_VALUE, ActLane
from hw.act_sum import LaneSum, SumControl
from hw.act_table import TableLoader
from hw.cell import clock_while, place
from hw.element_reader import ElementReader
from hw.element_writer import ElementWriter, command_layout
from hw.interfaces import INSN, RowRead, RowWrite, engine_signature, fields
from hw.tensor import lane_mask, size_log2
from isa.activation import SLOT_WORDS
from isa.registers import Trap
from isa.table import BY_NAME, Acc, Mode

ACT, TAB = BY_NAME["act"], BY_NAME["tab"]
WALKS = 4  # destinations of instructions between `prep` and their last write
NEGATIVE_ZERO = 0x80000000

CONTEXT = data.StructLayout({
    "y_type": 3, "use_scale": 1, "use_bias": 1, "control": CONTROL, "sum": 1})
SERIAL = data.StructLayout({"acc": 2, "write": 1, "addr": 18, "lanes": 128, "index": 32})
"""An instruction with a running sum: nothing follows it until it is complete."""


def _choose(index, values):
    """values[index]."""
    chosen = values[0]
    for i, value in enumerate(values[1:], 1):
        chosen = Mux(index == i, value, chosen)
    return chosen


class ActivationEngine(wiring.Component):
    """Executes act, tab, nop, mark; a row every `lane_fold` cycles.

    A row's result is written 43 + lane_fold cycles after it enters. Instructions follow each other without a gap when
    each has at least about 60 beats; a running sum adds about 45 cycles and a gap; `tab` takes about 400.
    """

    def __init__(self, config):
        self.config = config
        n = config.lanes
        super().__init__({
            **engine_signature(),
            "sbuf_read": Out(RowRead(n, 16)), "psum_read": Out(RowRead(n, 12)), "scalar_read": Out(RowRead(n, 16)),
            "sbuf_write": Out(RowWrite(n, 16))})

    def elaborate(self, platform):
        m = Module()
        self.m, config = m, self.config
        self.fold, self.width = config.lane_fold, config.physical_lanes
        m.submodules.sbuf_reader = self.sbuf_reader = ElementReader(config, config.sbuf_bytes)
        m.submodules.psum_reader = self.psum_reader = ElementReader(config, config.psum_bytes, addr_bits=12)
        m.submodules.scalar_reader = self.scalar_reader = ElementReader(config, config.sbuf_bytes)
        m.submodules.writer = self.writer = ElementWriter(config, config.sbuf_bytes)
        for port, inner in ((self.sbuf_read, self.sbuf_reader), (self.psum_read, self.psum_reader),
                            (self.scalar_read, self.scalar_reader), (self.sbuf_write, self.writer)):
            connect(m, flipped(port), inner.port)
        layout = command_layout(config.lanes)
        m.submodules.walks = self.walks = fifo.SyncFIFO(width=layout.size, depth=WALKS)
        m.submodules.tables = self.tables = TableLoader(config.lanes)
        m.submodules.sums = self.sums = SumControl(self.fold)
        self.walk = Signal(layout)
        m.d.comb += [self.walks.w_data.eq(self.walk), self.writer.cmd.payload.eq(self.walks.r_data),
                     self.writer.cmd.valid.eq(self.walks.r_rdy), self.walks.r_en.eq(self.writer.cmd.ready)]
        self.en = Signal()              # the lanes move
        self.awake = Signal()           # an instruction is here: otherwise nothing moves
        self.inflight = Signal(3)       # acts between `prep` and completion
        self.serial, self.serial_valid, self.summed = Signal(SERIAL), Signal(), Signal()
        self.contexts, self.occupied = [Signal(CONTEXT, name=f"context{s}") for s in range(2)], Signal(2)
        self.scales, self.biases = ([Signal(32 * config.lanes, name=f"{name}{s}", reset_less=True) for s in range(2)]
                                    for name in ("scales", "biases"))
        self.totals = Signal(32 * config.lanes)
        go = self._prepare()
        self._enter(go)
        self._tags()
        self._lanes()
        self._complete(go)
        self._traps()
        return m

    def _prepare(self):
        """Hold the next instruction and request its reads; True in the cycle in which it moves on to `enter`."""
        m = self.m
        self.prep, self.prep_valid = Signal(INSN), Signal()
        self.f, t = fields(self.prep.bits, ACT), fields(self.prep.bits, TAB)
        f = self.f
        wanted = {"scale": f.scale_mode == Mode.PARTITION, "bias": f.bias_mode == Mode.PARTITION, "x": Const(1, 1)}
        asked = {name: Signal(name=f"asked_{name}") for name in wanted}
        pending = {name: wanted[name] & ~asked[name] for name in wanted}
        act, tab = self.prep_valid & (f.opcode == ACT.opcode), self.prep_valid & (f.opcode == TAB.opcode)
        bare = self.prep_valid & (f.opcode != ACT.opcode) & (f.opcode != TAB.opcode)
        self._walk(self.sbuf_reader.cmd.payload, "x")
        self._walk(self.psum_reader.cmd.payload, "x")
        # Scalar reads, scale before bias; the same reader fetches tables.
        quiet, loading = self.inflight == 0, Signal()
        cmd, reference = self.scalar_reader.cmd.payload, Mux(pending["scale"], f.scale, f.bias)
        m.d.comb += [cmd.addr.eq(reference[:18]), cmd.size.eq(size_log2(reference[18:21])),
                     cmd.index.eq(self.prep.index),
                     self.scalar_reader.cmd.valid.eq(act & (pending["scale"] | pending["bias"]))]
        with m.If(tab):
            m.d.comb += [cmd.addr.eq(t.x_addr), cmd.size.eq(2), cmd.s2.eq(1), cmd.n2.eq(SLOT_WORDS - 1),
                         self.scalar_reader.cmd.valid.eq(quiet & ~loading)]
        taken = self.scalar_reader.cmd.valid & self.scalar_reader.cmd.ready
        with m.If(taken):
            m.d.sync += [loading.eq(tab), asked["bias"].eq(~pending["scale"]), asked["scale"].eq(1)]
        for reader, here in ((self.sbuf_reader, ~f.x_space), (self.psum_reader, f.x_space)):
            m.d.comb += reader.cmd.valid.eq(act & here & pending["x"])
            with m.If(reader.cmd.valid & reader.cmd.ready):
                m.d.sync += asked["x"].eq(1)
        m.d.comb += [self.tables.start.eq(taken & tab), self.tables.slot.eq(t.slot), self.tables.lane.eq(t.p0),
                     self.tables.row.eq(self.scalar_reader.out.payload.row),
                     self.tables.valid.eq(loading & self.scalar_reader.out.valid)]
        self.loading = loading
        go, finish, self.can_enter = Signal(), Signal(), Signal()
        m.d.comb += [
            go.eq(act & ~Cat(pending.values()).any() & self.can_enter & self.walks.w_rdy & ~self.serial_valid),
            finish.eq((bare & quiet) | self.tables.done), self.insn.ready.eq(~self.prep_valid | go | finish)]
        with m.If(go | finish):
            m.d.sync += [self.prep_valid.eq(0), loading.eq(0)]
        with m.If(self.insn.valid & self.insn.ready):
            m.d.sync += [self.prep.eq(self.insn.payload), self.prep_valid.eq(1), *(a.eq(0) for a in asked.values())]
        self.finish = finish
        return go

    def _walk(self, walk, name):
        f = self.f
        self.m.d.comb += [
            walk.addr.eq(getattr(f, f"{name}_addr")), walk.size.eq(size_log2(getattr(f, f"{name}_type"))),
            walk.index.eq(self.prep.index), *(getattr(walk, f"s{d}").eq(getattr(f, f"{name}_s{d}")) for d in range(3)),
            *(getattr(walk, f"n{d}").eq(getattr(f, f"n{d}")) for d in range(3))]

    def _enter(self, go):
        """Scalar rows, then element rows, cut into beats, of one instruction after the other."""
        m, f, fold = self.m, self.f, self.fold
        valid, slot, space = Signal(), Signal(), Signal()
        need = Signal(2)                                        # scale row, bias row still to enter
        types = [Signal(3, name=f"{n}_type") for n in ("scale", "bias", "x")]
        self.beat = beat = Signal((fold - 1).bit_length())
        scalar, last_beat = need.any(), beat == fold - 1
        source = [(self.scalar_reader, scalar), (self.psum_reader, ~scalar & space),
                  (self.sbuf_reader, ~scalar & ~space)]
        present, last = Signal(), Signal()
        self.row = Signal(32 * self.config.lanes)
        for reader, chosen in source:
            out = reader.out
            m.d.comb += out.ready.eq(chosen & valid & self.en & last_beat)
            with m.If(chosen & valid):
                m.d.comb += [present.eq(out.valid), self.row.eq(out.payload.row), last.eq(out.payload.last & ~scalar)]
        with m.If(self.loading):
            m.d.comb += self.scalar_reader.out.ready.eq(1)
        taken = present & self.en
        leaves = taken & last_beat & last
        with m.If(taken):
            m.d.sync += beat.eq(Mux(last_beat, 0, beat + 1))
            with m.If(last_beat):
                m.d.sync += need.eq(need & (need - 1)[:2])      # the scale first
        m.d.comb += self.can_enter.eq((~valid | leaves) & ~self.occupied.bit_select(~slot, 1))
        with m.If(leaves):
            m.d.sync += valid.eq(0)
        with m.If(go):
            m.d.sync += [
                valid.eq(1), slot.eq(~slot), space.eq(f.x_space), types[0].eq(f.scale[18:21]),
                types[1].eq(f.bias[18:21]), types[2].eq(f.x_type),
                need.eq(Cat(f.scale_mode == Mode.PARTITION, f.bias_mode == Mode.PARTITION))]
        self.x_type = Mux(need[0], types[0], Mux(need[1], types[1], types[2]))
        self.entry = {"element": present & ~scalar, "scale": present & need[0], "bias": present & ~need[0] & need[1],
                      "slot": slot, "last_beat": last_beat, "last": last, "beat": beat}
        self._open_context(go, ~slot)

    def _open_context(self, go, slot):
        m, f = self.m, self.f
        header = self.tables.headers[f.func[:2]]
        values = {"y_type": f.y_type, "use_scale": f.scale_mode != Mode.NONE, "use_bias": f.bias_mode != Mode.NONE,
                  "sum": f.acc != Acc.NONE}
        control = {"table": f.func[3], "func": f.func[:3], "slot": f.func[:2],
                   "mode": Mux(header.mode > 5, 0, header.mode),
                   "zero": header.zero, "plus": header.plus, "minus": header.minus}
        for s in range(2):
            with m.If(go & (slot == s)):
                context = self.contexts[s]
                m.d.sync += [self.occupied[s].eq(1), *(context[k].eq(v) for k, v in values.items()),
                             *(context.control[k].eq(v) for k, v in control.items())]
                for mode, value, rows in ((f.scale_mode, f.scale, self.scales), (f.bias_mode, f.bias, self.biases)):
                    with m.If(mode == Mode.IMM):
                        m.d.sync += rows[s].eq(value.replicate(self.config.lanes))
        walk = self.walk
        self._walk(walk.walk, "y")
        m.d.comb += [walk.lanes.eq(lane_mask(f.p0, f.pn, self.config.lanes)), self.walks.w_en.eq(go)]

    def _tags(self):
        """What travels beside the elements: `self.tags[stage]`."""
        m = self.m
        layout = data.StructLayout({"element": 1, "scale": 1, "bias": 1, "slot": 1, "last_beat": 1, "last": 1,
                                    "beat": len(self.beat)})
        self.tags = [Signal(layout, name=f"tag{i}") for i in range(AT_OUT + 1)]
        m.d.comb += [self.tags[0][name].eq(value) for name, value in self.entry.items()]
        with m.If(self.en):
            m.d.sync += [later.eq(tag) for tag, later in zip(self.tags, self.tags[1:], strict=False)]

    def _context(self, stage):
        """The context of the element at `stage`."""
        here = Signal(CONTEXT, name=f"context_at_{stage}")
        self.m.d.comb += here.eq(Mux(self.tags[stage].slot, self.contexts[1], self.contexts[0]))
        return here

    def _part(self, beat, p):
        """Bits of the row for physical lane `p` in `beat`."""
        at = 32 * (beat * self.width + p)
        return slice(at, at + 32)

    def _lanes(self):
        m, fold, tags = self.m, self.fold, self.tags
        at = {stage: self._context(stage) for stage in (AT_BIAS, AT_FUNCTION, AT_VALUE)}
        captured, scaling, biasing = tags[AT_SCALE], tags[AT_SCALE], tags[AT_BIAS]
        packed, results = Signal(32 * self.config.lanes), []
        value_tag, out = tags[AT_VALUE], tags[AT_OUT]
        m.d.comb += [
            self.sums.en.eq(self.en), self.sums.valid.eq(value_tag.element & at[AT_VALUE].sum),
            self.sums.beat.eq(value_tag.beat), self.sums.last.eq(value_tag.last & value_tag.last_beat)]
        clock = clock_while(m, "lanes", self.en | self.tables.table_en.any())
        for p in range(self.width):
            lane = place(m, f"lane_{p}", ActLane(), "act_lane", clock)
            total = place(m, f"sum_{p}", LaneSum(fold), f"act_sum_{fold}", clock)

            def rows(sets, tag, p=p):
                word = Mux(tag.slot, sets[1], sets[0])
                return _choose(tag.beat, [word[self._part(b, p)] for b in range(fold)])

            m.d.comb += [
                lane.en.eq(self.en), lane.raw.eq(_choose(self.beat, [self.row[self._part(b, p)] for b in range(fold)])),
                lane.x_type.eq(self.x_type),
                lane.scale.eq(rows(self.scales, scaling)), lane.use_scale.eq(at[AT_BIAS].use_scale),
                lane.bias.eq(rows(self.biases, biasing)), lane.use_bias.eq(at[AT_FUNCTION].use_bias),
                lane.control.eq(at[AT_FUNCTION].control), lane.y_type.eq(at[AT_VALUE].y_type),
                lane.table_en.eq(self.tables.table_en), lane.table_addr.eq(self.tables.table_addr),
                lane.table_data.eq(self.tables.table_data),
                total.en.eq(self.en), total.x.eq(lane.value), total.add.eq(self.sums.add),
                total.w_en.eq(self.sums.w_en), total.w_addr.eq(self.sums.w_addr),
                total.total.eq(Mux(self.serial.acc == Acc.CONTINUE, _choose(
                    self.sums.add_beat, [self.totals[self._part(b, p)] for b in range(fold)]), NEGATIVE_ZERO))]
            for b in range(fold):
                part = self._part(b, p)
                for s in range(2):
                    here = self.en & (captured.beat == b) & (captured.slot == s)
                    with m.If(here & captured.scale):
                        m.d.sync += self.scales[s][part].eq(lane.converted)
                    with m.If(here & captured.bias):
                        m.d.sync += self.biases[s][part].eq(lane.converted)
                with m.If(self.en & (out.beat == b)):
                    m.d.sync += packed[part].eq(lane.o)
                with m.If(self.sums.final & (self.sums.final_beat == b) & self.serial.lanes[b * self.width + p]):
                    m.d.sync += self.totals[part].eq(total.o)
            results.append(lane.o)
        self.result = Cat(packed[:32 * self.width * (fold - 1)], *results)

    def _complete(self, go):
        """Rows to the writer; after the last one the running sum; then the instruction is complete."""
        m, f, tag = self.m, self.f, self.tags[AT_OUT]
        full = self.awake & tag.element & tag.last_beat
        serial, data_in = self.serial, self.writer.data
        # Between the lanes and the writer, so that what enables every lane register does not depend on a grant.
        m.submodules.rows = out = fifo.SyncFIFO(width=32 * self.config.lanes, depth=2)
        ahead = Signal.like(self.inflight)                          # acts in front of the serial one
        written, finished, storing = Signal(), Signal(), Signal()   # its y is written; it ends; its sum goes out
        m.d.comb += [
            out.w_en.eq(full | storing), out.w_data.eq(Mux(storing, self.totals, self.result)),
            self.en.eq((~full | out.w_rdy) & self.awake), data_in.valid.eq(out.r_rdy), out.r_en.eq(data_in.ready),
            data_in.payload.row.eq(out.r_data), data_in.payload.mask.eq((1 << self.config.lanes) - 1)]
        with m.If(full & out.w_rdy & tag.last):
            m.d.sync += self.occupied.bit_select(tag.slot, 1).eq(0)
        with m.If(go):
            m.d.sync += [
                self.serial_valid.eq((f.acc != Acc.NONE) | f.flag_acc_write), written.eq(0),
                self.summed.eq(f.acc == Acc.NONE), serial.acc.eq(f.acc), serial.write.eq(f.flag_acc_write),
                serial.addr.eq(f.acc_addr), serial.index.eq(self.prep.index), serial.lanes.eq(self.walk.lanes)]
        m.d.comb += self.sums.start.eq(go)
        own = self.serial_valid & (ahead == 0)                      # the next row set to be written is the serial one's
        with m.If(go):
            m.d.sync += ahead.eq(self.inflight - self.writer.done)
        with m.Elif(self.writer.done & (ahead != 0)):
            m.d.sync += ahead.eq(ahead - 1)
        with m.If(self.sums.done):
            m.d.sync += self.summed.eq(1)
        with m.FSM():
            with m.State("ROWS"):
                with m.If(own & self.writer.done):
                    m.d.sync += written.eq(1)
                with m.If(written & self.summed):
                    with m.If(serial.write):
                        m.d.comb += [self.walk.walk.addr.eq(serial.addr), self.walk.walk.size.eq(2),
                                     self.walk.walk.index.eq(serial.index), self.walk.lanes.eq(serial.lanes),
                                     self.walks.w_en.eq(1), *(self.walk.walk[f"n{d}"].eq(0) for d in range(3))]
                        m.next = "STORE"
                    with m.Else():
                        m.d.comb += finished.eq(1)
            with m.State("STORE"):
                m.d.comb += storing.eq(1)
                with m.If(out.w_rdy):
                    m.next = "STORED"
            with m.State("STORED"):
                with m.If(self.writer.done):
                    m.d.comb += finished.eq(1)
                    m.next = "ROWS"
        with m.If(finished):
            m.d.sync += [self.serial_valid.eq(0), written.eq(0)]
        complete = finished | (self.writer.done & ~own)
        m.d.sync += self.inflight.eq(self.inflight + go - complete)
        m.d.comb += [self.done.eq(complete | self.finish), self.idle.eq(~self.prep_valid & (self.inflight == 0))]
        m.d.sync += self.awake.eq(~self.idle)

    def _traps(self):
        m = self.m
        m.d.comb += self.trap.code.eq(Trap.ADDRESS)
        for unit in (self.scalar_reader, self.psum_reader, self.sbuf_reader, self.writer):
            with m.If(unit.trap_valid):  # of two in one cycle the writer's is the earlier instruction's
                m.d.comb += [self.trap.valid.eq(1), self.trap.index.eq(unit.trap_index),
                             self.trap.addr.eq(unit.trap_addr[:18])]
