"""The command line: `python -m sw.cli` (or `systolith`, where it is installed).

`systolith --help` lists the exit statuses; `sw.exit_status` decides them.
"""

import sys
from collections import Counter
from enum import Enum
from pathlib import Path
from typing import Annotated, Optional

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from isa.config import PRESETS, preset
from isa.encode import decode
from isa.registers import DEFAULT_WATCHDOG
from sw.asm import assemble_file
from sw.cli_run import DEAD, bus_options, check_writable, counters_table, outputs_table, read_inputs
from sw.device import Device, check_inputs
from sw.disasm import disassemble
from sw.errors import InputError
from sw.exit_status import FAILED, INTERRUPTED, guarded
from sw.files import whole, write_whole
from sw.program import Program

EXAMPLE = "Example:  systolith "
app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
                  help="Systolith: assemble, explain and run programs, and write the hardware.",
                  epilog=EXAMPLE + "run examples/add.sys --backend both\n\nExit status: 0 all is well; 1 the program failed, or "
                  "its results differ; 2 the input is wrong; 3 this machine cannot (a tool, a folder, memory); 130 interrupted.")


class Backend(str, Enum):
    """Where a program runs."""

    golden = "golden"
    rtl = "rtl"
    both = "both"


Config = Annotated[Optional[str], typer.Option(help="configuration: " + ", ".join(PRESETS))]
Output = Annotated[Optional[Path], typer.Option("--output", "-o", help="file to write")]


def console():
    """A console as wide as needed, also where the output is no terminal."""
    return Console(width=max(120, Console().width))


def load(path, config=None):
    """The Program in a .npz or assembly file."""
    config = preset(config) if config else None
    return Program.load(path, config) if path.suffix == ".npz" else assemble_file(path, config)


@app.command(epilog=EXAMPLE + "asm examples/add.sys -o build/add.npz")
def asm(source: Annotated[Path, typer.Argument(help="assembly file")], output: Output = None, config: Config = None):
    """Assemble a file into a program file (by default beside it, .npz)."""
    program = assemble_file(source, preset(config) if config else None)
    output = output or source.with_suffix(".npz")
    program.save(output)
    print(f"{output}: {sum(map(len, program.queues.values()))} instructions for {program.config.name}")


@app.command(epilog=EXAMPLE + "disasm build/add.npz")
def disasm(program: Annotated[Path, typer.Argument(help="program file, or assembly")], output: Output = None,
           config: Config = None):
    """Print a program as assembly that assembles to the same bytes."""
    text = disassemble(load(program, config))
    if output is None:
        print(text, end="")
        return
    write_whole(output, text)


@app.command(epilog=EXAMPLE + "run examples/add.sys --backend both --latency 40 --stalls 0.2 --seed 7")
def run(program: Annotated[Path, typer.Argument(help="assembly or program file")],
        backend: Annotated[Backend, typer.Option(help="golden model, RTL on Verilator, or both, compared")] =
        Backend.golden,
        config: Config = None,
        inputs: Annotated[Optional[list[str]], typer.Option("--input", help="NAME=FILE.npy, or FILE.npz for all; what is "
                                                            "not given is random")] = None,
        save: Annotated[Optional[Path], typer.Option(help="write the outputs to this .npz")] = None,
        seed: Annotated[int, typer.Option(min=0, help="random inputs, order of queues, bus")] = 0,
        latency: Annotated[int, typer.Option(min=1, help="RTL: cycles from a read request to its data")] = 20,
        jitter: Annotated[int, typer.Option(min=0, help="RTL: most further cycles of latency, random")] = 0,
        stalls: Annotated[float, typer.Option(min=0, max=0.95, help="RTL: how often the bus is not ready")] = 0.0,
        bus_error: Annotated[Optional[str], typer.Option(help="RTL: FIRST:END, DRAM offsets that answer with an error")]
        = None,
        bus_dead: Annotated[Optional[str], typer.Option(help="RTL: what the bus never answers: " + ", ".join(DEAD))] = None,
        watchdog: Annotated[int, typer.Option(min=0, max=0xFFFFFFFF, help="RTL: cycles without progress before a trap; 0: "
                                              "never")] = DEFAULT_WATCHDOG,
        trace: Annotated[Optional[Path], typer.Option(help="RTL: waveform file, .fst or .vcd")] = None):
    """Run a program and show its outputs."""
    if trace is not None and backend == Backend.golden:
        raise InputError("--trace needs --backend rtl or both")
    if save is not None:
        check_writable(save)
    loaded = load(program, config)
    arrays = check_inputs(loaded, read_inputs(loaded, inputs or (), seed))
    if backend == Backend.both and not any(t.role == "output" for t in loaded.tensors.values()):
        raise InputError(f"{program}: the program has no outputs to compare")
    results, screen = [], console()
    for name in ("golden", "rtl") if backend == Backend.both else (backend.value,):
        options = {"seed": seed}
        if name == "rtl":
            options = bus_options(latency, jitter, stalls, seed, watchdog, bus_error, bus_dead, trace)
        with Device(loaded.config, name, **options) as device:
            results.append(device.run(loaded, arrays))
    table, equal = outputs_table(results)
    table.title = f"{program.name} on {loaded.config.name}, {backend.value}, seed {seed}"
    screen.print(table)
    if results[-1].cycles is not None:
        screen.print(counters_table(results[-1]))
    if save is not None:
        with whole(save) as stream:
            np.savez(stream, **results[-1].outputs)
    if not equal:
        print("systolith: RTL and golden model differ", file=sys.stderr)
        raise typer.Exit(FAILED)


