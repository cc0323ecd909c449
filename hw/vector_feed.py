"""Feed of the vector engine: element rows from the readers, cut into beats of one physical row."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.convert import TYPE_BITS
from hw.element_reader import row_layout
from hw.vector_lane import fold_bits

CONTEXT_BITS = 3  # instructions between feed and writer are told apart by this many bits
ELEMENT, SCALAR_A, SCALAR_B = range(3)  # what a beat carries
FROM_SBUF, FROM_PSUM, NOWHERE = range(3)  # where x or b comes from; x from nowhere is generated

FEED = data.StructLayout({
    "context": CONTEXT_BITS, "x_source": 2, "b_source": 2, "x_type": TYPE_BITS, "b_type": TYPE_BITS,
    "a_type": TYPE_BITS, "scalar_a": 1, "scalar_b": 1, "select": 1, "axes": 2, "n0": 16, "n1": 16, "n2": 16,
    "p0": 7, "base": 32, "step_p": 32, "step0": 32, "step1": 32, "step2": 32})
"""One instruction. Scalars come first, as one row each from b's SBUF reader; `axes` trailing axes make an output."""


def beat_layout(config):
    """What enters the lanes: raw elements of one physical row and what they are."""
    width = 32 * config.physical_lanes
    return data.StructLayout({
        "valid": 1, "kind": 2, "beat": fold_bits(config.lane_fold), "context": CONTEXT_BITS, "output_last": 1,
        "select": 1, "x_type": TYPE_BITS, "b_type": TYPE_BITS, "x": width, "b": width})


