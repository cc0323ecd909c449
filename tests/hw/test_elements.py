"""Element reader and writer on the real SBUF, against strided NumPy copies; rates with several clients."""

import numpy as np
import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.sim import Simulator

from hw.element_reader import ElementReader
from hw.element_writer import ElementWriter
from hw.sbuf import Sbuf
from isa.config import preset

CONFIG = preset("tiny")
DEADLINE = 20_000


class Bench(wiring.Component):
    """Writers and readers on one SBUF."""

    def __init__(self, readers=1):
        self.writer = ElementWriter(CONFIG, CONFIG.sbuf_bytes)
        self.readers = [ElementReader(CONFIG, CONFIG.sbuf_bytes) for _ in range(readers)]
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        m.submodules.sbuf = sbuf = Sbuf(CONFIG, readers=len(self.readers), writers=1)
        m.submodules.writer = self.writer
        wiring.connect(m, self.writer.port, sbuf.write0)
        for i, reader in enumerate(self.readers):
            m.submodules[f"reader{i}"] = reader
            wiring.connect(m, reader.port, getattr(sbuf, f"read{i}"))
        return m


def walk(addr, strides, shape, size):
    return {"addr": addr, "size": size, "index": 0, **{f"s{d}": s for d, s in enumerate(strides)},
            **{f"n{d}": n - 1 for d, n in enumerate(shape)}}


def addresses(w):
    n = [w[f"n{d}"] + 1 for d in range(3)]
    return [w["addr"] + (i * w["s0"] + j * w["s1"] + k * w["s2"] << w["size"])
            for i in range(n[0]) for j in range(n[1]) for k in range(n[2])]


def random_walk(rng, distinct):
    while True:
        size = int(rng.integers(3))
        shape = [int(x) for x in rng.integers(1, (3, 4, 9))]
        strides = [int(x) for x in rng.integers(-9, 10, 3)]
        w = walk(int(rng.integers(CONFIG.sbuf_bytes >> size)) << size, strides, shape, size)
        at = addresses(w)
        if min(at) >= 0 and max(at) < CONFIG.sbuf_bytes and not (distinct and len(set(at)) < len(at)):
            return w


def simulate(bench, *processes):
    sim = Simulator(bench)
    sim.add_clock(1e-8)
    for p in processes:
        sim.add_testbench(p)
    sim.run_until(DEADLINE * 1e-8)


async def write(ctx, bench, rng, walks, memory):
    """Run walks through the writer with random data and gaps; keeps `memory` [lanes, bytes] up to date."""
    w = bench.writer
    rows = []
    for one in walks:
        lanes = int(rng.integers(1, 1 << CONFIG.lanes))
        for a in addresses(one):
            size = 1 << one["size"]
            values = rng.integers(0, 256, (CONFIG.lanes, size), dtype=np.uint8)
            mask = int(rng.integers(1 << CONFIG.lanes)) if rng.random() < 0.2 else (1 << CONFIG.lanes) - 1
            for p in range(CONFIG.lanes):
                if lanes & mask & 1 << p:
                    memory[p, a:a + size] = values[p]
            rows.append((sum(int.from_bytes(values[p].tobytes(), "little") << 32 * p for p in range(CONFIG.lanes)),
                         mask))
        one["lanes"] = lanes
    done = 0
    sent, commands = 0, 0
    while done < len(walks):
        offer = sent < len(rows) and rng.random() < 0.8
        command = commands < len(walks)
        ctx.set(w.data.valid, offer)
        if offer:
            ctx.set(w.data.payload, {"row": rows[sent][0], "mask": rows[sent][1]})
        ctx.set(w.cmd.valid, command)
        if command:
            c = dict(walks[commands])
            ctx.set(w.cmd.payload, {"lanes": c.pop("lanes"), "walk": c})
        _, _, taken, begun, finished = await ctx.tick().sample(w.data.ready, w.cmd.ready, w.done)
        sent += offer and taken
        commands += command and begun
        done += finished
    ctx.set(w.data.valid, 0)
    ctx.set(w.cmd.valid, 0)
    await ctx.tick().repeat(3)


