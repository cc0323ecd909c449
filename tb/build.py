"""Verilog text + the C++ runner -> a cached shared library.

Assertions are on in every flavour. `-ffp-contract=off` keeps g++ from fusing multiply-adds in any C++ that imitates
our arithmetic. Symbols are hidden so that several cores can be loaded into one process side by side.
"""

import shutil
import subprocess
from pathlib import Path

from tb import verilator
from tb.cache import Cache, digest

HERE = Path(__file__).resolve().parent
RUNNER = ("runner.cpp", "axi_memory.h", "axi_host.h", "common.h")
LIBRARY = "runner.so"
TRACES = {None: (), "fst": ("--trace-fst",), "vcd": ("--trace",)}
BUILD_SECONDS = 3600
VERILATOR_FLAGS = ("--cc", "--top-module", "top", "--prefix", "Vtop", "-O3", "--x-assign", "fast", "--x-initial",
                   "fast", "--assert", "--no-timing", "--threads", "1", "--output-split", "20000",
                   "--output-split-cfuncs", "2000", "-Wno-fatal", "-Wno-lint", "-Wno-style")
CXX_FLAGS = ("-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-fno-math-errno", "-DVL_USER_STOP",
             "-DVL_USER_FATAL", "-DVL_USER_FINISH")
JOBS = 2


class BuildError(RuntimeError):
    """Verilator or the compiler refused the design; the message holds the end of what it said."""


def control_file(no_inline):
    """Text of the .vlt file: modules (names with wildcards) that Verilator must not inline."""
    return "".join(["`verilator_config\n", *(f'no_inline -module "{pattern}"\n' for pattern in no_inline)])


def _call(command, cwd, env, log):
    try:
        done = subprocess.run(command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=BUILD_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise BuildError(f"{command[0]} took more than {BUILD_SECONDS} s") from error
    log.write(f"$ {' '.join(command)}\n{done.stdout}\n")
    if done.returncode:
        raise BuildError(f"{Path(command[0]).name} failed ({done.returncode}):\n{done.stdout[-4000:]}")


def build(sources, *, trace=None, no_inline=(), opt="-O2", verilator_flags=(), cache=None, tools=None):
    """Path of the shared library for `sources`, built if the cache does not have it.

    sources          Verilog text, or {file name: text}; the top module is `top`
    trace            None, "fst" or "vcd" (a separate, slower build)
    no_inline        module name patterns that stay separate: much faster C++ compiles for many equal cells
    opt              optimisation of the C++ of the evaluation loop
    verilator_flags  further arguments for Verilator
    """
    if trace not in TRACES:
        raise ValueError(f"trace = {trace!r}: must be None, 'fst' or 'vcd'")
    files = {"top.v": sources} if isinstance(sources, str) else dict(sources)
    tools = tools or verilator.find()
    flags = (*VERILATOR_FLAGS, *TRACES[trace], *verilator_flags)
    control = control_file(no_inline)
    runner = {name: (HERE / name).read_text() for name in RUNNER}
    key = digest([tools.identity, *flags, control, opt, JOBS, *CXX_FLAGS,
                  *(part for item in (*sorted(files.items()), *runner.items()) for part in item)])

    def make(work):
        obj = work / "obj"
        obj.mkdir()
        for name, text in {**files, **runner, "control.vlt": control}.items():
            (work / name).write_text(text)
        with open(work / "build.log", "w") as log:
            _compile(work, sorted(files), flags, opt, trace, tools, log)
        shutil.rmtree(obj)

    return (cache or Cache()).get(key, make, "RTL simulation" + (f" with {trace} trace" if trace else "")) / LIBRARY


def _compile(work, names, flags, opt, trace, tools, log):
    env = tools.environment()
    _call([tools.verilator, *flags, "-Mdir", "obj", "-CFLAGS", " ".join(CXX_FLAGS), "control.vlt", *names],
          work, env, log)
    _call([tools.make, "-C", "obj", "-f", "Vtop.mk", "-j", str(JOBS), f"CXX={tools.cxx}", f"OPT_FAST={opt}",
           "OPT_SLOW=-O1", "OPT_GLOBAL=-O2", *tools.make_vars, "libVtop"], work, env, log)
    root = env.get("VERILATOR_ROOT") or verilator.run_probe([tools.verilator, "--getenv", "VERILATOR_ROOT"])
    defines = {"fst": ["-DTRACE_FST", "-lz"], "vcd": ["-DTRACE_VCD"], None: []}[trace]
    _call([tools.cxx, "-std=c++17", "-O2", *CXX_FLAGS, "-shared", "-I", "obj", "-I", f"{root}/include",
           "-I", f"{root}/include/vltstd", "-DVM_TRACE=" + str(int(bool(trace))), "runner.cpp", "-o", LIBRARY,
           "obj/libVtop.a", "obj/libverilated.a", *defines, "-lpthread"], work, env, log)
