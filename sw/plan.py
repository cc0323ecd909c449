"""Planning a dense layer: block sizes that fit SBUF and PSUM.

Sizes are per partition. A layer computes Y^T[N, M] = f(W^T X^T): weights are stationary, the batch moves. Batch is cut
into blocks of F columns, N into tiles of `lanes` (grouped by G, so that weight loads are long), K into tiles of
`lanes` (chunked by C, the unit of loading and double buffering).
"""

from dataclasses import dataclass

from sw.errors import CapacityError

MOVING_MAX = 512
WORD = 4


def ceil_div(a, b):
    return -(-a // b)


@dataclass(frozen=True)
class Plan:
    """How one layer runs: see the module's docstring; `resident`: the whole X block stays in SBUF."""

    f: int
    group: int
    chunk: int
    resident: bool
    y_buffers: int
    w_buffers: int

    def ramp(self, k_tiles, first):
        """Chunk sizes over K: small ones while the first operands are still on their way."""
        sizes, left, size = [], k_tiles, 1 if first else self.chunk
        while left:
            take = min(size, self.chunk, left)
            sizes.append(take)
            left -= take
            if first and len(sizes) >= 2:
                size *= 2
        return sizes


def pitch(count, size):
    """Elements from one tile row to the next, so that each starts at a word."""
    per_word = max(1, WORD // size)
    return ceil_div(count, per_word) * per_word


def sbuf_need(config, k, f, group, chunk, size, resident, x_blocks, y_buffers, w_buffers, y_size, y_on_chip):
    """Bytes per partition that a layer takes under these choices."""
    k_tiles = ceil_div(k, config.lanes)
    row = pitch(f, size) * size
    x = x_blocks * (k_tiles if resident else 2 * chunk) * row
    w = w_buffers * chunk * group * config.lanes * size
    y = 0 if y_on_chip else y_buffers * ceil_div(pitch(f, y_size) * y_size, 16) * 16
    return x + w + y + 64


def choose(config, m, k, n, size, y_size, space, x_given=False, y_on_chip=False, f=None):
    """The best plan that fits `space` bytes a partition; CapacityError says what the smallest would take."""
    k_tiles, n_tiles = ceil_div(k, config.lanes), ceil_div(n, config.lanes)
    smallest = None
    blocks = [f] if f else sorted({min(m, b) for b in (512, 256, 128, 64, 32, 16, 8, 4, 2, 1)}, reverse=True)
    for block in blocks:
        many = ceil_div(m, block) > 1
        tiles = max(1, config.psum_words // (2 * block)) if block * 2 <= config.psum_words else 1
        options = [(r, xb) for r in (True, False) for xb in ((2, 1) if many and not x_given else (1,))]
        for resident, x_blocks in options:
            if x_given and not resident:
                continue
            for group in sorted({min(g, n_tiles, tiles) for g in (8, 4, 2, 1)}, reverse=True):
                for chunk in sorted({min(c, k_tiles) for c in (k_tiles, 64, 32, 16, 8, 4, 2, 1)}, reverse=True):
                    for w_buffers, y_buffers in ((2, min(2 * group, n_tiles)), (2, 2), (2, 1)):
                        need = sbuf_need(config, k, block, group, chunk, size, resident,
                                         0 if x_given else (x_blocks if resident else 1), y_buffers, w_buffers,
                                         y_size, y_on_chip)
                        smallest = need if smallest is None else min(smallest, need)
                        if need <= space:
                            return Plan(block, group, chunk, resident, y_buffers, w_buffers)
    raise CapacityError(f"a dense layer of M={m}, K={k}, N={n} needs at least {smallest} bytes a partition of SBUF; "
                        f"{space} are free in configuration {config.name}")
