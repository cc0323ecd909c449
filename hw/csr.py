"""Control and status registers behind an AXI4-Lite slave.

Addresses, access and meaning come from `isa.registers`; this block only holds the values. Read-only registers are
inputs named `r_<name>`, written ones outputs `w_<name>`, write-only ones a value and a strobe `s_<name>`.
An access takes three cycles; one write and one read at a time. Unknown addresses read as zero and ignore writes.
"""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from isa.registers import REGISTERS


def axi_lite():
    """The slave side's signals, as members of a component."""
    return {
        "awaddr": In(12), "awvalid": In(1), "awready": Out(1), "wdata": In(32), "wstrb": In(4), "wvalid": In(1),
        "wready": Out(1), "bresp": Out(2), "bvalid": Out(1), "bready": In(1), "araddr": In(12), "arvalid": In(1),
        "arready": Out(1), "rdata": Out(32), "rresp": Out(2), "rvalid": Out(1), "rready": In(1)}


class Csr(wiring.Component):
    """The register file; see the module's docstring for its ports."""

    def __init__(self):
        ports = axi_lite()
        for r in REGISTERS:
            if r.access == "ro":
                ports[f"r_{r.name}"] = In(32)
            else:
                ports[f"w_{r.name}"] = Out(32)
            if r.access == "wo":
                ports[f"s_{r.name}"] = Out(1)
        super().__init__(ports)

    def elaborate(self, platform):
        m = Module()
        self._write(m)
        self._read(m)
        return m

    def _write(self, m):
        addr, value, strobes = Signal(12), Signal(32), Signal(4)
        have_addr, have_data, apply = Signal(), Signal(), Signal()
        m.d.comb += [self.awready.eq(~have_addr), self.wready.eq(~have_data),
                     apply.eq(have_addr & have_data & ~self.bvalid)]
        with m.If(self.awvalid & self.awready):
            m.d.sync += [addr.eq(self.awaddr), have_addr.eq(1)]
        with m.If(self.wvalid & self.wready):
            m.d.sync += [value.eq(self.wdata), strobes.eq(self.wstrb), have_data.eq(1)]
        with m.If(self.bvalid & self.bready):
            m.d.sync += self.bvalid.eq(0)
        with m.If(apply):
            m.d.sync += [have_addr.eq(0), have_data.eq(0), self.bvalid.eq(1)]
        for r in REGISTERS:
            if r.access == "ro":
                continue
            hit = apply & (addr[2:] == r.addr >> 2)
            register = getattr(self, f"w_{r.name}")
            if r.access == "wo":
                m.d.sync += getattr(self, f"s_{r.name}").eq(hit)
            with m.If(hit):
                for b in range(4):
                    with m.If(strobes[b]):
                        m.d.sync += register[8 * b:8 * b + 8].eq(value[8 * b:8 * b + 8])

    def _read(self, m):
        addr, busy = Signal(12), Signal()
        m.d.comb += self.arready.eq(~busy & ~self.rvalid)
        with m.If(self.arvalid & self.arready):
            m.d.sync += [addr.eq(self.araddr), busy.eq(1)]
        with m.If(self.rvalid & self.rready):
            m.d.sync += self.rvalid.eq(0)
        with m.If(busy):
            m.d.sync += [busy.eq(0), self.rvalid.eq(1), self.rdata.eq(0)]
            with m.Switch(addr[2:]):
                for r in REGISTERS:
                    if r.access != "wo":
                        with m.Case(r.addr >> 2):
                            m.d.sync += self.rdata.eq(getattr(self, f"{'r' if r.access == 'ro' else 'w'}_{r.name}"))
