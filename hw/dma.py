"""DMA queue: a source and a sink, joined by a byte stream.

    source: DRAM (walk, bursts, reader)  or  SBUF (corner-turn buffer)
    sink:   DRAM (walk, bursts, writer)  or  SBUF (corner-turn buffer)

Both ends walk the same command in blocks (`dma_block`), each at its own pace, with a `ByteQueue` between them.
"""

from amaranth import Module, Mux, Signal
from amaranth.lib import fifo, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.dma_align import ByteQueue
from hw.dma_block import COMMAND, BlockWalker
from hw.dma_corner import SbufSink, SbufSource
from hw.dma_decode import decode
from hw.dma_index import RowTable
from hw.dma_reader import DramReader
from hw.dma_walk import BurstSplitter, RunWalker
from hw.dma_writer import DramWriter
from hw.interfaces import RowRead, RowWrite, axi_read, axi_write, engine_signature
from isa.registers import Trap

SINK_COMMANDS = 4  # started at the source and not yet at the sink


class DmaQueue(wiring.Component):
    """Executes ld, st, mv, cp, gat, sca, nop, mark. Ports as in `hw.interfaces.engine_signature`.

    One beat a cycle along contiguous DRAM rows, one word of all lanes a cycle at SBUF. Consecutive `ld`s, and
    consecutive `st`s, overlap: the source of one works while the sink finishes those before. Every other
    instruction starts when all before it are complete. `halt`: nothing new starts, bursts in progress end with
    strobes off.
    """

    def __init__(self, config):
        self.config = config
        n = config.lanes
        super().__init__({
            **engine_signature(),
            "sbuf_read": Out(RowRead(n, 16)), "sbuf_write": Out(RowWrite(n, 16)),
            "axi_r": Out(axi_read(config.axi_data_bits)), "axi_w": Out(axi_write(config.axi_data_bits)),
            "dram_base": In(48), "dram_bytes": In(48), "halt": In(1)})

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.source_walk = source_walk = BlockWalker(config)
        m.submodules.sink_walk = sink_walk = BlockWalker(config)
        m.submodules.source = self.source = SbufSource(config)
        m.submodules.sink = self.sink = SbufSink(config)
        m.submodules.bytes = self.bytes = ByteQueue(config)
        m.submodules.table = self.table = RowTable(config)
        m.submodules.reader = self.reader = DramReader(config)
        m.submodules.writer = self.writer = DramWriter(config)
        self.from_dram, self.to_dram, self.rows = Signal(), Signal(), Signal()  # of the instructions in progress
        self._control(m, source_walk, sink_walk)
        self.splitters = [self._dram(m, "read", source_walk, self.source, self.from_dram, self.reader),
                          self._dram(m, "write", sink_walk, self.sink, self.to_dram, self.writer)]
        self._join(m)
        self._ports(m)
        self._traps(m)
        return m

    def _control(self, m, source_walk, sink_walk):
        """Accept an instruction when its ends can take it; count those in progress."""
        d = decode(m, self.insn.payload)
        table, flying = self.table, Signal(range(2 * SINK_COMMANDS + 1))
        m.submodules.commands = commands = fifo.SyncFIFO(width=COMMAND.size, depth=SINK_COMMANDS)
        quiet, same, able, fire, ended = (Signal(name=n) for n in ("quiet", "same", "able", "fire", "ended"))
        plain, simple = Signal(), Signal()  # ld or st: now, and the ones in progress
        m.d.comb += [
            # A source that has more than its sink takes never gets quiet: the watchdog names it.
            quiet.eq((flying == 0) & ~source_walk.out.valid & self.source.idle & (self.bytes.level == 0)),
            plain.eq(d.is_["ld"] | d.is_["st"]),
            same.eq(plain & simple & (self.to_dram == d.to_dram) & (flying != 2 * SINK_COMMANDS)),
            able.eq((quiet & (~d.rows | table.ready)) | same),
            self.insn.ready.eq(~self.halt & Mux(d.dma, able & source_walk.cmd.ready & commands.w_rdy, quiet)),
            fire.eq(self.insn.valid & self.insn.ready),
            source_walk.cmd.payload.eq(d.source), source_walk.cmd.valid.eq(fire & d.dma),
            commands.w_data.eq(d.sink), commands.w_en.eq(fire & d.dma),
            sink_walk.cmd.payload.eq(commands.r_data), sink_walk.cmd.valid.eq(commands.r_rdy),
            commands.r_en.eq(sink_walk.cmd.ready)]
        with m.If(fire & d.dma):
            m.d.sync += [self.from_dram.eq(d.from_dram), self.to_dram.eq(d.to_dram), self.rows.eq(d.rows), simple.eq(plain)]
        m.d.comb += ended.eq(Mux(self.to_dram, self.writer.done, self.sink.done))
        m.d.sync += [flying.eq(flying + (fire & d.dma) - ended), self.done.eq(ended | (fire & ~d.dma))]
        g = d.gat
        m.d.comb += [
            self.idle.eq(quiet & ~self.done & ~table.busy),
            table.go.eq(self.insn.valid & d.rows & quiet & ~self.halt), table.addr.eq(g.i_addr), table.p0.eq(g.p0),
            table.pn.eq(g.pn), table.limit.eq(g.row_limit), table.stride.eq(g.row_stride), table.base.eq(g.d_addr),
            table.size.eq(d.source.size)]
        self.skip = g.flag_skip

    def _dram(self, m, name, walk, corner, use_dram, end):
        """One end: blocks go to the corner buffer, or as runs and bursts to the DRAM `end`."""
        m.submodules[f"{name}_runs"] = runs = RunWalker(self.config)
        m.submodules[f"{name}_bursts"] = bursts = BurstSplitter(self.config)
        connect(m, runs.out, bursts.run)
        connect(m, bursts.out, end.burst)
        m.d.comb += [
            runs.block.payload.eq(walk.out.payload), corner.block.payload.eq(walk.out.payload),
            runs.block.valid.eq(walk.out.valid & use_dram), corner.block.valid.eq(walk.out.valid & ~use_dram),
            walk.out.ready.eq(Mux(use_dram, runs.block.ready, corner.block.ready)),
            runs.row_offset.eq(self.table.offset), runs.row_drop.eq(self.table.drop),
            bursts.base.eq(self.dram_base), bursts.limit.eq(self.dram_bytes), end.halt.eq(self.halt)]
        with m.If(use_dram):  # one end alone uses the table
            m.d.comb += self.table.lane.eq(runs.row)
        return bursts

    def _join(self, m):
        """The byte stream."""
        queue, reader, source = self.bytes, self.reader.out, self.source.out
        m.d.comb += [
            queue.w.valid.eq(Mux(self.from_dram, reader.valid, source.valid)),
            queue.w.payload.eq(Mux(self.from_dram, reader.payload, source.payload)),
            reader.ready.eq(queue.w.ready & self.from_dram), source.ready.eq(queue.w.ready & ~self.from_dram),
            self.writer.head.eq(queue.head), self.sink.head.eq(queue.head),
            self.writer.level.eq(queue.level), self.sink.level.eq(queue.level),
            queue.take.eq(Mux(self.to_dram, self.writer.take, self.sink.take))]

    def _ports(self, m):
        connect(m, flipped(self.sbuf_write), self.sink.port)
        connect(m, flipped(self.axi_r), self.reader.axi)
        connect(m, flipped(self.axi_w), self.writer.axi)
        port, table, source = self.sbuf_read, self.table.port, self.source.port
        use = self.table.busy & ~self.table.ready
        for client in (table, source):
            m.d.comb += [client.rsp_valid.eq(port.rsp_valid), client.rsp_data.eq(port.rsp_data)]
        m.d.comb += [
            port.valid.eq(Mux(use, table.valid, source.valid)), port.addr.eq(Mux(use, table.addr, source.addr)),
            port.urgent.eq(Mux(use, table.urgent, source.urgent)), table.ready.eq(port.ready & use),
            source.ready.eq(port.ready & ~use), self.sink.allowed.eq(Mux(self.rows, self.table.allowed, -1))]

    def _traps(self, m):
        """One trap a cycle; a bus error outranks a bad address."""
        table, now = self.table, self.insn.payload.index
        sources = [(s.trap_valid, Trap.DRAM, s.trap_addr, s.trap_index) for s in self.splitters]
        sources += [(s.trap_valid, Trap.ADDRESS, s.trap_addr, s.trap_index) for s in (self.source, self.sink)]
        sources += [(table.outside, Trap.ADDRESS, table.addr, now), (table.beyond & ~self.skip, Trap.ROW, table.number, now),
                    (self.reader.error, Trap.BUS_READ, self.reader.error_addr, self.reader.error_index),
                    (self.writer.error, Trap.BUS_WRITE, self.writer.error_addr, self.writer.error_index)]
        for valid, code, address, index in sources:
            with m.If(valid):
                m.d.comb += [self.trap.valid.eq(1), self.trap.code.eq(code), self.trap.addr.eq(address),
                             self.trap.index.eq(index)]
