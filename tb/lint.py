"""`make lint-rtl`: `verilator --lint-only -Wall` on the Verilog, with named, reasoned waivers, with every Verilator found."""

import subprocess
import sys
import tempfile
from pathlib import Path

from hw.top import TOP, generate
from isa.config import preset
from tb import verilator

WAIVERS = {
    "DECLFILENAME": "all modules are in one file",
    "UNUSEDSIGNAL": "the Verilog writer keeps names of intermediate values, of which parts are used",
    "PROCASSINIT": "registers have their reset value as initial value too, which FPGAs load",
    "WIDTHEXPAND": "the Verilog writer leaves zero extension to the language",
    "WIDTHTRUNC": "it writes `!x` for x == 0, and shifts whose result is cut by the assignment",
    "CASEINCOMPLETE": "each case follows a default assignment; a latch would be reported as LATCH, which is not waived",
}
OLD_NAMES = {"WIDTHEXPAND": "WIDTH", "WIDTHTRUNC": "WIDTH", "PROCASSINIT": None}  # before 5.010 and 5.040
DISTRIBUTION = "/usr/bin/verilator"


def waivers(modern):
    """Warning names that this Verilator knows."""
    return sorted({w if modern else OLD_NAMES.get(w, w) for w in WAIVERS} - {None})


def lint(text, command, env=None, modern=True):
    """Verilator's messages about Verilog `text`; empty if there are none."""
    with tempfile.TemporaryDirectory(prefix="systolith-lint-") as folder:
        path = Path(folder) / f"{TOP}.v"
        path.write_text(text)
        flags = [f"-Wno-{w}" for w in waivers(modern)]
        done = subprocess.run([command, "--lint-only", "-Wall", *flags, "--top-module", TOP, str(path)], env=env,
                              capture_output=True, text=True, timeout=600)
    lines = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("- ")]  # "- " begins a summary
    output = "\n".join(lines).strip()
    return output or (f"exit status {done.returncode}" if done.returncode else "")


def tools():
    """[(name, command, environment, modern)]: ours, and the distribution's where it is installed."""
    found = verilator.find()
    out = [("Verilator of this project", found.verilator, found.environment(), True)]
    if Path(DISTRIBUTION).exists():
        out.append(("Verilator of the distribution", DISTRIBUTION, None, False))
    return out


def main(configs):
    """Lint the configurations; exit status 1 if anything is reported."""
    clean = True
    for config in configs:
        text, _ = generate(preset(config))
        for name, command, env, modern in tools():
            messages = lint(text, command, env, modern)
            print(f"{config}: {name}: {'clean' if not messages else messages[:4000]}")
            clean &= not messages
    for warning, reason in WAIVERS.items():
        print(f"waived {warning}: {reason}")
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["tiny", "small", "edge", "base"]))
