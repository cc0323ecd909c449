"""The command line: what it prints, and its exit status."""

from pathlib import Path

import numpy as np
import pytest

from isa.config import preset
from isa.encode import encode
from isa.registers import DEFAULT_WATCHDOG, Trap
from sw import cli
from sw.asm import assemble_file
from sw.device import RunResult
from sw.errors import TrapError
from sw.program import Program

ADD = str(Path(__file__).parents[2] / "examples" / "add.sys")
COMMANDS = [c.name or c.callback.__name__ for c in cli.app.registered_commands]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example(systolith, command):
    status, out, _ = systolith(command, "--help")
    assert status == 0 and f"Example:  systolith {command} " in out


def test_help_lists_the_commands(systolith):
    assert set(COMMANDS) >= {"asm", "disasm", "run", "verilog", "info"}
    status, out, _ = systolith("--help")
    assert status == 0 and all(f" {c} " in out for c in COMMANDS)
    assert "Exit status: 0" in out and "130" in out


def test_asm_disasm_asm(systolith, tmp_path):
    status, out, _ = systolith("asm", ADD, "-o", tmp_path / "add.npz")
    assert status == 0 and "4 instructions for tiny" in out
    status, out, _ = systolith("disasm", tmp_path / "add.npz", "-o", tmp_path / "again.sys")
    assert status == 0 and out == ""
    systolith("asm", tmp_path / "again.sys")
    assert Program.load(tmp_path / "again.npz").queues == Program.load(tmp_path / "add.npz").queues
    status, out, _ = systolith("disasm", ADD)
    assert status == 0 and out == (tmp_path / "again.sys").read_text()


def test_run_golden_with_inputs(systolith, tmp_path):
    a = np.arange(64, dtype=np.float32).reshape(4, 16)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", -2 * a)
    status, out, _ = systolith("run", ADD, "--input", f"a={tmp_path}/a.npy", "--input", f"b={tmp_path}/b.npy", "--save",
                               tmp_path / "y.npz")
    assert status == 0 and "-63" in out and "golden" in out
    assert np.array_equal(np.load(tmp_path / "y.npz")["y"], -a)


def test_seed_decides_the_inputs(systolith):
    assert systolith("run", ADD, "--seed", 3)[1] == systolith("run", ADD, "--seed", 3)[1]
    assert systolith("run", ADD, "--seed", 3)[1] != systolith("run", ADD, "--seed", 4)[1].replace("seed 4", "seed 3")


def test_info(systolith):
    status, out, _ = systolith("info")
    assert status == 0 and f"{preset('trn').hash:016x}" in out and "lanes" in out
    status, out, _ = systolith("info", ADD)
    assert status == 0 and "alu 1" in out and "(4, 16)" in out


class Fake:
    """A device whose RTL gives what it is told."""

    calls = []
    rtl = None

    def __init__(self, config, backend, **options):
        self.backend = backend
        Fake.calls.append((backend, options))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def run(self, program, inputs):
        y = inputs["a"] + inputs["b"]
        if self.backend == "golden":
            return RunResult({"y": y})
        return Fake.rtl(y)


@pytest.fixture
def fake(monkeypatch):
    Fake.calls.clear()
    monkeypatch.setattr(cli, "Device", Fake)
    return Fake


def test_both_equal(systolith, fake):
    fake.rtl = lambda y: RunResult({"y": y}, 1234, {"seconds": 1.0, "vec": {"done": 1, "busy": 77, "stall": 3}})
    status, out, _ = systolith("run", ADD, "--backend", "both", "--latency", 9, "--stalls", 0.5, "--seed", 8, "--trace",
                               "w.fst")
    assert status == 0 and "equal" in out and "1,234 cycles" in out and "77" in out
    assert fake.calls == [("golden", {"seed": 8}), ("rtl", {"seed": 8, "latency": 9, "jitter": 0, "stall": 0.5,
                                                            "watchdog": DEFAULT_WATCHDOG, "trace": "w.fst"})]


def test_both_differ(systolith, fake):
    fake.rtl = lambda y: RunResult({"y": y + (np.arange(64).reshape(4, 16) == 5)})
    status, out, err = systolith("run", ADD, "--backend", "both")
    assert status == 1 and "bytes differ" in out and "differ" in err


def test_program_traps(systolith, fake):
    def trap(_):
        program = assemble_file(ADD)
        raise TrapError(trap=Trap.BUS_READ, queue="dma0", index=1, address=0x40).located(program)
    fake.rtl = trap
    status, _, err = systolith("run", ADD, "--backend", "rtl")
    assert status == 1
    assert "BUS_READ" in err and "dma0[1]" in err and "dma0 st p=0:4" in err and "add.sys:12" in err


def test_program_that_golden_refuses(systolith, tmp_path):
    (tmp_path / "race.sys").write_text(Path(ADD).read_text().replace("after load_a, load_b", "after load_a"))
    status, _, err = systolith("run", tmp_path / "race.sys")
    assert status == 1 and "vec[0]" in err and "race.sys:11" in err


@pytest.mark.parametrize("arguments,words", [
    (["run", "none.sys"], "none.sys: cannot be read"),
    (["run", "none.npz"], "none.npz: no such file"),
    (["run", ADD, "--config", "base"], "the one asked for is base"),
    (["run", ADD, "--config", "bace"], "no configuration 'bace'"),
    (["run", ADD, "--input", "a"], "or NAME=FILE.npy with one of: a, b"),
    (["run", ADD, "--input", "c=x.npy"], "or NAME=FILE.npy with one of"),
    (["run", ADD, "--input", "a=none.npy"], "cannot be read"),
    (["run", ADD, "--trace", "w.fst"], "--trace needs"),
    (["run", ADD, "--backend", "gold"], "golden"),
    (["run", ADD, "--stalls", "1.5"], "stalls"),
    (["run", ADD, "--save", "/none/y.npz"], "cannot be written"),
    (["asm", ADD, "-o", "/none/y.npz"], "cannot be written"),
    (["disasm", ADD, "-o", "/none/y.sys"], "cannot be written"),
    (["verilog", "tinny"], "no configuration 'tinny'"),
    (["fuzz", "--config", "drawn:"], "no configuration 'drawn:'"),
    (["asm"], "source"),
    (["assemble"], "assemble"),
])
def test_bad_input(systolith, arguments, words):
    status, _, err = systolith(*arguments)
    assert status == 2 and words.lower() in err.lower(), err


def test_syntax_error(systolith, tmp_path):
    (tmp_path / "bad.sys").write_text(".config tiny\npe mn\n")
    status, _, err = systolith("asm", tmp_path / "bad.sys")
    assert status == 2 and "bad.sys:2:4: no instruction 'mn'" in err and "did you mean 'mm'?" in err
    assert not (tmp_path / "bad.npz").exists()


def test_nothing_to_compare(systolith, fake, monkeypatch, tmp_path):
    program = Program(preset("tiny"), {"pe": [encode("nop")]})
    program.save(tmp_path / "nop.npz")
    monkeypatch.setattr(fake, "run", lambda self, program, inputs: RunResult({}))
    status, _, err = systolith("run", tmp_path / "nop.npz", "--backend", "both")
    assert status == 2 and "no outputs to compare" in err


def test_verilog_writes_where_it_is_told(systolith, monkeypatch, tmp_path):
    import tb.generate
    monkeypatch.setattr(tb.generate, "write_verilog", lambda config, folder: [folder / f"{config.name}.v"])
    status, out, _ = systolith("verilog", "small", tmp_path)
    assert status == 0 and out.strip() == str(tmp_path / "small.v")
