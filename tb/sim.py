"""`make sim`: writes the RTL, runs the cocotb regression, then every program of the suite on the RTL, twice without reset,
against the golden model, and `systolith run` on the examples. One table; exit status 1 if a row is not well."""

import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

from rich.console import Console
from rich.table import Table

from isa.config import preset
from isa.memory import MachineError
from sw.cli_run import bytes_different
from sw.device import Device
from sw.errors import HostError, SystolithError
from sw.exit_status import guarded
from sw.progress import say, task
from tb import cocotb_run, cocotb_suite
from tb.driver import verilog
from tb.generate import write_verilog
from tb.suite import EXAMPLES, cases

BUS = {"latency": 20, "jitter": 40, "stall": 0.1, "seed": 7}
CONFIGS = ("tiny", "small", "base", "edge")  # at least these are written
COCOTB = {"seed": 5, "pause": 0.3}
CLI = ("--backend", "both", "--latency", "40", "--stalls", "0.2", "--seed", "7")
CLI_SECONDS = 600
COLUMNS = ("program", "configuration", "cycles", "PE use", "cycles/s", "verdict", "note")


class Report:
    """The table, and whether all rows are well."""

    def __init__(self):
        self.table = Table(*COLUMNS, title=f"RTL on Verilator against the golden model, each twice; bus {BUS}")
        self.good = True

    def row(self, name, config, body, well):
        """One row: `body()` gives (cycles, PE use, cycles/s, verdict, note); an error of the program is its verdict."""
        say(f"{config}: {name}")
        with task(f"{config}: {name}"):
            try:
                columns = body()
            except HostError:
                raise
            except (SystolithError, MachineError, AssertionError) as error:
                columns = "-", "-", "-", f"{error}", ""
        self.good &= columns[3] == well
        self.table.add_row(name, config, *columns)


def write(config):
    """The RTL of one configuration, in build/."""
    start = time.monotonic()
    paths = write_verilog(preset(config), Path("build") / config)
    size = paths[0].stat().st_size / 1e6
    return "-", "-", "-", "written", f"{paths[0]}, {size:.1f} MB, {time.monotonic() - start:.1f} s"


def cocotb(program, inputs):
    """One program under cocotb, on third-party AXI models."""
    start = time.monotonic()
    passed = cocotb_run.run(verilog(program.config), cocotb_suite.comparison(program, inputs), **COCOTB)
    return "-", "-", "-", "equal", f"{passed} cocotb test, {time.monotonic() - start:.1f} s"


def run(case, device, golden):
    """One case on the RTL, twice, and on golden."""
    expected = golden.run(case.program, case.inputs)
    verdict, note = "equal", ""
    for _ in range(2):
        result = device.run(case.program, case.inputs)
        if not result.outputs:
            verdict = "no outputs"
        for name, array in result.outputs.items():
            if different := bytes_different(array, expected.outputs[name]):
                verdict = f"{name}: {different} bytes differ"
    if case.check and verdict == "equal":
        note = case.check(result.outputs)
    speed = result.counters["simulated"] / result.counters["seconds"]
    use = case.macs / (result.cycles * case.config.lanes ** 2)
    return f"{result.cycles:,}", f"{use:.1%}" if case.macs else "-", f"{speed:,.0f}", verdict, note


def command_line(path):
    """`systolith run` in a process of its own."""
    try:
        done = subprocess.run([sys.executable, "-W", "ignore", "-m", "sw.cli", "run", path, *CLI], capture_output=True,
                              text=True, timeout=CLI_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return "-", "-", "-", f"no end after {CLI_SECONDS} s", ""
    cycles = re.search(r"([\d,]+) cycles", done.stdout)
    if done.returncode or not cycles:
        return "-", "-", "-", f"exit status {done.returncode}", done.stderr[-500:]
    return cycles[1], "-", "-", "equal" if "equal" in done.stdout else "no outputs", " ".join(CLI)


def main():
    """Everything, in one table."""
    report = Report()
    for config in CONFIGS:
        report.row("Verilog", config, lambda config=config: write(config), "written")
    for name, program, inputs in cocotb_suite.programs():
        report.row(f"cocotb: {name}", program.config.name, lambda p=program, i=inputs: cocotb(p, i), "equal")
    for path in EXAMPLES:
        report.row(f"systolith run {path}", cocotb_suite.CONFIG, lambda p=path: command_line(p), "equal")
    devices = {}
    try:
        for case in cases():
            if case.config.name not in devices:
                devices[case.config.name] = Device(case.config, "rtl", **BUS), Device(case.config)
            report.row(case.name, case.config.name, lambda c=case: run(c, *devices[c.config.name]), "equal")
    finally:
        for device, _ in devices.values():
            device.close()
    Console(width=max(140, Console().width)).print(report.table)
    return 0 if report.good else 1


if __name__ == "__main__":
    warnings.filterwarnings("ignore", module="amaranth")
    sys.exit(guarded(main))