@app.command(epilog=EXAMPLE + "verilog tiny build/tiny")
def verilog(config: Annotated[str, typer.Argument(help="configuration: " + ", ".join(PRESETS))],
            folder: Annotated[Optional[Path], typer.Argument(help="by default build/CONFIG")] = None):
    """Write the Verilog of a configuration: top.v, ports.json, manifest.json."""
    chosen = preset(config)
    from tb.generate import write_verilog
    for path in write_verilog(chosen, folder or Path("build") / config):  # half a minute, the first time
        print(path)


@app.command(epilog=EXAMPLE + "fuzz --config tiny --config drawn:3 --seconds 300 --seed 1")
def fuzz(configs: Annotated[Optional[list[str]], typer.Option("--config", help="a configuration, or drawn:N: one drawn "
                                                              "from the legal space with seed N; by default tiny")] = None,
         seconds: Annotated[float, typer.Option(min=1, help="for all configurations together; builds not counted")] = 60,
         seed: Annotated[int, typer.Option(min=0, help="of the first program")] = 0):
    """Run random programs on the RTL and on the golden model until time is up; shorten what differs."""
    from tb.fuzz import configuration, main
    raise typer.Exit(main([configuration(name) for name in configs or ["tiny"]], seconds, seed))


@app.command(epilog=EXAMPLE + "info build/add.npz")
def info(program: Annotated[Optional[Path], typer.Argument(help="program or assembly file")] = None,
         config: Config = None):
    """Describe a program; without one, the configurations."""
    screen = console()
    if program is None:
        screen.print(_configurations())
        return
    loaded = load(program, config)
    screen.print(f"{program}: {loaded.config.name}, configuration {loaded.config.hash:#018x}")
    queues = Table("queue", "instructions", "of which")
    for queue, words in loaded.queues.items():
        kinds = Counter(decode(w)[0].name for w in words)
        queues.add_row(queue, f"{len(words):,}", ", ".join(f"{n} {count}" for n, count in kinds.most_common()))
    tensors = Table("tensor", "role", "type", "shape", "offset", "bytes")
    for t in loaded.tensors.values():
        tensors.add_row(t.name, t.role, t.dtype.label, str(t.shape), f"{t.offset:#x}", f"{t.bytes:,}")
    screen.print(queues)
    screen.print(tensors)


def _configurations():
    names = [f for f in next(iter(PRESETS.values())).to_json() if f != "name"]
    table = Table("parameter", *PRESETS)
    for name in names:
        table.add_row(name, *(str(getattr(c, name)) for c in PRESETS.values()))
    table.add_row("hash", *(f"{c.hash:016x}" for c in PRESETS.values()))
    return table


def main(arguments=None):
    """Run the command line; returns the exit status."""
    def call():
        try:
            return app(arguments, standalone_mode=True, prog_name="systolith")
        except SystemExit as end:  # typer's own way to end, also after Ctrl-C
            if end.code == INTERRUPTED:
                raise KeyboardInterrupt from None
            return end.code
    return guarded(call)


if __name__ == "__main__":
    sys.exit(main())
