"""Operations of the vector engine and built-in functions of the activation engine, with their codes."""

from enum import IntEnum


class AluOp(IntEnum):
    """Code of an operation in `alu` and `red`."""

    BYPASS = 0
    ADD = 1
    SUB = 2
    MUL = 3
    MAX = 4
    MIN = 5
    EQ = 6
    NE = 7
    GT = 8
    GE = 9
    LT = 10
    LE = 11
    ABS = 12
    AND = 13
    OR = 14
    XOR = 15
    SHL = 16
    SHR = 17
    SAR = 18


class Func(IntEnum):
    """Code of a built-in function in `act`; 8 + slot is a table."""

    IDENTITY = 0
    RELU = 1
    SQUARE = 2
    ABS = 3
    SIGN = 4


class TableMode(IntEnum):
    """Range reduction of a table slot (word 0 of the slot); `isa.activation` defines each."""

    DIRECT = 0
    EXP = 1
    RECIP = 2
    SQRT = 3
    RSQRT = 4
    LOG = 5


COMPARES = frozenset({AluOp.EQ, AluOp.NE, AluOp.GT, AluOp.GE, AluOp.LT, AluOp.LE})
FLOAT_OPS = COMPARES | {AluOp.BYPASS, AluOp.ADD, AluOp.SUB, AluOp.MUL, AluOp.MAX, AluOp.MIN, AluOp.ABS}
INT_OPS = frozenset(AluOp) - {AluOp.MUL}
UNARY = frozenset({AluOp.BYPASS, AluOp.ABS})
