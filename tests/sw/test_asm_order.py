"""Waits: deadlocks are found, long programs stay within the 16-bit window, nops appear only where needed."""

import numpy as np
import pytest

from isa.encode import decode, encode
from isa.machine import signed16
from isa.table import QUEUES
from sw.asm import assemble
from sw.asm_order import STEP, WINDOW, Pacer, problem
from sw.errors import AsmError

NOP = encode("nop")


def wait(**counts):
    mask = sum(1 << QUEUES.index(q) for q in counts)
    return encode("nop", wait_mask=mask, **{f"wait{QUEUES.index(q)}": c & 0xFFFF for q, c in counts.items()})


def names(program):
    return {q: len(w) for q, w in program.queues.items()}


def adversary(queues, seed):
    """Run with the true counts beside the 16-bit ones, queues in bursts; no comparison may be misread.

    The true count of a wait is found by order: it is the one that a run in program order resolves.
    """
    rng, true = np.random.default_rng(seed), {}
    done = dict.fromkeys(QUEUES, 0)
    waits = {q: [[(QUEUES[i], w >> (40 + 16 * i) & 0xFFFF) for i in range(8) if w >> (32 + i) & 1] for w in words]
             for q, words in queues.items()}

    def met(q, index):
        return all(signed16(done[o] - c) >= 0 for o, c in waits[q][index])

    moved = True
    while moved:
        moved = False
        for q in queues:
            while done[q] < len(queues[q]) and met(q, done[q]):
                true[q, done[q]] = [(o, done[o] - signed16(done[o] - c)) for o, c in waits[q][done[q]]]
                done[q] += 1
                moved = True
    assert all(done[q] == len(queues[q]) for q in queues)
    done = dict.fromkeys(QUEUES, 0)
    while any(done[q] < len(queues[q]) for q in queues):
        ready = [q for q in queues if done[q] < len(queues[q]) and met(q, done[q])]
        assert ready, "deadlock"
        q = ready[rng.integers(len(ready))]
        for _ in range(int(rng.integers(1, 60_000))):
            if done[q] == len(queues[q]) or not met(q, done[q]):
                break
            assert all(done[o] >= c for o, c in true[q, done[q]]), f"{q}[{done[q]}] starts too early"
            done[q] += 1
        for other in queues:  # a head whose true count is reached must see it
            if done[other] < len(queues[other]):
                reached = all(done[o] >= c for o, c in true[other, done[other]])
                assert reached == met(other, done[other]), f"{other}[{done[other]}] is misread"


def test_short_programs_get_no_nops():
    text = "\n".join(["a: pe nop", "act nop after a"] + ["pe nop"] * 20_000 + ["act nop after a"])
    assert names(assemble(".config tiny\n" + text)) == {"pe": 20_001, "act": 2}


def paced(steps, pairs):
    """Words of a program given as [(queue, how many), or (queue, (queue, position in steps))], through the Pacer."""
    pacer, queues, last = Pacer(set(map(frozenset, pairs))), {}, []

    def add(queue, waits):
        nops, waits, index = pacer.place(queue, waits)
        for q, w in (*nops, (queue, waits)):
            queues.setdefault(q, []).append(wait(**w))
        return index

    for queue, what in steps:
        if isinstance(what, int):
            for _ in range(what):
                index = add(queue, {})
        else:
            index = add(queue, {what[0]: last[what[1]] + 1})
        last.append(index)
    return queues


ALONG = [step for i in range(34_000) for step in (("pe", 1), ("act", ("pe", 2 * i)))]


@pytest.mark.parametrize("steps,pairs", [
    ([("pe", 40_000), ("act", ("pe", 0)), ("pe", 40_000)], ["pa"]),                   # a younger count in the end
    ([("pe", 1), ("pe", 40_000), ("act", ("pe", 0)), ("pe", 40_000)], ["pa"]),        # an old count
    (ALONG, ["pa"]),
    ([("act", 1), ("pe", 33_000), ("pe", ("act", 0)), ("pe", 70_000), ("act", ("pe", 3))], ["pa"]),
    ([("act", 33_000), ("pe", ("act", 0)), ("act", ("act", 0)), ("vec", ("pe", 1)), ("act", 9), ("act", ("vec", 3))],
     ["pa", "pv", "av"]),
    ([("pe", 50_000), ("act", 50_000), ("vec", 50_000), ("pe", ("vec", 2)), ("act", ("pe", 3)), ("vec", ("act", 4)),
      ("pe", 20_000), ("act", ("pe", 6)), ("vec", ("pe", 0))], ["pa", "pv", "av"]),
], ids=["ahead", "old", "along", "both", "three", "rows"])
def test_long_programs_are_readable(steps, pairs):
    full = {"p": "pe", "a": "act", "v": "vec"}
    queues = paced(steps, [[full[c] for c in pair] for pair in pairs])
    assert problem(queues) is None
    for seed in range(2):
        adversary(queues, seed)
    total = sum(map(len, queues.values()))
    nops = total - sum(what if isinstance(what, int) else 1 for _, what in steps)
    assert nops <= 4 * (total // STEP + 1)


def test_the_assembler_inserts_them():
    text = ".config tiny\na: pe nop\n" + "pe nop\n" * 33_000 + "act nop after a\n"
    program = assemble(text)
    assert names(program) == {"pe": 33_002, "act": 3} and problem(program.queues) is None


@pytest.mark.parametrize("queues,place,words", [
    ({"pe": [NOP, wait(act=1)]}, ("pe", 1), "deadlock"),
    ({"pe": [wait(act=1)], "act": [wait(pe=1)]}, ("pe", 0), "act to complete 1 (it stops at 0)"),
    ({"pe": [wait(pe=1)]}, ("pe", 0), "deadlock"),
    ({"pe": [wait(act=65_000)], "act": [NOP]}, ("pe", 0), "beyond the length"),
    ({"pe": [NOP] * 40_000, "act": [wait(pe=1), NOP]}, ("act", 0), "beyond 1 before this starts"),
    ({"act": [wait(pe=40_000)], "pe": [NOP] * 40_000}, ("act", 0), "met too early"),
    ({"pe": [NOP] * 40_000, "act": [wait(pe=40_000)]}, ("act", 0), "met too early"),
    ({"pe": [NOP] * 40_000 + [wait(pe=1)]}, ("pe", 40_000), "deadlock"),
])
def test_problems(queues, place, words):
    queue, index, message = problem(queues)
    assert (queue, index) == place and words in message, message


def test_good_programs():
    assert problem({}) is None
    assert problem({"pe": [NOP, wait(pe=1), wait(ext=5)], "act": [wait(pe=3)]}) is None
    assert problem({"pe": [NOP] * WINDOW, "act": [wait(pe=WINDOW)]}) is None


def test_stated_counts_get_no_nops_but_are_proved():
    text = ".config tiny\n" + "pe nop\n" * 33_000 + "act nop wait=(pe:1)\n"
    with pytest.raises(AsmError, match=r":33002:5: .* let a nop in pe wait for it"):
        assemble(text)
    _, v = decode(assemble(text, strict=False).queues["act"][0])
    assert v["wait0"] == 1
