"""The command line: `python -m sw.cli` (or `systolith`, where it is installed).

Exit status: 0 all is well; 1 the program failed, or its results differ; 2 the input is wrong.
"""

import sys
import zlib
from collections import Counter
from enum import Enum
from pathlib import Path
from typing import Annotated, Optional

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from isa.config import PRESETS, ConfigError, preset
from isa.encode import decode
from isa.memory import MachineError
from sw.asm import assemble_file
from sw.device import Device
from sw.disasm import disassemble
from sw.errors import InputError, SystolithError, TrapError
from sw.program import Program

FAILED, BAD_INPUT = 1, 2
EXAMPLE = "Example:  systolith "
app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
                  help="Systolith: assemble, explain and run programs, and write the hardware.",
                  epilog=EXAMPLE + "run examples/add.sys --backend both")


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
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{output}: cannot be written: {error.strerror}") from error


def read_inputs(program, given, seed):
    """Arrays by name: files as `name=file.npy`, the rest random."""
    rng, out = np.random.default_rng(seed), {}
    wanted = {n: t for n, t in program.tensors.items() if t.role == "input"}
    for name, t in wanted.items():
        if t.dtype.is_int:
            info = np.iinfo(t.dtype.numpy)
            out[name] = rng.integers(info.min, info.max + 1, t.shape).astype(t.dtype.numpy)
        else:
            out[name] = rng.standard_normal(t.shape).astype(np.float32).astype(t.dtype.numpy)
    for text in given:
        name, mark, file = text.partition("=")
        if not mark or name not in wanted:
            raise InputError(f"--input {text}: must be NAME=FILE.npy with one of: {', '.join(wanted) or 'no inputs'}")
        try:
            array = np.load(file, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"--input {text}: cannot be read: {error}") from error
        out[name] = _typed(array, wanted[name])
    return out


def _typed(array, tensor):
    """The array, with the name of a small float type that .npy files cannot say."""
    array = np.asarray(array)
    wanted = np.dtype(tensor.dtype.numpy)
    return array.view(wanted) if array.dtype.kind == "V" and array.dtype.itemsize == wanted.itemsize else array


def _outputs(results):
    """(Table of the outputs, all equal)."""
    out = Table("output", "type", "shape", "smallest", "largest", "CRC-32", *(["RTL"] if len(results) > 1 else []))
    first, equal = results[0], True
    for name, array in first.outputs.items():
        values = array.astype(np.float64)
        row = [name, str(array.dtype), str(array.shape), f"{values.min():.6g}", f"{values.max():.6g}",
               f"{zlib.crc32(array.tobytes()):08x}"]
        if len(results) > 1:
            other = results[1].outputs[name]
            wrong = int(np.sum(np.frombuffer(array.tobytes(), np.uint8) != np.frombuffer(other.tobytes(), np.uint8)))
            equal &= not wrong
            row.append(f"{wrong} bytes differ" if wrong else "equal")
        out.add_row(*row)
    return out, equal


def _counters(result):
    table = Table("queue", "completed", "busy cycles", "stalled cycles", title=f"{result.cycles:,} cycles")
    for queue, counts in result.counters.items():
        if isinstance(counts, dict):
            table.add_row(queue, *(f"{counts[n]:,}" for n in ("done", "busy", "stall")))
    return table


@app.command(epilog=EXAMPLE + "run examples/add.sys --backend both --latency 40 --stalls 0.2 --seed 7")
def run(program: Annotated[Path, typer.Argument(help="assembly or program file")],
        backend: Annotated[Backend, typer.Option(help="golden model, RTL on Verilator, or both, compared")] =
        Backend.golden,
        config: Config = None,
        latency: Annotated[int, typer.Option(min=1, help="RTL: cycles from a read request to its data")] = 20,
        stalls: Annotated[float, typer.Option(min=0, max=0.95, help="RTL: how often the bus is not ready")] = 0.0,
        seed: Annotated[int, typer.Option(min=0, help="random inputs, order of queues, bus")] = 0,
        trace: Annotated[Optional[Path], typer.Option(help="RTL: waveform file, .fst or .vcd")] = None,
        inputs: Annotated[Optional[list[str]], typer.Option("--input", help="NAME=FILE.npy; others are random")] = None,
        save: Annotated[Optional[Path], typer.Option(help="write the outputs to this .npz")] = None):
    """Run a program and show its outputs."""
    if trace is not None and backend == Backend.golden:
        raise InputError("--trace needs --backend rtl or both")
    loaded = load(program, config)
    arrays = read_inputs(loaded, inputs or (), seed)
    results, screen = [], console()
    for name in ("golden", "rtl") if backend == Backend.both else (backend.value,):
        options = {"seed": seed}
        if name == "rtl":
            options |= {"latency": latency, "stall": stalls, **({"trace": str(trace)} if trace else {})}
        with Device(loaded.config, name, **options) as device:
            results.append(device.run(loaded, arrays))
    if backend == Backend.both and not results[0].outputs:
        raise InputError(f"{program}: the program has no outputs to compare")
    table, equal = _outputs(results)
    table.title = f"{program.name} on {loaded.config.name}, {backend.value}, seed {seed}"
    screen.print(table)
    if results[-1].cycles is not None:
        screen.print(_counters(results[-1]))
    if save is not None:
        _save(save, results[-1].outputs)
    if not equal:
        print("systolith: RTL and golden model differ", file=sys.stderr)
        raise typer.Exit(FAILED)


def _save(path, outputs):
    try:
        with open(path, "wb") as stream:
            np.savez(stream, **outputs)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error


@app.command(epilog=EXAMPLE + "verilog tiny build/tiny")
def verilog(config: Annotated[str, typer.Argument(help="configuration: " + ", ".join(PRESETS))],
            folder: Annotated[Optional[Path], typer.Argument(help="by default build/CONFIG")] = None):
    """Write the Verilog of a configuration: top.v, ports.json, manifest.json."""
    chosen = preset(config)
    from tb.generate import write_verilog
    for path in write_verilog(chosen, folder or Path("build") / config):
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
    try:
        return app(arguments, standalone_mode=True, prog_name="systolith")
    except (TrapError, MachineError) as error:
        print(f"systolith: {error}", file=sys.stderr)
        return FAILED
    except (SystolithError, ConfigError) as error:
        print(f"systolith: {error}", file=sys.stderr)
        return BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
