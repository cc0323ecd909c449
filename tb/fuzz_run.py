"""One program on the RTL and on the golden machine: what differs."""

from dataclasses import dataclass

import numpy as np

from isa.machine import Machine
from isa.memory import MachineError
from sw.errors import TrapError
from tb.driver import RtlCore
from tb.runner import RtlError

MAX_CYCLES = 5_000_000
WATCHDOG = 50_000
ORDERS = 2  # random orders on the golden machine: it must not matter which


class GoldenError(AssertionError):
    """The golden machine contradicts itself: what a woven program does depends on the order of its queues."""


@dataclass(frozen=True)
class Difference:
    """`kind` is one word (bytes, trap, protocol, count, golden); `text` says what was found where."""

    kind: str
    text: str


def expected(program):
    """DRAM after the run on the golden machine; GoldenError if it depends on the order, or the program is refused in one."""
    results = []
    for seed in range(ORDERS):
        machine = Machine(program.config, program.image.size)
        machine.dram.data[0], machine.dram.written[0] = program.image, program.known
        try:
            machine.run(program.queues, seed=program.seed * ORDERS + seed)
        except MachineError as error:
            raise GoldenError(f"fine in program order, refused in another: {error}") from error
        results.append(machine.dram.data[0])
    if not all(np.array_equal(results[0], other) for other in results):
        raise GoldenError("the results depend on the order of the queues")
    return results[0]


class Bench:
    """A simulated core; `plant` (tests) changes the DRAM that the RTL left, given the program."""

    def __init__(self, config, plant=None):
        self.config, self.plant = config, plant
        self.core, self.cycles = None, 0

    def __enter__(self):
        self._open()
        return self

    def __exit__(self, *_):
        self.core.close()

    def _open(self):
        self.core = RtlCore(self.config, watchdog=WATCHDOG)

    def restart(self):
        """A core out of reset, its memories as they are."""
        try:
            self.core.rtl.configure()
            self.core.rtl.reset()
        except RtlError:
            self.core.close()
            self._open()

    def difference(self, program):
        """The first Difference of a program, or None. After one on the RTL the core is reset."""
        try:
            golden = expected(program)
        except GoldenError as error:
            return Difference("golden", str(error))
        found = self._run(program, golden)
        if found:
            self.restart()
        return found

    def _run(self, program, golden):
        core = self.core
        core.rtl.configure(**program.bus)
        broken = len(core.rtl.protocol_errors), len(core.rtl.address_errors)
        try:
            dram, cycles = core.run_queues(program.queues, program.image, MAX_CYCLES)
        except (TrapError, RtlError) as error:
            return Difference("trap", str(error))
        self.cycles += cycles
        for before, lines in zip(broken, (core.rtl.protocol_errors, core.rtl.address_errors)):
            if len(lines) > before:
                return Difference("protocol", "; ".join(lines[before:before + 3]))
        if self.plant:
            dram = self.plant(program, dram.copy())
        wrong = np.flatnonzero(dram != golden)
        if wrong.size:
            at = int(wrong[0])
            return Difference("bytes", f"{wrong.size} bytes of DRAM, the first at {at:#x}: RTL {dram[at:at + 8].tobytes().hex()}, "
                              f"golden {golden[at:at + 8].tobytes().hex()}")
        return self._counts(program, cycles)

    def _counts(self, program, cycles):
        for i, q in enumerate(self.config.queues):
            done, busy, stall = (self.core.read(f"q{i}_{n}") for n in ("done", "busy", "stall"))
            if done != len(program.queues.get(q, ())) or max(busy, stall) > cycles:
                return Difference("count", f"{q}: {done} of {len(program.queues.get(q, ()))} done, {busy} cycles busy, {stall} "
                                  f"stalled, of {cycles}")
        return None
