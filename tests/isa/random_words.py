"""Random instruction words: legal fields from the table, then broken in one place."""

from isa.encode import encode
from isa.table import INSTRUCTIONS


def plausible(rng, instruction, config):
    """A word whose fields are mostly in range; often legal."""
    values = {}
    for name, f in instruction.placed.items():
        if f.over:
            continue
        if name.endswith("_type"):
            values[name] = int(rng.integers(8))
        elif name in ("p0", "m0", "q0") and not f.minus_one:
            values[name] = int(rng.integers(config.lanes))
        elif name in ("pn", "mn", "qn"):
            values[name] = int(rng.integers(1, config.lanes + 1))
        elif f.minus_one:
            values[name] = int(rng.integers(1, 9))
        elif name.endswith("_mode") or name in ("acc", "axes"):
            values[name] = int(rng.integers(4))
        elif name.endswith("addr"):
            values[name] = int(rng.integers(64)) * 4 % (f.high + 1)
        elif f.signed:
            values[name] = int(rng.integers(-4, 5))
        else:
            values[name] = int(rng.integers(f.low, min(f.high, 1 << 31) + 1))
    for flag in instruction.flags:
        if flag:
            values[flag] = bool(rng.integers(2))
    return encode(instruction.name, **values)


def words(rng, config, count):
    """`count` words: half plausible, half of them with one bit flipped."""
    for i in range(count):
        word = plausible(rng, INSTRUCTIONS[rng.integers(len(INSTRUCTIONS))], config)
        if i % 2:
            word ^= 1 << int(rng.integers(512))
        yield word
