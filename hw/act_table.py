"""Loads a table slot of the activation engine from one partition of SBUF."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.act_function import SLOTS
from isa.activation import HEADER_WORDS, SEGMENTS, SLOT_WORDS

HEADER = data.StructLayout({"mode": 3, "zero": 32, "plus": 32, "minus": 32})


class TableLoader(wiring.Component):
    """Takes SLOT_WORDS rows (`valid`), one word each from lane `lane`, after `start`; `done` pulses at the end.

    Coefficients go to all lanes' RAMs: `table_en`, `table_addr`, `table_data`, as `hw.act_function` wants them. The
    headers stay here.
    """

    def __init__(self, lanes):
        self._lanes = lanes
        super().__init__({
            "start": In(1), "slot": In(range(SLOTS)), "lane": In(range(lanes)), "valid": In(1), "row": In(32 * lanes),
            "table_en": Out(3), "table_addr": Out(range(SLOTS * SEGMENTS)), "table_data": Out(32),
            "headers": Out(data.ArrayLayout(HEADER, SLOTS)), "done": Out(1)})

    def elaborate(self, platform):
        m = Module()
        word, valid = self.table_data, Signal()
        count, segment = Signal(range(SLOT_WORDS)), Signal(range(SEGMENTS))
        which = Signal(3)  # one-hot: c2, c1, c0
        m.d.sync += [valid.eq(self.valid), word.eq(self.row.word_select(self.lane, 32))]
        in_header = count < HEADER_WORDS
        m.d.comb += [
            self.table_en.eq(Mux(valid & ~in_header, which, 0)), self.table_addr.eq(segment + self.slot * SEGMENTS),
            self.done.eq(valid & (count == SLOT_WORDS - 1))]
        with m.If(self.start):
            m.d.sync += [count.eq(0), segment.eq(0), which.eq(1)]
        with m.If(valid):
            m.d.sync += count.eq(count + 1)
            header = self.headers[self.slot]
            with m.If(in_header):
                with m.Switch(count):
                    for i, name in enumerate(("mode", "zero", "plus", "minus")):
                        with m.Case(i):
                            m.d.sync += header[name].eq(word)
            with m.Else():
                m.d.sync += which.eq(which.rotate_left(1))
                with m.If(which[2]):
                    m.d.sync += segment.eq(segment + 1)
        return m
