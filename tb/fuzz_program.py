"""Random programs: memories full of corner cases, instructions that depend on each other, and a dump of everything.

    prologue   `ld` fills windows of SBUF, `mm` fills PSUM, `tab` some tables
    body       instructions of `tb.fuzz_draw`
    epilogue   SBUF windows, then PSUM, go to DRAM, where they are compared
"""

from dataclasses import dataclass

import numpy as np

from isa.activation import SLOT_WORDS
from isa.dtypes import DType
from isa.encode import encode
from isa.legality import MOVING_MAX, PE_TYPES
from isa.ops import AluOp
from isa.table import INSTRUCTIONS, queue_kind
from tb.fuzz_draw import Drawer, Style
from tb.fuzz_values import ROWS, zone
from tb.fuzz_weave import Item, Weaver

WINDOW_BYTES = (512, 1024, 2048, 2048, 4096)  # SBUF bytes a partition, all windows together
WHOLE, WHOLE_BYTES = 0.1, 1 << 18       # how often it is all of SBUF, if that is at most so many bytes
COLUMNS = (16, 64, 256, MOVING_MAX)     # words of a PSUM window
POOL, POOL_ZONE = 4096, 256  # DRAM bytes of random values beside those that go to SBUF, and of one kind
PAGE = 4096
ATTEMPTS = 60
SLOW = 10               # cycles of latency for each outstanding burst
LENGTHS = (3, 8, 16, 30, 50)
LATENCIES = (1, 2, 20, 60, 200)
WORD = int(DType.INT32)


@dataclass
class FuzzProgram:
    """A program, where it comes from, and how the bus behaves: `bus` are arguments of `Rtl.configure`."""

    config: object
    seed: int
    image: np.ndarray
    known: np.ndarray
    items: list
    queues: dict
    bus: dict
    attempts: int = 0

    def rewoven(self, weaver):
        """The same with a weaver's instructions."""
        return FuzzProgram(self.config, self.seed, self.image, self.known, weaver.items, weaver.queues, self.bus)


def draw_bus(rng):
    """Latency, bandwidth and stalls of the bus."""
    return dict(latency=int(rng.choice(LATENCIES)), jitter=int(rng.choice((0, 0, 5, 140))),
                stall=float(rng.choice((0, 0, 0.1, 0.3, 0.6))), bandwidth=float(rng.choice((0, 0, 0, 2, 8))),
                outstanding=int(rng.choice((1, 2, 64, 64, 64, 64))), seed=int(rng.integers(1, 1 << 31)))


