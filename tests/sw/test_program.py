"""Program files: they come back as they were, NumPy alone reads them, and a damaged one is refused by name."""

import json

import numpy as np
import pytest

from isa.config import preset
from isa.dtypes import DType
from isa.encode import encode, to_bytes
from sw.asm import assemble
from sw.errors import ProgramError
from sw.program import DramTensor, Program

TEXT = """.config tiny
.tensor a dram bf16 [4, 16] input
.tensor c dram fp8e4 [3] const
.tensor y dram bf16 [4, 16] output
.init c 1 -2 448
.tensor s sbuf bf16 [4, 16]
l: dma0 ld x=s d=a
dma1 st x=s d=y after l
"""


@pytest.fixture
def program():
    return assemble(TEXT, file="p.sys")


@pytest.fixture
def path(program, tmp_path):
    program.save(tmp_path / "p.npz")
    return tmp_path / "p.npz"


def test_round_trip(program, path):
    back = Program.load(path, preset("tiny"))
    assert (back.config, back.queues, back.tensors, back.source) == \
        (program.config, program.queues, program.tensors, program.source)
    assert back.source == ["p.sys:7", "p.sys:8"]
    assert back.constants["c"].dtype == DType.FP8E4.numpy and back.constants["c"].astype(float).tolist() == [1, -2, 448]


def test_no_instructions_and_no_tensors(tmp_path):
    Program(preset("edge"), {}).save(tmp_path / "empty.npz")
    back = Program.load(tmp_path / "empty.npz")
    assert back.queues == {} and back.config == preset("edge")


def test_numpy_alone_reads_it(program, path):
    with np.load(path) as file:
        assert file["queue_dma0"].shape == (1, 64) and file["queue_dma0"].dtype == np.uint8
        assert file["queue_dma0"].tobytes() == to_bytes(program.queues["dma0"][0])
        header = json.loads(file["header"].tobytes())
    assert header["isa_version"] == 1 and header["config"]["lanes"] == 4
    assert header["tensors"][0] == {"name": "a", "dtype": "bf16", "shape": [4, 16], "offset": 0, "role": "input"}


def test_same_program_same_name_twice(program, path):
    """Saving over a file replaces it, and leaves no other behind."""
    program.save(path)
    assert [p.name for p in path.parent.iterdir()] == ["p.npz"]


def test_failed_write_leaves_nothing(program, tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(ProgramError, match="cannot be written"):
        program.save(tmp_path / "folder")
    with pytest.raises(ProgramError, match="cannot be written"):
        program.save(tmp_path / "missing" / "p.npz")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_every_truncation_is_refused(path):
    raw = path.read_bytes()
    for size in {*range(0, len(raw), 37), len(raw) - 1}:
        path.write_bytes(raw[:size])
        with pytest.raises(ProgramError, match="truncated or corrupted"):
            Program.load(path)


def test_flipped_bits_are_refused_or_harmless(program, path):
    """A flip in a zip's unused header fields changes nothing; any other one is an error."""
    raw, refused = path.read_bytes(), 0
    rng = np.random.default_rng(5)
    for at in rng.choice(len(raw), 300, replace=False):
        damaged = bytearray(raw)
        damaged[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            back = Program.load(path)
        except ProgramError as error:
            assert str(path) in str(error)
            refused += 1
        else:
            assert (back.queues, back.tensors, back.source) == (program.queues, program.tensors, program.source)
            assert back.constants["c"].tobytes() == program.constants["c"].tobytes()
    assert refused > 150


def rewrite(path, change):
    """The file with its arrays changed, everything else valid."""
    with np.load(path) as file:
        arrays = {n: file[n] for n in file.files}
    header = json.loads(arrays.pop("header").tobytes())
    change(arrays, header)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(path, **arrays)


@pytest.mark.parametrize("change,words", [
    (lambda a, h: h.update(isa_version=2), "made for ISA version 2; this is version 1"),
    (lambda a, h: h.pop("isa_version"), "ISA version None"),
    (lambda a, h: a.update(queue_dma0=a["queue_dma0"] ^ 1), "checksum"),
    (lambda a, h: a.update(const_c=a["const_c"][:2]), "checksum"),
    (lambda a, h: h["tensors"][0].update(offset=64), "checksum"),
    (lambda a, h: h["config"].update(lanes=8), "checksum"),
    (lambda a, h: h.pop("sha256"), "checksum"),
])
def test_changed_contents(path, change, words):
    rewrite(path, change)
    with pytest.raises(ProgramError, match=words):
        Program.load(path)


@pytest.mark.parametrize("program,words", [
    (Program(preset("tiny"), {"dma3": [encode("nop")]}), "queue 'dma3' does not exist"),
    (Program(preset("tiny"), {}, {"a": DramTensor("a", DType.FP32, (4,), -64, "input")}), "offset -64"),
    (Program(preset("tiny"), {}, {"a": DramTensor("a", DType.FP32, (0,), 0, "input")}), r"shape \(0,\)"),
    (Program(preset("tiny"), {}, {"a": DramTensor("a", DType.FP32, (4,), 0, "inout")}), "role 'inout'"),
])
def test_impossible_contents(tmp_path, program, words):
    program.save(tmp_path / "p.npz")
    with pytest.raises(ProgramError, match=words):
        Program.load(tmp_path / "p.npz")


def test_other_configuration(path):
    with pytest.raises(ProgramError, match="made for configuration tiny .*, not for base"):
        Program.load(path, preset("base"))


def test_not_a_program(tmp_path):
    path = tmp_path / "x.npz"
    with pytest.raises(ProgramError, match="no such file"):
        Program.load(path)
    for content in (b"", b"hello", TEXT.encode()):
        path.write_bytes(content)
        with pytest.raises(ProgramError, match="not a program file"):
            Program.load(path)
    with open(path, "wb") as stream:
        np.save(stream, np.zeros(3))
    with pytest.raises(ProgramError, match="not a program file"):
        Program.load(path)
    np.savez(path, x=np.zeros(3))
    with pytest.raises(ProgramError, match="not a program file"):
        Program.load(path)
    with pytest.raises(ProgramError, match="not a program file"):
        Program.load(tmp_path)
