"""PSUM: banks of 512 rows of 32-bit words; written by the tensor engine alone, read by it and two more."""

from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hw.interfaces import RowRead, RowWrite
from hw.sbuf import Bank
from isa.config import PSUM_BANK_WORDS

ADDR_BITS = 12
BANK_BITS = (PSUM_BANK_WORDS - 1).bit_length()


class Psum(wiring.Component):
    """`acc_read` and `acc_write` are always granted; `read0` and `read1` take turns where the bank is left free.

    A granted read answers SBUF_READ_LATENCY = 2 cycles later.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            **{n: In(RowRead(config.lanes, ADDR_BITS)) for n in ("acc_read", "read0", "read1")},
            "acc_write": In(RowWrite(config.lanes, ADDR_BITS))})

    def elaborate(self, platform):
        m = Module()
        ports = (self.acc_read, self.read0, self.read1)
        m.d.comb += [self.acc_read.ready.eq(1), self.acc_write.ready.eq(1)]
        banks, grants, turn = [], [], Signal()
        m.d.sync += turn.eq(~turn)
        for b in range(self.config.psum_banks):
            m.submodules[f"bank{b}"] = bank = Bank(self.config.lanes, PSUM_BANK_WORDS)
            banks.append(bank)
            want = [p.valid & (p.addr[BANK_BITS:] == b) for p in ports]
            free = ~want[0]
            grant = Signal(3, name=f"grant{b}")
            m.d.comb += grant.eq(Cat(want[0], free & want[1] & ~(want[2] & turn), free & want[2] & ~(want[1] & ~turn)))
            grants.append(grant)
            for i, p in enumerate(ports):
                with m.If(grant[i]):
                    m.d.comb += [bank.r_en.eq(1), bank.r_addr.eq(p.addr[:BANK_BITS])]
            w = self.acc_write
            m.d.comb += [bank.w_en.eq(w.valid & (w.addr[BANK_BITS:] == b)), bank.w_addr.eq(w.addr[:BANK_BITS]),
                         bank.w_data.eq(w.data), bank.w_lanes.eq(w.lanes), bank.w_bytes.eq(w.bytes)]
        for i, p in enumerate(ports):
            granted = Cat(g[i] for g in grants)
            if i:
                m.d.comb += p.ready.eq(granted.any())
            one, which = Signal(name=f"pending{i}"), Signal(len(banks), name=f"which{i}")
            m.d.sync += [one.eq(granted.any()), which.eq(granted), p.rsp_valid.eq(one)]
            with m.If(one):
                with m.Switch(which):
                    for b, bank in enumerate(banks):
                        with m.Case(1 << b):
                            m.d.sync += p.rsp_data.eq(bank.r_data)
        return m
