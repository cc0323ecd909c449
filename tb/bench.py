"""`make bench`: utilisation, simulation speed and build time, printed and written to build/bench.json.

Utilisation is MACs / (cycles * lanes^2), cycles from start to done, every load and store included. cycles_per_s is
the native runner's, traces off. Results are compared with float64 before they count. Other work on the machine only
ever makes a simulation slower, so the best of several runs counts where they are short. Builds are timed in a cache of
their own, which is empty at first.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from isa.config import preset
from isa.dtypes import DType
from sw.device import Device
from sw.exit_status import guarded
from sw.files import write_whole
from sw.progress import say
from tb.build import build
from tb.cache import Cache
from tb.driver import build_options
from tb.generate import generated
from tb.suite import matmul

LATENCY = 60
OUT = Path("build/bench.json")
CASES = (("base", 64, "bf16"), ("base", 128, "bf16"), ("base", 256, "bf16"), ("base", 512, "bf16"), ("edge", 64, "int8"),
         ("edge", 256, "int8"))
TOLERANCE = 1e-4  # of the largest value; sums of K <= 512 exact products in fp32
BUILT = "base"
REPEATS, SHORT_CYCLES = 4, 100_000


def _best_speed(entries):
    """The best cycles/s of all benchmarks on base."""
    return max(e["cycles_per_s"] for (_, config), e in entries.items() if config == "base" and e["cycles_per_s"])


# (measure, what it must be, its value from {(name, config): entry}, whether it is well)
ASKED = (
    ("512^3 bf16 on base", ">= 95 %", lambda e: e["matmul 512x512x512 bf16", "base"]["utilisation"], lambda v: v >= 0.95),
    ("256^3 bf16 on base", ">= 88 %", lambda e: e["matmul 256x256x256 bf16", "base"]["utilisation"], lambda v: v >= 0.88),
    ("cycles/s of base, best", ">= 25,000", _best_speed, lambda v: v >= 25_000),
    ("s to build base, cold", "< 90", lambda e: e["build", BUILT]["cold_s"], lambda v: v < 90),
    ("s to build base, cached", "< 5", lambda e: e["build", BUILT]["cached_s"], lambda v: v < 5),
)


def measure(case, device):
    """One entry of the list."""
    result = device.run(case.program, case.inputs)
    speeds = [result.counters["simulated"] / result.counters["seconds"]]
    for _ in range(REPEATS if result.cycles < SHORT_CYCLES else 0):
        again = device.run(case.program, case.inputs)
        if again.cycles != result.cycles:
            raise AssertionError(f"{case.name} on {case.config.name}: {result.cycles} cycles, then {again.cycles}")
        speeds.append(again.counters["simulated"] / again.counters["seconds"])
    exact = case.inputs["x"].astype(np.float64) @ case.inputs["w"].astype(np.float64)
    if np.abs(result.outputs["y"] - exact).max() > TOLERANCE * np.abs(exact).max():
        raise AssertionError(f"{case.name} on {case.config.name}: wrong result")
    return {"name": case.name, "config": case.config.name, "latency": LATENCY, "cycles": result.cycles, "macs": case.macs,
            "utilisation": case.macs / (result.cycles * case.config.lanes ** 2),
            "cycles_per_s": max(speeds)}


def measure_build(name):
    """The entry of building configuration `name`: seconds for its Verilog, its simulation, and both from the cache."""
    config = preset(name)
    with tempfile.TemporaryDirectory(prefix="systolith-bench-") as folder:
        cache, times = Cache(folder), [time.perf_counter()]
        for _ in range(2):
            text = generated(config, cache, gated=True)[0]
            times.append(time.perf_counter())
            build(text, cache=cache, **build_options(config))
            times.append(time.perf_counter())
    return {"name": "build", "config": name, "cycles": 0, "macs": 0, "utilisation": None, "cycles_per_s": None,
            "verilog_s": times[1] - times[0], "cold_s": times[2] - times[1], "cached_s": times[4] - times[2]}


def compare(entries, console):
    """Print what was asked and what was measured, where it was."""
    found = {(e["name"], e["config"]): e for e in entries}
    table = Table("measure", "asked", "got", "")
    for name, asked, value, good in ASKED:
        try:
            got = value(found)
        except KeyError:
            continue
        table.add_row(name, asked, f"{got:.1%}" if "%" in asked else f"{got:,.1f}", "" if good(got) else "MISSED")
    console.print(table)


def main(longest):
    """Run the cases up to matmuls of `longest`; write the list, whole or not at all."""
    table = Table("benchmark", "configuration", "cycles", "utilisation", "cycles/s", title=f"memory latency {LATENCY} cycles")
    say(f"{BUILT}: build from nothing")
    entries, devices, console = [measure_build(BUILT)], {}, Console(width=100)
    for config, n, dtype in CASES:
        if n > longest:
            continue
        case = matmul(config, n, n, n, DType.parse(dtype).label)
        say(f"{config}: {case.name}")
        if config not in devices:
            devices[config] = Device(case.config, "rtl", latency=LATENCY)
        entry = measure(case, devices[config])
        entries.append(entry)
        table.add_row(entry["name"], config, f"{entry['cycles']:,}", f"{entry['utilisation']:.1%}",
                      f"{entry['cycles_per_s']:,.0f}")
    for device in devices.values():
        device.close()
    console.print(table)
    compare(entries, console)
    OUT.parent.mkdir(exist_ok=True)
    write_whole(OUT, json.dumps(entries, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(guarded(lambda: main(int(sys.argv[1]) if len(sys.argv) > 1 else 512)))