async def read(ctx, reader, rng, walks, stall=0.3):
    """Elements [(lanes ints)] of all walks, in order; and the cycles from first to last."""
    rows, commands, cycles, first, total = [], 0, 0, None, sum(len(addresses(w)) for w in walks)
    while len(rows) < total:
        ready = rng.random() >= stall
        ctx.set(reader.out.ready, ready)
        ctx.set(reader.cmd.valid, commands < len(walks))
        if commands < len(walks):
            ctx.set(reader.cmd.payload, walks[commands])
        _, _, valid, payload, begun = await ctx.tick().sample(reader.out.valid, reader.out.payload, reader.cmd.ready)
        commands += begun and commands < len(walks)
        if valid and ready:
            rows.append(int(payload.row))
            first = cycles if first is None else first
        cycles += 1
    ctx.set(reader.cmd.valid, 0)
    ctx.set(reader.out.ready, 0)
    return rows, cycles - first


def expected(memory, w):
    size = 1 << w["size"]
    return [sum(int.from_bytes(memory[p, a:a + size].tobytes(), "little") << 32 * p for p in range(CONFIG.lanes))
            for a in addresses(w)]


@pytest.mark.parametrize("seed", range(4))
def test_write_then_read(seed):
    rng = np.random.default_rng(seed)
    bench, memory = Bench(), np.zeros((CONFIG.lanes, CONFIG.sbuf_bytes), np.uint8)
    checked = []

    async def run(ctx):
        await write(ctx, bench, rng, [random_walk(rng, True) for _ in range(40)], memory)
        walks = [random_walk(rng, False) for _ in range(40)]
        rows, _ = await read(ctx, bench.readers[0], rng, walks)
        assert rows == [r for w in walks for r in expected(memory, w)]
        checked.append(len(rows))

    simulate(bench, run)
    assert checked and checked[0] > 300


@pytest.mark.parametrize("size", [0, 1, 2])
def test_no_bubble(size):
    """Back-to-back walks of unit stride: one element a cycle."""
    rng, bench, seen = np.random.default_rng(1), Bench(), []
    walks = [walk(64 * i << size, (0, 0, 1), (1, 1, 37), size) for i in range(6)]

    async def run(ctx):
        rows, cycles = await read(ctx, bench.readers[0], rng, walks, stall=0)
        seen.append((len(rows), cycles))

    simulate(bench, run)
    assert seen == [(6 * 37, 6 * 37)]


@pytest.mark.parametrize("size,clients,least", [(1, 6, 0.95), (2, 3, 0.95)])
def test_shared(size, clients, least):
    """Several streams on four banks: each keeps nearly one element a cycle."""
    bench, seen = Bench(clients), []
    length = 400

    def process(i):
        async def run(ctx):
            w = walk(4 * i, (0, 0, 1), (1, 1, length), size)
            _, cycles = await read(ctx, bench.readers[i], np.random.default_rng(i), [w], stall=0)
            seen.append(length / cycles)
        return run

    simulate(bench, *(process(i) for i in range(clients)))
    assert len(seen) == clients and min(seen) >= least, seen


def test_outside():
    """Elements beyond the end read as zero, are reported, and do not stop the walk."""
    bench, traps, rows = Bench(), [], []
    reader = bench.readers[0]
    w = walk(CONFIG.sbuf_bytes - 8, (0, 0, 1), (1, 1, 4), 2) | {"index": 77}

    async def run(ctx):
        got, _ = await read(ctx, reader, np.random.default_rng(0), [w])
        rows.extend(got)

    async def watch(ctx):
        async for _, _, valid, index, addr in ctx.tick().sample(reader.trap_valid, reader.trap_index,
                                                                reader.trap_addr):
            if valid:
                traps.append((index, addr))

    sim = Simulator(bench)
    sim.add_clock(1e-8)
    sim.add_testbench(run)
    sim.add_testbench(watch, background=True)
    sim.run_until(DEADLINE * 1e-8)
    assert rows[2:] == [0, 0]
    assert traps == [(77, CONFIG.sbuf_bytes), (77, CONFIG.sbuf_bytes + 4)]
