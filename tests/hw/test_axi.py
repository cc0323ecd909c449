"""AXI arbiter: random readers and writers against a memory that stalls, interleaves reads and reorders answers."""

from collections import deque

import pytest
from amaranth.sim import Simulator

from hw.axi import AxiArbiter
from isa.config import Config
from tests.hw.datapath import generator

QUEUES = 3
DEADLINE = 20_000


def contents(addr):
    """What the memory holds at a beat's address."""
    return addr * 0x9E3779B1 & 0xFFFFFFFF


class Memory:
    """Master side. Checks that offers stay, that write data are in the order of the addresses and burst by burst."""

    def __init__(self, dut, rng, stall, latency):
        self.dut, self.rng, self.stall, self.latency, self.now = dut, rng, stall, latency, 0
        self.reads, self.addresses, self.data, self.answers = {}, deque(), deque(), []
        self.read = self.answer = None
        self.flying = self.most = 0
        self.held = {}
        self.burst, self.written = [], []

    def stays(self, s, name, *payload):
        """An offer that was not taken is the same one cycle later."""
        now = tuple(s[p] for p in payload)
        if name in self.held:
            assert s[f"{name}valid"] and self.held[name] == now, f"{name} changed"
        if s[f"{name}valid"] and not s[f"{name}ready"]:
            self.held[name] = now
        else:
            self.held.pop(name, None)

    def step(self, ctx, s):
        self.now += 1
        self.stays(s, "ar", "arid", "araddr", "arlen")
        self.stays(s, "aw", "awid", "awaddr", "awlen")
        self.stays(s, "w", "wdata", "wstrb", "wlast")
        slow = lambda: self.rng.random() < self.stall  # noqa: E731
        if s["arvalid"] and s["arready"]:
            beats = self.reads.setdefault(s["arid"], deque())
            for n in range(s["arlen"] + 1):
                beats.append((self.now + self.latency, s["araddr"] + 4 * n, n == s["arlen"]))
            self.flying += (s["arlen"] + 1) * (s["arid"] != 0)
            self.most = max(self.most, self.flying)
        if self.read and s["rready"]:
            self.flying -= s["rid"] != 0
            self.read = None
        if s["awvalid"] and s["awready"]:
            self.addresses.append((s["awid"], s["awaddr"], s["awlen"]))
        if s["wvalid"] and s["wready"]:
            self.burst.append(s["wdata"])
            if s["wlast"]:
                self.data.append(self.burst)
                self.burst = []
        while self.addresses and self.data:
            (who, addr, length), beats = self.addresses.popleft(), self.data.popleft()
            assert len(beats) == length + 1 and {b >> 24 for b in beats} == {who}, "bursts mixed"
            self.written += [(addr + 4 * n, b) for n, b in enumerate(beats)]
            self.answers.append((self.now + self.latency, who))
        ready = [i for i, q in self.reads.items() if q and q[0][0] <= self.now]
        if not self.read and ready and not slow():
            who = int(self.rng.choice(ready))  # any interleaving of ids
            _, addr, last = self.reads[who].popleft()
            self.read = who, addr, last
            for signal, value in zip((self.dut.rid, self.dut.rdata, self.dut.rlast), (who, contents(addr), last)):
                ctx.set(signal, value)
        ctx.set(self.dut.rvalid, self.read is not None)
        if self.answer and s["bready"]:
            self.answer = None
        first = {who: n for n, (_, who) in reversed(list(enumerate(self.answers)))}
        able = [n for who, n in first.items() if self.answers[n][0] <= self.now]
        if not self.answer and able and not slow():
            self.answer = self.answers.pop(int(self.rng.choice(able)))
            ctx.set(self.dut.bid, self.answer[1])
        ctx.set(self.dut.bvalid, self.answer is not None)
        for signal in (self.dut.arready, self.dut.awready, self.dut.wready):
            ctx.set(signal, not slow())

    @property
    def quiet(self):
        return not (any(self.reads.values()) or self.addresses or self.data or self.answers or self.read or self.answer)


class Reader:
    """Requests its `bursts` [(addr, len)] and expects their beats in order."""

    def __init__(self, port, bursts):
        self.port, self.bursts, self.expect = port, deque(bursts), deque()
        self.taken = []

    def step(self, ctx, ready, valid, data, last, now):
        if self.bursts and ready and ctx.get(self.port.ar_valid):
            addr, length = self.bursts.popleft()
            self.taken.append(now)
            self.expect += [(contents(addr + 4 * n), n == length) for n in range(length + 1)]
        if valid:
            assert self.expect.popleft() == (data, last)
        ctx.set(self.port.ar_valid, bool(self.bursts))
        if self.bursts:
            ctx.set(self.port.ar_addr, self.bursts[0][0])
            ctx.set(self.port.ar_len, self.bursts[0][1])
        ctx.set(self.port.r_ready, 1)


