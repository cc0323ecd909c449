"""Decode of the vector engine: one instruction into walks for readers and writer, a feed command and a context."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.convert import TYPE_BITS
from hw.element_writer import command_layout
from hw.intalu import OP_BITS
from hw.interfaces import INSN, WALK, fields
from hw.vector_feed import CONTEXT_BITS, FEED, FROM_PSUM, FROM_SBUF, NOWHERE
from hw.vector_lane import B_IMM, B_PARTITION, B_TENSOR
from isa.dtypes import DType
from isa.ops import UNARY, AluOp
from isa.table import BY_NAME, INT_TYPES, Mode

CONTEXTS = 1 << CONTEXT_BITS

CONTEXT = data.StructLayout({
    "integer": 1, "op0": OP_BITS, "a_partition": 1, "a_imm": 32, "rev0": 1,
    "op1": OP_BITS, "b_source": 2, "b_imm": 32, "rev1": 1, "red": 1, "y_type": TYPE_BITS})
"""What the lanes need to know about an instruction; looked up by number at several points of the pipeline.

`integer` also stands for raw bits: elements that are only moved are not converted.
"""


def size_log2(dtype):
    """log2 of the size of the type with code `dtype`."""
    return Mux(dtype.matches(DType.FP32.value, DType.INT32.value), 2,
               Mux(dtype.matches(DType.BF16.value, DType.FP16.value), 1, 0))


def lane_mask(first, count_less_one, lanes):
    """Ones at lanes first .. first + count_less_one."""
    return (((2 << count_less_one) - 1) << first)[:lanes]


class VectorDecode(wiring.Component):
    """Holds one instruction until all its commands are taken; at most CONTEXTS instructions are in progress.

    Commands of one instruction are offered at the same time, but b's reader gets its walks one after the other: the
    scalar a, then b. `nop` and `mark` are complete when nothing else is in progress. `written`: the writer finished
    the oldest instruction.
    """

    def __init__(self, config):
        self.config = config
        walks = stream.Signature(WALK)
        super().__init__({
            "insn": In(stream.Signature(INSN)), "written": In(1), "done": Out(1), "idle": Out(1),
            "x_walk": Out(walks), "b_walk": Out(walks), "psum_walk": Out(walks),
            "y_walk": Out(stream.Signature(command_layout(config.lanes))), "feed": Out(stream.Signature(FEED)),
            "context_write": Out(1), "context_number": Out(CONTEXT_BITS), "context": Out(CONTEXT)})

    def elaborate(self, platform):
        m = Module()
        self.held, self.valid, self.number = Signal(INSN), Signal(), Signal(CONTEXT_BITS)
        progress = Signal(range(CONTEXTS + 1))  # instructions in progress, the held one included
        names = ("alu", "red", "sel", "gen")
        self.alu, self.red, _, self.gen = (fields(self.held.bits, BY_NAME[n]) for n in names)
        self.is_alu, self.is_red, self.is_sel, self.is_gen = kinds = [Signal(name=f"is_{n}") for n in names]
        for flag, n in zip(kinds, names, strict=True):
            m.d.comb += flag.eq(self.valid & (self.held.bits[:8] == BY_NAME[n].opcode))
        self.some = Signal()
        self.leave, finish, take = Signal(), Signal(), Signal()
        self._operands(m)
        all_sent = self._commands(m)
        self._feed(m)
        self._context(m)
        m.d.comb += [
            self.some.eq(Cat(kinds).any()), finish.eq(self.valid & ~self.some & (progress == 1)),
            self.leave.eq(finish | (self.some & all_sent)),
            self.insn.ready.eq((~self.valid | self.leave) & (progress != CONTEXTS)),
            take.eq(self.insn.valid & self.insn.ready),
            self.done.eq(finish | self.written), self.idle.eq(progress == 0),
        ]
        m.d.sync += progress.eq(progress + take - self.done)
        with m.If(self.leave):
            m.d.sync += self.valid.eq(0)
        with m.If(take):
            m.d.sync += [self.held.eq(self.insn.payload), self.valid.eq(1), self.number.eq(self.number + 1)]
        return m

    def _operands(self, m):
        """Where operands come from, and the fields whose place depends on the instruction.

        x, b and the sizes have one place in all instructions that have them.
        """
        alu, red, gen = self.alu, self.red, self.gen
        self.a_mode, self.a, self.op0 = Signal(2), Signal(32), Signal(OP_BITS)
        m.d.comb += [
            self.a_mode.eq(Mux(self.is_red, red.a_mode, Mux(self.is_alu, alu.a_mode, Mode.NONE))),
            self.a.eq(Mux(self.is_red, red.a, alu.a)),
            self.op0.eq(Mux(self.is_red, red.op0, Mux(self.is_alu, alu.op0, AluOp.BYPASS.value)))]
        self.y = {}
        for n in ("addr", "type", "s0", "s1", "s2"):
            choices = [getattr(f, f"y_{n}") for f in (alu, red, gen)]
            self.y[n] = Signal(choices[0].shape(), name=f"y_{n}")
            m.d.comb += self.y[n].eq(Mux(self.is_red, choices[1], Mux(self.is_gen, choices[2], choices[0])))
        self.has_x, self.x_psum, self.b_psum = Signal(), Signal(), Signal()
        self.scalar_a, self.scalar_b, self.tensor_b = Signal(), Signal(), Signal()
        m.d.comb += [
            self.has_x.eq(self.is_alu | self.is_red | self.is_sel), self.x_psum.eq(self.has_x & alu.x_space),
            self.b_psum.eq(self.tensor_b & alu.b_space), self.scalar_a.eq(self.a_mode == Mode.PARTITION),
            self.scalar_b.eq(self.is_alu & (alu.b_mode == Mode.PARTITION)),
            self.tensor_b.eq(self.is_sel | (self.is_alu & (alu.b_mode == Mode.TENSOR)))]

    def _offer(self, m, name, wanted, port, after=0):
        """(offered in this cycle, nothing left to offer): each command is taken once. `after` holds it back."""
        sent = Signal(name=f"{name}_sent")
        now = Signal(name=f"{name}_now")
        m.d.comb += now.eq(wanted & ~sent & ~after)
        with m.If(self.leave):
            m.d.sync += sent.eq(0)
        with m.Elif(now & port.ready):
            m.d.sync += sent.eq(1)
        return now, ~wanted | sent | (now & port.ready)

    def _walk(self, walk, addr, size, sizes, strides):
        return [walk.addr.eq(addr), walk.size.eq(size), walk.index.eq(self.held.index),
                *(getattr(walk, f"n{d}").eq(n) for d, n in enumerate(sizes)),
                *(getattr(walk, f"s{d}").eq(s) for d, s in enumerate(strides))]

    def _commands(self, m):
        """Commands to readers, writer and feed; whether this cycle leaves none behind."""
        alu = self.alu
        sizes, x_strides, b_strides = ([getattr(alu, f"{n}{d}") for d in range(3)] for n in ("n", "x_s", "b_s"))
        x_now, x_sent = self._offer(m, "x", self.has_x & ~self.x_psum, self.x_walk)
        psum_now, psum_sent = self._offer(m, "psum", self.x_psum | self.b_psum, self.psum_walk)
        a_now, a_sent = self._offer(m, "a", self.scalar_a, self.b_walk)
        b_now, b_sent = self._offer(m, "b", self.scalar_b | (self.tensor_b & ~self.b_psum), self.b_walk, a_now)
        y_now, y_sent = self._offer(m, "y", self.some, self.y_walk)
        feed_now, feed_sent = self._offer(m, "feed", self.some, self.feed)
        one = a_now | self.scalar_b
        y = self.y_walk.payload
        axes = Mux(self.is_red, self.red.axes, 0)
        m.d.comb += [
            self.x_walk.valid.eq(x_now), self.psum_walk.valid.eq(psum_now), self.b_walk.valid.eq(a_now | b_now),
            self.y_walk.valid.eq(y_now), self.feed.valid.eq(feed_now),
            *self._walk(self.x_walk.payload, alu.x_addr, size_log2(alu.x_type), sizes, x_strides),
            *self._walk(self.psum_walk.payload, Mux(self.b_psum, alu.b_addr, alu.x_addr), 2, sizes,
                        [Mux(self.b_psum, b, x) for b, x in zip(b_strides, x_strides, strict=True)]),
            *self._walk(self.b_walk.payload, Mux(a_now, self.a[:18], alu.b_addr),
                        size_log2(Mux(a_now, self.a[18:22], alu.b_type)), [Mux(one, 0, n) for n in sizes], b_strides),
            *self._walk(y.walk, self.y["addr"], size_log2(self.y["type"]),
                        [Mux(axes > 2 - d, 0, n) for d, n in enumerate(sizes)], [self.y[f"s{d}"] for d in range(3)]),
            y.lanes.eq(lane_mask(alu.p0, alu.pn, self.config.lanes)),
        ]
        return x_sent & psum_sent & a_sent & b_sent & y_sent & feed_sent

    def _feed(self, m):
        alu, gen, feed = self.alu, self.gen, self.feed.payload
        stepping = self.is_gen & ~gen.flag_const
        m.d.comb += [
            feed.context.eq(self.number), feed.select.eq(self.is_sel), feed.axes.eq(Mux(self.is_red, self.red.axes, 0)),
            feed.x_source.eq(Mux(self.is_gen, NOWHERE, Mux(self.x_psum, FROM_PSUM, FROM_SBUF))),
            feed.b_source.eq(Mux(self.tensor_b, Mux(self.b_psum, FROM_PSUM, FROM_SBUF), NOWHERE)),
            feed.x_type.eq(Mux(stepping, DType.INT32.value, Mux(self.is_gen, self.y["type"], alu.x_type))),
            feed.b_type.eq(alu.b_type), feed.a_type.eq(self.a[18:22]),
            feed.scalar_a.eq(self.scalar_a), feed.scalar_b.eq(self.scalar_b),
            feed.p0.eq(alu.p0), feed.base.eq(gen.base),
            *(getattr(feed, f"n{d}").eq(getattr(alu, f"n{d}")) for d in range(3)),
            *(getattr(feed, n).eq(Mux(stepping, getattr(gen, n), 0)) for n in ("step_p", "step0", "step1", "step2")),
        ]

    def _context(self, m):
        alu, red, context = self.alu, self.red, self.context
        moved = (alu.op0 == AluOp.BYPASS.value) & (alu.op1 == AluOp.BYPASS.value) & (alu.x_type == alu.y_type)
        whole_y = Cat(self.y["type"] == t for t in sorted(INT_TYPES)).any()

        def binary(op):
            return ~Cat(op == o.value for o in UNARY).any()

        m.d.comb += [
            self.context_write.eq(self.some), self.context_number.eq(self.number),
            context.integer.eq(Mux(self.is_alu, alu.flag_int | moved, Mux(
                self.is_red, red.flag_int, self.is_sel | self.gen.flag_const | whole_y))),
            context.op0.eq(self.op0), context.a_partition.eq(self.scalar_a),
            context.a_imm.eq(Mux(self.a_mode == Mode.IMM, self.a, 0)),
            context.rev0.eq((self.is_alu | self.is_red) & alu.flag_rev0 & binary(self.op0)),
            context.op1.eq(Mux(self.is_red, red.op, Mux(self.is_alu, alu.op1, AluOp.BYPASS.value))),
            context.b_source.eq(Mux(self.tensor_b, B_TENSOR, Mux(self.scalar_b, B_PARTITION, B_IMM))),
            context.b_imm.eq(Mux(alu.b_mode == Mode.IMM, alu.b_imm, 0)),
            context.rev1.eq(self.is_alu & alu.flag_rev1 & binary(alu.op1)),
            context.red.eq(self.is_red), context.y_type.eq(self.y["type"]),
        ]


__all__ = ["VectorDecode", "CONTEXT", "CONTEXTS", "size_log2", "lane_mask"]
