"""Control of `red`: eight partial sums an output, gathered and then added up by the second arithmetic unit.

Element i of an output meets partial sum i mod 8, from `init`; slots never met count as `init`. The sums of an
output end as ((s0+s1)+(s2+s3))+((s4+s5)+(s6+s7)), seven steps taken from the unit while the next output already
gathers in the other bank. An output of n elements costs max((n + 7) * fold, 19 + 7 * fold) cycles; an instruction of
another kind waits until the outputs before it are on their way. max and min run the same way.
"""

from amaranth import C, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.intalu import OP_BITS
from hw.vector_lane import OP_CYCLES, PARTIALS, fold_bits, partial_bits
from isa.ops import AluOp

STEPS = ((0, 1), (2, 3), (4, 5), (6, 7), (0, 2), (4, 6), (0, 4))  # the first slot takes the sum
LEVEL_ENDS = (3, 5)
INIT = {(AluOp.ADD, 0): 0, (AluOp.MAX, 0): 0xFF800000, (AluOp.MIN, 0): 0x7F800000,
        (AluOp.ADD, 1): 0, (AluOp.MAX, 1): 0x80000000, (AluOp.MIN, 1): 0x7FFFFFFF}


class ReduceControl(wiring.Component):
    """Decides what op1 does in this beat: a step of the tree, or the element that waits behind op0.

    `element`: one waits; the next five describe it (`output_last`: the last of its output). `blocked`: it has to wait,
    because the tree steps, because both banks hold unfinished outputs, or because it is no reduction's and an
    earlier one has an output to come. All state advances with `en`. With `tree` low, the outputs describe the element.
    `result`: this beat's result is an output element; `write`: it is the partial sum `at_x` (tree) or `at_a`.
    """

    def __init__(self, fold, context_bits):
        self._fold = fold
        f, at = fold_bits(fold), partial_bits(fold)
        super().__init__({
            "en": In(1), "element": In(1), "red": In(1), "op": In(OP_BITS), "integer": In(1),
            "context": In(context_bits), "beat": In(f), "output_last": In(1),
            "blocked": Out(1), "tree": Out(1), "result": Out(1), "write": Out(1), "absent_x": Out(1),
            "absent_a": Out(1), "init": Out(32), "at_x": Out(at), "at_a": Out(at), "step_op": Out(OP_BITS),
            "step_integer": Out(1), "step_context": Out(context_bits), "step_beat": Out(f)})

    def elaborate(self, platform):
        m = Module()
        self.pending = Signal(2)  # banks whose outputs wait for the tree
        self.held = [{n: Signal(v.shape(), name=f"bank{i}_{n}") for n, v in (
            ("op", self.op), ("integer", self.integer), ("context", self.context), ("filled", C(0, 4)))}
            for i in range(2)]
        gather_at = self._gather(m)
        self._tree(m, gather_at)
        return m

    def _address(self, slot, bank, beat):
        return Cat(slot, bank, beat[:(self._fold - 1).bit_length()])

    def _gather(self, m):
        """The element's partial sum; books an output when its last element has passed."""
        slot, full, self.bank = Signal(range(PARTIALS)), Signal(), Signal()
        self.absent = ~full
        first = ~full & (slot == 0)
        waits = Mux(self.red, first & self.pending.bit_select(self.bank, 1), self.pending.any())
        m.d.comb += self.blocked.eq(self.tree | (self.element & waits))
        with m.If(self.en & self.element & self.red & ~self.blocked & (self.beat == self._fold - 1)):
            m.d.sync += [slot.eq(slot + 1), full.eq(full | (slot == PARTIALS - 1))]
            with m.If(self.output_last):
                m.d.sync += [slot.eq(0), full.eq(0), self.bank.eq(~self.bank)]
                for i, held in enumerate(self.held):
                    with m.If(self.bank == i):
                        m.d.sync += [
                            self.pending[i].eq(1), held["op"].eq(self.op), held["integer"].eq(self.integer),
                            held["context"].eq(self.context), held["filled"].eq(Mux(full, PARTIALS, slot + 1))]
        return self._address(slot, self.bank, self.beat)

    def _tree(self, m, gather_at):
        """The seven steps; between levels it waits until the sums of the level below are written."""
        settle = OP_CYCLES + 1
        busy, bank, step, beat = Signal(), Signal(), Signal(range(len(STEPS))), Signal(fold_bits(self._fold))
        wait = Signal(range(settle + 1))
        m.d.comb += self.tree.eq(busy & (wait == 0))
        row_end, last = beat == self._fold - 1, step == len(STEPS) - 1
        level_end = Cat(step == s for s in LEVEL_ENDS).any()
        with m.If(self.en):
            with m.If(~busy & self.pending.bit_select(bank, 1)):
                m.d.sync += [busy.eq(1), step.eq(0), wait.eq(settle)]
            with m.If(wait != 0):
                m.d.sync += wait.eq(wait - 1)
            with m.If(self.tree):
                m.d.sync += beat.eq(Mux(row_end, 0, beat + 1))
                with m.If(row_end):
                    m.d.sync += step.eq(step + 1)
                    with m.If(level_end):
                        m.d.sync += wait.eq(settle)
                    with m.If(last):
                        m.d.sync += [busy.eq(0), bank.eq(~bank), self.pending.bit_select(bank, 1).eq(0)]
        x_slot, a_slot = Signal(3), Signal(3)
        with m.Switch(step):
            for i, (x, a) in enumerate(STEPS):
                with m.Case(i):
                    m.d.comb += [x_slot.eq(x), a_slot.eq(a)]
        held = {n: Mux(bank, self.held[1][n], self.held[0][n]) for n in self.held[0]}
        leaves = step <= LEVEL_ENDS[0]
        element = self.element & ~self.blocked
        m.d.comb += [
            self.step_op.eq(Mux(self.tree, held["op"], self.op)),
            self.step_integer.eq(Mux(self.tree, held["integer"], self.integer)),
            self.step_context.eq(Mux(self.tree, held["context"], self.context)),
            self.step_beat.eq(Mux(self.tree, beat, self.beat)),
            self.at_x.eq(self._address(x_slot, bank, beat)),
            self.at_a.eq(Mux(self.tree, self._address(a_slot, bank, beat), gather_at)),
            self.absent_x.eq(leaves & (x_slot >= held["filled"])),
            self.absent_a.eq(Mux(self.tree, leaves & (a_slot >= held["filled"]), self.absent)),
            self.result.eq(Mux(self.tree, last, element & ~self.red)),
            self.write.eq(Mux(self.tree, ~last, element & self.red)),
        ]
        with m.Switch(Cat(self.step_integer, self.step_op)):
            for (op, integer), value in INIT.items():
                with m.Case(op.value << 1 | integer):
                    m.d.comb += self.init.eq(value)


__all__ = ["ReduceControl"]
