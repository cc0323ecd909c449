"""Row numbers of gather and scatter: reads the index row once and makes each partition's DRAM offset."""

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from hw.dma_block import OFFSET
from hw.interfaces import RowRead

STEP_BITS = 8  # bits of the row number multiplied a cycle
STEPS = 32 // STEP_BITS


class RowTable(wiring.Component):
    """While `go` is high: reads SBUF word `addr`, then fills the table for partitions p0 .. p0+pn (less one) and raises
    `ready` until `go` falls. Then `offset` = base + row*stride*2^size for partition `lane`, `drop` if it has none;
    `allowed` has ones at the partitions that have. Five cycles a partition.

    `beyond` pulses with the row `number` for every row at or past the limit; `outside` if the address is.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "go": In(1), "addr": In(18), "p0": In(7), "pn": In(7), "limit": In(32), "stride": In(signed(32)),
            "base": In(48), "size": In(2), "port": Out(RowRead(config.lanes, 16)),
            "lane": In(7), "offset": Out(OFFSET), "drop": Out(1), "allowed": Out(config.lanes), "ready": Out(1),
            "busy": Out(1), "beyond": Out(1), "number": Out(32), "outside": Out(1)})

    def elaborate(self, platform):
        m = Module()
        lanes = self.config.lanes
        bits = OFFSET.width
        m.submodules.rows = table = memory.Memory(shape=bits + 1, depth=lanes, init=[])
        w, r = table.write_port(), table.read_port(domain="comb")
        m.d.comb += [r.addr.eq(self.lane), Cat(self.offset, self.drop).eq(r.data)]
        row = Signal(32 * lanes)
        lane, left, step = Signal(7), Signal(7), Signal(range(STEPS + 1))
        product, number = Signal(signed(66)), Signal(32)
        m.d.comb += [self.port.addr.eq(self.addr[2:]), self.port.urgent.eq(1), self.number.eq(number)]
        with m.FSM() as fsm:
            m.d.comb += self.busy.eq(~fsm.ongoing("IDLE"))
            with m.State("IDLE"):
                with m.If(self.go):
                    m.d.sync += [self.allowed.eq(0), lane.eq(self.p0), left.eq(self.pn)]
                    m.d.comb += self.outside.eq(self.addr >= self.config.sbuf_bytes)
                    with m.If(self.outside):  # no row then: every index is beyond
                        m.d.sync += row.eq(-1)
                        m.next = "ROW"
                    with m.Else():
                        m.next = "ASK"
            with m.State("ASK"):
                m.d.comb += self.port.valid.eq(1)
                with m.If(self.port.ready):
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                with m.If(self.port.rsp_valid):
                    m.d.sync += row.eq(self.port.rsp_data)
                    m.next = "ROW"
            with m.State("ROW"):
                m.d.sync += [number.eq(row.word_select(lane, 32)), product.eq(0), step.eq(STEPS - 1)]
                m.next = "MULTIPLY"
            with m.State("MULTIPLY"):  # number by its highest bits first
                part = number.word_select(step, STEP_BITS)
                m.d.sync += [product.eq((product << STEP_BITS) + part * self.stride), step.eq(step - 1)]
                with m.If(step == 0):
                    m.next = "STORE"
            with m.State("STORE"):
                keep = number < self.limit
                offset, far = self.base + (product << self.size), Signal()
                high = offset[bits - 1:]
                m.d.comb += [far.eq(high.any() & ~high.all()), w.addr.eq(lane), w.en.eq(1), self.beyond.eq(~keep),
                             w.data.eq(Cat(Mux(far, -1, offset)[:bits], ~keep))]
                m.d.sync += [self.allowed.bit_select(lane, 1).eq(keep), lane.eq(lane + 1), left.eq(left - 1)]
                m.next = "ROW"
                with m.If(left == 0):
                    m.next = "READY"
            with m.State("READY"):
                m.d.comb += self.ready.eq(1)
                with m.If(~self.go):
                    m.next = "IDLE"
        return m
