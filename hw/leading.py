"""Leading-zero counts and shifts, shaped for four-input lookup tables."""

from amaranth import C, Cat, Mux


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
        nibbles = [(hz & lz, Cat(Mux(hz, lc, hc), hz)) for (hz, hc), (lz, lc) in pairs]
    zero, count = nibbles[0]
    return pipe.name(count[:max(1, (width - 1).bit_length())], "zeros"), pipe.name(zero, "all_zero")


def shift_left(pipe, value, count):
    """`value` << `count` in the width of `value`, the largest steps first (their counts are known first)."""
    width = len(value)
    for bit in reversed(range(len(count))):
        step = 1 << bit
        moved = Cat(C(0, step), value)[:width] if step < width else C(0, width)
        value = Mux(count[bit], moved, value)
    return pipe.name(value, "shifted_left")


def shift_right_sticky(pipe, value, count):
    """(`value` >> `count`, whether a one was shifted out)."""
    width, sticky = len(value), C(0, 1)
    for bit in reversed(range(len(count))):
        step = min(1 << bit, width)
        value = pipe.name(value, f"before_shift_{step}")
        sticky = sticky | (count[bit] & value[:step].any())
        value = Mux(count[bit], Cat(value[step:], C(0, step)), value)
    return pipe.name(value, "shifted_right"), pipe.name(sticky, "sticky")
