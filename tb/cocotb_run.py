"""Runs the core under cocotb with third-party AXI models (bench: `tb.bench_core`), and fails loudly.

A program comparison is a dictionary of arrays, or an .npz file with the same names:

    mem_init       uint8, memory before the run, from bus address `base`
    csr_writes     [[address, value], ...], done in order; the last one starts the core
    expected_mem   uint8, memory after the run, as long as `mem_init`
    base           optional, bus address of the first byte (0)
    csr_expect     optional, [[address, value, mask], ...], read after irq
    compare        optional, [[first, end], ...] byte offsets into the memory; default: all of it

cocotb would make every signal public, which costs three times the build time and speed: a control file names the
ports only. The simulator is kept in the build cache; a run has a temporary folder of its own.
"""

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from sw.errors import SystolithError
from tb import verilator
from tb.cache import Cache, digest

ROOT = Path(__file__).resolve().parent.parent
WRITE = ("awvalid", "awready", "awaddr", "wvalid", "wready", "wdata", "wstrb", "bvalid", "bready", "bresp")
READ = ("arvalid", "arready", "araddr", "rvalid", "rready", "rdata", "rresp")
FULL = ("awid", "awlen", "awsize", "awburst", "wlast", "bid", "arid", "arlen", "arsize", "arburst", "rid", "rlast")
PORTS = ("clk", "rst", "irq", *(f"s_axil_{n}" for n in WRITE + READ), *(f"m_axi_{n}" for n in WRITE + READ + FULL))
FLAGS = ("--no-public-flat-rw", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--assert", "--no-timing",
         "--output-split", "20000", "-Wno-fatal", "-Wno-lint", "-Wno-style", "-CFLAGS", "-O2 -ffp-contract=off")
LOG_TAIL = 4000


class CocotbError(SystolithError):
    """The bench did not build, did not run, or a test in it failed; the message has the end of its log."""


def control_file(no_inline=()):
    """Text of the .vlt file: the ports are public, the modules in `no_inline` stay separate."""
    lines = [f'public_flat_rw -module "top" -var "{port}"' for port in PORTS]
    return "\n".join(["`verilator_config", *lines, *(f'no_inline -module "{p}"' for p in no_inline), ""])


@contextmanager
def _environment(values):
    """Sets environment variables for the body: cocotb's runner reads them from the process."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _runner():
    try:
        from cocotb_tools.runner import get_runner
    except ImportError as error:
        raise verilator.ToolError("cocotb is missing. Type: pip install cocotb==2.1.0 cocotbext-axi==0.1.28") from error
    return get_runner("verilator")


def build(verilog, *, no_inline=(), cache=None):
    """Folder with the simulator of `verilog` (text, top module `top`) for cocotb, from the cache or built."""
    tools = verilator.find()
    runner = _runner()
    control = control_file(no_inline)

    def make(work):
        (work / "ports.vlt").write_text(control)
        (work / "top.v").write_text(verilog)
        variables = {"PATH": tools.environment()["PATH"], **tools.env, "MAKEFLAGS": " ".join(tools.make_vars)}
        log = work / "build.log"
        with _environment(variables):
            try:  # the runner looks at the last source to tell the language, so the control file comes first
                runner.build(sources=[work / "ports.vlt", work / "top.v"], hdl_toplevel="top", build_dir=work,
                             build_args=FLAGS, timescale=("1ns", "1ps"), log_file=log)
            except (Exception, SystemExit) as error:
                raise CocotbError(f"cocotb build failed: {error}\n{_tail(log)}") from error

    import cocotb
    key = digest(["cocotb", cocotb.__version__, tools.identity, *FLAGS, control, verilog])
    return (cache or Cache()).get(key, make, "RTL simulation for cocotb")


def _tail(log):
    return log.read_text(errors="replace")[-LOG_TAIL:] if log.is_file() else "(no log)"


def run(verilog, program, *, seed=1, pause=0.3, deadline_cycles=100_000, repeat=2, no_inline=(), cache=None,
        testcase=None):
    """Runs the bench on `verilog` with `program` (see above); returns the number of tests passed, at least one.

    seed             of every random choice in the bench
    pause            probability that a channel waits, every cycle
    deadline_cycles  cycles from the last CSR write to irq
    repeat           runs one after the other, without a reset between them
    """
    folder = build(verilog, no_inline=no_inline, cache=cache)
    with tempfile.TemporaryDirectory(prefix="systolith-cocotb-") as place:
        place = Path(place)
        path = program
        if isinstance(program, dict):
            path = place / "program.npz"
            np.savez(path, **program)
        settings = {"SYSTOLITH_BENCH_NPZ": str(Path(path).absolute()), "SYSTOLITH_BENCH_PAUSE": str(pause),
                    "SYSTOLITH_BENCH_SEED": str(seed), "SYSTOLITH_BENCH_DEADLINE": str(deadline_cycles),
                    "SYSTOLITH_BENCH_REPEAT": str(repeat), "COCOTB_RANDOM_SEED": str(seed), "COCOTB_ANSI_OUTPUT": "0",
                    "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
        return _test(_runner(), folder, place, settings, testcase)


def _test(runner, folder, place, settings, testcase):
    log, results = place / "run.log", place / "results.xml"
    failure = None
    with _environment(settings):
        try:
            runner.test(test_module="tb.bench_core", hdl_toplevel="top", hdl_toplevel_lang="verilog", build_dir=folder,
                        test_dir=place, results_xml=str(results), log_file=log, testcase=testcase,
                        timescale=("1ns", "1ps"))
        except (Exception, SystemExit) as error:  # whatever it is, the log below says more
            failure = error
    from cocotb_tools.check_results import get_results
    try:
        tests, failed = get_results(results)
    except RuntimeError as error:
        raise CocotbError(f"the simulation ended without results: {failure or error}\n{_tail(log)}") from error
    if failed or failure or not tests:
        raise CocotbError(f"{failed} of {tests} tests failed ({failure})\n{_tail(log)}")
    return tests
