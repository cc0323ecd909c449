"""The small copy core that stands in for the real one while the test bench itself is tested."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np

SOURCE = Path(__file__).with_name("copy_core.v").read_text()
MAGIC = 0x434F5059
BASE = 0x12_0000


def copy_core(data_bits):
    """Verilog of the copy core with this bus width."""
    return SOURCE.replace("`BITS", str(data_bits))


class CopyRun(SimpleNamespace):
    """A core with `rounds` x 32 beats to copy from the first half of its memory to the second."""

    def go(self, control=1, max_cycles=200_000):
        """Starts the copy; True if the core said it was done."""
        half = len(self.memory) // 2
        for addr, value in ((0x4, BASE), (0x8, BASE + half), (0xC, 32 * self.rounds), (0x10, control)):
            self.rtl.csr_write(addr, value)
        return self.rtl.run(max_cycles)

    def copied(self):
        """Whether every byte has arrived."""
        half = len(self.memory) // 2
        return np.array_equal(self.memory[:half], self.memory[half:])

    def expected_sum(self):
        words = self.memory[:len(self.memory) // 2].view(np.uint32)
        return int(np.bitwise_xor.reduce(words))
