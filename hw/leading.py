"""Leading-zero counts and shifts, shaped for four-input lookup tables."""

from amaranth import C, Cat, Mux


def choose(condition, yes, no):
    """`Mux` of equal widths as gates. In lookup tables it is the same; simulated, it is free of branches, and a
    branch on a data bit is mispredicted half the time."""
    mask = condition.replicate(len(yes))
    return (yes & mask) | (no & ~mask)


def _nibble(bits):
    """(is zero, leading zeros as two bits) of four bits; each is one lookup table."""
    top, second, third = bits[3], bits[2], bits[1]
    return ~bits.any(), Cat(~top & (second | ~third), ~top & ~second)


def leading_zeros(pipe, value):
    """(count, all_zero): zeros above the highest one of `value`; the count is unspecified when all are zero.

    Nibbles first, then the first nibble that is not zero, then its own count: depth grows with log4 of the width.
    """
    width = len(value)
    padded = pipe.name(Cat(C(0, -width % 4), value), "counted")
    nibbles = [_nibble(padded[i:i + 4]) for i in range(len(padded) - 4, -1, -4)]
    while len(nibbles) > 1:
        if len(nibbles) % 2:
            nibbles.append((C(1, 1), C(0, len(nibbles[0][1]))))
        pairs = zip(nibbles[::2], nibbles[1::2], strict=True)
        nibbles = [(hz & lz, Cat(choose(hz, lc, hc), hz)) for (hz, hc), (lz, lc) in pairs]
    zero, count = nibbles[0]
    return pipe.name(count[:max(1, (width - 1).bit_length())], "zeros"), pipe.name(zero, "all_zero")


def leading_zeros_by_edge(pipe, value):
    """The same with a third of the operations when simulated, and two levels more in lookup tables.

    All bits below the highest one are set; what remains of that at its edge is one bit, whose place is encoded.
    """
    width = len(value)
    below = value
    for step in (1 << i for i in range((width - 1).bit_length())):
        below = pipe.name(below | below[step:], f"below_{step}")
    first = pipe.name(below & ~below[1:], "first")
    zeros = Cat((first & sum(1 << (width - 1 - n) for n in range(width) if n >> bit & 1)).any()
                for bit in range(max(1, (width - 1).bit_length())))
    return pipe.name(zeros, "zeros"), pipe.name(~below[0], "all_zero")


def normalise(pipe, value, zeros):
    """`value` << `zeros` in the width of `value`, the largest steps first: of a count of leading zeros, their bits are
    known first."""
    width = len(value)
    for bit in reversed(range(len(zeros))):
        step = 1 << bit
        moved = Cat(C(0, step), value)[:width] if step < width else C(0, width)
        value = Mux(zeros[bit], moved, value)
    return pipe.name(value, "normalised")


def shift_left(pipe, value, count):
    """`value` << `count` in the width of `value`."""
    return pipe.name((value << count)[:len(value)], "shifted_left")


def shift_right_sticky(pipe, value, count):
    """(`value` >> `count`, whether a one was shifted out)."""
    ones = C((1 << len(value)) - 1, len(value))
    sticky = (value & ~(ones << count)[:len(value)]).any()
    return pipe.name(value >> count, "shifted_right"), pipe.name(sticky, "sticky")