def _windows(rng, config):
    """Disjoint, word-aligned windows of SBUF: all of it, or some, often at its very ends."""
    size = config.sbuf_bytes
    total = int(rng.choice(WINDOW_BYTES))
    if size <= total or (rng.random() < WHOLE and size * config.lanes <= WHOLE_BYTES):
        return [(0, size)]
    count = int(rng.choice((1, 1, 2, 3)))
    each, out = total // count // 16 * 16, []
    cells = rng.choice(size // each, count, replace=False)
    for cell in sorted(int(c) for c in cells):
        slack = size - size // each * each
        first = cell * each + (slack if rng.random() < 0.5 else 0) // 4 * 4
        first = max(first, out[-1][1] if out else 0)
        out.append((first, first + each))
    return out


def _zones(rng, windows):
    out = []
    for first, end in windows:
        while first < end:
            size = min(int(rng.choice((32, 64, 128, 256, 1600))), end - first)
            kind = ROWS if rng.random() < 0.1 else DType(int(rng.integers(8)))
            out.append((first, first + size, kind))
            first += size
    return out


class _Maker:
    def __init__(self, config, seed):
        self.config, self.seed = config, seed
        self.rng = rng = np.random.default_rng(seed)
        self.windows = _windows(rng, config)
        self.zones = _zones(rng, self.windows)
        self.psum = self._psum_windows()
        pool = [zone(rng, DType(int(rng.integers(8))), POOL_ZONE) for _ in range(POOL // POOL_ZONE)]
        contents = [np.concatenate(pool), *(self._content(*window) for window in self.windows)]
        self.sources = np.cumsum([c.size for c in contents])
        self.dumps = self.sources - POOL + self.sources[-1]  # as large as the windows' contents
        self.psum_dump = int(self.dumps[-1])
        end = self.psum_dump + config.lanes * sum(stop - first for first, stop in self.psum)
        size = -(-end // PAGE) * PAGE
        self.image, self.known = rng.integers(0, 256, size, np.uint8), np.zeros(size, bool)
        self.image[:self.sources[-1]], self.known[:self.sources[-1]] = np.concatenate(contents), True
        self.weaver = Weaver(config, self.image, self.known)
        self.attempts = 0

    def _content(self, first, end):
        """Bytes for a window of SBUF, partition after partition."""
        lanes = self.config.lanes
        return np.concatenate([zone(self.rng, kind, (stop - start) * lanes).reshape(lanes, -1)
                               for start, stop, kind in self.zones if first <= start < end], axis=1).ravel()

    def _psum_windows(self):
        rng, words = self.rng, self.config.psum_words
        count, columns = min(words // MOVING_MAX, int(rng.integers(1, 3))), int(rng.choice(COLUMNS))
        slots = sorted(int(s) for s in rng.choice(words // MOVING_MAX, count, replace=False))
        starts = [MOVING_MAX * s + int(rng.choice((0, MOVING_MAX - columns))) for s in slots]
        return [(4 * s, 4 * (s + columns)) for s in starts]

    def _dma(self):
        return f"dma{self.rng.integers(self.config.dma_queues)}"

    def _must(self, queue, name, **values):
        if not self.weaver.add(Item(queue, encode(name, **values))):
            raise AssertionError(f"{name} {values}: {self.weaver.refusal}")

    def prologue(self):
        rng, lanes = self.rng, self.config.lanes
        for (first, end), source in zip(self.windows, self.sources):
            words = (end - first) // 4
            self._must(self._dma(), "ld", pn=lanes, n2=words, x_addr=first, x_type=WORD, x_s2=1, d_addr=int(source),
                       d_sp=words, d_s2=1)
        for first, stop in self.psum:
            columns = (stop - first) // 4
            base, end = max(self.windows, key=lambda w: w[1] - w[0])
            code = int(rng.choice(sorted(PE_TYPES[self.config.pe])))
            size = DType(code).size_bytes
            step = int(end - base >= columns * size)
            self._must("pe", "mm", pn=int(rng.integers(1, lanes + 1)), mn=lanes, n2=columns, x_addr=base, x_type=code,
                       x_s2=step, w_addr=base + int(rng.integers((end - base - lanes * size) // 4)) * 4,
                       w_type=code, w_s=1, y_addr=first, y_s2=1)

        base, end = max(self.windows, key=lambda w: w[1] - w[0])
        for slot in range(4):  # without tables a program has no use for half the functions
            if end - base >= 4 * SLOT_WORDS and rng.random() < 0.3:
                address = base + 4 * int(rng.integers((end - base) // 4 - SLOT_WORDS + 1))
                self._must("act", "tab", p0=int(rng.integers(lanes)), slot=slot, x_addr=address)

    def body(self, length, style):
        rng, config = self.rng, self.config
        share = [(f + (e - f) * i // len(config.queues) // 16 * 16, f + (e - f) * (i + 1) // len(config.queues) // 16 * 16)
                 for i in range(len(config.queues)) for f, e in self.windows]
        owned = {q: share[i * len(self.windows):(i + 1) * len(self.windows)] for i, q in enumerate(config.queues)}
        windows = {"sbuf": self.windows, "psum": self.psum, "dram": [(0, int(self.sources[-1]))]}
        drawer = Drawer(rng, config, style, windows, self.zones, owned)
        kinds = [i for i in INSTRUCTIONS if not i.reserved]
        weights = np.array([6 + len(i.fields) for i in kinds], float)  # what has more forms occurs more often
        for _ in range(length):
            instruction = kinds[rng.choice(len(kinds), p=weights / weights.sum())]
            queues = [q for q in config.queues if instruction.queue in ("any", queue_kind(q))]
            self._one(drawer, instruction, queues[rng.integers(len(queues))], style)

    def _one(self, drawer, instruction, queue, style):
        for _ in range(ATTEMPTS):
            self.attempts += 1
            try:
                word = drawer.draw(instruction, queue)
            except ValueError:
                continue
            if self.weaver.add(Item(queue, word, self._extra(style))):
                drawer.accept(word)
                return

    def _extra(self, style):
        rng, issued = self.rng, self.weaver.issued
        if rng.random() >= style.waits:
            return ()
        return tuple((q, int(rng.integers(issued[q] + 1))) for q in issued if rng.random() < 0.5)

    def epilogue(self):
        lanes = self.config.lanes
        for (first, end), target in zip(self.windows, self.dumps):
            words = (end - first) // 4
            self._must(self._dma(), "st", pn=lanes, n2=words, x_addr=first, x_type=WORD, x_s2=1, d_addr=int(target),
                       d_sp=words, d_s2=1)
        base, end = max(self.windows, key=lambda w: w[1] - w[0])
        target = self.psum_dump
        for first, stop in self.psum:
            while first < stop:
                words = min(stop - first, end - base) // 4
                copy = dict(pn=lanes, n2=words, x_type=WORD, x_s2=1)
                self._must("vec", "alu", **copy, x_addr=first, x_space=1, y_addr=base, y_type=WORD, y_s2=1,
                           op0=AluOp.BYPASS, op1=AluOp.BYPASS)
                self._must(self._dma(), "st", **copy, x_addr=base, d_addr=target, d_sp=words, d_s2=1)
                first, target = first + 4 * words, target + 4 * words * lanes


def make(config, seed):
    """The program of a seed."""
    maker = _Maker(config, seed)
    bus = draw_bus(maker.rng)
    slow = bus["latency"] + bus["jitter"] // 2 > SLOW * bus["outstanding"]
    maker.prologue()
    maker.body(int(maker.rng.choice(LENGTHS)), Style.draw(maker.rng, slow))
    maker.epilogue()
    return FuzzProgram(config, seed, maker.image, maker.known, maker.weaver.items, maker.weaver.queues, bus, maker.attempts)
