"""Progress: plain lines that do not spam, and a live display on a terminal that leaves standard output alone."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from sw import progress
from sw.progress import say, task

ROOT = Path(__file__).parents[2]


def test_plain(capsys):
    with task("building", announce=True):
        with task("quiet") as detail:
            for i in range(1000):
                detail(f"{i} cycles")
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert not out and len(lines) == 2
    assert lines[0] == "systolith: building ..." and lines[1].startswith("systolith: building: done in 0.")


def test_plain_line_now_and_then(capsys, monkeypatch):
    monkeypatch.setattr(progress, "PLAIN_SECONDS", -1)
    with task("simulating tiny") as detail:
        detail("5,000 cycles")
    assert capsys.readouterr().err == "systolith: simulating tiny: 5,000 cycles, 0 s\n"


def test_a_failed_task_is_not_done(capsys):
    with pytest.raises(ValueError):
        with task("building", announce=True):
            raise ValueError
    assert capsys.readouterr().err == "systolith: building ...\n"


CODE = """
from sw.progress import say, task
with task("outer"):
    say("a line")
    with task("inner") as detail:
        detail("123 cycles")
        import time; time.sleep(0.3)
    try:
        with task("third"):
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
with task("again"):
    pass
print("result")
"""


def test_terminal():
    """Both tasks are on the display, the line is above it, and standard output has only the result."""
    ours, theirs = pty.openpty()
    run = subprocess.Popen([sys.executable, "-c", CODE], cwd=ROOT, stdout=subprocess.PIPE, stderr=theirs, text=True,
                           env={**os.environ, "TERM": "xterm", "COLUMNS": "100"})
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    out, _ = run.communicate(timeout=30)
    shown = shown.decode()
    assert run.returncode == 0 and out == "result\n"
    assert "outer" in shown and "inner 123 cycles" in shown and "systolith: a line" in shown and "\x1b[?25h" in shown
    assert "Traceback" not in shown


def test_say(capsys):
    say("hello")
    assert capsys.readouterr() == ("", "systolith: hello\n")
