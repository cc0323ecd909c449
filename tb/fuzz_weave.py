"""Instructions in program order -> a program with waits, by running them on the golden machine one by one.

The machine's race check says, byte by byte, which earlier instructions an access must come after; those become the
waits, as few as suffice. An instruction that the machine refuses leaves no trace and is not part of the program.
"""

from dataclasses import dataclass

import numpy as np

from isa import meaning
from isa.encode import decode
from isa.legality import check
from isa.machine import Access, Machine
from isa.memory import NEVER, MachineError, Memory
from isa.table import QUEUES
from sw.dependencies import Clocks

MOST = 4096  # instructions of a program


@dataclass(frozen=True)
class Item:
    """An instruction without waits on its queue; `extra`: (queue, count) it waits for beyond need."""

    queue: str
    word: int
    extra: tuple = ()


class Journal(Memory):
    """A memory that can go back to how it was at the last `keep`."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._undo = []

    def _save(self, store, parts, at):
        self._undo.append((store, parts, at, store[parts][:, at]))

    def read(self, parts, at, access, own_queue_ok=False):
        self.check(at, access, parts)
        if self.reader[access.queue] is None:
            self.reader[access.queue] = np.full(self.data.shape, NEVER, np.int32)
        self._save(self.reader[access.queue], parts, at)
        return super().read(parts, at, access, own_queue_ok)

    def write(self, parts, at, value, access, mask=None):
        self.check(at, access, parts)
        for store in (self.data, self.written, self.writer):
            self._save(store, parts, at)
        super().write(parts, at, value, access, mask)

    def keep(self):
        self._undo.clear()

    def back(self):
        while self._undo:
            store, parts, at, old = self._undo.pop()
            view = store[parts]
            view[:, at] = old


@dataclass
class Needs(Access):
    """An access that collects what must be complete before it, instead of complaining."""

    need: np.ndarray = None

    def fail(self, message):
        raise MachineError(message)

    def unordered(self, sequences, same_queue):
        seen = np.unique(sequences)
        seen = seen[(seen != NEVER) & (seen != self.sequence)]
        queue, index = self.machine.history_queue[seen], self.machine.history_index[seen]
        if same_queue:
            other = queue != QUEUES.index(self.queue)
            queue, index = queue[other], index[other]
        np.maximum.at(self.need, queue, index + 1)
        return np.zeros(sequences.shape, bool)


class Weaver(Machine):
    """A golden machine that builds a program: `add` instructions, then read `queues`."""

    def __init__(self, config, image, known):
        super().__init__(config, image.size)
        names = config.queues
        self.sbuf = Journal("SBUF", config.lanes, config.sbuf_bytes, names)
        self.psum = Journal("PSUM", config.lanes, config.psum_bytes, names)
        self.dram = Journal("DRAM", 1, image.size, names)
        self.dram.data[0], self.dram.written[0] = image, known
        self.history_queue, self.history_index = np.zeros(MOST, np.int8), np.zeros(MOST, np.int32)
        self.clocks = Clocks(names)
        self.queues = {q: [] for q in names}
        self.items, self.refusal = [], ""

    @property
    def issued(self):
        """Instructions so far, by queue."""
        return self.clocks.issued

    def add(self, item):
        """Run an instruction and give it its waits; False, with `refusal`, if it is illegal or the machine refuses it."""
        problem = check(item.word, item.queue, self.config)
        if problem:
            self.refusal = problem[1]
            return False
        instruction, values = decode(item.word)
        sequence = len(self.items)
        access = Needs(self, item.queue, self.issued[item.queue], sequence, None, np.zeros(len(QUEUES), np.int64))
        self.history_queue[sequence], self.history_index[sequence] = QUEUES.index(item.queue), access.index
        kept = self.stationary, dict(self.tables), self.running_sum.copy(), self.summing.copy()
        try:
            meaning.execute(self, instruction, values, access)
        except MachineError as error:
            for memory in (self.sbuf, self.psum, self.dram):
                memory.back()
            self.stationary, self.tables, self.running_sum, self.summing = kept
            self.refusal = str(error)
            return False
        for memory in (self.sbuf, self.psum, self.dram):
            memory.keep()
        waits = {q: min(count, self.issued[q]) for q, count in item.extra}
        for q, count in self.clocks.place(item.queue, access.need).items():
            waits[q] = max(count, waits.get(q, 0))
        self.queues[item.queue].append(with_waits(item.word, waits, sequence))
        self.items.append(item)
        return True


def with_waits(word, waits, tag):
    """The word with these waits ({queue: count}) and tag."""
    fields = decode(word)[0].all_fields
    word = fields["tag"].insert(word, tag)
    for q, count in waits.items():
        slot = QUEUES.index(q)
        word = fields[f"wait{slot}"].insert(word, count) | 1 << (fields["wait_mask"].offset + slot)
    return word


def weave(config, image, known, items):
    """The Weaver after all items; None if one is refused."""
    weaver = Weaver(config, image, known)
    return weaver if all(weaver.add(item) for item in items) else None
