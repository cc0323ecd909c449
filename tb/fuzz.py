"""Differential fuzzing: random programs on the RTL and on the golden machine, for a time.

    systolith fuzz --config tiny --config drawn:3 --seconds 300 --seed 1

A seed gives a program, the contents of memory and the behaviour of the bus. `drawn:N` is a configuration drawn from
the legal space with seed N. The core keeps its state from program to program.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.console import Console

from isa.config import PE_KINDS, Config, preset
from isa.encode import decode
from tb.fuzz_coverage import Coverage
from tb.fuzz_program import make
from tb.fuzz_run import Bench
from tb.fuzz_shrink import Shrinker, save

FOLDER = Path("build/fuzz")
DRAWN = "drawn:"
SEEDS = 1_000_000  # programs a run can have before its seeds meet those of the next


@dataclass
class Outcome:
    """What a run of the fuzzer saw. `failures`: (seed, Difference, path of the shortened program or None)."""

    config: object
    programs: int = 0
    instructions: int = 0
    cycles: int = 0
    seconds: float = 0
    failures: list = field(default_factory=list)
    coverage: Coverage = field(default_factory=Coverage)


def drawn(seed):
    """A small configuration from the legal space: any bus width, bank count, PE kind, number of queues, fold."""
    rng = np.random.default_rng(seed)

    def one(*choices):
        return choices[rng.integers(len(choices))]

    return Config(f"drawn_{seed}", lanes=one(4, 4, 8), pe=one(*PE_KINDS), sbuf_kib=one(1, 2, 3, 4, 16, 256),
                  psum_banks=one(1, 2, 4, 8), axi_data_bits=one(32, 64, 128, 256, 512), dma_queues=one(1, 2, 3, 4),
                  lane_fold=one(1, 2, 4), sbuf_banks=one(1, 2, 4, 8, 16), axi_read_beats=one(16, 64, 256))


def configuration(name):
    """A preset, or `drawn:N`; ConfigError if it is neither."""
    if name.startswith(DRAWN) and name[len(DRAWN):].isdecimal():
        return drawn(int(name[len(DRAWN):]))
    return preset(name)


def fuzz(config, seconds, seed, console=None, limit=None, folder=FOLDER, plant=None, most_failures=3, shrink_seconds=60):
    """Run programs `seed`*SEEDS, +1, ... for `seconds` or until `limit` of them; returns the Outcome."""
    console = console or Console()
    outcome = Outcome(config)
    with Bench(config, plant) as bench:
        start = time.monotonic()
        while time.monotonic() < start + seconds and outcome.programs != limit and len(outcome.failures) < most_failures:
            program = make(config, seed * SEEDS + outcome.programs)
            outcome.programs += 1
            outcome.instructions += len(program.items)
            outcome.coverage.add(program)
            found = bench.difference(program)
            if found:
                console.print(f"{config.name}, seed {program.seed}: {found.kind}: {found.text}", markup=False)
                outcome.failures.append((program.seed, found, _shorten(bench, program, found, console, folder, shrink_seconds)))
        outcome.seconds, outcome.cycles = time.monotonic() - start, bench.cycles
    return outcome


def _shorten(bench, program, found, console, folder, seconds):
    """Path of the saved program, shortened if it fails on a core out of reset; None if it then does not fail."""
    again = bench.difference(program)
    if again is None:
        console.print("  not repeated on a core out of reset: it depends on the programs before", markup=False)
        return None
    short = Shrinker(bench, program, again.kind, seconds).run()
    last = bench.difference(short) or again
    path = save(short, last, folder)
    console.print(f"  {len(short.items)} instructions left: {path}", markup=False)
    for item in short.items:
        console.print(f"    {item.queue} {decode(item.word)[0].name}", markup=False)
    return path


def main(configs, seconds, seed, folder=FOLDER):
    """Fuzz each configuration for an equal share of `seconds`; prints tables; 0 if nothing differs."""
    console, bad = Console(width=max(120, Console().width)), 0
    for config in configs:
        outcome = fuzz(config, seconds / len(configs), seed, console, folder=folder)
        bad += len(outcome.failures) or not outcome.programs
        console.print(outcome.coverage.table(f"{config.name}: {outcome.programs:,} programs from seed {seed * SEEDS}, "
                                             f"{outcome.instructions:,} instructions, {outcome.cycles:,} cycles, "
                                             f"{outcome.seconds:.0f} s, {len(outcome.failures)} failures"))
        console.print(f"programs: {outcome.coverage.buses()}", markup=False)
        missing = outcome.coverage.missing(config)
        if missing:
            console.print("never: " + ", ".join(missing), markup=False)
    return 1 if bad else 0
