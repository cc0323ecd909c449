"""Encoding: defaults, ranges, unions, bytes."""

import pytest

from isa.encode import decode, encode, from_bytes, to_bytes
from isa.table import Mode


def test_defaults():
    """Sizes are 1, everything else 0."""
    instruction, v = decode(encode("ld"))
    assert instruction.name == "ld"
    assert (v["pn"], v["n0"], v["n1"], v["n2"]) == (1, 1, 1, 1)
    assert not any(v[n] for n in ("p0", "x_addr", "x_type", "x_s0", "d_addr", "d_sp", "inner", "wait_mask", "tag"))
    assert encode("ld") == 0x40


def test_known_word():
    """Opcode, flags, tag and waits stand where the format says."""
    word = encode("mm", accumulate=True, keep=True, tag=0x1234, wait_mask=0x81, wait0=7, wait7=0xFFFF, p0=3, pn=128)
    assert word & 0xFF == 0x10 and word >> 8 & 0xFF == 3 and word >> 16 & 0xFFFF == 0x1234
    assert word >> 32 & 0xFF == 0x81 and word >> 40 & 0xFFFF == 7 and word >> 152 & 0xFFFF == 0xFFFF
    assert word >> 168 & 0x7F == 3 and word >> 175 & 0x7F == 127


def test_false_flag_is_absent():
    assert encode("mm", keep=False) == encode("mm")


def test_signed():
    _, v = decode(encode("ld", x_s2=-1, d_sp=-(1 << 31)))
    assert (v["x_s2"], v["d_sp"]) == (-1, -(1 << 31))


def test_union():
    """An immediate b lies over b's address, type and part of a stride."""
    instruction, v = decode(encode("alu", b_mode=Mode.IMM, b_imm=0x3F800000))
    assert v["b_imm"] == 0x3F800000
    assert instruction.placed["b_imm"].offset == instruction.placed["b_addr"].offset


@pytest.mark.parametrize("name,fields,words", [
    ("mn", {}, "no instruction 'mn'"),
    ("mm", {"pn": 0}, "pn = 0: must be 1 to 128"),
    ("mm", {"pn": 129}, "pn = 129"),
    ("ld", {"x_addr": 1 << 18}, "x_addr = 262144"),
    ("ld", {"x_s0": -(1 << 17) - 1}, "x_s0"),
    ("ld", {"y_addr": 4}, "no field 'y_addr'"),
    ("nop", {"x": 1}, "it has: none"),
])
def test_refused(name, fields, words):
    with pytest.raises(ValueError, match=words):
        encode(name, **fields)


def test_bytes():
    word = encode("st", d_addr=0x123456789A, x_type=7)
    assert len(to_bytes(word)) == 64 and to_bytes(word)[0] == 0x41 and from_bytes(to_bytes(word)) == word
    with pytest.raises(ValueError, match="63 bytes"):
        from_bytes(bytes(63))


def test_unknown_opcode():
    with pytest.raises(ValueError, match="0xff"):
        decode(0xFF)
