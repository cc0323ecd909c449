"""Memories of the golden machine: bytes, which of them were ever written, and who touched them last.

Every access names its instruction. A read of bytes never written is refused. Two accesses to one byte of which one
is a write must be ordered by the waits; otherwise the later one in this execution reports a race. The shadow
keeps the last writer and, per queue, the last reader of each byte: enough, because an access ordered after the
last one is ordered after all before it, or a race was reported earlier.
"""

import numpy as np

NEVER = -1


class MachineError(Exception):
    """The program did what the machine forbids; the message names instruction, place and rule."""


class Memory:
    """`partitions` x `size` bytes, addressed as (partition range, byte offsets)."""

    def __init__(self, name, partitions, size, queues, races=True):
        self.name, self.size = name, size
        self.data = np.zeros((partitions, size), np.uint8)
        self.written = np.zeros((partitions, size), bool)
        self.races = races
        if races:
            self.writer = np.full((partitions, size), NEVER, np.int32)  # sequence number of the last write
            self.reader = {q: None for q in queues}                     # queue -> the same for reads, when needed

    def check(self, at, access, parts):
        if at.size and (at.min() < 0 or at.max() >= self.size):
            bad = at.min() if at.min() < 0 else at.max()
            access.fail(f"{self.name} address {bad:#x} is outside 0 to {self.size - 1:#x}")
        if parts.stop > self.data.shape[0]:
            access.fail(f"{self.name} partition {parts.stop - 1} does not exist")

    def read(self, parts, at, access, own_queue_ok=False):
        """Bytes [partitions, *at.shape]; `own_queue_ok` skips the same-queue read-after-write rule."""
        self.check(at, access, parts)
        if not self.written[parts][:, at].all():
            p, i = self._first(~self.written[parts][:, at], at)
            access.fail(f"reads {self.name} partition {parts.start + p}, byte {i:#x}, which was never written")
        if self.races:
            self._ordered(self.writer[parts][:, at], access, "written", parts, at, same_queue=own_queue_ok)
            shadow = self.reader[access.queue]
            if shadow is None:
                shadow = self.reader[access.queue] = np.full(self.data.shape, NEVER, np.int32)
            view = shadow[parts]
            view[:, at] = access.sequence
        return self.data[parts][:, at]

    def write(self, parts, at, value, access, mask=None):
        """Store bytes [partitions, *at.shape] where `mask` (same shape, or none) is true."""
        self.check(at, access, parts)
        if self.races:
            self._ordered(self.writer[parts][:, at], access, "written", parts, at, same_queue=True, mask=mask)
            for shadow in self.reader.values():
                if shadow is not None:
                    self._ordered(shadow[parts][:, at], access, "read", parts, at, same_queue=True, mask=mask)
        for store, new in ((self.data, value), (self.written, True), *(
                [(self.writer, access.sequence)] if self.races else [])):
            view = store[parts]
            view[:, at] = new if mask is None else np.where(mask, new, view[:, at])

    def _ordered(self, sequences, access, verb, parts, at, same_queue, mask=None):
        bad = access.unordered(sequences, same_queue)
        if mask is not None:
            bad = bad & mask
        if bad.any():
            p, i = self._first(bad, at)
            other = access.describe(int(sequences[bad].flat[0]))
            access.fail(f"race: touches {self.name} partition {parts.start + p}, byte {i:#x}, {verb} by {other}, "
                        "and no wait orders the two")

    @staticmethod
    def _first(bad, at):
        where = np.argwhere(bad)[0]
        return int(where[0]), int(at[tuple(where[1:])])
