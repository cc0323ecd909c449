"""Every command and the Python example of the README run. `make sim` and `make test` are checked to exist: they run this."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text()
COMMANDS = [line.split("#")[0].strip() for line in re.findall(r"^    ((?:make|systolith) .*)$", TEXT, re.M)]
SUITES = {"make sim", "make test"}
LIMIT_SECONDS = 600


def run(command):
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS)


def test_commands_found():
    assert SUITES < set(COMMANDS) and len(COMMANDS) >= 6


def test_commands():
    """In the README's order, because later ones use the files of earlier ones."""
    for command in COMMANDS:
        if command in SUITES:
            assert re.search(rf"^{command.split()[1]}:", (ROOT / "Makefile").read_text(), re.M)
            continue
        words = command.split()
        if words[0] == "systolith":
            words = [sys.executable, "-W", "ignore", "-m", "sw.cli", *words[1:]]
        done = run(words)
        assert done.returncode == 0, f"{command}: {done.stdout[-2000:]} {done.stderr[-2000:]}"


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", TEXT, re.S))
def test_example(code):
    done = run([sys.executable, "-W", "ignore", "-c", code])
    assert done.returncode == 0 and done.stdout.strip().endswith("True"), done.stdout + done.stderr[-2000:]
