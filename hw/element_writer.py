"""Element writer: a stream of element rows into a strided walk over SBUF."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.interfaces import WALK, RowWrite
from hw.walker import Walker


def command_layout(lanes):
    """A walk and the lanes it writes."""
    return data.StructLayout({"walk": WALK, "lanes": lanes})


def masked_row(lanes):
    """An element row (raw, low-aligned) and the lanes it is meant for."""
    return data.StructLayout({"row": 32 * lanes, "mask": lanes})


class ElementWriter(wiring.Component):
    """One element row a cycle, without a bubble between walks, while every request is granted.

    Consecutive elements of one word, of one walk and one mask, become one write. `done` pulses in the cycle in
    which a walk's last word is granted. Elements outside the memory are dropped and raise `trap_valid`.
    """

    def __init__(self, config, limit, addr_bits=16):
        self.lanes, self.limit = config.lanes, limit
        super().__init__({
            "cmd": In(stream.Signature(command_layout(config.lanes))),
            "data": In(stream.Signature(masked_row(config.lanes))),
            "port": Out(RowWrite(config.lanes, addr_bits)),
            "done": Out(1),
            "trap_valid": Out(1), "trap_index": Out(32), "trap_addr": Out(22), "idle": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        lanes = self.lanes
        m.submodules.walker = walker = Walker(self.limit)
        allowed = Signal(lanes)
        m.d.comb += [walker.cmd.payload.eq(self.cmd.payload.walk), walker.cmd.valid.eq(self.cmd.valid),
                     self.cmd.ready.eq(walker.cmd.ready)]
        with m.If(self.cmd.valid & self.cmd.ready):
            m.d.sync += allowed.eq(self.cmd.payload.lanes)
        word = data.StructLayout({"data": 32 * lanes, "lanes": lanes, "bytes": 4, "addr": 16, "last": 1})
        acc, acc_valid = Signal(word, reset_less=True), Signal()
        out, out_valid = Signal(word, reset_less=True), Signal()
        e = walker.out.payload
        fresh = Signal(word)
        bytes_ = Mux(e.size == 0, 1, Mux(e.size == 1, 3, 15)) << e.addr[:2]
        row = self.data.payload.row
        placed = Cat(*(self._place(row[32 * p:32 * p + 32], e.size) for p in range(lanes)))
        m.d.comb += [
            fresh.data.eq(placed), fresh.bytes.eq(bytes_), fresh.addr.eq(e.addr[2:]), fresh.last.eq(e.last),
            fresh.lanes.eq(Mux(e.oob, 0, allowed & self.data.payload.mask)),
        ]
        merge, push, take = Signal(), Signal(), Signal()
        room = ~out_valid | self.port.ready
        m.d.comb += [
            merge.eq(acc_valid & ~acc.last & (fresh.addr == acc.addr) & (fresh.lanes == acc.lanes)
                     & ~(fresh.bytes & acc.bytes).any()),
            take.eq(walker.out.valid & self.data.valid & (~acc_valid | merge | room)),
            push.eq(acc_valid & room & (acc.last | (take & ~merge))),
            walker.out.ready.eq(take), self.data.ready.eq(take),
            self.trap_valid.eq(take & e.oob), self.trap_index.eq(e.index), self.trap_addr.eq(e.addr),
        ]
        with m.If(self.port.ready):
            m.d.sync += out_valid.eq(0)
        with m.If(push):
            m.d.sync += [out.eq(acc), out_valid.eq(1), acc_valid.eq(0)]
        with m.If(take):
            m.d.sync += acc_valid.eq(1)
            with m.If(merge):
                wide = Cat(*(acc.bytes[b].replicate(8) for b in range(4))).replicate(lanes)
                m.d.sync += [acc.data.eq((acc.data & wide) | (fresh.data & ~wide)), acc.bytes.eq(acc.bytes | bytes_),
                             acc.last.eq(e.last)]
            with m.Else():
                m.d.sync += acc.eq(fresh)
        m.d.comb += [
            self.port.valid.eq(out_valid), self.port.addr.eq(out.addr), self.port.data.eq(out.data),
            self.port.lanes.eq(out.lanes), self.port.bytes.eq(out.bytes), self.port.urgent.eq(acc_valid),
            self.done.eq(out_valid & self.port.ready & out.last),
            self.idle.eq(~walker.out.valid & ~acc_valid & ~out_valid),
        ]
        return m

    @staticmethod
    def _place(raw, size):
        """A low-aligned element in every position it could take; byte enables choose."""
        half = Mux(size == 0, raw[:8].replicate(2), raw[:16])
        return Mux(size == 2, raw, half.replicate(2))
