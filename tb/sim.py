"""`make sim`: every program of the suite on the RTL, twice without reset, against the golden model, in one table."""

import sys
import warnings

import numpy as np
from rich.console import Console
from rich.table import Table

from sw.device import Device
from tb.suite import cases

BUS = {"latency": 20, "jitter": 40, "stall": 0.1, "seed": 7}


def run(case, device, golden):
    """(row of the table, whether all is well)."""
    expected = golden.run(case.program, case.inputs)
    verdict, note = "equal", ""
    for _ in range(2):
        result = device.run(case.program, case.inputs)
        if not result.outputs:
            verdict = "no outputs"
        for name, array in result.outputs.items():
            if array.tobytes() != expected.outputs[name].tobytes():
                different = int(np.sum(array.view(np.uint8) != expected.outputs[name].view(np.uint8)))
                verdict = f"{name}: {different} bytes differ"
    if case.check and verdict == "equal":
        try:
            note = case.check(result.outputs)
        except AssertionError as error:
            verdict = str(error)
    speed = result.counters["simulated"] / result.counters["seconds"]
    use = case.macs / (result.cycles * case.config.lanes ** 2)
    return (case.name, case.config.name, f"{result.cycles:,}", f"{use:.1%}" if case.macs else "-", f"{speed:,.0f}", verdict, note), \
        verdict == "equal"


def main():
    """Run all; exit status 1 if anything differs."""
    console = Console(width=max(120, Console().width))
    table = Table("program", "configuration", "cycles", "PE use", "cycles/s", "verdict", "note",
                  title=f"RTL on Verilator against the golden model, each twice; bus {BUS}")
    devices, good = {}, True
    for case in cases():
        print(f"systolith: {case.config.name}: {case.name}", file=sys.stderr, flush=True)
        if case.config.name not in devices:
            devices[case.config.name] = Device(case.config, "rtl", **BUS), Device(case.config)
        row, ok = run(case, *devices[case.config.name])
        good &= ok
        table.add_row(*row)
    console.print(table)
    for device, _ in devices.values():
        device.close()
    return 0 if good and table.row_count else 1


if __name__ == "__main__":
    warnings.filterwarnings("ignore", module="amaranth")
    sys.exit(main())
