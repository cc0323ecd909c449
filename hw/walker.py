"""Walker: the byte addresses of a strided walk over up to three axes."""

from amaranth import Module, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.interfaces import WALK

STEP = data.StructLayout({"addr": signed(22), "first": 1, "last": 1, "oob": 1, "size": 2, "index": 32})
"""One element: byte address (may be outside), first and last of its walk, outside `limit`, log2 size, instruction."""


class Walker(wiring.Component):
    """One element a cycle, without a bubble between walks. `limit` in bytes. Latency 1 from `cmd` to `out`.

    Each axis keeps the address at which its present row began, so no multiplier is needed. Addresses of accessed
    elements plus one step fit 22 bits; after an element outside the memory the walk goes on with wrapped addresses.
    """

    def __init__(self, limit):
        self.limit = limit
        super().__init__({"cmd": In(stream.Signature(WALK)), "out": Out(stream.Signature(STEP))})

    def elaborate(self, platform):
        m = Module()
        cmd, walk, busy = self.cmd.payload, Signal(WALK), Signal()
        at = [Signal(signed(22), name=f"at{d}") for d in range(3)]       # start of the row of axes d..2
        count = [Signal(16, name=f"count{d}") for d in range(3)]
        ends = [Signal(name=f"end{d}") for d in range(3)]
        sizes, strides = (walk.n0, walk.n1, walk.n2), (walk.s0, walk.s1, walk.s2)
        m.d.comb += [ends[d].eq(count[d] == sizes[d]) for d in range(3)]
        last = ends[0] & ends[1] & ends[2]
        out = self.out.payload
        m.d.comb += [
            self.out.valid.eq(busy), out.addr.eq(at[2]), out.last.eq(last), out.size.eq(walk.size),
            out.first.eq((count[0] == 0) & (count[1] == 0) & (count[2] == 0)), out.index.eq(walk.index),
            out.oob.eq((at[2] < 0) | (at[2] >= self.limit)),
            self.cmd.ready.eq(~busy | (last & self.out.ready)),
        ]
        step = [Signal(signed(22), name=f"step{d}") for d in range(3)]
        m.d.comb += [step[d].eq(at[d] + (strides[d] << walk.size)) for d in range(3)]
        with m.If(busy & self.out.ready):
            m.d.sync += [at[2].eq(step[2]), count[2].eq(count[2] + 1)]
            with m.If(ends[2]):
                m.d.sync += [at[2].eq(step[1]), at[1].eq(step[1]), count[2].eq(0), count[1].eq(count[1] + 1)]
                with m.If(ends[1]):
                    m.d.sync += [at[2].eq(step[0]), at[1].eq(step[0]), at[0].eq(step[0]), count[1].eq(0),
                                 count[0].eq(count[0] + 1)]
                    with m.If(ends[0]):
                        m.d.sync += busy.eq(0)
        with m.If(self.cmd.valid & self.cmd.ready):
            m.d.sync += [busy.eq(1), walk.eq(cmd), *(c.eq(0) for c in count), *(a.eq(cmd.addr) for a in at)]
        return m


__all__ = ["Walker", "STEP"]
