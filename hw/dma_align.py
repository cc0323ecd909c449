"""Byte alignment: a byte stream in chunks of any length, from and to any alignment."""

from amaranth import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out


def chunk_layout(config):
    """1 .. axi_bytes stream bytes, the first lowest; the bytes above `count` may be anything."""
    return data.StructLayout({"bytes": config.axi_data_bits, "count": config.axi_bytes.bit_length()})


def byte_mask(count, width):
    """Ones at the low `count` of `width` positions."""
    return Cat(count > i for i in range(width))


def expand(mask):
    """Each bit eight times."""
    return Cat(bit.replicate(8) for bit in mask)


class ByteQueue(wiring.Component):
    """Queue of 2 * axi_bytes bytes: chunks in, `take` (up to axi_bytes, at most `level`) bytes out in the same cycle.

    `head` shows the first bytes. Full chunks pass at one a cycle at any alignment. `w.ready` depends on `take`.
    """

    def __init__(self, config):
        self.config = config
        n = config.axi_bytes
        super().__init__({"w": In(stream.Signature(chunk_layout(config))), "head": Out(8 * n),
                          "level": Out(range(2 * n + 1)), "take": In(range(n + 1))})

    def elaborate(self, platform):
        m = Module()
        n = self.config.axi_bytes
        held, rest, fresh = Signal(16 * n), Signal(range(2 * n + 1)), Signal(8 * n)
        chunk = self.w.payload
        m.d.comb += [self.head.eq(held[:8 * n]), rest.eq(self.level - self.take), self.w.ready.eq(rest <= n),
                     fresh.eq(chunk.bytes & expand(byte_mask(chunk.count, n)))]
        kept = held >> (self.take << 3)
        with m.If(self.w.valid & self.w.ready):
            m.d.sync += [held.eq(kept | (fresh << (rest << 3))), self.level.eq(rest + chunk.count)]
        with m.Else():
            m.d.sync += [held.eq(kept), self.level.eq(rest)]
        return m
