"""The instruction table proves itself: bits, names, rules, meanings."""

import numpy as np
import pytest

from isa import legality
from isa.encode import decode, encode
from isa.fields import HEAD, HEAD_BITS, INSTRUCTION_BITS, WAITS
from isa.legality import TRAP_OF, used_bits
from isa.meaning import MEANING
from isa.table import BY_NAME, BY_OPCODE, INSTRUCTIONS, QUEUES, for_queue, queue_kind

IDS = [i.name for i in INSTRUCTIONS]
FREE_FLAGS = 6  # bits 6 and 7 are reserved for rounding
FULL = (1 << INSTRUCTION_BITS) - 1


def bits(field):
    return ((1 << field.bits) - 1) << field.offset


@pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=IDS)
def test_every_bit_is_a_field_or_reserved(instruction):
    """Fields that are no unions follow each other without gap or overlap; all 512 bits are accounted for."""
    seen = 0
    for f in instruction.all_fields.values():
        if f.over:
            assert f.offset == instruction.placed[f.over].offset
            assert not bits(f) & ~sum(bits(g) for g in instruction.placed.values() if not g.over), "a union that sticks out"
            continue
        assert not seen & bits(f), f"{f.name} overlaps another field"
        seen |= bits(f)
    assert seen == (1 << instruction.end) - 1, "a gap"
    flags = sum(1 << 8 + i for i, name in enumerate(instruction.flags) if name)
    assert used_bits(instruction) == seen & ~(0xFF << 8) | flags
    assert len(instruction.flags) <= FREE_FLAGS


def test_head():
    assert HEAD_BITS == 168 and list(HEAD)[:4] == ["opcode", "flags", "tag", "wait_mask"]
    assert len(QUEUES) == WAITS and sum(f.bits for f in HEAD.values()) == HEAD_BITS


def test_no_duplicates():
    assert len(BY_NAME) == len(BY_OPCODE) == len(INSTRUCTIONS)
    for i in INSTRUCTIONS:
        names = [*i.all_fields, *(f for f in i.flags if f)]
        assert len(set(names)) == len(names), i.name
        assert 0 < i.opcode < 256


@pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=IDS)
def test_rules_name_what_exists(instruction):
    known = {*instruction.all_fields, *(f"{n[:-5]}" for n in instruction.placed if n.endswith(("_addr", "_type")))}
    for rule in instruction.rules:
        assert rule.kind in TRAP_OF and hasattr(legality._Rules, rule.kind)
        for argument in rule.args:
            assert not isinstance(argument, str) or argument in known, f"{rule.kind} names {argument}"


def test_every_instruction_means_something():
    assert set(MEANING) == {i.name for i in INSTRUCTIONS if not i.reserved}


def test_queues():
    assert all(for_queue(q) for q in QUEUES if q != "ext")
    assert queue_kind("dma3") == "dma" and queue_kind("pe") == "pe"
    assert not any(i.reserved for q in QUEUES for i in for_queue(q))


@pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=IDS)
def test_binary_round_trip(instruction):
    """Lowest, highest and random values of each field, alone and together."""
    rng = np.random.default_rng(instruction.opcode)
    fields = {n: f for n, f in instruction.all_fields.items() if n not in ("opcode", "flags") and not f.over}
    for pick in (lambda f: f.low, lambda f: f.high, *[lambda f: int(rng.integers(f.low, f.high + 1, dtype=object))
                                                      if f.bits > 60 else int(rng.integers(f.low, f.high + 1))] * 20):
        values = {n: pick(f) for n, f in fields.items()}
        values |= {f: bool(rng.integers(2)) for f in instruction.flags if f}
        found, got = decode(encode(instruction.name, **values))
        assert found is instruction
        assert {n: got[n] for n in values} == values
    for name, f in fields.items():
        word = encode(instruction.name, **{name: f.high})
        assert not (word ^ encode(instruction.name)) & ~bits(f) & FULL, f"{name} changes bits of others"
