"""Address checks before the run against the golden machine's, on random legal instructions."""

import numpy as np
import pytest

from isa.activation import SLOT_WORDS
from isa.config import preset
from isa.encode import decode
from isa.machine import Machine, MachineError
from sw.asm_check import problem
from tests.isa.legal_words import LEGAL, legal

CONFIG, DRAM_BYTES, EACH = preset("tiny"), 1024, 120
NEVER = {"nop", "mark", "tab"}  # nothing that these random fields could break


def shrunk(rng, word, instruction):
    """The word without waits, with small sizes and DRAM addresses near the window, so that about half are sound."""
    word = instruction.all_fields["wait_mask"].insert(word, 0)
    for name, f in instruction.placed.items():
        if name in ("n0", "n1", "n2"):
            word = f.insert(word, int(rng.integers(1, 4)))
        elif name in ("d_addr", "e_addr"):
            word = f.insert(word, int(rng.integers(64)) * 4 + 256)
        elif name == "row_limit":
            word = f.insert(word, f.high)
        elif name == "x_addr" and instruction.name in ("gat", "sca") and rng.integers(2):
            word = f.insert(word, CONFIG.sbuf_bytes - 4 * int(rng.integers(1, 9)))
    if "m2" in instruction.placed and rng.integers(4):  # as many elements on both sides
        for name, other in (("qn", "pn"), ("q0", "p0"), ("m0", "n0"), ("m1", "n1"), ("m2", "n2")):
            word = instruction.placed[name].insert(word, instruction.placed[other].extract(word))
    return word


def golden(word, queue, v):
    """What the golden machine says, from memories that are written everywhere; None if it runs."""
    machine = Machine(CONFIG, DRAM_BYTES, races=False)
    for memory in (machine.sbuf, machine.psum, machine.dram):
        memory.written[:] = True
    machine.tables = {slot: np.zeros(SLOT_WORDS, np.uint32) for slot in range(4)}
    machine.summing[:] = True
    if "m0" in v and "mn" in v:
        parts = slice(v["p0"], v["p0"] + v["pn"])
        machine.stationary = parts, v["m0"], v["mn"], np.zeros((v["pn"], v["mn"]), np.uint32), 0
    try:
        machine.run({queue: [word]})
    except MachineError as error:
        return str(error)


@pytest.mark.parametrize("instruction", LEGAL, ids=lambda i: i.name)
def test_agrees_with_golden(instruction):
    rng, refused = np.random.default_rng(instruction.opcode), 0
    print("seed", instruction.opcode)
    for _ in range(EACH):
        word, queue = legal(rng, instruction, CONFIG)
        word = shrunk(rng, word, instruction)
        v = decode(word)[1]
        mine, theirs = problem(instruction, v, CONFIG, DRAM_BYTES), golden(word, queue, v)
        if instruction.name == "sca" and theirs and "more than once" in theirs:
            theirs = mine  # row numbers are data, here all zero
        assert bool(mine) == bool(theirs), (mine, theirs, v)
        refused += bool(mine)
    assert (refused == 0) == (instruction.name in NEVER) and refused < EACH, refused
