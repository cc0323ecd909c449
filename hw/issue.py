"""Issue: between a queue's instruction FIFO and its engine.

Assembles 64 bytes from bus-wide beats, checks the static rules, compares the waits with the completion counts, and
hands the instruction to the engine. Assembly and check of the next instruction overlap the wait of this one.
An illegal instruction raises a trap once all earlier ones have started, and stops the queue.
"""

from amaranth import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.decode import illegal
from hw.interfaces import INSN, TRAP
from isa.fields import HEAD, INSTRUCTION_BITS, WAITS


class Issue(wiring.Component):
    """One queue's issue stage; at most one instruction every two cycles.

    `beats` bus-wide pieces, lowest first; `counts` completions of every queue modulo 2^16; `stop` holds back
    everything; `clear` empties the stage for a new program; `waiting` is high while only counts are missing.
    """

    def __init__(self, config, queue):
        self.config, self.queue = config, queue
        super().__init__({
            "beats": In(stream.Signature(config.axi_data_bits)),
            "counts": In(data.ArrayLayout(16, WAITS)),
            "stop": In(1), "clear": In(1),
            "insn": Out(stream.Signature(INSN)),
            "trap": Out(TRAP),
            "waiting": Out(1), "index": Out(32),
        })

    def elaborate(self, platform):
        m = Module()
        per = INSTRUCTION_BITS // self.config.axi_data_bits
        taken = Signal(range(per + 1))  # beats in the assembly register
        whole = Signal(INSTRUCTION_BITS)
        full = taken == per
        move = Signal()
        m.d.comb += self.beats.ready.eq(~full)
        with m.If(self.beats.valid & ~full):
            m.d.sync += [whole.eq(Cat(whole, self.beats.payload)[-INSTRUCTION_BITS:]), taken.eq(taken + 1)]

        bits, code, held = Signal(INSTRUCTION_BITS), Signal(8), Signal()
        met, trapped, index = Signal(), Signal(), Signal(32)
        fire = self.insn.valid & self.insn.ready
        m.d.comb += move.eq(full & (~held | fire))
        with m.If(fire):
            m.d.sync += [held.eq(0), index.eq(index + 1)]
        with m.If(move):
            m.d.sync += [taken.eq(0), held.eq(1), bits.eq(whole), code.eq(illegal(m, whole, self.queue, self.config))]
        m.d.sync += met.eq(held & ~fire & self._waits_met(bits))
        m.d.comb += [
            self.insn.valid.eq(held & met & (code == 0) & ~self.stop),
            self.insn.payload.bits.eq(bits), self.insn.payload.index.eq(index), self.index.eq(index),
            self.waiting.eq(held & ~met),
            self.trap.valid.eq(held & (code != 0) & ~trapped & ~self.stop),
            self.trap.code.eq(code), self.trap.index.eq(index),
        ]
        with m.If(self.trap.valid):
            m.d.sync += trapped.eq(1)
        with m.If(self.clear):
            m.d.sync += [taken.eq(0), held.eq(0), met.eq(0), trapped.eq(0), index.eq(0)]
        return m

    def _waits_met(self, bits):
        mask = bits[HEAD["wait_mask"].offset:HEAD["wait_mask"].offset + WAITS]
        ok = []
        for q in range(WAITS):
            wait = bits[HEAD[f"wait{q}"].offset:HEAD[f"wait{q}"].offset + 16]
            ok.append(~mask[q] | ~(self.counts[q] - wait)[15])
        return Cat(*ok).all()
