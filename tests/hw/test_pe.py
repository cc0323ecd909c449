"""hw.pe: chains of cells against isa.numerics, with weight reloads under way, bubbles and hostile values."""

import numpy as np
import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from hw.convert import PE_WIDTH
from hw.pe import PE
from isa import numerics
from tests.hw.datapath import CORNERS, generator, random_fp32


def to_fp32(operand, pe):
    return (np.asarray(operand, np.uint64) << (32 - PE_WIDTH[pe])).astype(np.uint32)


def expected(pe, total, x, w):
    """sum + x*w, all as patterns."""
    if pe == "int8":
        signed = [np.asarray(v, np.uint8).view(np.int8).astype(np.int64) for v in (x, w)]
        return (np.asarray(total, np.int64) + signed[0] * signed[1]) & 0xFFFFFFFF
    return numerics.add(total, numerics.mul(to_fp32(x, pe), to_fp32(w, pe)))


def operands(rng, pe, n):
    """Patterns in the cell's format, hostile ones included."""
    if pe == "int8":
        return rng.choice(np.array([0, 1, 127, 128, 129, 255]), n) ^ rng.integers(0, 2, n) * rng.integers(0, 256, n)
    both = np.where(rng.integers(0, 2, n), random_fp32(rng, n), rng.choice(CORNERS, n))
    return both >> np.uint32(32 - PE_WIDTH[pe])


def sums(rng, pe, n):
    if pe == "int8":
        return rng.integers(-2 ** 30, 2 ** 30, n) & 0xFFFFFFFF
    return np.where(rng.integers(0, 3, n) == 0, rng.choice(CORNERS, n), random_fp32(rng, n))


def simulate(dut, bench):
    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.run()


@pytest.mark.parametrize("pe", sorted(PE_WIDTH))
def test_cell(pe):
    """Swaps, shifts, valid and invalid operands in random cycles; outputs at exactly the promised times."""
    n = 2000
    rng = generator(f"cell {pe}")
    x, w, total = operands(rng, pe, n), operands(rng, pe, n), sums(rng, pe, n)
    valid, shift, swap = (rng.integers(0, 4, n) < k for k in (3, 2, 1))
    weight = shadow = 0
    swap[1], shift[0] = True, True  # a defined weight before the first comparison
    weights, shadows = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for t in range(n):
        weight = shadow if swap[t] else weight
        shadow = int(w[t]) if shift[t] else shadow
        weights[t], shadows[t] = weight, shadow
    neutral = np.asarray(total) if pe == "int8" else numerics.canonical(total)
    want = np.where(valid, expected(pe, total, x, weights), neutral)
    dut = PE(pe)
    checked = []

    async def bench(ctx):
        delay, latency = dut.sum_delay, dut.latency
        for t in range(n + delay + latency):
            if t < n:
                for port, values in ((dut.x, x), (dut.x_valid, valid), (dut.swap, swap), (dut.w_in, w),
                                     (dut.w_shift, shift)):
                    ctx.set(port, int(values[t]))
            if 0 <= t - delay < n:
                ctx.set(dut.sum_in, int(total[t - delay]))
            done = t - delay - latency
            if done >= 1:
                case = f"cycle {done}: {total[done]:#x} + {x[done]:#x} * {weights[done]:#x}"
                assert ctx.get(dut.sum_out) == want[done], case
                checked.append(done)
            if 1 < t <= n:
                assert ctx.get(dut.w_out) == shadows[t - 1]
                seen = ctx.get(dut.x_out), ctx.get(dut.x_valid_out), ctx.get(dut.swap_out)
                assert seen == (x[t - 1], valid[t - 1], swap[t - 1])
            await ctx.tick()

    simulate(dut, bench)
    assert len(checked) == n - 1


class Block(wiring.Component):
    """Two rows of two cells, as the array wires them: x to the right, sums down."""

    def __init__(self, pe):
        self.cells = [[PE(pe) for _c in range(2)] for _r in range(2)]
        width = PE_WIDTH[pe]
        row = {"x": In(width), "x_valid": In(1), "swap": In(1), "w_in": In(width), "w_shift": In(1)}
        super().__init__({f"{name}{r}": flow for r in range(2) for name, flow in row.items()}
                         | {f"sum{c}": Out(32) for c in range(2)})

    def elaborate(self, platform):
        m = Module()
        for r, row in enumerate(self.cells):
            for c, cell in enumerate(row):
                m.submodules[f"cell{r}{c}"] = cell
                for name, source in (("x", "x_out"), ("x_valid", "x_valid_out"), ("swap", "swap_out"),
                                     ("w_in", "w_out")):
                    left = getattr(row[c - 1], source) if c else getattr(self, f"{name}{r}")
                    m.d.comb += getattr(cell, name).eq(left)
                m.d.comb += cell.w_shift.eq(getattr(self, f"w_shift{r}"))
                m.d.comb += cell.sum_in.eq(self.cells[r - 1][c].sum_out if r else 0)
        for c in range(2):
            m.d.comb += getattr(self, f"sum{c}").eq(self.cells[1][c].sum_out)
        return m


@pytest.mark.parametrize("pe", sorted(PE_WIDTH))
def test_two_by_two(pe):
    """Tile after tile with the next one's weights shifted in meanwhile: row r is L cycles late, column c is c late."""
    tiles, columns = 12, 6
    rng = generator(f"block {pe}")
    w = operands(rng, pe, tiles * 4).reshape(tiles, 2, 2)  # tile, row, column
    x = operands(rng, pe, tiles * columns * 2).reshape(tiles, columns, 2)
    dut = Block(pe)
    cell = dut.cells[0][0]
    skew, begin = cell.latency, 4
    results = {}

    def row_inputs(r, t):
        """What row r sees in cycle t: column f of tile i enters at begin + i*columns + f + r*skew."""
        tile, f = divmod(t - begin - r * skew, columns)
        present = 0 <= tile < tiles
        # The last cell's weight goes in first; both follow the swap's way through the row and precede the next swap.
        ahead = tile + 1 if f in (columns - 3, columns - 2) else -1
        shift = 0 <= ahead < tiles
        weight = int(w[ahead, r, 1 if f == columns - 3 else 0]) if shift else 0x55
        return {"x": int(x[tile, f, r]) if present else 0x2A, "x_valid": present, "swap": present and f == 0,
                "w_in": weight, "w_shift": shift}

    async def bench(ctx):
        total = begin + tiles * columns + cell.sum_delay + 2 * skew + 2
        for t in range(total):
            for r in range(2):
                for name, value in row_inputs(r, t).items():
                    ctx.set(getattr(dut, f"{name}{r}"), value)
            for c in range(2):
                results[c, t - cell.sum_delay - 2 * skew - c - begin] = ctx.get(getattr(dut, f"sum{c}"))
            await ctx.tick()

    simulate(dut, bench)
    for i in range(tiles):
        for f in range(columns):
            for c in range(2):
                want = np.zeros(1, np.uint32)
                for r in range(2):
                    want = expected(pe, want, x[i, f, r:r + 1], w[i, r, c:c + 1])
                assert results[c, i * columns + f] == want[0], (pe, i, f, c)
