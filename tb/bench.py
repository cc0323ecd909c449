"""`make bench`: utilisation and simulation speed, printed and written to build/bench.json.

Utilisation is MACs / (cycles * lanes^2), cycles from start to done, every load and store included. cycles_per_s is
the native runner's, traces off. Results are compared with float64 before they count.
"""

import json
import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from isa.dtypes import DType
from sw.device import Device
from sw.exit_status import guarded
from sw.files import write_whole
from sw.progress import say
from tb.suite import matmul

LATENCY = 60
OUT = Path("build/bench.json")
CASES = (("base", 64, "bf16"), ("base", 128, "bf16"), ("base", 256, "bf16"), ("base", 512, "bf16"), ("edge", 64, "int8"),
         ("edge", 256, "int8"))
TOLERANCE = 1e-4  # of the largest value; sums of K <= 512 exact products in fp32


def measure(case, device):
    """One entry of the list."""
    result = device.run(case.program, case.inputs)
    exact = case.inputs["x"].astype(np.float64) @ case.inputs["w"].astype(np.float64)
    if np.abs(result.outputs["y"] - exact).max() > TOLERANCE * np.abs(exact).max():
        raise AssertionError(f"{case.name} on {case.config.name}: wrong result")
    return {"name": case.name, "config": case.config.name, "latency": LATENCY, "cycles": result.cycles, "macs": case.macs,
            "utilisation": case.macs / (result.cycles * case.config.lanes ** 2),
            "cycles_per_s": result.counters["simulated"] / result.counters["seconds"]}


def main(longest):
    """Run the cases up to matmuls of `longest`; write the list, whole or not at all."""
    table = Table("benchmark", "configuration", "cycles", "utilisation", "cycles/s", title=f"memory latency {LATENCY} cycles")
    entries, devices = [], {}
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
    Console(width=100).print(table)
    OUT.parent.mkdir(exist_ok=True)
    write_whole(OUT, json.dumps(entries, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(guarded(lambda: main(int(sys.argv[1]) if len(sys.argv) > 1 else 512)))
