"""DRAM walks: byte offsets of the elements of a four-axis walk, cut into aligned pieces."""

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

AXES = 4
DRAM_WALK = data.StructLayout({
    "base": 48, **{f"s{d}": signed(32) for d in range(AXES)}, **{f"n{d}": 16 for d in range(AXES)}, "size": 2})
"""Byte offset, strides in elements (axis 0 outermost), sizes less one, log2 of the element size."""

PIECE = data.StructLayout({"offset": signed(50), "size": 2, "byte": 2, "last": 1, "oob": 1})
"""Part of an element: `size` log2 bytes at `offset`, the element's bytes from `byte`; `last` of its element."""


class DramWalker(wiring.Component):
    """One piece a cycle: an aligned element is one piece, any other one a piece a byte.

    `oob` marks pieces that are not wholly inside 0 .. `limit`. `idle` between walks.
    """

    def __init__(self):
        super().__init__({"cmd": In(stream.Signature(DRAM_WALK)), "limit": In(48),
                          "out": Out(stream.Signature(PIECE)), "idle": Out(1)})

    def elaborate(self, platform):
        m = Module()
        walk, busy, byte = Signal(DRAM_WALK), Signal(), Signal(2)
        at = [Signal(signed(50), name=f"at{d}") for d in range(AXES)]
        count = [Signal(16, name=f"count{d}") for d in range(AXES)]
        end = [count[d] == getattr(walk, f"n{d}") for d in range(AXES)]
        last_byte, whole = Signal(2), Signal()
        offset, out = at[-1], self.out.payload
        m.d.comb += [
            last_byte.eq((1 << walk.size) - 1), whole.eq((offset[:2] & last_byte) == 0),
            self.out.valid.eq(busy), out.size.eq(Mux(whole, walk.size, 0)), out.byte.eq(byte),
            out.offset.eq(offset + byte), out.last.eq(whole | (byte == last_byte)),
            out.oob.eq((out.offset < 0) | (out.offset + (1 << out.size) > self.limit)),
            self.cmd.ready.eq(~busy), self.idle.eq(~busy)]
        with m.If(busy & self.out.ready):
            m.d.sync += byte.eq(byte + 1)
            with m.If(out.last):
                m.d.sync += byte.eq(0)
                self._advance(m, walk, at, count, end, busy, AXES - 1)
        with m.If(self.cmd.valid & self.cmd.ready):
            cmd = self.cmd.payload
            m.d.sync += [walk.eq(cmd), busy.eq(1), byte.eq(0), *(c.eq(0) for c in count),
                         *(a.eq(cmd.base) for a in at)]
        return m

    def _advance(self, m, walk, at, count, end, busy, axis):
        """Step `axis`; at its end, the axis outside it."""
        step = at[axis] + (getattr(walk, f"s{axis}") << walk.size)
        with m.If(~end[axis]):
            m.d.sync += [a.eq(step) for a in at[axis:]]
            m.d.sync += count[axis].eq(count[axis] + 1)
        with m.Else():
            m.d.sync += count[axis].eq(0)
            if axis:
                self._advance(m, walk, at, count, end, busy, axis - 1)
            else:
                m.d.sync += busy.eq(0)
