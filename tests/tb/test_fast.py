"""The fast simulation (cells as blocks, clocks of idle cells stopped) and the Verilog as written agree in every cycle."""

import numpy as np

from isa.config import preset
from tb.driver import RtlCore
from tb.fuzz_program import make

TINY = preset("tiny")
PROGRAMS = 20


def run(core, seed):
    """DRAM, cycles and counters of the random program `seed`, which uses every engine, on a bus of its own."""
    program = make(TINY, seed)
    core.rtl.configure(**program.bus)
    core.rtl.reset()  # which also starts the bus's random numbers again
    dram, cycles = core.run_queues(program.queues, program.image)
    counters = [core.read(f"q{i}_{name}") for i in range(len(TINY.queues)) for name in ("done", "busy", "stall")]
    return dram.copy(), cycles, counters


def test_same_cycles_and_results():
    written, fast = RtlCore(TINY, fast=False), RtlCore(TINY)
    assert "clock_gate" not in (written.rtl.library_path.parent / "top.v").read_text()
    assert "clock_gate" in (fast.rtl.library_path.parent / "top.v").read_text()
    for seed in range(PROGRAMS):
        a, b = run(written, seed), run(fast, seed)
        assert np.array_equal(a[0], b[0]) and a[1:] == b[1:], f"seed {seed}"
    written.close()
    fast.close()
