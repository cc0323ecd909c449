"""Placement: where tensors stand in SBUF, PSUM and DRAM."""

from dataclasses import dataclass

from sw.errors import CapacityError


@dataclass(frozen=True)
class Block:
    """`size` bytes of every partition, from `addr`."""

    memory: str
    addr: int
    size: int

    @property
    def end(self):
        return self.addr + self.size


class Allocator:
    """First fit over a list of holes; `align` in bytes. Freed blocks merge with their neighbours."""

    def __init__(self, memory, size, align):
        self.memory, self.size, self.align = memory, size, align
        self.holes = [(0, size)]

    @property
    def largest(self):
        """Bytes of the largest hole."""
        return max((end - low for low, end in self.holes), default=0)

    def take(self, size, what):
        """A block of `size` bytes; CapacityError names `what` and what is free."""
        size = -(-size // self.align) * self.align
        for i, (low, end) in enumerate(self.holes):
            if end - low >= size:
                self.holes[i:i + 1] = [(low + size, end)] if low + size < end else []
                return Block(self.memory, low, size)
        raise CapacityError(f"{what}: needs {size} bytes a partition of {self.memory}, of which {self.size} exist "
                            f"and {self.largest} are free in one piece")

    def free(self, block):
        self.holes = sorted([*self.holes, (block.addr, block.end)])
        merged = [self.holes[0]]
        for low, end in self.holes[1:]:
            if low == merged[-1][1]:
                merged[-1] = (merged[-1][0], end)
            else:
                merged.append((low, end))
        self.holes = merged
