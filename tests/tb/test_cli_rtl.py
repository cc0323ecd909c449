"""The command line on the RTL: every trap, a bus that fails or is silent, Ctrl-C, waveforms, and a machine without tools."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_programs import CONFIG, TRAPS, ld

from isa.dtypes import DType
from isa.encode import encode
from isa.registers import Trap
from sw.program import DramTensor, Program

ROOT = Path(__file__).parents[2]
ADD = ROOT / "examples" / "add.sys"
STORE = encode("st", pn=4, n2=8, x_s2=1, d_addr=1024, d_sp=8, d_s2=1, wait_mask=1 << 3, wait3=1)
ENDLESS = encode("nop", wait_mask=1 << 7, wait7=1)  # waits for a count that only a host raises
GATHER = encode("gat", pn=4, n2=4, x_addr=256, x_s2=1, d_addr=512, row_stride=4, row_limit=3, wait_mask=1 << 3, wait3=1)
ROWS = {"a": (DType.INT32, (256,), [9] * 256)}
FROM_HEAD = {trap: ({queue: [word]}, ()) for _, queue, word, trap in reversed(TRAPS)}
BINARIES = FROM_HEAD | {
    Trap.BUS_READ: ({"dma0": [ld()]}, ("--bus-error", "0x0:0x40")),
    Trap.BUS_WRITE: ({"dma0": [ld()], "dma1": [STORE]}, ("--bus-error", "1024:1088")),
    Trap.FETCH: ({"dma0": [ld()]}, ("--bus-error", "4096:4160")),  # instructions follow the DRAM image
    Trap.WATCHDOG: ({"pe": [ENDLESS]}, ("--watchdog", 2000)),
    Trap.ROW: ({"dma0": [ld(n2=1, d_sp=1), GATHER]}, ()),
}
BUS = {Trap.BUS_READ, Trap.BUS_WRITE, Trap.FETCH}


def save(path, queues):
    """A hand-made binary: DRAM holds int32 9, which is no row of the gather."""
    tensor = DramTensor("a", DType.INT32, (256,), 0, "const")
    Program(CONFIG, queues, {"a": tensor}, {"a": np.full(256, 9, np.int32)}).save(path)
    return path


def test_every_trap_has_a_binary():
    assert set(BINARIES) == set(Trap) - {Trap.NONE}


@pytest.mark.parametrize("trap", BINARIES, ids=lambda t: t.name)
def test_binary_that_traps(systolith, tmp_path, trap):
    queues, options = BINARIES[trap]
    queue, words = next((q, w) for q, w in reversed(queues.items()))
    path = save(tmp_path / "bad.npz", queues)
    status, out, err = systolith("run", path, "--backend", "rtl", "--save", tmp_path / "y.npz", *options)
    place = "dma0[0]" if trap == Trap.BUS_READ else f"{queue}[{len(words) - 1}]"
    assert status == 1 and f"trap {trap.name} (code {int(trap)}) at {place}" in err and not out, err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.npz"]
    if trap not in BUS:  # golden refuses the same program, with the same place
        status, out, err = systolith("run", path)
        assert status == 1 and f"{queue}[{len(words) - 1}]" in err and not out, err


@pytest.mark.parametrize("dead", ["read", "write", "both", "ready"])
def test_silent_bus(systolith, dead):
    status, out, err = systolith("run", ADD, "--backend", "rtl", "--bus-dead", dead, "--watchdog", 3000)
    assert status == 1 and "trap WATCHDOG" in err and not out, err
    assert "the bus owes answers" in err
    assert ("at dma0[1] `dma0 st" if dead == "write" else "none waits, none runs") in err


@pytest.mark.parametrize("options,words", [
    (["--bus-error", "64"], "must be FIRST:END"), (["--bus-error", "8:4"], "must be FIRST:END"),
    (["--bus-error", "a:b"], "must be FIRST:END"), (["--bus-dead", "reed"], "must be one of read, write, both, ready"),
    (["--trace", "w.wlf"], "must end in .fst or .vcd"), (["--trace", "none/w.vcd"], "cannot be written: none is not a folder"),
])
def test_bad_options(systolith, options, words):
    status, _, err = systolith("run", ADD, "--backend", "rtl", *options)
    assert status == 2 and words in err


def process(*arguments, **environment):
    return subprocess.Popen([sys.executable, "-W", "ignore", "-m", "sw.cli", *map(str, arguments)], cwd=ROOT, text=True,
                            env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_interrupt(tmp_path):
    """Ctrl-C while the simulation runs for ever: a line, status 130, no output."""
    path = save(tmp_path / "endless.npz", {"pe": [ENDLESS]})
    code = "import sys; from sw.cli import main; from sw import progress; progress.PLAIN_SECONDS = 0; sys.exit(main(sys.argv[1:]))"
    run = subprocess.Popen([sys.executable, "-W", "ignore", "-c", code, "run", path, "--backend", "rtl", "--watchdog", "0", "--save",
                            tmp_path / "y.npz"], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        while "cycles" not in (line := run.stderr.readline()):
            assert line
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=30)
    finally:
        run.kill()
    assert run.returncode == 130 and err.endswith("systolith: interrupted\n") and "Traceback" not in err and not out
    assert sorted(p.name for p in tmp_path.iterdir()) == ["endless.npz"]


def test_vcd(systolith, tmp_path):
    status, out, err = systolith("run", ADD, "--backend", "both", "--trace", tmp_path / "w.vcd")
    assert status == 0 and "equal" in out, err
    text = (tmp_path / "w.vcd").read_text()
    assert "m_axi_arvalid" in text and text.count("\n#") > 200


def test_fst(systolith, tmp_path):
    """A waveform where lz4 and zlib are there to build with; else the line to type."""
    probe = subprocess.run(["g++", "-E", "-x", "c++", "-include", "lz4.h", "-include", "zlib.h", "/dev/null"], capture_output=True)
    status, out, err = systolith("run", ADD, "--backend", "rtl", "--trace", tmp_path / "w.fst")
    if probe.returncode:
        assert status == 3 and "Type: apt-get install liblz4-dev zlib1g-dev" in err and not (tmp_path / "w.fst").exists()
    else:
        assert status == 0 and (tmp_path / "w.fst").stat().st_size > 1000, err


@pytest.mark.parametrize("environment,words", [
    ({"PATH": "/nonexistent"}, "g++ and make not found on PATH. Type: apt-get install g++ make"),
    ({"CXX": "g+++"}, "g+++ not found on PATH"),
    ({"SYSTOLITH_VERILATOR": "/nonexistent"}, "SYSTOLITH_VERILATOR = '/nonexistent' is not an executable"),
    ({"SYSTOLITH_CACHE": "/proc/none"}, "cannot write the build cache /proc/none"),
])
def test_machine_that_cannot(environment, words):
    run = process("run", ADD, "--backend", "rtl", **environment)
    out, err = run.communicate(timeout=120)
    assert run.returncode == 3 and f"systolith: {words}" in err and "Traceback" not in err and not out, err
