"""The golden machine: executes an assembled binary, in any order that the waits allow.

It knows the memories, the counts and the waits; what an instruction does is in `isa.meaning`. The order among
queues is drawn from `seed` (None: the lowest queue that can go), so that a program whose result depends on the
order shows it; besides, races are reported exactly.
"""

from dataclasses import dataclass

import numpy as np

from isa import meaning
from isa.encode import decode
from isa.legality import check
from isa.memory import NEVER, MachineError, Memory
from isa.table import QUEUES


def signed16(value):
    """`value` modulo 2^16 as a signed number."""
    return ((value + 0x8000) & 0xFFFF) - 0x8000


@dataclass
class Access:
    """One instruction in execution: what memories need to check and to report it."""

    machine: object
    queue: str
    index: int
    sequence: int
    clock: np.ndarray  # per queue: how many of its instructions are complete before this one starts

    def fail(self, message):
        raise MachineError(f"{self.queue}[{self.index}] {self.machine.text(self.queue, self.index)}: {message}")

    def describe(self, sequence):
        q, index = self.machine.history_queue[sequence], int(self.machine.history_index[sequence])
        return f"{QUEUES[q]}[{index}] {self.machine.text(QUEUES[q], index)}"

    def unordered(self, sequences, same_queue):
        """Which of these earlier instructions are not ordered before this one."""
        machine = self.machine
        queue, index = machine.history_queue[sequences], machine.history_index[sequences]
        bad = (sequences != NEVER) & (index >= self.clock[queue]) & (sequences != self.sequence)
        if same_queue:
            bad &= queue != QUEUES.index(self.queue)
        return bad


class Machine:
    """State of one core. `dram` is a uint8 array; it is changed in place."""

    def __init__(self, config, dram_bytes, races=True):
        self.config = config
        names = config.queues
        self.sbuf = Memory("SBUF", config.lanes, config.sbuf_bytes, names, races)
        self.psum = Memory("PSUM", config.lanes, config.psum_bytes, names, races)
        self.dram = Memory("DRAM", 1, dram_bytes, names, races)
        self.dram.written[:] = False
        self.reset_program()
        self.tables = {}
        self.running_sum = np.zeros(config.lanes, np.uint32)
        self.summing = np.zeros(config.lanes, bool)  # where a running sum was ever started
        self.stationary = None

    def inherit(self, other):
        """Take over what a core keeps from program to program: everything on chip."""
        for name in ("sbuf", "psum"):
            for kind in ("data", "written"):
                getattr(getattr(self, name), kind)[:] = getattr(getattr(other, name), kind)
        self.tables, self.stationary = dict(other.tables), other.stationary
        self.running_sum[:], self.summing[:] = other.running_sum, other.summing

    def reset_program(self):
        """Forget the history, not the memories: what a second program finds."""
        self.history_queue = np.zeros(0, np.int8)   # per executed instruction, in order
        self.history_index = np.zeros(0, np.int32)
        self.queues, self.source = {}, ()
        for memory in (self.sbuf, self.psum, self.dram):
            if memory.races:
                memory.writer[:] = NEVER
                memory.reader = {q: None for q in memory.reader}

    def write_dram(self, offset, data):
        """The host writes bytes."""
        data = np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)
        self.dram.data[0, offset:offset + data.size] = data
        self.dram.written[0, offset:offset + data.size] = True

    def text(self, queue, index):
        """Short name of an instruction, for messages."""
        instruction, values = decode(self.queues[queue][index])
        tag = values["tag"]
        return f"{instruction.name} ({self.source[tag] if tag < len(self.source) else f'tag {tag}'})"

    def run(self, queues, external=0, seed=None, source=()):
        """Execute {queue: [words]}; returns the execution order as (queue, index). MachineError explains a refusal.

        `source[tag]` names an instruction's place in its source, for messages.
        """
        for q, words in queues.items():
            if words and q not in self.config.queues:
                raise MachineError(f"queue {q} does not exist in configuration {self.config.name}")
            for index, word in enumerate(words):
                problem = check(word, q, self.config)
                if problem:
                    raise MachineError(f"{q}[{index}]: {problem[0].name}: {problem[1]}")
        self.reset_program()
        self.source = source
        self.queues = {q: list(words) for q, words in queues.items() if len(words)}
        rng = np.random.default_rng(seed) if seed is not None else None
        done = {q: 0 for q in QUEUES}
        done["ext"] = external
        decoded = {q: [decode(w) for w in words] for q, words in self.queues.items()}
        clocks, order = {}, []
        total = sum(map(len, self.queues.values()))
        self.history_queue, self.history_index = np.zeros(total, np.int8), np.zeros(total, np.int32)
        last_clock = {q: np.zeros(len(QUEUES), np.int64) for q in self.queues}
        while True:
            pending = [q for q in self.queues if done[q] < len(self.queues[q])]
            if not pending:
                return order
            ready = [q for q in pending if self._met(decoded[q][done[q]][1], done)]
            if not ready:
                raise MachineError("deadlock: " + "; ".join(self._waiting(q, done, decoded) for q in pending))
            q = ready[0] if rng is None else ready[rng.integers(len(ready))]
            index = done[q]
            instruction, values = decoded[q][index]
            clock = self._clock(q, values, done, last_clock[q], clocks)
            last_clock[q] = clock
            clocks[q, index] = clock
            access = Access(self, q, index, len(order), clock)
            self.history_queue[len(order)], self.history_index[len(order)] = QUEUES.index(q), index
            meaning.execute(self, instruction, values, access)
            done[q] += 1
            order.append((q, index))

    @staticmethod
    def _met(values, done):
        return all(signed16(done[q] - values[f"wait{i}"]) >= 0
                   for i, q in enumerate(QUEUES) if values["wait_mask"] >> i & 1)

    @staticmethod
    def _clock(queue, values, done, previous, clocks):
        clock = previous.copy()
        for i, q in enumerate(QUEUES):
            if values["wait_mask"] >> i & 1 and q != "ext":
                count = done[q] - signed16(done[q] - values[f"wait{i}"])
                clock[i] = max(clock[i], count)
                if count:
                    np.maximum(clock, clocks[q, count - 1], out=clock)
        return clock

    def _waiting(self, queue, done, decoded):
        values = decoded[queue][done[queue]][1]
        waits = [f"{q} to complete {values[f'wait{i}']} (has {done[q]})" for i, q in enumerate(QUEUES)
                 if values["wait_mask"] >> i & 1 and signed16(done[q] - values[f"wait{i}"]) < 0]
        return f"{queue}[{done[queue]}] waits for {' and '.join(waits)}"
