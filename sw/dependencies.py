"""Waits from accesses: who must be complete before an instruction may start.

Memories are cut into granules; per queue and granule the number of the last instruction that read and wrote it is
kept. An access waits for what it conflicts with, on other queues for every conflict, on its own queue only for a
read after a write. A vector clock per instruction drops waits that others already imply.
"""

import numpy as np

from isa.table import QUEUES

GRANULE_BYTES = {"sbuf": 4, "psum": 4}


class Clocks:
    """What every queue knows to be complete; turns counts that an instruction needs into the fewest waits."""

    def __init__(self, queues):
        n = len(QUEUES)
        self.issued = dict.fromkeys(queues, 0)
        self.known = {q: np.zeros(n, np.int64) for q in queues}  # completions implied at the queue's next start
        self.clocks = {q: [] for q in queues}                    # what each instruction had seen at its start

    def place(self, queue, need):
        """Register the next instruction of `queue`; `need`: completions of each of `QUEUES`. Returns {queue: count}."""
        waits = self._reduce(queue, need)
        self.issued[queue] += 1
        self.clocks[queue].append(self.known[queue].copy())
        return waits

    def _reduce(self, queue, need):
        """Only the waits that no other implies; updates what the queue knows."""
        known = self.known[queue]
        asked = [(QUEUES[q], int(need[q])) for q in np.flatnonzero(need > known)]
        implied = {q: np.zeros(len(QUEUES), np.int64) for q, _ in asked}
        for q, count in asked:
            implied[q] = self.clocks[q][count - 1]
        waits = {}
        for q, count in asked:
            if not any(other != q and implied[other][QUEUES.index(q)] >= count for other, _ in asked):
                waits[q] = count
        for q, count in asked:
            np.maximum(known, implied[q], out=known)
            known[QUEUES.index(q)] = max(known[QUEUES.index(q)], count)
        return waits


class Dependencies:
    """Tracks SBUF and PSUM by address, DRAM by tensor name."""

    def __init__(self, config):
        self.queues = config.queues
        self.order = {q: QUEUES.index(q) for q in self.queues}
        n = len(QUEUES)
        sizes = {"sbuf": config.sbuf_bytes, "psum": config.psum_bytes}
        self.last = {(memory, kind): np.full((n, size // GRANULE_BYTES[memory]), -1, np.int64)
                     for memory, size in sizes.items() for kind in ("read", "write")}
        self.clocks = Clocks(config.queues)

    def _slot(self, memory, kind):
        if (memory, kind) not in self.last:
            self.last[memory, kind] = np.full((len(QUEUES), 1), -1, np.int64)
        return self.last[memory, kind]

    def _span(self, memory, low, high):
        size = GRANULE_BYTES.get(memory)
        return slice(low // size, (high + size - 1) // size) if size else slice(0, 1)

    def add(self, queue, reads, writes, ordered_writes=True, own_read_after_write=True):
        """Register the next instruction of `queue`; returns {queue: count} to wait for.

        `reads`, `writes`: (memory, first byte, one past the last). `ordered_writes` False: DRAM writes of this
        instruction are known to be disjoint from other writes of the tensor. `own_read_after_write` False: the
        hardware orders reads of this instruction after the queue's own writes.
        """
        own = self.order[queue]
        need = np.zeros(len(QUEUES), np.int64)
        for memory, low, high in reads:
            last = self._slot(memory, "write")[:, self._span(memory, low, high)].max(axis=1) + 1
            if not own_read_after_write:
                last[own] = 0
            np.maximum(need, last, out=need)
        for memory, low, high in writes:
            span = self._span(memory, low, high)
            kinds = ("read", "write") if ordered_writes or memory in GRANULE_BYTES else ("read",)
            for kind in kinds:
                last = self._slot(memory, kind)[:, span].max(axis=1) + 1
                last[own] = 0
                np.maximum(need, last, out=need)
        index = self.clocks.issued[queue]
        waits = self.clocks.place(queue, need)
        for kind, accesses in (("read", reads), ("write", writes)):
            for memory, low, high in accesses:
                self._slot(memory, kind)[own, self._span(memory, low, high)] = index
        return waits
