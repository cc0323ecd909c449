"""Bench of the vector engine: memories in Python with random grants, the meaning of the instructions as reference."""

from functools import lru_cache
from types import SimpleNamespace

import numpy as np
from amaranth.sim import Simulator

from hw.vector import VectorEngine
from isa import meaning_compute
from isa.encode import decode, encode
from isa.legality import check
from isa.memory import MachineError, Memory
from tests.hw.vector_programs import fill


class _Logged(Memory):
    """A memory that keeps which bytes were read and written."""

    def __init__(self, name, partitions, size, rng):
        super().__init__(name, partitions, size, (), races=False)
        fill(rng, self.data)
        self.written[:] = True
        self.reads, self.writes = set(), set()

    def read(self, parts, at, access, own_queue_ok=False):
        self.reads |= set(np.ravel(at).tolist())
        return super().read(parts, at, access, own_queue_ok)

    def write(self, parts, at, value, access, mask=None):
        self.writes |= set(np.ravel(at).tolist())
        super().write(parts, at, value, access, mask)


class _Access:
    queue, sequence = "vec", 0

    def fail(self, message):
        raise MachineError(message)


class Reference:
    """Executes instructions by their meaning; refuses illegal ones with None."""

    def __init__(self, config, rng):
        self.config = config
        self.sbuf = _Logged("sbuf", config.lanes, config.sbuf_bytes, rng)
        self.psum = _Logged("psum", config.lanes, config.psum_bytes, rng)
        self.before = self.sbuf.data.copy()

    @staticmethod
    def word(name, **values):
        """An instruction that the reference does not execute."""
        return SimpleNamespace(word=encode(name, **values), reads=set(), writes=set())

    def run(self, name, **values):
        """The instruction's word, and the SBUF bytes it reads and writes; None if it is not legal."""
        word = encode(name, **values)
        if check(word, "vec", self.config) is not None:
            return None
        kept = self.sbuf.data.copy()
        self.sbuf.reads, self.sbuf.writes = set(), set()
        if name not in ("nop", "mark"):
            try:
                getattr(meaning_compute, name)(self, decode(word)[1], _Access())
            except MachineError:
                self.sbuf.data[:] = kept
                return None
        return SimpleNamespace(word=word, reads=self.sbuf.reads, writes=self.sbuf.writes)


class _Bench:
    """One engine and its simulator, used by all runs of a configuration: most of the time goes into making them."""

    def __init__(self, config):
        self.dut, self.run = VectorEngine(config), None
        self.simulator = Simulator(self.dut)
        self.simulator.add_clock(1e-8)
        self.simulator.add_testbench(self._start)

    async def _start(self, ctx):
        await self.run.bench(ctx)


_bench = lru_cache(_Bench)


class Run:
    """Runs `program` from reset; what it did: final `sbuf`, traps, cycles in which instructions were complete.

    `grant` and `offer` are the chances that a memory grants and that the next instruction is offered in a cycle.
    """

    def __init__(self, reference, program, rng, grant=1.0, offer=1.0, deadline=4000):
        self.reference, self.program, self.rng = reference, program, rng
        self.grant, self.offer, self.deadline = grant, offer, deadline
        self.sbuf = reference.before.copy()
        self.done_at, self.traps, self.writes, self.last_write = [], [], 0, None
        bench = _bench(reference.config)
        if bench.run is not None:
            bench.simulator.reset()
        self.dut, bench.run = bench.dut, self
        bench.simulator.run()

    def _words(self, memory, address):
        return int.from_bytes(np.ascontiguousarray(memory[:, 4 * address:4 * address + 4]).tobytes(), "little")

    def _store(self, addr, data, lanes, byte_enables):
        for p in range(self.reference.config.lanes):
            for i in range(4):
                if lanes >> p & 1 and byte_enables >> i & 1:
                    self.sbuf[p, 4 * addr + i] = data >> (32 * p + 8 * i) & 0xFF

    def _may_start(self, sent):
        """Own-queue waits, as the core would check them: nothing to read is still to be written."""
        pending = set().union(*(self.program[i].writes for i in range(len(self.done_at), sent)))
        return not pending & self.program[sent].reads

    async def bench(self, ctx):
        dut, rng = self.dut, self.rng
        ports = [(dut.x_read, self.sbuf), (dut.b_read, self.sbuf), (dut.psum_read, self.reference.psum.data)]
        coming = [None for _ in ports]
        sent = cycle = 0
        held = False
        while len(self.done_at) < len(self.program):
            assert cycle < self.deadline, f"{len(self.done_at)} of {len(self.program)} complete: deadline"
            held = held or (sent < len(self.program) and rng.random() < self.offer and self._may_start(sent))
            ctx.set(dut.insn.valid, held)
            if held:
                ctx.set(dut.insn.payload, {"bits": self.program[sent].word, "index": sent})
            for port, _ in ports:
                ctx.set(port.ready, rng.random() < self.grant)
            ctx.set(dut.sbuf_write.ready, rng.random() < self.grant)
            w = dut.sbuf_write
            samples = [s for port, _ in ports for s in (port.valid, port.ready, port.addr)]
            got = await ctx.tick().sample(dut.idle, dut.insn.ready, dut.done, dut.trap, w.valid, w.ready, w.addr,
                                          w.data, w.lanes, w.bytes, *samples)
            _, _, idle, taken, done, trap, valid, ready, addr, data, lanes, byte_enables, *reads = got
            for i, (port, memory) in enumerate(ports):
                read, granted, where = reads[3 * i:3 * i + 3]
                ctx.set(port.rsp_valid, coming[i] is not None)  # granted in the cycle before the one just sampled
                ctx.set(port.rsp_data, coming[i] or 0)
                coming[i] = self._words(memory, where) if read and granted else None
            if valid and ready:
                self._store(addr, data, lanes, byte_enables)
                self.writes += 1
                self.last_write = cycle
            if taken and held:
                sent, held = sent + 1, False
            if done:
                self.done_at.append(cycle)
            if trap.valid:
                self.traps.append((int(trap.code), int(trap.index), int(trap.addr)))
            cycle += 1
        self.busy_at_end = [not idle]
        await ctx.tick()
        self.busy_at_end.append(not ctx.get(dut.idle))

    def compare(self):
        """All of SBUF equals the reference."""
        bad = np.argwhere(self.sbuf != self.reference.sbuf.data)
        assert not bad.size, f"{len(bad)} bytes differ; first (partition, byte): {bad[:6].tolist()}"
