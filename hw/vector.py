"""Vector engine: alu, red, sel, gen, nop, mark.

Decode makes an instruction into walks and a feed command; element rows meet at the feed, which cuts them into
`lane_fold` beats of one physical row. The lanes' pipeline has two parts. The front (conversion and op0) holds while
`red` adds up partial sums in op1, which begins the back; both hold while the output buffer is full. One row
every `lane_fold` cycles without a bubble, across instructions too, except where `hw.vector_feed` (scalars, generated
rows) and `hw.reduce` (outputs of reductions) say otherwise, and where instructions have fewer than five rows. One
instruction of one row is complete 28 cycles after it was taken, without `lane_fold`.
"""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, fifo, memory, wiring
from amaranth.lib.wiring import Out, connect, flipped

from hw.cell import clock_while, place
from hw.element_reader import ElementReader
from hw.element_writer import ElementWriter, command_layout, masked_row
from hw.intalu import OP_BITS
from hw.interfaces import RowRead, RowWrite, engine_signature
from hw.reduce import ReduceControl
from hw.vector_decode import CONTEXT, CONTEXTS, VectorDecode
from hw.vector_feed import CONTEXT_BITS, ELEMENT, SCALAR_A, SCALAR_B, Feed
from hw.vector_lane import OP_CYCLES, VectorLane, fold_bits, partial_bits
from isa.dtypes import DType
from isa.registers import Trap

WRITES_AHEAD = 4  # walks that wait for the writer: instructions whose rows are in the pipeline
ROWS_OUT = 4      # output rows that wait for the writer


def selects(m, raw, dtype):
    """Whether a raw predicate is non-zero; fp32 and bf16 subnormals count as zero, NaN does not."""
    result, low = Signal(name="selected"), raw[:7].any()
    with m.Switch(dtype):
        for types, value in (
                ((DType.FP32,), raw[23:31].any()), ((DType.BF16,), raw[7:15].any()), ((DType.FP16,), raw[:15].any()),
                ((DType.FP8E4, DType.FP8E5), low), ((DType.INT8, DType.UINT8), low | raw[7]),
                ((DType.INT32,), raw.any())):
            with m.Case(*(t.value for t in types)):
                m.d.comb += result.eq(value)
    return result


