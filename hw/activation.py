"""Activation engine: y = func(x*scale + bias) on rows from SBUF or PSUM."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.act_lane import ActLane
from hw.cell import place
from hw.convert import ToFp32
from hw.element_reader import ElementReader
from hw.element_writer import ElementWriter
from hw.interfaces import INSN, RowRead, RowWrite, engine_signature, fields
from hw.tensor import lane_mask, size_log2
from isa.registers import Trap
from isa.table import BY_NAME, Mode

ACT = BY_NAME["act"]


class ActivationEngine(wiring.Component):
    """Executes act, nop, mark; one instruction at a time, a row every `lane_fold` cycles.

    An instruction takes its rows * lane_fold cycles and about 40 more, 15 for each per-partition scalar.
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
        config = self.config
        m.submodules.sbuf_reader = self.sbuf_reader = ElementReader(config, config.sbuf_bytes)
        m.submodules.psum_reader = self.psum_reader = ElementReader(config, config.psum_bytes, addr_bits=12)
        m.submodules.scalar_reader = self.scalar_reader = ElementReader(config, config.sbuf_bytes)
        m.submodules.writer = self.writer = ElementWriter(config, config.sbuf_bytes)
        for port, inner in ((self.sbuf_read, self.sbuf_reader), (self.psum_read, self.psum_reader),
                            (self.scalar_read, self.scalar_reader), (self.sbuf_write, self.writer)):
            connect(m, flipped(port), inner.port)
        self.now, self.busy = Signal(INSN), Signal()
        self.f = fields(self.now.bits, ACT)
        self._control(m)
        self._lanes(m)
        self._traps(m)
        return m

    def _command(self, m, cmd, name):
        f = self.f
        m.d.comb += [cmd.addr.eq(getattr(f, f"{name}_addr")), cmd.size.eq(size_log2(getattr(f, f"{name}_type"))),
                     cmd.index.eq(self.now.index),
                     *(getattr(cmd, f"s{d}").eq(getattr(f, f"{name}_s{d}")) for d in range(3)),
                     *(getattr(cmd, f"n{d}").eq(getattr(f, f"n{d}")) for d in range(3))]

    def _control(self, m):
        """Scalars first, then the rows; complete when the last word is written."""
        f = self.f
        self.scalar = Signal()          # which scalar is being read: 0 scale, 1 bias
        self.loading, self.running = Signal(), Signal()
        self.scalar_in = Signal()       # the whole scalar row is in its registers
        reference = Mux(self.scalar, f.bias, f.scale)
        self.scalar_type = reference[18:21]
        m.d.comb += [self.insn.ready.eq(~self.busy), self.idle.eq(~self.busy)]
        self._command(m, self.sbuf_reader.cmd.payload, "x")
        self._command(m, self.psum_reader.cmd.payload, "x")
        self._command(m, self.writer.cmd.payload.walk, "y")
        scalar = self.scalar_reader.cmd.payload
        m.d.comb += [self.writer.cmd.payload.lanes.eq(lane_mask(f.p0, f.pn, self.config.lanes)),
                     scalar.addr.eq(reference), scalar.size.eq(size_log2(self.scalar_type)),
                     scalar.index.eq(self.now.index)]
        asked_x, asked_y = Signal(), Signal()
        source = [(self.sbuf_reader, ~f.x_space), (self.psum_reader, f.x_space)]
        with m.FSM():
            with m.State("IDLE"):
                with m.If(self.insn.valid):
                    m.d.sync += [self.now.eq(self.insn.payload), self.busy.eq(1), asked_x.eq(0), asked_y.eq(0)]
                    m.next = "KIND"
            with m.State("KIND"):
                with m.If(f.opcode != ACT.opcode):
                    m.d.comb += self.done.eq(1)
                    m.d.sync += self.busy.eq(0)
                    m.next = "IDLE"
                with m.Else():
                    m.d.sync += self.scalar.eq(0)
                    m.next = "SCALAR"
            with m.State("SCALAR"):
                with m.If(Mux(self.scalar, f.bias_mode, f.scale_mode) == Mode.PARTITION):
                    m.d.comb += self.scalar_reader.cmd.valid.eq(1)
                    with m.If(self.scalar_reader.cmd.ready):
                        m.next = "WAIT"
                with m.Elif(self.scalar):
                    m.next = "RUN"
                with m.Else():
                    m.d.sync += self.scalar.eq(1)
            with m.State("WAIT"):
                m.d.comb += self.loading.eq(1)
                with m.If(self.scalar_in):
                    m.d.sync += self.scalar.eq(1)
                    m.next = "RUN"
                    with m.If(~self.scalar):
                        m.next = "SCALAR"
            with m.State("RUN"):
                m.d.comb += self.running.eq(1)
                for reader, here in source:
                    m.d.comb += reader.cmd.valid.eq(here & ~asked_x)
                    with m.If(reader.cmd.valid & reader.cmd.ready):
                        m.d.sync += asked_x.eq(1)
                m.d.comb += self.writer.cmd.valid.eq(~asked_y)
                with m.If(self.writer.cmd.valid & self.writer.cmd.ready):
                    m.d.sync += asked_y.eq(1)
                with m.If(self.writer.done):
                    m.d.comb += self.done.eq(1)
                    m.d.sync += self.busy.eq(0)
                    m.next = "IDLE"

    def _lanes(self, m):
        """Rows cut into `lane_fold` beats, through the lanes, and put together again. All stand still on a full end."""
        f, fold, width = self.f, self.config.lane_fold, self.config.physical_lanes
        latency = ActLane.latency
        beat, row = Signal(range(fold)) if fold > 1 else Signal(1), Signal(32 * self.config.lanes)
        valid, en = Signal(), Signal()
        last = beat == fold - 1
        m.d.comb += [
            row.eq(Mux(self.loading, self.scalar_reader.out.payload.row,
                       Mux(f.x_space, self.psum_reader.out.payload.row, self.sbuf_reader.out.payload.row))),
            valid.eq(Mux(self.loading, self.scalar_reader.out.valid,
                         self.running & Mux(f.x_space, self.psum_reader.out.valid, self.sbuf_reader.out.valid)))]
        take = valid & en & last
        m.d.comb += [self.scalar_reader.out.ready.eq(take & self.loading),
                     self.sbuf_reader.out.ready.eq(take & self.running & ~f.x_space),
                     self.psum_reader.out.ready.eq(take & self.running & f.x_space)]
        with m.If(valid & en):
            m.d.sync += beat.eq(Mux(last, 0, beat + 1))
        # What travels beside the elements: valid, kind, last beat.
        tags = [Signal(3, name="tag0")]
        m.d.comb += tags[0].eq(Cat(valid & self.running, valid & self.loading, last))
        for i in range(latency):
            tags.append(Signal(3, name=f"tag{i + 1}"))
            with m.If(en):
                m.d.sync += tags[-1].eq(tags[-2])
        scalars = {name: Signal(32 * self.config.lanes, name=name) for name in ("scales", "biases")}
        at_scale = ToFp32.latency
        beats = {"scalar": Signal.like(beat, name="scalar_beat"), "scale": Signal.like(beat, name="scale_beat"),
                 "bias": Signal.like(beat, name="bias_beat"), "out": Signal.like(beat, name="out_beat")}
        bias_at = at_scale + 3
        for name, when in (("scalar", at_scale), ("scale", at_scale), ("bias", bias_at), ("out", latency)):
            tag = tags[when]
            with m.If(en & (tag[0] | tag[1])):
                m.d.sync += beats[name].eq(Mux(tag[2], 0, beats[name] + 1))
        packed = Signal(32 * self.config.lanes)
        results = []
        for p in range(width):
            lane = place(m, f"lane_{p}", ActLane(), "act_lane")
            chunk = [row[32 * (b * width + p):32 * (b * width + p) + 32] for b in range(fold)]
            pick = {n: [s[32 * (b * width + p):32 * (b * width + p) + 32] for b in range(fold)]
                    for n, s in scalars.items()}
            m.d.comb += [
                lane.en.eq(en), lane.raw.eq(_choose(beat, chunk)),
                lane.x_type.eq(Mux(self.loading, self.scalar_type, f.x_type)), lane.y_type.eq(f.y_type),
                lane.scale.eq(Mux(f.scale_mode == Mode.IMM, f.scale, _choose(beats["scale"], pick["scales"]))),
                lane.bias.eq(Mux(f.bias_mode == Mode.IMM, f.bias, _choose(beats["bias"], pick["biases"]))),
                lane.use_scale.eq(f.scale_mode != Mode.NONE), lane.use_bias.eq(f.bias_mode != Mode.NONE),
                lane.func.eq(f.func)]
            results.append(lane.o)
            for b in range(fold):
                at = slice(32 * (b * width + p), 32 * (b * width + p) + 32)
                with m.If(en & tags[at_scale][1] & (beats["scalar"] == b)):
                    with m.If(self.scalar):
                        m.d.sync += scalars["biases"][at].eq(lane.converted)
                    with m.Else():
                        m.d.sync += scalars["scales"][at].eq(lane.converted)
                with m.If(en & (beats["out"] == b)):
                    m.d.sync += packed[at].eq(lane.o)
        m.d.sync += self.scalar_in.eq(en & tags[at_scale][1] & tags[at_scale][2])
        out = self.writer.data
        full = tags[latency][0] & tags[latency][2]
        now = Cat(packed[:32 * width * (fold - 1)], *results)
        m.d.comb += [out.valid.eq(full), out.payload.row.eq(now), out.payload.mask.eq((1 << self.config.lanes) - 1),
                     en.eq(~full | out.ready)]

    def _traps(self, m):
        m.d.comb += [self.trap.code.eq(Trap.ADDRESS), self.trap.index.eq(self.now.index)]
        for unit in (self.writer, self.scalar_reader, self.psum_reader, self.sbuf_reader):
            with m.If(unit.trap_valid):
                m.d.comb += [self.trap.valid.eq(1), self.trap.addr.eq(unit.trap_addr[:18])]


def _choose(index, values):
    """values[index]."""
    chosen = values[0]
    for i, value in enumerate(values[1:], 1):
        chosen = Mux(index == i, value, chosen)
    return chosen
