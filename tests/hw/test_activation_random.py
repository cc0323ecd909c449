"""Random programs on the activation engine, at every fold, on memories that stall; and its function alone."""

import numpy as np
import pytest
from amaranth.sim import Simulator

from hw.act_function import SLOTS, ActFunction
from isa import activation, numerics
from isa.config import preset
from isa.encode import encode
from isa.ops import Func
from isa.table import Acc
from tests.hw.activation_bench import BASE, compare, load_table, memories, random_act
from tests.hw.datapath import CORNERS, assert_same, generator, random_fp32

FUNCTIONS = ("exp", "reciprocal", "rsqrt", "log")
N = 500


@pytest.mark.parametrize("fold, function, stall, count", [
    (4, "tanh", 0.2, 5), (2, "exp", 0.4, 4), (1, "log", 0.1, 3)])
def test_programs(fold, function, stall, count):
    """No waits: instructions overlap in the engine. A second `tab` replaces a table that was in use."""
    rng = generator(f"act {fold} {function}")
    config = preset("tiny").with_(lane_fold=fold)
    sbuf, psum = memories(config, rng)
    functions = [*Func, 10, 10, 10, 10, 10]
    start = encode("act", pn=config.lanes, n2=1, y_addr=BASE, acc=Acc.START)
    program = [load_table(sbuf, function, 2, 1), start] + [random_act(rng, config, functions) for _ in range(count)]
    if fold == 4:
        program += [load_table(sbuf, "sqrt", 2, 3), encode("mark")]
        program += [random_act(rng, config, functions) for _ in range(3)]
    compare(config, sbuf, psum, program, stall=stall, rng=rng)


def test_function():
    """Every mode and every built-in function, mixed from cycle to cycle, with stalls."""
    rng, dut = generator("function"), ActFunction()
    tables = [activation.TABLES[name] for name in FUNCTIONS]
    assert len(tables) == SLOTS
    wide = rng.uniform(-100, 100, N).astype(np.float32).view(np.uint32)
    x = numerics.canonical(np.concatenate([CORNERS, random_fp32(rng, N), wide]))
    slot, func = rng.integers(0, SLOTS + 1, x.size), rng.integers(0, len(Func), x.size)
    want = np.zeros(x.size, np.uint32)
    for s, table in enumerate(tables):
        want[slot == s] = activation.evaluate(table, x[slot == s])
    for f in Func:
        chosen = (slot == SLOTS) & (func == f)
        want[chosen] = activation.builtin(f, x[chosen])
    got = []

    async def bench(ctx):
        for s, table in enumerate(tables):
            for i, word in enumerate(table[activation.HEADER_WORDS:].tolist()):
                ctx.set(dut.table_en, 1 << i % 3)
                ctx.set(dut.table_addr, s * activation.SEGMENTS + i // 3)
                ctx.set(dut.table_data, word)
                await ctx.tick()
        ctx.set(dut.table_en, 0)
        sent = cycles = 0
        while len(got) < x.size:
            on, i = int(rng.random() < 0.8), min(sent, x.size - 1)
            s = int(slot[i])
            words = [int(w) for w in tables[s % SLOTS][:activation.HEADER_WORDS]]
            ctx.set(dut.en, on)
            ctx.set(dut.v, int(x[i]))
            ctx.set(dut.control, {"table": s < SLOTS, "func": int(func[i]), "slot": s % SLOTS, "mode": words[0],
                                  "zero": words[1], "plus": words[2], "minus": words[3]})
            if on and sent >= dut.latency:
                got.append(ctx.get(dut.o))
            sent += on
            cycles += 1
            assert cycles < 4 * (x.size + dut.latency), "deadline"
            await ctx.tick()

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.run()
    assert_same(numerics.canonical(np.array(got, np.uint32)), want, {"x": x, "slot": slot, "func": func})
