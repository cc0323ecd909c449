"""Waits of a whole program: does it end, and can no 16-bit count be misread?

A wait is met when `completed - wait`, as a signed 16-bit number, is not negative. So at every moment at which an
instruction may be compared, the queue it waits on must be less than 32,768 completions past the count, and at most
32,768 short of it. `problem` proves both for any words; `Pacer` inserts the `nop`s that make it so.
"""

import numpy as np

from isa.table import QUEUES

WINDOW = 1 << 15
STEP = 1 << 14
SLACK = 64  # nops that may come between an instruction and the next regular ones
EXT = QUEUES.index("ext")


def signed16(value):
    return ((value + WINDOW) & 0xFFFF) - WINDOW


def _waits(words):
    """Per instruction: [(queue number, 16-bit count)]."""
    out = []
    for word in words:
        mask = word >> 32 & 0xFF
        out.append([(q, word >> (40 + 16 * q) & 0xFFFF) for q in range(len(QUEUES)) if mask >> q & 1])
    return out


def problem(queues):
    """(queue, index, message) of a wait that is never met or may be misread, in {queue: words}; None if all is well.

    External counts are taken to come. One execution resolves every count; vector clocks along it then hold for
    every order that the waits allow.
    """
    waits = {QUEUES.index(q): _waits(words) for q, words in queues.items()}
    long = any(len(listed) > WINDOW for listed in waits.values())
    starts = {q: np.zeros((len(w), len(QUEUES)), np.int32) for q, w in waits.items()} if long else None
    done, resolved, moved = [0] * len(QUEUES), [], True
    while moved:
        moved = False
        for q, listed in waits.items():
            # One instruction of each queue in turn: every count is seen as soon as it is reached.
            if done[q] < len(listed) and all(o == EXT or signed16(done[o] - c) >= 0 for o, c in listed[done[q]]):
                found = [(o, done[o] - signed16(done[o] - c)) for o, c in listed[done[q]] if o != EXT]
                for other, count in found:
                    if count < 0:
                        return QUEUES[q], done[q], (
                            f"the wait for {QUEUES[other]} to complete {count & 0xFFFF} is met too early: the count is "
                            f"beyond the length of the queue, or more than {WINDOW} ahead")
                if long:
                    resolved += [(q, done[q], o, count) for o, count in found]
                    _clock(starts, q, done[q], found)
                done[q] += 1
                moved = True
    for q, listed in waits.items():
        if done[q] < len(listed):
            unmet = [f"{QUEUES[o]} to complete {c} (it stops at {done[o]})" for o, c in listed[done[q]]
                     if o != EXT and signed16(done[o] - c) < 0]
            return QUEUES[q], done[q], f"deadlock: waits for {' and '.join(unmet)}"
    for q, index, other, count in resolved:
        if text := _misread(q, index, other, count, starts, done):
            return QUEUES[q], index, text
    return None


def _clock(starts, q, index, found):
    """What is complete, of every queue, when the instruction starts."""
    clock = starts[q][index]
    if index:
        clock[:] = starts[q][index - 1]
    for other, count in found:
        clock[other] = max(clock[other], count)
        if count:
            np.maximum(clock, starts[other][count - 1], out=clock)


def _misread(q, index, other, count, starts, done):
    """Why the count may be misread, or None. A queue holds far fewer than a window of started instructions."""
    if other == q:
        if index - count >= WINDOW:
            return f"the wait for {QUEUES[q]} to complete {count} is {index - count} instructions old"
        return None
    before = starts[q][index - 1][other] if index else 0
    if count - before > WINDOW:
        return f"the wait for {QUEUES[other]} to complete {count} may be met too early: put a nop between"
    limit = count + WINDOW - 1  # this instruction of `other` must not start before ours has
    if limit < done[other] and starts[other][limit][q] <= index:
        return (f"{QUEUES[other]} may complete {WINDOW} instructions beyond {count} before this starts: let a nop in "
                f"{QUEUES[other]} wait for it")
    return None


class Pacer:
    """Places instructions in program order and keeps all counts readable, where a queue is longer than the window.

    `place(queue, waits)` returns (nops before it: [(queue, waits)], waits of the instruction itself, its index).
    Waits are {queue: count} and name earlier instructions. `links`: pairs of queues of which one waits on the other.
    Whenever a queue reaches a multiple of 16,384, it gets a nop that waits for all who waited on it so far (it never
    runs far ahead of them), and each queue linked to it gets a nop that waits for it (none looks far ahead). A wait
    on an older count is raised to a younger one.
    """

    def __init__(self, links=()):
        self.linked = {q: sorted({o for pair in links if q in pair for o in pair} - {q, "ext"}) for q in QUEUES}
        self.active = bool(links)
        self.count = dict.fromkeys(QUEUES, 0)
        self.waiters = {q: {} for q in QUEUES}  # queue -> {waiting queue: its count after the last waiter}
        self.met = set()                        # (queue, multiple) that is done
        self.nops = []

    def place(self, queue, waits):
        self.nops = []
        waits = self._issue(queue, waits)
        return self.nops, waits, self.count[queue] - 1

    def _issue(self, queue, waits):
        if self.active:
            self._meet(queue)
            waits = {q: c if q == "ext" else max(c, self.count[q] - STEP + SLACK) for q, c in waits.items()}
        for other in waits:
            if other != queue:
                self.waiters[other][queue] = self.count[queue] + 1
        self.count[queue] += 1
        return waits

    def _nop(self, queue, waits):
        self.nops.append((queue, self._issue(queue, waits)))

    def _meet(self, queue):
        at = self.count[queue]
        if at == 0 or at % STEP or (queue, at) in self.met:
            return
        self.met.add((queue, at))
        if self.waiters[queue]:
            waiters, self.waiters[queue] = self.waiters[queue], {}
            self._nop(queue, waiters)
        for other in self.linked[queue]:
            self._nop(other, {queue: at})
