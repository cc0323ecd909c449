"""Shared by the tests of fixed-latency datapaths: stream vectors through, one a cycle, and compare."""

import numpy as np
from amaranth.sim import Simulator

SEED = 20261201

CORNERS = np.array(
    [0, 1, 0x00400000, 0x007FFFFF, 0x00800000, 0x00800001, 0x00FFFFFF, 0x01000000, 0x01800000, 0x0C000000,
     0x33800000, 0x34000000, 0x3EFFFFFF, 0x3F000000, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3F800002, 0x3FC00000,
     0x3FFFFFFF, 0x40000000, 0x40490FDB, 0x4B000000, 0x4B7FFFFF, 0x4B800000, 0x4B800001, 0x7E800000, 0x7F000000,
     0x7F7FFFFE, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF], np.uint32)
CORNERS = np.concatenate([CORNERS, CORNERS | np.uint32(0x80000000)])


def generator(name):
    """A seeded generator, the same for each run of a test; its seed is printed and so shown on failure."""
    seed = SEED + sum(name.encode())
    print(f"{name}: seed {seed}")
    return np.random.default_rng(seed)


def pairs():
    """Every corner with every corner."""
    a, b = np.meshgrid(CORNERS, CORNERS)
    return a.ravel(), b.ravel()


def random_fp32(rng, n):
    """Random patterns: a third uniform bits, a third near exponent 127 (so that sums cancel), a third sparse bits."""
    bits = rng.integers(0, 1 << 32, n, np.uint32)
    near = (bits & np.uint32(0x807FFFFF)) | (rng.integers(115, 140, n, np.uint32) << np.uint32(23))
    sparse = bits & rng.integers(0, 1 << 32, n, np.uint32) & rng.integers(0, 1 << 32, n, np.uint32)
    kind = rng.integers(0, 3, n)
    return np.where(kind == 0, bits, np.where(kind == 1, near, sparse)).astype(np.uint32)


def stream(dut, latency, inputs, output="o", enable=None):
    """Outputs for the columns of `inputs` (port name -> array), one a cycle, `latency` enabled cycles later.

    `enable` is an array of zeros and ones, repeated as needed; ports hold garbage while it is zero.
    """
    n = len(next(iter(inputs.values())))
    columns = [(getattr(dut, name), [int(v) for v in values]) for name, values in inputs.items()]
    enable = [1] if enable is None else [int(e) for e in enable]
    assert any(enable), "the pipeline would never move"
    out = getattr(dut, output)
    results = []

    async def bench(ctx):
        sent, cycle = 0, 0
        while len(results) < n:
            on = enable[cycle % len(enable)]
            if hasattr(dut, "en"):
                ctx.set(dut.en, on)
            for port, values in columns:
                ctx.set(port, values[sent if on and sent < n else -1])
            if on and sent >= latency:
                results.append(ctx.get(out))
            sent += on
            cycle += 1
            assert cycle <= (n + latency + 1) * len(enable) + len(enable), "deadline"
            await ctx.tick()

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.run()
    return np.array(results, np.uint64)


def assert_same(got, want, inputs):
    """All bits equal; the first few differences are shown with their inputs."""
    want = np.asarray(want).astype(np.uint64) & 0xFFFFFFFF
    assert got.shape == want.shape and got.size > 0
    bad = np.flatnonzero(got != want)
    lines = [", ".join(f"{k}={int(v[i]):#x}" for k, v in inputs.items()) + f": got {got[i]:#010x} want {want[i]:#010x}"
             for i in bad[:8]]
    assert not bad.size, f"{bad.size} of {got.size} differ:\n" + "\n".join(lines)
