"""A failing program made short: fewer instructions, smaller fields, no DRAM contents that nothing reads.

Every candidate is woven anew (new waits) and must be legal on the golden machine; it counts if it differs on the RTL
in the same way (`Difference.kind`).
"""

import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from isa.dtypes import DType
from isa.encode import decode
from isa.memory import NEVER
from sw.disasm import disassemble
from sw.program import DramTensor, Program
from tb.fuzz_weave import weave

ALIGN = 64


class Shrinker:
    """`bench` runs candidates; `seconds` bounds the whole."""

    def __init__(self, bench, program, kind, seconds=60):
        self.bench, self.best, self.kind = bench, program, kind
        self.end = time.monotonic() + seconds
        self.tried = 0

    def run(self):
        """The shortest program found that still fails."""
        before = None
        while before != (before := [item.word for item in self.best.items]):
            self._drop()
            self._simplify()
            self._bus()
            if time.monotonic() > self.end:
                break
        return self.best

    def _fails(self, items=None, bus=None):
        if time.monotonic() > self.end:
            return False
        self.tried += 1
        candidate = self.best
        if items is not None:
            weaver = weave(candidate.config, candidate.image, candidate.known, items)
            if weaver is None:
                return False
            candidate = candidate.rewoven(weaver)
        if bus is not None:
            candidate = replace(candidate, bus=bus)
        found = self.bench.difference(candidate)
        if found is None or found.kind != self.kind:
            return False
        self.best = candidate
        return True

    def _drop(self):
        """Without pieces of half, a quarter, ... of the instructions, down to single ones."""
        size = max(1, len(self.best.items) // 2)
        while True:
            at = len(self.best.items)
            while at > 0:
                at = min(at, len(self.best.items))
                low = max(0, at - size)
                self._fails(self.best.items[:low] + self.best.items[at:])
                at = low
            if size == 1:
                return
            size //= 2

    def _simplify(self):
        for at in range(len(self.best.items) - 1, -1, -1):
            item = self.best.items[at]
            if item.extra:
                self._replace(at, replace(item, extra=()))
            instruction, values = decode(item.word)
            for name, f in instruction.placed.items():
                if f.over:
                    continue
                for value in (0 if f.signed else f.low, f.low + 1 if f.minus_one else 1, int(values[name] / 2)):
                    if f.low <= value and abs(value) < abs(values[name]) and self._replace(at, name=name, value=value):
                        break
            for bit, flag in enumerate(instruction.flags):
                if flag and values[flag]:
                    self._replace(at, replace(self.best.items[at], word=self.best.items[at].word & ~(1 << 8 + bit)))

    def _replace(self, at, item=None, name="", value=0):
        items = list(self.best.items)
        if item is None:
            word = items[at].word
            item = replace(items[at], word=decode(word)[0].placed[name].insert(word, value))
        items[at] = item
        return self._fails(items)

    def _bus(self):
        for plain in ({"jitter": 0}, {"stall": 0.0}, {"bandwidth": 0.0}, {"outstanding": 64}, {"latency": 1}):
            if any(self.best.bus[k] != v for k, v in plain.items()):
                self._fails(bus={**self.best.bus, **plain})


def read_bytes(program):
    """Mask of the DRAM bytes whose initial contents the program uses."""
    weaver = weave(program.config, program.image, program.known, program.items)
    used = np.zeros(program.image.size, bool)
    for shadow in weaver.dram.reader.values():
        if shadow is not None:
            used |= shadow[0] != NEVER
    return used & program.known


def as_program(program):
    """A Program whose constants are the DRAM contents that are read, and whose output is all of DRAM."""
    used, tensors, constants = read_bytes(program), {}, {}
    used = np.repeat(used.reshape(-1, ALIGN).any(axis=1), ALIGN)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], used, [False]]).astype(np.int8)))
    for low, high in edges.reshape(-1, 2):
        name = f"d{low:x}"
        tensors[name] = DramTensor(name, DType.UINT8, (int(high - low),), int(low), "const")
        constants[name] = program.image[low:high].copy()
    tensors["memory"] = DramTensor("memory", DType.UINT8, (program.image.size,), 0, "output")
    source = [f"fuzz {program.seed}, {i}" for i in range(len(program.items))]
    return Program(program.config, {q: w for q, w in program.queues.items() if w}, tensors, constants, source)


def save(program, difference, folder):
    """Write assembly with seed, bus and difference on top; returns the path."""
    bus = program.bus
    path = Path(folder) / f"{program.config.name}_{program.seed}.sys"
    head = [f"fuzz: configuration {program.config.name}, seed {program.seed}; {len(program.items)} instructions", f"bus: {bus}",
            f"{difference.kind}: {difference.text}",
            f"systolith run {path} --backend both --latency {bus['latency']} --stalls {bus['stall']} --seed {bus['seed']}"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"# {line}\n" for line in head) + disassemble(as_program(program)), encoding="utf-8")
    return path
