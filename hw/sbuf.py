"""SBUF: banks of rows, interleaved on the low word-address bits; every client reads and writes whole rows."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from hw.arbiter import Arbiter
from hw.cell import clock_while, place
from hw.interfaces import RowRead, RowWrite


class BankLane(wiring.Component):
    """`depth` words of 32 bits, one read and one write with byte enables a cycle. Read latency 1."""

    def __init__(self, depth):
        self.depth = depth
        bits = max(1, (depth - 1).bit_length())
        super().__init__({"r_en": In(1), "r_addr": In(bits), "r_data": Out(32),
                          "w_bytes": In(4), "w_addr": In(bits), "w_data": In(32)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = memory.Memory(shape=32, depth=self.depth, init=[])
        r, w = words.read_port(), words.write_port(granularity=8)
        m.d.comb += [r.addr.eq(self.r_addr), r.en.eq(self.r_en), self.r_data.eq(r.data),
                     w.addr.eq(self.w_addr), w.data.eq(self.w_data), w.en.eq(self.w_bytes)]
        return m


class Bank(wiring.Component):
    """`depth` rows of 32 bits a lane; one read and one write a cycle. Read latency 1.

    A read and a write of one row in one cycle: the read gives the old row (no legal program sees it).
    """

    def __init__(self, lanes, depth):
        self.lanes, self.depth = lanes, depth
        bits = max(1, (depth - 1).bit_length())
        super().__init__({
            "r_en": In(1), "r_addr": In(bits), "r_data": Out(32 * lanes),
            "w_en": In(1), "w_addr": In(bits), "w_data": In(32 * lanes), "w_lanes": In(lanes), "w_bytes": In(4)})

    def elaborate(self, platform):
        m = Module()
        clock = clock_while(m, "lanes", self.r_en | self.w_en)
        for p in range(self.lanes):
            lane = place(m, f"lane{p}", BankLane(self.depth), f"bank_lane_{self.depth}", clock)
            at = slice(32 * p, 32 * p + 32)
            m.d.comb += [lane.r_addr.eq(self.r_addr), lane.r_en.eq(self.r_en), self.r_data[at].eq(lane.r_data),
                         lane.w_addr.eq(self.w_addr), lane.w_data.eq(self.w_data[at]),
                         lane.w_bytes.eq(Mux(self.w_en & self.w_lanes[p], self.w_bytes, 0))]
        return m


class Sbuf(wiring.Component):
    """`read{i}`, `write{i}`: the clients' ports. A granted read answers SBUF_READ_LATENCY = 2 cycles later."""

    def __init__(self, config, readers, writers, addr_bits=16):
        self.config, self.readers, self.writers = config, readers, writers
        super().__init__({
            **{f"read{i}": In(RowRead(config.lanes, addr_bits)) for i in range(readers)},
            **{f"write{i}": In(RowWrite(config.lanes, addr_bits)) for i in range(writers)}})

    def elaborate(self, platform):
        m = Module()
        count = self.config.sbuf_banks
        banks = []
        for b in range(count):
            m.submodules[f"bank{b}"] = bank = Bank(self.config.lanes, self.config.sbuf_words // count)
            banks.append(bank)
        select_bits = count.bit_length() - 1
        reads = [getattr(self, f"read{i}") for i in range(self.readers)]
        writes = [getattr(self, f"write{i}") for i in range(self.writers)]
        read_grants = self._grants(m, "read", reads, select_bits)
        write_grants = self._grants(m, "write", writes, select_bits)
        for b, bank in enumerate(banks):
            for i, port in enumerate(reads):
                with m.If(read_grants[b][i]):
                    m.d.comb += [bank.r_en.eq(1), bank.r_addr.eq(port.addr >> select_bits)]
            for i, port in enumerate(writes):
                with m.If(write_grants[b][i]):
                    m.d.comb += [bank.w_en.eq(1), bank.w_addr.eq(port.addr >> select_bits),
                                 bank.w_data.eq(port.data), bank.w_lanes.eq(port.lanes), bank.w_bytes.eq(port.bytes)]
        for i, port in enumerate(reads):
            granted = Cat(read_grants[b][i] for b in range(count))
            one, which = Signal(name=f"pending{i}"), Signal(count, name=f"which{i}")
            m.d.sync += [one.eq(granted.any()), which.eq(granted), port.rsp_valid.eq(one)]
            with m.If(one):
                with m.Switch(which):
                    for b, bank in enumerate(banks):
                        with m.Case(1 << b):
                            m.d.sync += port.rsp_data.eq(bank.r_data)
        return m

    def _grants(self, m, kind, ports, select_bits):
        """Per bank the grants of all clients; drives the clients' `ready`."""
        grants = []
        for b in range(self.config.sbuf_banks):
            m.submodules[f"{kind}_arbiter{b}"] = arbiter = Arbiter(len(ports))
            m.d.comb += [
                arbiter.request.eq(Cat(p.valid & (p.addr[:select_bits] == b) if select_bits else p.valid
                                       for p in ports)),
                arbiter.urgent.eq(Cat(p.urgent for p in ports))]
            grants.append(arbiter.grant)
        for i, port in enumerate(ports):
            m.d.comb += port.ready.eq(Cat(g[i] for g in grants).any())
        return grants