class VectorEngine(wiring.Component):
    """See the module's docstring. `x_read`, `b_read` (scalars too), `psum_read`, `sbuf_write`: memory ports."""

    def __init__(self, config):
        self.config = config
        n = config.lanes
        super().__init__({
            **engine_signature(), "x_read": Out(RowRead(n, 16)), "b_read": Out(RowRead(n, 16)),
            "psum_read": Out(RowRead(n, 12)), "sbuf_write": Out(RowWrite(n, 16))})

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.decode = decode = VectorDecode(config)
        m.submodules.x_reader = x = ElementReader(config, config.sbuf_bytes)
        m.submodules.b_reader = b = ElementReader(config, config.sbuf_bytes)
        m.submodules.psum_reader = psum = ElementReader(config, config.psum_bytes, addr_bits=12)
        m.submodules.writer = writer = ElementWriter(config, config.sbuf_bytes)
        m.submodules.feed = feed = Feed(config)
        connect(m, flipped(self.insn), decode.insn)
        connect(m, decode.feed, feed.cmd)
        for reader, port, walk, rows in (
                (x, self.x_read, decode.x_walk, feed.x), (b, self.b_read, decode.b_walk, feed.b),
                (psum, self.psum_read, decode.psum_walk, feed.psum)):
            connect(m, reader.port, flipped(port))
            connect(m, walk, reader.cmd)
            connect(m, reader.out, rows)
        connect(m, writer.port, flipped(self.sbuf_write))
        self._queue(m, "walks", decode.y_walk, writer.cmd, command_layout(config.lanes), WRITES_AHEAD)
        m.d.comb += [decode.written.eq(writer.done), self.done.eq(decode.done), self.idle.eq(decode.idle)]
        self._pipeline(m, decode, feed, writer)
        for source in (x, b, psum, writer):  # the last one wins: earlier instructions are further on
            with m.If(source.trap_valid):
                m.d.comb += [self.trap.valid.eq(1), self.trap.code.eq(Trap.ADDRESS),
                             self.trap.index.eq(source.trap_index), self.trap.addr.eq(source.trap_addr[:18])]
        return m

    def _queue(self, m, name, source, sink, layout, depth):
        """A FIFO from stream to stream."""
        m.submodules[name] = queue = fifo.SyncFIFO(width=layout.size, depth=depth)
        m.d.comb += [queue.w_en.eq(source.valid), queue.w_data.eq(source.payload), source.ready.eq(queue.w_rdy),
                     sink.valid.eq(queue.r_rdy), sink.payload.eq(queue.r_data), queue.r_en.eq(sink.ready)]

    def _pipeline(self, m, decode, feed, writer):
        """What travels beside the lanes: beats in the front, results in the back."""
        self._contexts(m, decode)
        lanes = self.config.physical_lanes
        en_front, en_back = Signal(), Signal()
        reduce = ReduceControl(self.config.lane_fold, CONTEXT_BITS)
        m.submodules.reduce = reduce
        clock = clock_while(m, "lanes", en_front | en_back)
        self.cells = [place(m, f"lane{p}", VectorLane(self.config.lane_fold), "vector_lane", clock) for p in range(lanes)]
        self.awake = Signal()  # an instruction is here: otherwise nothing moves
        m.d.sync += self.awake.eq(~decode.idle)

        beat = data.StructLayout({"valid": 1, "kind": 2, "beat": fold_bits(self.config.lane_fold),
                                  "context": CONTEXT_BITS, "output_last": 1, "mask": lanes})
        entry = Signal(beat, name="entry")
        m.d.comb += [*(getattr(entry, n).eq(getattr(feed.out, n)) for n in beat.members if n != "mask"),
                     entry.mask.eq(self._mask(m, feed.out)), feed.en.eq(en_front)]
        front = self._line(m, "front", entry, VectorLane.convert_in + OP_CYCLES, en_front)
        first, last = front[VectorLane.convert_in], front[-1]
        context0 = self._look_up(m, front[VectorLane.convert_in - 1].context, en_front)
        context1 = self._look_up(m, front[-2].context, en_front)
        m.d.comb += [
            reduce.en.eq(en_back), reduce.element.eq(last.valid & (last.kind == ELEMENT)),
            reduce.red.eq(context1.red), reduce.op.eq(context1.op1), reduce.integer.eq(context1.integer),
            reduce.context.eq(last.context), reduce.beat.eq(last.beat), reduce.output_last.eq(last.output_last),
            en_front.eq(en_back & ~(last.valid & reduce.blocked))]

        result = data.StructLayout({
            "result": 1, "write": 1, "write_at": partial_bits(self.config.lane_fold), "context": CONTEXT_BITS,
            "beat": fold_bits(self.config.lane_fold), "mask": lanes})
        step = Signal(result, name="step")
        m.d.comb += [
            step.result.eq(reduce.result), step.write.eq(reduce.write), step.context.eq(reduce.step_context),
            step.write_at.eq(Mux(reduce.tree, reduce.at_x, reduce.at_a)), step.beat.eq(reduce.step_beat),
            step.mask.eq(last.mask | reduce.tree.replicate(lanes))]
        back = self._line(m, "back", step, 1 + OP_CYCLES + VectorLane.convert_out, en_back)
        ripe = back[1 + OP_CYCLES]
        context2 = self._look_up(m, back[OP_CYCLES].context, en_back)
        op1, integer1 = Signal(OP_BITS), Signal()
        with m.If(en_back):
            m.d.sync += [op1.eq(reduce.step_op), integer1.eq(reduce.step_integer)]
        integer3 = self._line(m, "integer", context2.integer, VectorLane.convert_out - 1, en_back)[-1]
        scalar = last.valid & en_front
        common = {
            "en_front": en_front, "en_back": en_back, "x_type": feed.out.x_type, "b_type": feed.out.b_type,
            "integer0": context0.integer, "fold0": first.beat, "a_load": first.valid & (first.kind == SCALAR_A),
            "a_partition": context0.a_partition, "a_imm": context0.a_imm, "rev0": context0.rev0, "op0": context0.op0,
            "fold1": last.beat, "b_load": scalar & (last.kind == SCALAR_B), "b_source": context1.b_source,
            "b_imm": context1.b_imm, "rev1": context1.rev1, "tree": reduce.tree, "gather": context1.red,
            "absent_x": reduce.absent_x, "absent_a": reduce.absent_a, "init": reduce.init, "at_x": reduce.at_x,
            "at_a": reduce.at_a, "op1": op1, "integer1": integer1, "write": ripe.write, "write_at": ripe.write_at,
            "integer2": context2.integer, "y_type": context2.y_type, "integer3": integer3}
        for p, cell in enumerate(self.cells):
            m.d.comb += [getattr(cell, n).eq(v) for n, v in common.items()]
            m.d.comb += [cell.x.eq(feed.out.x[32 * p:32 * p + 32]), cell.b.eq(feed.out.b[32 * p:32 * p + 32])]
        self._output(m, writer, back[-1], en_back)

    def _contexts(self, m, decode):
        m.submodules.contexts = self.contexts = memory.Memory(shape=CONTEXT, depth=CONTEXTS, init=[])
        write = self.contexts.write_port()
        m.d.comb += [write.addr.eq(decode.context_number), write.data.eq(decode.context),
                     write.en.eq(decode.context_write)]

    def _look_up(self, m, number, enable):
        """The context of instruction `number`, one enabled cycle later."""
        port, context = self.contexts.read_port(domain="comb"), Signal(CONTEXT, name="context", reset_less=True)
        m.d.comb += port.addr.eq(number)
        with m.If(enable):
            m.d.sync += context.eq(port.data)
        return context

    def _line(self, m, name, value, cycles, enable):
        """`value` after 0 to `cycles` enabled cycles; cleared by reset."""
        line = [value]
        for i in range(cycles):
            line.append(Signal.like(value, name=f"{name}{i + 1}"))
            with m.If(enable):
                m.d.sync += line[-1].eq(line[-2])
        return line

    def _mask(self, m, beat):
        """Lanes that the beat writes: all, or those whose predicate is not zero."""
        lanes = self.config.physical_lanes
        chosen = Cat(*(selects(m, beat.b[32 * p:32 * p + 32], beat.b_type) for p in range(lanes)))
        return chosen | (~beat.select).replicate(lanes)

    def _output(self, m, writer, last, en_back):
        """Beats packed into rows, and a buffer that holds the pipeline while it is full."""
        fold, lanes = self.config.lane_fold, self.config.physical_lanes
        m.submodules.rows = rows = fifo.SyncFIFO(width=masked_row(self.config.lanes).size, depth=ROWS_OUT)
        now = Cat(*(cell.o for cell in self.cells)), last.mask
        parts = []
        for f in range(fold - 1):
            row = Signal(32 * lanes, name=f"row{f}", reset_less=True)
            mask = Signal(lanes, name=f"mask{f}", reset_less=True)
            with m.If(en_back & last.result & (last.beat == f)):
                m.d.sync += [row.eq(now[0]), mask.eq(now[1])]
            parts.append((row, mask))
        parts.append(now)
        m.d.comb += [
            en_back.eq(rows.w_rdy & self.awake), rows.w_en.eq(self.awake & last.result & (last.beat == fold - 1)),
            rows.w_data.eq(Cat(*(r for r, _ in parts), *(k for _, k in parts))),
            writer.data.valid.eq(rows.r_rdy), writer.data.payload.eq(rows.r_data), rows.r_en.eq(writer.data.ready)]


__all__ = ["VectorEngine"]
