"""The hardware decoder against `isa.legality` on random words."""

import numpy as np
import pytest
from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.sim import Simulator

from hw.decode import illegal
from isa.config import preset
from isa.legality import check
from tests.isa.random_words import words


class Decoder(wiring.Component):
    def __init__(self, queue, config):
        self.queue, self.config = queue, config
        super().__init__({"bits": wiring.In(512), "code": wiring.Out(8)})

    def elaborate(self, platform):
        m = Module()
        code = Signal(8)
        m.d.comb += code.eq(illegal(m, self.bits, self.queue, self.config))
        m.d.comb += self.code.eq(code)
        return m


@pytest.mark.parametrize("queue", ["pe", "act", "vec", "dma0"])
@pytest.mark.parametrize("config", ["tiny", "edge"])
def test_same_trap_as_the_table(queue, config):
    config = preset(config)
    dut = Decoder(queue, config)
    rng = np.random.default_rng(7)
    seen = set()

    async def bench(ctx):
        for word in words(rng, config, 1500):
            ctx.set(dut.bits, word)
            await ctx.delay(1e-9)
            expected = check(word, queue, config)
            got = ctx.get(dut.code)
            assert got == (expected[0] if expected else 0), f"{word:#x}: {expected}"
            seen.add(got)

    sim = Simulator(dut)
    sim.add_testbench(bench)
    sim.run()
    assert 0 in seen and len(seen) > 3, f"too few different outcomes: {seen}"
