"""Verilog text + the C++ runner -> a cached shared library.

Assertions are on in every flavour. `-ffp-contract=off` keeps g++ from fusing multiply-adds in any C++ that imitates
our arithmetic. Symbols are hidden so that several cores can be loaded into one process side by side. Verilator's
own runtime takes longer to compile than a small design, so it is a cache entry of its own.
"""

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sw.errors import HostError
from tb import verilator
from tb.blocks import replace
from tb.cache import Cache, digest

HERE = Path(__file__).resolve().parent
RUNNER = ("runner.cpp", "axi_memory.h", "axi_host.h", "common.h", "block.h")
LIBRARY = "runner.so"
TRACES = {None: (), "fst": ("--trace-fst",), "vcd": ("--trace",)}
BUILD_SECONDS = 3600
VERILATOR_FLAGS = ("--cc", "-O3", "--x-assign", "fast", "--x-initial",
                   "fast", "--assert", "--no-timing", "--threads", "1", "--output-split", "20000",
                   "--output-split-cfuncs", "2000", "-Wno-fatal", "-Wno-lint", "-Wno-style")
CXX_FLAGS = ("-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-DVL_USER_STOP", "-DVL_USER_FATAL",
             "-DVL_USER_FINISH")
JOBS = 2
EMPTY = {"top.v": "module top (input clk, output q);\n  assign q = clk;\nendmodule\n"}


class BuildError(HostError):
    """Verilator or the compiler refused the design; the message holds the end of what it said."""


def control_file(no_inline):
    """Text of the .vlt file: modules that Verilator must not inline."""
    return "".join(["`verilator_config\n", *(f'no_inline -module "{pattern}"\n' for pattern in no_inline)])


def run_logged(command, cwd, env, log):
    """Runs `command`, appends it and its output to the open file `log`; BuildError if it fails."""
    try:
        done = subprocess.run(command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=BUILD_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise BuildError(f"{command[0]} took more than {BUILD_SECONDS} s") from error
    log.write(f"$ {' '.join(command)}\n{done.stdout}\n")
    if done.returncode:
        raise BuildError(f"{Path(command[0]).name} failed ({done.returncode}):\n{done.stdout[-4000:]}")


def build(sources, *, trace=None, no_inline=(), blocks=(), opt="-O2", verilator_flags=(), cache=None, tools=None,
          label="RTL simulation"):
    """Path of the shared library for `sources`, built if the cache does not have it.

    sources          Verilog text, or {file name: text}; the top module is `top`
    trace            None, "fst" or "vcd" (a separate, slower build)
    no_inline        module name patterns that stay separate: much faster C++ compiles for many equal cells
    blocks           names of modules compiled once and called by their instances (`tb.blocks`)
    opt              optimisation of the C++ of the evaluation loop
    verilator_flags  further arguments for Verilator
    label            what the progress line calls it
    """
    if trace not in TRACES:
        raise ValueError(f"trace = {trace!r}: must be None, 'fst' or 'vcd'")
    files = {"top.v": sources} if isinstance(sources, str) else dict(sources)
    tools, cache = tools or verilator.find(), cache or Cache()
    flags = (*VERILATOR_FLAGS, *TRACES[trace], *verilator_flags)
    control = control_file(no_inline)
    made = {}
    if blocks:
        files["top.v"], made = replace(files["top.v"], blocks)
    runner = {name: (HERE / name).read_text() for name in RUNNER}
    key = digest([tools.identity, *flags, control, opt, *CXX_FLAGS, *(part for item in made.values() for part in item),
                  *(part for item in (*sorted(files.items()), *runner.items()) for part in item)])

    def make(work):
        if trace == "fst":
            _check_fst(work, tools)  # before the minutes that a build takes
        for name, text in {**files, **runner, "control.vlt": control}.items():
            (work / name).write_text(text)
        with open(work / "build.log", "w") as log:
            sources = {"top": sorted(files)}
            for name, (text, glue) in made.items():
                (work / f"{name}.v").write_text(text)
                (work / f"{name}.cpp").write_text(glue)
                sources[name] = [f"{name}.v"]
            with ThreadPoolExecutor(JOBS) as pool:  # Verilator itself has one thread
                list(pool.map(lambda item: _verilate(work, ["control.vlt", *item[1]], flags, tools, log, item[0]), sources.items()))
            for name in sources:
                _make(work, f"libV{name}.a", opt, tools, log, name)
            _link(work, _runtime(trace, cache, tools), trace, tools, log, tuple(made))
        for name in ("top", *made):
            shutil.rmtree(work / f"obj_{name}")

    return cache.get(key, make, label + (f" with {trace} trace" if trace else "")) / LIBRARY


def _runtime(trace, cache, tools):
    """Verilator's runtime library for this flavour, from the cache."""
    flags = (*VERILATOR_FLAGS, *TRACES[trace])

    def make(work):
        (work / "top.v").write_text(EMPTY["top.v"])
        with open(work / "build.log", "w") as log:
            _verilate(work, ["top.v"], flags, tools, log)
            _make(work, "libverilated.a", "-O2", tools, log)
        (work / "obj_top" / "libverilated.a").rename(work / "libverilated.a")
        shutil.rmtree(work / "obj_top")

    key = digest(["runtime", tools.identity, *flags, *CXX_FLAGS])
    return cache.get(key, make, "Verilator's runtime") / "libverilated.a"


def _check_fst(work, tools):
    probe = work / "probe.cpp"
    probe.write_text("#include <lz4.h>\n#include <zlib.h>\nint main() { return 0; }\n")
    try:
        verilator.run_probe([tools.cxx, str(probe), "-o", str(work / "probe"), "-llz4", "-lz"])
    except verilator.ToolError as error:
        raise verilator.ToolError("FST traces need lz4 and zlib. Type: apt-get install liblz4-dev zlib1g-dev, "
                                  "or trace to VCD") from error


def _verilate(work, names, flags, tools, log, module="top"):
    run_logged([tools.verilator, *flags, "--top-module", module, "--prefix", f"V{module}", "-Mdir", f"obj_{module}", "-CFLAGS",
                " ".join(CXX_FLAGS), *names], work, tools.environment(), log)


def _make(work, target, opt, tools, log, module="top"):
    run_logged([tools.make, "-C", f"obj_{module}", "-f", f"V{module}.mk", "-j", str(JOBS), f"CXX={tools.cxx}", f"OPT_FAST={opt}",
                "OPT_SLOW=-O0", "OPT_GLOBAL=-O2", *tools.make_vars, target], work, tools.environment(), log)


def _link(work, runtime, trace, tools, log, blocks=()):
    root = tools.root()
    extra = {"fst": ["-DTRACE_FST"], "vcd": ["-DTRACE_VCD"], None: []}[trace]
    libraries = ["-llz4", "-lz"] if trace == "fst" else []
    folders = [part for name in ("top", *blocks) for part in ("-I", f"obj_{name}")]
    run_logged([tools.cxx, "-std=c++17", "-O2", *CXX_FLAGS, "-shared", *folders, "-I", f"{root}/include",
                "-I", f"{root}/include/vltstd", f"-DVM_TRACE={int(bool(trace))}", *extra, "runner.cpp",
                *(f"{name}.cpp" for name in blocks), "-o", LIBRARY, "obj_top/libVtop.a",
                *(f"obj_{name}/libV{name}.a" for name in blocks), str(runtime), *libraries, "-lpthread"],
               work, tools.environment(), log)
