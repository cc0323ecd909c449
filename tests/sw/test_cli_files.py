"""Files that are not what they should be, and places that cannot be written: a message, exit status 2, nothing half-written."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from isa.config import preset
from sw.asm import assemble_file
from sw.program import Program, _digest

ROOT = Path(__file__).parents[2]
ADD = ROOT / "examples" / "add.sys"
SHAPE = (4, 16)
GARBAGE = np.random.default_rng(11).integers(0, 256, 5000, dtype=np.uint8).tobytes()
PRINTABLE = bytes(33 + b % 90 for b in GARBAGE)


@pytest.fixture
def program(tmp_path):
    """examples/add.sys as a program file."""
    assemble_file(ADD).save(tmp_path / "add.npz")
    return tmp_path / "add.npz"


def only(folder, *names):
    """Nothing else is in the folder, hidden files included."""
    assert sorted(p.name for p in folder.iterdir()) == sorted(names)


@pytest.mark.parametrize("command", ["asm", "run", "disasm", "info"])
@pytest.mark.parametrize("content,words", [
    (b"", "x.sys:1:1: the file has no `.config` line"),
    (b"# only a comment\n", "x.sys:1:1: the file has no `.config` line"),
    (b"\x00" * 64, r"x.sys:1:1: '\x00' does not belong"),
    (".config tiny\npe nop # caf\u00e9\n".encode("latin-1"), "x.sys: cannot be read: 'utf-8' codec"),
    (GARBAGE, "x.sys: cannot be read: 'utf-8' codec"),
    (PRINTABLE, "x.sys:1:"),
    (b"PK\x03\x04" + b"\x14" * 60, "x.sys:1:"),
])
def test_bad_assembly_file(systolith, tmp_path, command, content, words):
    (tmp_path / "x.sys").write_bytes(content)
    status, out, err = systolith(command, tmp_path / "x.sys")
    assert status == 2 and words in err and not out
    assert len(err) < 600 and err.replace("\n", "").isprintable(), "a terminal can show it"
    only(tmp_path, "x.sys")


@pytest.mark.parametrize("name,words", [("x.sys", "cannot be read: [Errno 21] Is a directory"), ("x.npz", "Is a directory")])
def test_folder_as_program(systolith, tmp_path, name, words):
    (tmp_path / name).mkdir()
    status, _, err = systolith("run", tmp_path / name)
    assert status == 2 and f"{name}: " in err and words in err


@pytest.mark.parametrize("damage", [
    lambda raw: b"", lambda raw: raw[:len(raw) // 2], lambda raw: raw[:-1], lambda raw: GARBAGE, lambda raw: ADD.read_bytes(),
    lambda raw: raw.replace(b"header", b"heeder"),
])
@pytest.mark.parametrize("command", ["run", "info", "disasm"])
def test_damaged_program_file(systolith, program, command, damage):
    program.write_bytes(damage(program.read_bytes()))
    status, out, err = systolith(command, program)
    assert status == 2 and "add.npz: not a program file, or truncated or corrupted" in err and not out


def rewrite(path, change):
    """Change the header and the arrays, and give the file a valid checksum again."""
    with np.load(path) as file:
        arrays = {n: file[n] for n in file.files}
    header = json.loads(arrays.pop("header").tobytes())
    header.pop("sha256")
    change(header, arrays)
    header["sha256"] = _digest(arrays, header)
    np.savez(path, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)


@pytest.mark.parametrize("change,words", [
    (lambda h, a: h.update(isa_version=99), "made for ISA version 99; this is version 1"),
    (lambda h, a: h["config"].update(lanes=5), "lanes = 5: must be a power of two"),
    (lambda h, a: h["config"].update(lanes=8), "the configuration does not match its hash"),
    (lambda h, a: h["config"].update(cores=2), "cores"),
    (lambda h, a: h.pop("tensors"), "'tensors'"),
    (lambda h, a: h["tensors"][0].update(dtype="fp33"), "fp33"),
    (lambda h, a: h["tensors"][0].update(shape=[4, "16"]), "shape (4, '16')"),
    (lambda h, a: h["tensors"][0].update(shape=[4, 2.5]), "shape (4, 2.5)"),
    (lambda h, a: h["tensors"][0].update(offset=2 ** 48), "offset 281474976710656"),
    (lambda h, a: h["tensors"][0].update(role="const"), "const and has no values"),
    (lambda h, a: a.update(queue_pe=np.zeros((1, 63), np.uint8)), "63 bytes: an instruction has 64"),
    (lambda h, a: a.update(queue_dma3=np.zeros((1, 64), np.uint8)), "queue 'dma3' does not exist"),
])
def test_impossible_program_file(systolith, program, change, words):
    rewrite(program, change)
    status, out, err = systolith("run", program)
    assert status == 2 and "add.npz: " in err and words in err and not out, err


def test_program_for_another_configuration(systolith, program):
    status, _, err = systolith("run", program, "--config", "base")
    assert status == 2 and f"made for configuration tiny ({preset('tiny').hash:#018x}), not for base" in err


def npz(path):
    np.savez(path, a=np.zeros(SHAPE, np.float32), b=np.zeros(SHAPE, np.float32))


@pytest.mark.parametrize("write,argument,words", [
    (lambda p: np.save(p, np.zeros((4, 15), np.float32)), "a=f.npy", "input 'a' has shape (4, 15); the program expects (4, 16)"),
    (lambda p: np.save(p, np.float32(1)), "a=f.npy", "input 'a' has shape ()"),
    (lambda p: np.save(p, np.zeros(SHAPE, np.float64)), "a=f.npy", "has type float64; the program expects fp32"),
    (lambda p: np.save(p, np.zeros(SHAPE, ">f4")), "a=f.npy", "has type >f4; the program expects fp32"),
    (lambda p: np.save(p, np.array([["x"] * 16] * 4)), "a=f.npy", "has type <U1"),
    (lambda p: np.save(p, np.array([[{}] * 16] * 4), allow_pickle=True), "a=f.npy", "a=f.npy: cannot be read"),
    (lambda p: p.write_bytes(b""), "a=f.npy", "a=f.npy: cannot be read"),
    (lambda p: p.write_bytes(b"PK\x03\x04 damaged"), "a=f.npy", "a=f.npy: cannot be read"),
    (lambda p: p.write_bytes(GARBAGE), "a=f.npy", "a=f.npy: cannot be read"),
    (lambda p: p.write_bytes(b"\x93NUMPY\x01\x00\x46\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1" + b"0" * 18
                             + b",), }\n"), "a=f.npy", "a=f.npy: cannot be read"),
    (lambda p: p.mkdir(), "a=f.npy", "a=f.npy: cannot be read: Is a directory"),
    (lambda p: None, "a=f.npy", "a=f.npy: cannot be read: No such file"),
    (lambda p: None, "a=", "a=: "),
    (npz, "a=f.npz", "holds several arrays; write FILE.npz"),
    (lambda p: p.write_bytes(b""), "f.npz", "f.npz: cannot be read"),
    (lambda p: np.savez(p, c=np.zeros(3)), "f.npz", "no input 'c'; the program has: a, b"),
    (lambda p: np.savez(p, a=np.zeros(3, np.float32)), "f.npz", "input 'a' has shape (3,)"),
    (lambda p: np.save(open(p, "wb"), np.zeros(3)), "f.npz", "holds one array; write NAME=FILE.npy"),
])
def test_bad_input_arrays(systolith, tmp_path, monkeypatch, write, argument, words):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / argument.rpartition("=")[2])
    status, out, err = systolith("run", ADD, "--input", argument, "--save", "y.npz")
    assert status == 2 and words in err and not out, err
    assert not (tmp_path / "y.npz").exists()


def test_archive_of_inputs(systolith, tmp_path):
    a = np.arange(64, dtype=np.float32).reshape(SHAPE)
    np.savez(tmp_path / "in.npz", a=a, b=a)
    assert systolith("run", ADD, "--input", tmp_path / "in.npz", "--save", tmp_path / "y.npz")[0] == 0
    assert np.array_equal(np.load(tmp_path / "y.npz")["y"], 2 * a)
    only(tmp_path, "in.npz", "y.npz")


WRITERS = [("asm", ADD, "-o"), ("disasm", ADD, "-o"), ("run", ADD, "--save")]


@pytest.mark.parametrize("command", WRITERS, ids=lambda c: c[0])
def test_unwritable_places(systolith, tmp_path, command):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.npz").mkdir()
    for bad in (tmp_path / "none" / "y.npz", tmp_path / "file" / "y.npz", tmp_path / "folder.npz"):
        status, _, err = systolith(*command, bad)
        assert status == 2 and f"{bad}: cannot be written: " in err, err
    only(tmp_path, "file", "folder.npz")
    status, _, err = systolith("verilog", "tiny", tmp_path / "file" / "v")
    assert status == 2 and f"{tmp_path / 'file' / 'v'}: cannot be written: Not a directory" in err


@pytest.mark.parametrize("command", WRITERS, ids=lambda c: c[0])
def test_a_device_stays_a_device(systolith, tmp_path, command):
    """A pipe stands for /dev/null, which a root user could otherwise replace by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert systolith(*command, pipe)[0] == 0
    assert os.read(reader, 65536) and pipe.is_fifo()
    os.close(reader)
    only(tmp_path, "pipe")


