"""Running sums of the activation engine: eight partial sums a lane, then a fixed tree. The law: `reduce_add`."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from hw.fp import FpAdd
from hw.pipeline import Pipeline
from isa.numerics import PARTIAL_SUMS

OPERAND_STAGES = 1
LATENCY = OPERAND_STAGES + FpAdd().latency
"""Enabled cycles from an addition's addresses to its sum; less than the 8 after which a partial sum comes again."""

TREE_LEVELS = PARTIAL_SUMS.bit_length()  # the last one adds the old total


def add_layout(fold):
    """One addition: partial sums `a` (or the lane's value, unless `tree`) and `b` (or the old total, if `final`)."""
    bits = (PARTIAL_SUMS * fold - 1).bit_length()
    return data.StructLayout({"a": bits, "b": bits, "zero_a": 1, "zero_b": 1, "tree": 1, "final": 1})


class LaneSum(wiring.Component):
    """Partial sums of the `fold` partitions a physical lane serves. `o` is the sum, LATENCY enabled cycles later.

    `zero_a`, `zero_b` replace partial sums that do not exist yet by +0. The sum is stored at `w_addr` with `w_en`.
    """

    def __init__(self, fold):
        self._fold = fold
        layout = add_layout(fold)
        super().__init__({
            "en": In(1), "x": In(32), "total": In(32), "add": In(layout),
            "w_en": In(1), "w_addr": In(layout["a"].shape), "o": Out(32)})

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.en)
        m.submodules.sums = sums = memory.Memory(shape=32, depth=PARTIAL_SUMS * self._fold, init=[])
        m.submodules.adder = adder = FpAdd()
        write = sums.write_port()
        read_a, read_b = sums.read_port(domain="comb"), sums.read_port(domain="comb")
        add = self.add
        m.d.comb += [
            read_a.addr.eq(add.a), read_b.addr.eq(add.b), adder.en.eq(self.en), self.o.eq(adder.o),
            adder.a.eq(pipe.register(Mux(add.tree, Mux(add.zero_a, 0, read_a.data), self.x), "a")),
            adder.b.eq(pipe.register(Mux(add.final, self.total, Mux(add.zero_b, 0, read_b.data)), "b")),
            write.addr.eq(self.w_addr), write.data.eq(adder.o), write.en.eq(self.w_en & self.en)]
        return m


class SumControl(wiring.Component):
    """Addresses for the `LaneSum`s. `start` before an instruction's first element; then every beat of every element
    (`valid`, with its `beat`), the last one with `last`; `done` pulses when the totals are out, some 30 cycles later.

    `final` with `final_beat`: the lanes' sums are now the totals of these partitions.
    """

    def __init__(self, fold):
        self._fold = fold
        self._beat_bits = (fold - 1).bit_length()
        layout = add_layout(fold)
        super().__init__({
            "en": In(1), "start": In(1), "valid": In(1), "beat": In(self._beat_bits), "last": In(1),
            "add": Out(layout), "add_beat": Out(self._beat_bits), "w_en": Out(1), "w_addr": Out(layout["a"].shape),
            "final": Out(1), "final_beat": Out(self._beat_bits), "done": Out(1)})

    def elaborate(self, platform):
        m = Module()
        fold = self._fold
        seen, wrapped = Signal(range(PARTIAL_SUMS)), Signal()
        level, pair, beat = Signal(range(TREE_LEVELS)), Signal(2), Signal(self._beat_bits)
        wait = Signal(range(LATENCY))
        issue, final_level = Signal(), level == TREE_LEVELS - 1
        last_beat = self.beat == fold - 1
        first, second = Signal(3), Signal(3)
        add = self.add
        m.d.comb += [
            first.eq(pair << (level + 1)), second.eq(first + (1 << level)), add.tree.eq(issue),
            add.final.eq(issue & final_level), self.add_beat.eq(Mux(issue, beat, self.beat)),
            add.a.eq(Cat(first, self.add_beat)), add.b.eq(Cat(Mux(issue, second, seen), self.add_beat)),
            add.zero_a.eq((level == 0) & ~wrapped & (first >= seen)),
            add.zero_b.eq(Mux(issue, (level == 0) & ~wrapped & (second >= seen), ~wrapped))]
        with m.If(self.valid & self.en & last_beat):
            m.d.sync += seen.eq(seen + 1)
            with m.If(seen == PARTIAL_SUMS - 1):
                m.d.sync += wrapped.eq(1)
        with m.If(self.start):
            m.d.sync += [seen.eq(0), wrapped.eq(0)]
        with m.FSM():
            with m.State("ELEMENTS"):
                m.d.sync += [level.eq(0), pair.eq(0), beat.eq(0), wait.eq(0)]
                with m.If(self.valid & self.en & self.last):
                    m.next = "WAIT"
            with m.State("WAIT"):
                with m.If(self.en):
                    m.d.sync += wait.eq(wait + 1)
                    with m.If(wait == LATENCY - 1):
                        m.d.sync += wait.eq(0)
                        m.next = "ISSUE"
            with m.State("ISSUE"):
                m.d.comb += issue.eq(1)
                with m.If(self.en):
                    m.d.sync += beat.eq(Mux(beat == fold - 1, 0, beat + 1))
                    with m.If(beat == fold - 1):
                        m.d.sync += pair.eq(pair + 1)
                        with m.If(final_level):
                            m.next = "END"
                        with m.Elif(pair == (PARTIAL_SUMS // 2 - 1) >> level):
                            m.d.sync += [pair.eq(0), level.eq(level + 1)]
                            m.next = "WAIT"
            with m.State("END"):
                with m.If(self.en):
                    m.d.sync += wait.eq(wait + 1)
                    with m.If(wait == LATENCY - 1):
                        m.d.comb += self.done.eq(1)
                        m.next = "ELEMENTS"
        # What becomes of a sum travels beside it.
        fate = Cat(self.valid | (issue & ~final_level), issue & final_level, self.add_beat,
                   Mux(issue, add.a, add.b))
        for i in range(LATENCY):
            stage = Signal(len(fate), name=f"fate{i}")
            with m.If(self.en):
                m.d.sync += stage.eq(fate)
            fate = stage
        at = 2 + self._beat_bits
        m.d.comb += [self.w_en.eq(fate[0]), self.final.eq(fate[1] & self.en), self.final_beat.eq(fate[2:at]),
                     self.w_addr.eq(fate[at:])]
        return m