class Feed(wiring.Component):
    """One beat a cycle while `en` and the rows are there; a row takes `lane_fold` beats. Latency 1.

    No bubble between instructions, except that each per-partition scalar takes a row's time, and a generated x with a
    partition step `lanes` cycles before its first row.
    """

    def __init__(self, config):
        self.config = config
        rows = stream.Signature(row_layout(config.lanes))
        super().__init__({"cmd": In(stream.Signature(FEED)), "x": In(rows), "b": In(rows), "psum": In(rows),
                          "en": In(1), "out": Out(beat_layout(config)), "idle": Out(1)})

    def elaborate(self, platform):
        m = Module()
        fold = self.config.lane_fold
        self.now, self.busy = Signal(FEED), Signal()
        self.need_a, self.need_b = Signal(), Signal()
        now, beat = self.now, Signal(fold_bits(fold))
        self.row_end, self.element, go = Signal(), Signal(), Signal()
        step, take, finish = Signal(), Signal(), Signal()
        last, output_last, value = self._count(m, step, take)
        offsets, preparing = self._offsets(m, take)

        x_there = Mux(now.x_source == FROM_PSUM, self.psum.valid,
                      Mux(now.x_source == FROM_SBUF, self.x.valid, ~preparing))
        b_there = Mux(now.b_source == FROM_PSUM, self.psum.valid,
                      Mux(now.b_source == FROM_SBUF, self.b.valid, 1))
        m.d.comb += [
            self.element.eq(~self.need_a & ~self.need_b), self.row_end.eq(beat == fold - 1),
            go.eq(self.busy & self.en & Mux(self.element, x_there & b_there, self.b.valid)),
            step.eq(go & self.row_end & self.element), finish.eq(step & last),
            self.x.ready.eq(step & (now.x_source == FROM_SBUF)),
            self.psum.ready.eq(step & ((now.x_source == FROM_PSUM) | (now.b_source == FROM_PSUM))),
            self.b.ready.eq(go & self.row_end & (~self.element | (now.b_source == FROM_SBUF))),
            self.cmd.ready.eq(~self.busy | finish), take.eq(self.cmd.valid & self.cmd.ready),
            self.idle.eq(~self.busy & ~self.out.valid),
        ]
        with m.If(go):
            m.d.sync += beat.eq(Mux(self.row_end, 0, beat + 1))
            with m.If(self.row_end):
                m.d.sync += self.need_a.eq(0)
                with m.If(~self.need_a):
                    m.d.sync += self.need_b.eq(0)
        with m.If(finish):
            m.d.sync += self.busy.eq(0)
        with m.If(take):
            m.d.sync += [now.eq(self.cmd.payload), self.busy.eq(1), self.need_a.eq(self.cmd.payload.scalar_a),
                         self.need_b.eq(self.cmd.payload.scalar_b)]
        self._emit(m, go, beat, value, offsets, output_last)
        return m

    def _count(self, m, step, take):
        """Three counters as in `hw.walker`, with the generated value beside them."""
        now = self.now
        sizes, steps = (now.n0, now.n1, now.n2), (now.step0, now.step1, now.step2)
        count = [Signal(16, name=f"count{d}") for d in range(3)]
        at = [Signal(32, name=f"at{d}") for d in range(3)]
        ends = [count[d] == sizes[d] for d in range(3)]
        following = [Signal(32, name=f"following{d}") for d in range(3)]
        m.d.comb += [following[d].eq(at[d] + steps[d]) for d in range(3)]
        with m.If(step):
            m.d.sync += [at[2].eq(following[2]), count[2].eq(count[2] + 1)]
            with m.If(ends[2]):
                m.d.sync += [at[2].eq(following[1]), at[1].eq(following[1]), count[2].eq(0), count[1].eq(count[1] + 1)]
                with m.If(ends[1]):
                    m.d.sync += [a.eq(following[0]) for a in at] + [count[1].eq(0), count[0].eq(count[0] + 1)]
        with m.If(take):
            m.d.sync += [a.eq(self.cmd.payload.base) for a in at] + [c.eq(0) for c in count]
        output_last = ends[2] & (ends[1] | (now.axes < 2)) & (ends[0] | (now.axes < 3))
        return ends[0] & ends[1] & ends[2], output_last, at[2]

    def _offsets(self, m, take):
        """(partition - p0) * step_p of every lane, made one lane a cycle; zeros without a step."""
        lanes = self.config.lanes
        offset = [Signal(32, name=f"offset{p}", reset_less=True) for p in range(lanes)]
        lane, running, preparing = Signal(range(lanes)), Signal(32), Signal()
        with m.If(preparing):
            # Lane 0 enters first and moves down to its place.
            m.d.sync += [o.eq(above) for o, above in zip(offset, [*offset[1:], running], strict=True)]
            m.d.sync += lane.eq(lane + 1)
            with m.If(lane >= self.now.p0):
                m.d.sync += running.eq(running + self.now.step_p)
            with m.If(lane == lanes - 1):
                m.d.sync += preparing.eq(0)
        with m.If(take):
            m.d.sync += [preparing.eq(self.cmd.payload.step_p.any()), lane.eq(0), running.eq(0)]
        there = self.now.step_p.any().replicate(32)
        return Cat(*(o & there for o in offset)), preparing

    def _emit(self, m, go, beat, value, offsets, output_last):
        """The register in front of the lanes."""
        width, now, out = 32 * self.config.physical_lanes, self.now, Signal(beat_layout(self.config), name="next_out")
        x, b, offset = (Signal(width, name=n) for n in ("x_part", "b_part", "offset_part"))
        # Whole rows get a name each: an expression this wide is slow to emit when it is sliced lane by lane.
        rows = {
            "x": Mux(now.x_source == FROM_PSUM, self.psum.payload.row, self.x.payload.row), "offset": offsets,
            "b": Mux(self.element & (now.b_source == FROM_PSUM), self.psum.payload.row, self.b.payload.row)}
        for part, (name, expression) in zip((x, offset, b), rows.items(), strict=True):
            row = Signal(32 * self.config.lanes, name=f"{name}_row")
            m.d.comb += [row.eq(expression), part.eq(row.word_select(beat, width))]
        made = Cat(*((value + offset[at:at + 32])[:32] for at in range(0, width, 32)))
        m.d.comb += [
            out.valid.eq(go), out.beat.eq(beat), out.context.eq(now.context), out.output_last.eq(output_last),
            out.kind.eq(Mux(self.need_a, SCALAR_A, Mux(self.need_b, SCALAR_B, ELEMENT))),
            out.select.eq(now.select & self.element), out.x_type.eq(now.x_type),
            out.b_type.eq(Mux(self.need_a, now.a_type, now.b_type)),
            out.x.eq(Mux(now.x_source == NOWHERE, made, x)), out.b.eq(b),
        ]
        with m.If(self.en):
            m.d.sync += self.out.eq(out)


__all__ = ["Feed", "FEED", "CONTEXT_BITS", "ELEMENT", "SCALAR_A", "SCALAR_B", "FROM_SBUF", "FROM_PSUM", "NOWHERE",
           "beat_layout"]