def test_a_link_stays_a_link(systolith, tmp_path):
    (tmp_path / "real.npz").write_bytes(b"old")
    (tmp_path / "link.npz").symlink_to("real.npz")
    assert systolith("asm", ADD, "-o", tmp_path / "link.npz")[0] == 0
    assert (tmp_path / "link.npz").is_symlink() and Program.load(tmp_path / "real.npz").queues
    only(tmp_path, "link.npz", "real.npz")


def child(*arguments, before=""):
    """The command line in a process of its own, after `before`."""
    code = f"import sys; {before}; from sw.cli import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], cwd=ROOT, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("command", WRITERS, ids=lambda c: c[0])
def test_full_disk_keeps_the_old_file(tmp_path, command):
    """A limit on file sizes stands for a disk that fills up in the middle of a write."""
    (tmp_path / "y.npz").write_text("old")
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))"
    done = child(*command, tmp_path / "y.npz", before=limit)
    _, err = done.communicate(timeout=60)
    assert done.returncode == 2 and "y.npz: cannot be written: File too large" in err, err
    assert (tmp_path / "y.npz").read_text() == "old"
    only(tmp_path, "y.npz")


def test_closed_pipe_is_no_traceback():
    disasm = child("disasm", ADD)
    disasm.stdout.close()
    _, err = disasm.communicate(timeout=60)
    assert "Traceback" not in err


def test_interrupt_while_golden_runs(tmp_path):
    """Ctrl-C: a line, status 130, no output file."""
    slow = "from sw import device; run = device.Machine.run; import os, signal; " \
           "device.Machine.run = lambda *a, **k: (os.kill(os.getpid(), signal.SIGINT), run(*a, **k))"
    done = child("run", ADD, "--save", tmp_path / "y.npz", before=slow)
    out, err = done.communicate(timeout=60)
    assert done.returncode == 128 + signal.SIGINT and err == "systolith: interrupted\n" and not out, err
    only(tmp_path)


def test_not_enough_memory(systolith, tmp_path):
    (tmp_path / "big.sys").write_text(".config tiny\n.tensor a dram fp32 [1000000, 10000000] input\npe nop\n")
    status, _, err = systolith("run", tmp_path / "big.sys")
    assert status == 3 and "not enough memory" in err
