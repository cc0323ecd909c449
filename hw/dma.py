"""DMA queue: one instruction at a time, from a source stream of elements to a sink.

Sources: DRAM (a walk) or SBUF (rows, of which one lane at a time is taken). Sinks: DRAM, or SBUF (single-lane rows, or
rows gathered from consecutive elements). One element a cycle; every instruction ends with its last write done.
`ld` and `st` walk partition by partition, whatever `inner` says: the order of the stream cannot be seen in memory.
"""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.dma_index import RowIndex
from hw.dram_reader import DramReader
from hw.dram_walker import DramWalker
from hw.dram_writer import DramWriter
from hw.element_reader import ElementReader
from hw.element_writer import ElementWriter
from hw.interfaces import INSN, RowRead, RowWrite, axi_read, axi_write, engine_signature, fields
from hw.tensor import lane_mask, size_log2
from isa.registers import Trap
from isa.table import BY_NAME

OPS = ("ld", "st", "mv", "cp", "gat", "sca")


class DmaQueue(wiring.Component):
    """Executes ld, st, mv, cp, gat, sca, nop, mark. Ports as in `hw.interfaces.engine_signature`."""

    def __init__(self, config):
        self.config = config
        n = config.lanes
        super().__init__({
            **engine_signature(),
            "sbuf_read": Out(RowRead(n, 16)), "sbuf_write": Out(RowWrite(n, 16)),
            "axi_r": Out(axi_read(config.axi_data_bits)), "axi_w": Out(axi_write(config.axi_data_bits)),
            "dram_base": In(48), "dram_bytes": In(48), "halt": In(1)})

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.reader = self.reader = ElementReader(config, config.sbuf_bytes)
        m.submodules.writer = self.writer = ElementWriter(config, config.sbuf_bytes)
        m.submodules.read_walk = self.read_walk = DramWalker()
        m.submodules.write_walk = self.write_walk = DramWalker()
        m.submodules.dram_reader = self.dram_reader = DramReader(config)
        m.submodules.dram_writer = self.dram_writer = DramWriter(config)
        m.submodules.rows = self.rows = RowIndex(config)
        connect(m, flipped(self.sbuf_read), self.reader.port)
        connect(m, flipped(self.sbuf_write), self.writer.port)
        connect(m, flipped(self.axi_r), self.dram_reader.axi)
        connect(m, flipped(self.axi_w), self.dram_writer.axi)
        connect(m, self.read_walk.out, self.dram_reader.piece)
        connect(m, self.write_walk.out, self.dram_writer.piece)
        m.d.comb += [
            self.read_walk.limit.eq(self.dram_bytes), self.write_walk.limit.eq(self.dram_bytes),
            self.dram_reader.base.eq(self.dram_base), self.dram_writer.base.eq(self.dram_base),
            self.dram_reader.halt.eq(self.halt), self.dram_writer.halt.eq(self.halt)]
        self.now, self.busy = Signal(INSN), Signal()
        self.f = {op: fields(self.now.bits, BY_NAME[op]) for op in OPS}
        self.is_ = {op: self.now.bits[:8] == BY_NAME[op].opcode for op in OPS}
        self._control(m)
        self._source(m)
        self._sink(m)
        self._traps(m)
        return m

    def _control(self, m):
        """Accept, start, wait for both ends, complete. Gather and scatter run once a partition."""
        is_ = self.is_
        self.begin, self.part, self.skipped = Signal(), Signal(7), Signal()
        self.by_rows = is_["gat"] | is_["sca"]
        self.to_dram, self.from_dram = is_["st"] | is_["cp"] | is_["sca"], is_["ld"] | is_["cp"] | is_["gat"]
        self.commands_done = Signal()
        f = self.f["ld"]
        finished = self.commands_done & self.writer.idle & self.dram_writer.idle & self.read_walk.idle & \
            self.write_walk.idle & self.dram_reader.idle & self.reader.idle
        m.d.comb += [self.insn.ready.eq(~self.busy & ~self.halt), self.idle.eq(~self.busy)]
        self.settle = settle = Signal(2)
        with m.FSM():
            with m.State("IDLE"):
                with m.If(self.insn.valid & self.insn.ready):
                    m.d.sync += [self.now.eq(self.insn.payload), self.busy.eq(1), self.part.eq(0)]
                    m.next = "KIND"
            with m.State("KIND"):
                with m.If(self.now.bits[:8] < 0x40):  # nop, mark: everything before is complete already
                    m.d.comb += self.done.eq(1)
                    m.d.sync += self.busy.eq(0)
                    m.next = "IDLE"
                with m.Elif(self.by_rows):
                    m.d.comb += self.rows.start.eq(1)
                    m.next = "ROWS"
                with m.Else():
                    m.d.comb += self.begin.eq(1)
                    m.next = "RUN"
            with m.State("ROWS"):
                with m.If(self.rows.ready):
                    m.next = "ROW"
            with m.State("ROW"):
                with m.If(self.rows.valid):
                    m.d.comb += self.begin.eq(~self.rows.beyond)
                    m.d.sync += settle.eq(0)
                    m.next = "RUN"
            with m.State("RUN"):
                m.d.sync += settle.eq(Mux(finished, Mux(settle == 3, 3, settle + 1), 0))
                with m.If(settle == 3):
                    m.d.sync += settle.eq(0)
                    with m.If(self.by_rows & (self.part != f.pn)):
                        m.d.sync += self.part.eq(self.part + 1)
                        m.next = "ROW"
                    with m.Else():
                        m.d.comb += self.done.eq(1)
                        m.d.sync += self.busy.eq(0)
                        m.next = "IDLE"
        rows, g = self.rows, self.f["gat"]
        m.d.comb += [rows.index.eq(self.now.index), rows.addr.eq(g.i_addr), rows.lane.eq(g.p0 + self.part),
                     rows.limit.eq(g.row_limit), rows.stride.eq(g.row_stride), rows.base.eq(g.d_addr),
                     rows.size.eq(size_log2(g.x_type))]

    def _dram_command(self, m, walker, side, start):
        """Command of a DRAM walk; `side` is 'd' or 'e'."""
        f, c, cmd = self.f["ld"], self.f["cp"], walker.cmd.payload
        m.d.comb += [cmd.base.eq(f.d_addr), cmd.size.eq(size_log2(f.x_type)), cmd.n0.eq(f.pn), cmd.n1.eq(f.n0),
                     cmd.n2.eq(f.n1), cmd.n3.eq(f.n2), cmd.s0.eq(f.d_sp), cmd.s1.eq(f.d_s0), cmd.s2.eq(f.d_s1),
                     cmd.s3.eq(f.d_s2), walker.cmd.valid.eq(start)]
        with m.If(self.is_["cp"]):
            m.d.comb += [cmd.base.eq(getattr(c, f"{side}_addr")), cmd.size.eq(size_log2(c.x_type)), cmd.n0.eq(0),
                         cmd.n1.eq(c.n0), cmd.n2.eq(c.n1), cmd.n3.eq(c.n2),
                         *(getattr(cmd, f"s{d + 1}").eq(getattr(c, f"{side}_s{d}")) for d in range(3))]
        with m.If(self.by_rows):
            area = self.rows.area
            m.d.comb += [cmd.base.eq(self.rows.offset), cmd.n0.eq(0), cmd.n1.eq(f.n0), cmd.n2.eq(f.n1), cmd.n3.eq(f.n2),
                         cmd.s1.eq(area), cmd.s2.eq(f.n2 + 1), cmd.s3.eq(1)]

    def _walk(self, m, cmd, name, op, shape):
        """An on-chip walk of operand `name`."""
        f = self.f[op]
        m.d.comb += [cmd.addr.eq(getattr(f, f"{name}_addr")), cmd.size.eq(size_log2(f.x_type)),
                     cmd.index.eq(self.now.index),
                     *(getattr(cmd, f"s{d}").eq(getattr(f, f"{name}_s{d}")) for d in range(3)),
                     *(getattr(cmd, f"n{d}").eq(getattr(f, f"{shape}{d}")) for d in range(3))]

    def _source(self, m):
        """`element`, `valid`, `take`: the stream between source and sink."""
        f, is_ = self.f["mv"], self.is_
        self.valid, self.element, self.take = Signal(), Signal(32), Signal()
        inner = is_["mv"] & f.flag_x_inner
        first = Mux(self.by_rows, f.p0 + self.part, f.p0)
        last = Mux(self.by_rows, first, f.p0 + f.pn)[:7]
        lane, asked, pending = Signal(7), Signal(7), Signal()
        m.d.comb += self.rows.area.eq((f.n1 + 1) * (f.n2 + 1))
        self._dram_command(m, self.read_walk, "d", self.begin & self.from_dram)
        m.d.comb += self.dram_reader.fresh.eq(self.begin)
        # SBUF rows: one walk per partition, or a single walk whose rows are taken lane by lane.
        cmd = self.reader.cmd.payload
        self._walk(m, cmd, "x", "ld", "n")
        m.d.comb += self.reader.cmd.valid.eq(pending)
        with m.If(self.begin & ~self.from_dram):
            m.d.sync += [pending.eq(1), asked.eq(first), lane.eq(first)]
        with m.If(pending & self.reader.cmd.ready):
            m.d.sync += asked.eq(asked + 1)
            with m.If(inner | (asked == last)):
                m.d.sync += pending.eq(0)
        index = self.rows
        with m.If(index.busy):  # the index row is read by the same reader
            m.d.comb += [cmd.eq(index.walk), self.reader.cmd.valid.eq(index.ask)]
        m.d.comb += [index.row.eq(self.reader.out.payload.row), index.row_valid.eq(self.reader.out.valid),
                     index.asked.eq(self.reader.cmd.ready)]
        row = self.reader.out
        chosen = row.payload.row.word_select(lane, 32)
        m.d.comb += [
            self.valid.eq(Mux(self.from_dram, self.dram_reader.out.valid, row.valid & ~index.busy)),
            self.element.eq(Mux(self.from_dram, self.dram_reader.out.payload, chosen)),
            self.dram_reader.out.ready.eq(self.take & self.from_dram),
            row.ready.eq(index.busy | (self.take & ~self.from_dram & (~inner | (lane == last))))]
        with m.If(self.take & ~self.from_dram):
            with m.If(inner):
                m.d.sync += lane.eq(Mux(lane == last, first, lane + 1))
            with m.Elif(row.payload.last):
                m.d.sync += lane.eq(lane + 1)
        self.source_done = ~pending

    def _sink(self, m):
        """To DRAM, or to SBUF: one walk per partition, or one whose rows gather an element per lane."""
        f, is_, n = self.f["mv"], self.is_, self.config.lanes
        mv = is_["mv"]
        inner = mv & f.flag_y_inner
        first = Mux(mv, f.q0, Mux(self.by_rows, f.p0 + self.part, f.p0))[:7]
        last = Mux(mv, f.q0 + f.qn, Mux(self.by_rows, first, f.p0 + f.pn))[:7]
        self._dram_command(m, self.write_walk, "e", self.begin & self.to_dram)
        lane, asked, pending, gathered = Signal(7), Signal(7), Signal(), Signal(32 * n)
        cmd, data_in = self.writer.cmd.payload, self.writer.data
        with m.If(mv):
            self._walk(m, cmd.walk, "y", "mv", "m")
        with m.Else():
            self._walk(m, cmd.walk, "x", "ld", "n")
        m.d.comb += [self.writer.cmd.valid.eq(pending),
                     cmd.lanes.eq(Mux(inner, lane_mask(f.q0, f.qn, n), (1 << asked)[:n]))]
        with m.If(self.begin & ~self.to_dram):
            m.d.sync += [pending.eq(1), asked.eq(first), lane.eq(first)]
        with m.If(pending & self.writer.cmd.ready):
            m.d.sync += asked.eq(asked + 1)
            with m.If(inner | (asked == last)):
                m.d.sync += pending.eq(0)
        whole = ~inner | (lane == last)
        row = Signal(32 * n)
        m.d.comb += [row.eq(Mux(inner, gathered, self.element.replicate(n)))]
        with m.If(inner):
            m.d.comb += row.word_select(lane, 32).eq(self.element)
        m.d.comb += [
            data_in.valid.eq(self.valid & ~self.to_dram & whole), data_in.payload.row.eq(row),
            data_in.payload.mask.eq((1 << n) - 1),
            self.dram_writer.element.valid.eq(self.valid & self.to_dram),
            self.dram_writer.element.payload.eq(self.element), self.dram_writer.flush.eq(self.write_walk.idle),
            self.take.eq(self.valid & Mux(self.to_dram, self.dram_writer.element.ready, ~whole | data_in.ready)),
            self.commands_done.eq(self.source_done & ~pending & ~self.begin)]
        with m.If(self.take & inner):
            m.d.sync += [gathered.word_select(lane, 32).eq(self.element),
                         lane.eq(Mux(lane == last, first, lane + 1))]

    def _traps(self, m):
        """One trap a cycle; a bus error outranks a bad address."""
        m.d.comb += self.trap.index.eq(self.now.index)
        offset = {w: w.out.payload.offset for w in (self.read_walk, self.write_walk)}
        sources = [(w.out.valid & w.out.ready & w.out.payload.oob, Trap.DRAM, offset[w]) for w in offset]
        sources += [(e.trap_valid, Trap.ADDRESS, e.trap_addr) for e in (self.reader, self.writer)]
        sources += [(self.rows.valid & self.rows.beyond & self.rows.report & ~self.f["gat"].flag_skip, Trap.ROW,
                     self.rows.number),
                    (self.dram_reader.error, Trap.BUS_READ, self.dram_reader.error_addr),
                    (self.dram_writer.error, Trap.BUS_WRITE, self.dram_writer.error_addr)]
        for valid, code, address in sources:
            with m.If(valid):
                m.d.comb += [self.trap.valid.eq(1), self.trap.code.eq(code), self.trap.addr.eq(address)]