class Writer:
    """Sends its bursts; the data carry the writer's number in their top byte."""

    def __init__(self, port, who, bursts):
        self.port, self.who, self.bursts = port, who, deque(bursts)
        self.sending, self.sent, self.answers = deque(), [], 0
        self.left = len(bursts)

    def step(self, ctx, aw_ready, w_ready, b_valid):
        if self.sending and w_ready and ctx.get(self.port.w_valid):
            self.sent.append(self.sending.popleft()[:2])
        if self.bursts and aw_ready and ctx.get(self.port.aw_valid):
            addr, length = self.bursts.popleft()
            for n in range(length + 1):
                self.sending.append((addr + 4 * n, self.who << 24 | contents(addr + 4 * n) & 0xFFFFFF, n == length))
        self.left -= b_valid
        ctx.set(self.port.aw_valid, bool(self.bursts))
        if self.bursts:
            ctx.set(self.port.aw_addr, self.bursts[0][0])
            ctx.set(self.port.aw_len, self.bursts[0][1])
        ctx.set(self.port.w_valid, bool(self.sending))
        if self.sending:
            ctx.set(self.port.w_data, self.sending[0][1])
            ctx.set(self.port.w_strb, 15)
            ctx.set(self.port.w_last, self.sending[0][2])


def simulate(dut, memory, readers, writers):
    """Until all is answered and the arbiter is idle. Returns the cycle of every read and write beat."""
    names = [n for n in ("arvalid arready arid araddr arlen rready rid awvalid awready awid awaddr awlen wvalid wready "
                         "wdata wstrb wlast bready idle").split()]
    beats = {"r": [], "w": []}

    async def bench(ctx):
        while True:
            sampled = [getattr(dut, n) for n in names]
            sampled += [x for r in readers for x in (r.port.ar_ready, r.port.r_valid, r.port.r_data, r.port.r_last)]
            sampled += [x for w in writers for x in (w.port.aw_ready, w.port.w_ready, w.port.b_valid)]
            values = (await ctx.tick().sample(*sampled))[2:]
            s, values = dict(zip(names, values)), values[len(names):]
            if memory.read:
                beats["r"].append(memory.now)
            if s["wvalid"] and s["wready"]:
                beats["w"].append(memory.now)
            for n, reader in enumerate(readers):
                reader.step(ctx, *values[4 * n:4 * n + 4], memory.now)
            values = values[4 * len(readers):]
            for n, writer in enumerate(writers):
                writer.step(ctx, *values[3 * n:3 * n + 3])
            memory.step(ctx, s)
            assert memory.now < DEADLINE, "deadline"
            waiting = any(r.bursts or r.expect for r in readers) or any(w.left for w in writers)
            if waiting and memory.now > 5 and not memory.quiet:
                assert not s["idle"], "idle with transactions outstanding"
            if not waiting and memory.quiet and s["idle"]:
                return

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    return beats


def make(limit=128):
    return AxiArbiter(Config(lanes=4, axi_data_bits=32, dma_queues=QUEUES, sbuf_kib=4, axi_read_beats=limit))


def bursts(rng, count):
    return [(int(rng.integers(0, 1 << 20)) * 64, int(rng.integers(0, 16))) for _ in range(count)]


@pytest.mark.parametrize("stall,latency,limit", [(0.0, 2, 128), (0.3, 10, 16), (0.6, 30, 40)])
def test_random(stall, latency, limit):
    rng = generator(f"axi {stall} {latency}")
    dut = make(limit)
    memory = Memory(dut, rng, stall, latency)
    readers = [Reader(getattr(dut, f"rd{i}"), bursts(rng, 30)) for i in range(QUEUES + 1)]
    writers = [Writer(getattr(dut, f"wr{i}"), i, bursts(rng, 30)) for i in range(QUEUES)]
    simulate(dut, memory, readers, writers)
    assert sorted(memory.written) == sorted(x for w in writers for x in w.sent) and memory.written
    assert 16 <= memory.most <= limit


def test_rate():
    """Both channels move a beat a cycle at the same time, with bursts of one and of several queues."""
    rng = generator("axi rate")
    dut = make()
    memory = Memory(dut, rng, 0.0, 20)
    readers = [Reader(dut.rd1, [(64 * n, 15) for n in range(12)]), Reader(dut.rd2, [(64 * n, 15) for n in range(12)])]
    writers = [Writer(dut.wr0, 0, [(64 * n, 7) for n in range(24)]), Writer(dut.wr1, 1, [(64 * n, 7) for n in range(24)])]
    beats = simulate(dut, memory, readers, writers)
    for channel, at in beats.items():
        assert len(at) == 384 and at[-1] - at[0] + 1 <= 384 * 1.02, channel


def test_fetch_first():
    """A fetch request is taken before those of the data readers, whatever they have in flight."""
    rng = generator("axi fetch")
    dut = make(16)
    memory = Memory(dut, rng, 0.0, 60)
    readers = [Reader(dut.rd0, [(64 * n, 15) for n in range(4)]), Reader(dut.rd1, [(64 * n, 15) for n in range(4)])]
    simulate(dut, memory, readers, [])
    assert max(readers[0].taken) < readers[1].taken[0] + 2 and memory.most == 16
