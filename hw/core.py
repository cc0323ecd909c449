"""The core: engines, memories, fetch and control, wired together.

`Core(config)` has the control signals of `hw.control.Control` behind its CSRs, an AXI4-Lite slave and one AXI4
master. Everything that a soft reset clears lives in domain `sync`; control and CSRs live in `host`, whose reset
is the pin alone. Both domains have the one clock.
"""

from amaranth import Cat, ClockDomain, ClockSignal, DomainRenamer, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from hw.activation import ActivationEngine
from hw.axi import AxiArbiter
from hw.cell import place
from hw.control import Control
from hw.csr import Csr, axi_lite
from hw.dma import DmaQueue
from hw.fetch import Fetch
from hw.issue import Issue
from hw.psum import Psum
from hw.sbuf import Sbuf
from hw.tensor import TensorEngine
from hw.vector import VectorEngine
from isa.registers import BUS_IDLE, DONE, ERROR, MAGIC, RESETTING, RUNNING, Trap
from isa.version import ISA_VERSION

ID_BITS = 4


def axi_master(data_bits):
    """AXI4 master signals by their standard names."""
    return {
        "awid": Out(ID_BITS), "awaddr": Out(48), "awlen": Out(8), "awsize": Out(3), "awburst": Out(2),
        "awvalid": Out(1), "awready": In(1),
        "wdata": Out(data_bits), "wstrb": Out(data_bits // 8), "wlast": Out(1), "wvalid": Out(1), "wready": In(1),
        "bid": In(ID_BITS), "bresp": In(2), "bvalid": In(1), "bready": Out(1),
        "arid": Out(ID_BITS), "araddr": Out(48), "arlen": Out(8), "arsize": Out(3), "arburst": Out(2),
        "arvalid": Out(1), "arready": In(1),
        "rid": In(ID_BITS), "rdata": In(data_bits), "rresp": In(2), "rlast": In(1), "rvalid": In(1),
        "rready": Out(1)}


class Core(wiring.Component):
    """See the module's docstring. `irq` is high while the status is done or error."""

    def __init__(self, config):
        self.config = config
        super().__init__({
            "clk": In(1), "rst": In(1), "irq": Out(1),
            **{f"m_axi_{k}": v for k, v in axi_master(config.axi_data_bits).items()},
            **{f"s_axil_{k}": v for k, v in axi_lite().items()},
        })

    def elaborate(self, platform):
        m = Module()
        core_reset = Signal()
        m.domains.host = ClockDomain("host", local=True)
        m.domains.sync = ClockDomain("sync", local=True)
        m.d.comb += [ClockSignal("host").eq(self.clk), ResetSignal("host").eq(self.rst),
                     ClockSignal("sync").eq(self.clk), ResetSignal("sync").eq(self.rst | core_reset)]
        self.m = m
        m.submodules.csr = self.csr = csr = DomainRenamer("host")(Csr())
        m.submodules.control = self.control = control = DomainRenamer("host")(Control(self.config))
        m.d.comb += core_reset.eq(control.core_reset)
        for name in axi_lite():
            outer, inner = getattr(self, f"s_axil_{name}"), getattr(csr, name)
            m.d.comb += (outer.eq(inner) if name in ("awready", "wready", "bresp", "bvalid", "arready", "rdata",
                                                      "rresp", "rvalid") else inner.eq(outer))
        self._engines()
        self._memories()
        self._bus()
        self._issue()
        self._registers()
        m.d.comb += self.irq.eq(control.done | control.error)
        return m

    def _engines(self):
        m, config = self.m, self.config
        m.submodules.tensor = self.tensor = TensorEngine(config)
        m.submodules.activation = self.act = ActivationEngine(config)
        m.submodules.vector = self.vec = VectorEngine(config)
        self.dma = [place(m, f"dma{i}", DmaQueue(config), "dma_queue") for i in range(config.dma_queues)]
        for queue in self.dma:
            m.d.comb += [queue.dram_base.eq(self._wide("w_dram_base")), queue.dram_bytes.eq(self._wide("w_dram_bytes")),
                         queue.halt.eq(self.control.halt)]
        self.engines = [self.tensor, self.act, self.vec, *self.dma]

    def _wide(self, name):
        return Cat(getattr(self.csr, f"{name}_lo"), getattr(self.csr, f"{name}_hi"))

    def _memories(self):
        m = self.m
        reads = [self.tensor.moving, self.tensor.stationary, self.act.sbuf_read, self.act.scalar_read,
                 self.vec.x_read, self.vec.b_read, *(d.sbuf_read for d in self.dma)]
        writes = [self.act.sbuf_write, self.vec.sbuf_write, *(d.sbuf_write for d in self.dma)]
        m.submodules.sbuf = sbuf = Sbuf(self.config, readers=len(reads), writers=len(writes))
        m.submodules.psum = psum = Psum(self.config)
        grants = []
        for kind, clients in (("read", reads), ("write", writes)):
            for i, client in enumerate(clients):
                connect(m, client, getattr(sbuf, f"{kind}{i}"))
                grants.append(client.valid & client.ready)
        for client, port in ((self.tensor.acc_read, psum.acc_read), (self.tensor.acc_write, psum.acc_write),
                             (self.act.psum_read, psum.read0), (self.vec.psum_read, psum.read1)):
            connect(m, client, port)
            grants.append(client.valid & client.ready)
        self.grants = grants

    def _bus(self):
        m, config = self.m, self.config
        m.submodules.fetch = self.fetch = Fetch(config)
        m.submodules.axi = self.axi = axi = AxiArbiter(config)
        connect(m, self.fetch.axi, axi.rd0)
        for i, queue in enumerate(self.dma):
            connect(m, queue.axi_r, getattr(axi, f"rd{i + 1}"))
            connect(m, queue.axi_w, getattr(axi, f"wr{i}"))
        for name, member in axi_master(config.axi_data_bits).items():
            outer, inner = getattr(self, f"m_axi_{name}"), getattr(axi, name)
            m.d.comb += outer.eq(inner) if member.flow == Out else inner.eq(outer)
        self.beats = [(self.m_axi_rvalid & self.m_axi_rready), (self.m_axi_wvalid & self.m_axi_wready),
                      (self.m_axi_bvalid & self.m_axi_bready)]

    def _issue(self):
        m, config, control = self.m, self.config, self.control
        progress = Signal()
        m.d.sync += progress.eq(Cat(*self.grants, *self.beats, control.completed).any())
        m.d.comb += control.progress.eq(progress)
        for q, (queue, engine) in enumerate(zip(config.queues, self.engines)):
            m.submodules[f"issue_{queue}"] = issue = Issue(config, queue)
            connect(m, getattr(self.fetch, f"beats{q}"), issue.beats)
            connect(m, issue.insn, engine.insn)
            m.d.comb += [
                issue.counts.eq(control.counts), issue.stop.eq(control.stop), issue.clear.eq(control.begin),
                getattr(self.fetch, f"base{q}").eq(self._wide(f"w_q{q}_base")),
                getattr(self.fetch, f"count{q}").eq(getattr(self.csr, f"w_q{q}_count")),
                control.limit[q].eq(getattr(self.csr, f"w_q{q}_count")),
                control.completed[q].eq(engine.done), control.waiting[q].eq(issue.waiting),
                control.busy[q].eq(~engine.idle), control.index[q].eq(issue.index),
                control.traps[2 * q].eq(issue.trap), control.traps[2 * q + 1].eq(engine.trap),
            ]
        fetch_trap = control.traps[control.sources - 1]
        m.d.comb += [
            self.fetch.start.eq(control.begin), self.fetch.stop.eq(control.stop),
            fetch_trap.valid.eq(self.fetch.error), fetch_trap.code.eq(Trap.FETCH),
            fetch_trap.addr.eq(self.fetch.error_queue),
            control.bus_quiet.eq(self.axi.idle & self.fetch.idle),
            control.drained.eq(~control.busy.any() & self.axi.idle & self.fetch.idle),
        ]

    def _registers(self):
        m, csr, control = self.m, self.csr, self.control
        values = {"magic": MAGIC, "isa_version": ISA_VERSION, "config_hash": self.config.hash,
                  "error_code": control.error_code | control.error_queue << 8, "error_index": control.error_index,
                  "error_addr": control.error_addr, "cycles": control.cycles,
                  "status": sum((bit * flag for bit, flag in (
                      (DONE, control.done), (ERROR, control.error), (RESETTING, control.resetting),
                      (BUS_IDLE, control.bus_quiet))), control.running * RUNNING)}
        for q in range(len(self.config.queues)):
            values |= {f"q{q}_done": control.done_counts[q], f"q{q}_busy": control.busy_counts[q],
                       f"q{q}_stall": control.stall_counts[q]}
        for name, value in values.items():
            if hasattr(csr, f"r_{name}"):
                m.d.comb += getattr(csr, f"r_{name}").eq(value)
            else:
                wide = Signal(64, name=f"{name}_value")
                m.d.comb += [wide.eq(value), getattr(csr, f"r_{name}_lo").eq(wide[:32]),
                             getattr(csr, f"r_{name}_hi").eq(wide[32:])]
        m.d.comb += [
            control.start.eq(csr.s_control & csr.w_control[0]), control.soft_reset.eq(csr.s_control & csr.w_control[1]),
            control.watchdog.eq(csr.w_watchdog), control.external.eq(csr.w_external),
            control.external_strobe.eq(csr.s_external),
        ]


__all__ = ["Core", "axi_master"]
