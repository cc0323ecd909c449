"""The instruction table: the one place that says which instructions exist.

Encoder, decoder, Amaranth views, assembler, disassembler, legality, manual and random programs all loop over
`INSTRUCTIONS`. `rules` are checked by the hardware decoder, the encoder and the golden machine alike (see
`isa.legality`); the meaning of each instruction is registered in `isa.meaning`.
"""

from dataclasses import dataclass, field
from enum import IntEnum

from isa.fields import DRAM_ADDR_BITS, HEAD, HEAD_BITS, INSTRUCTION_BITS, Field, dram, partitions, place, shape, tensor

PE, ACT, VEC, DMA, ANY = "pe", "act", "vec", "dma", "any"


class Mode(IntEnum):
    """Where a scalar or `b` operand comes from."""

    NONE = 0
    IMM = 1
    PARTITION = 2  # one value a partition, from SBUF: bits 0-17 address, 18-21 type
    TENSOR = 3     # `alu` b only


class Acc(IntEnum):
    """What an `act` does with the running sum of its lanes."""

    NONE = 0
    START = 1
    CONTINUE = 2


@dataclass(frozen=True)
class Rule:
    """One legality rule. `kind` is interpreted by `isa.legality` (Python) and `hw.decode` (RTL).

    partitions(first, count)     first + count <= lanes
    aligned(addr, type)          addr is a multiple of the type's size (a number instead of a type: of that)
    types(field, set)            the field's value is in the set
    psum32(name)                 PSUM operands have a four-byte type
    values(field, set)           the field's value is in the set
    pe_types(field)              the type is one the PEs take
    scalar(mode, field, cls)     a PARTITION scalar's type is legal and its address aligned
    alu_op(op, mode)             the operation exists in the instruction's class, and has its second operand
    same(field, field)           equal values
    """

    kind: str
    args: tuple


@dataclass(frozen=True)
class Instruction:
    name: str
    opcode: int
    queue: str
    fields: tuple
    doc: str
    flags: tuple = ()
    rules: tuple = ()
    reserved: bool = False  # the encoding exists, no hardware yet
    placed: dict = field(default_factory=dict)
    end: int = 0

    @property
    def all_fields(self):
        """Head and body fields by name."""
        return {**HEAD, **self.placed}


def _make(name, opcode, queue, fields, doc, flags=(), rules=(), reserved=False):
    placed, end = place(fields, HEAD_BITS)
    assert end <= INSTRUCTION_BITS, f"{name}: {end} bits"
    return Instruction(name, opcode, queue, tuple(fields), doc, tuple(flags), tuple(rules), reserved, placed, end)


def _r(kind, *args):
    return Rule(kind, args)


ALL_TYPES = frozenset(range(8))
INT_TYPES = frozenset({5, 6, 7})
PART = _r("partitions", "p0", "pn")


def _operand(name, space=True):
    rules = [_r("types", f"{name}_type", ALL_TYPES), _r("aligned", f"{name}_addr", f"{name}_type")]
    return rules + ([_r("psum32", name)] if space else [])


_DMA_SIDE = [*partitions(), *shape(), *tensor("x", space=False)]

INSTRUCTIONS = tuple(_make(*args, **kw) for args, kw in (
    (("nop", 0x01, ANY, [], "Wait only."), {}),
    (("mark", 0x02, ANY, [], "Wait, and leave a trace record."), {}),
    (("mm", 0x10, PE,
      [*partitions(), Field("m0", 7, "first array column and PSUM partition"),
       Field("mn", 7, "number of columns", minus_one=True), *shape(), *tensor("x", space=False),
       Field("w_addr", 18, "stationary tile: byte address"), Field("w_type", 4, "stationary tile: element type"),
       Field("w_s", 18, "stationary tile: stride of the columns, elements", signed=True),
       Field("y_addr", 14, "PSUM byte address"),
       *(Field(f"y_s{d}", 13, f"PSUM stride of axis {d}, words", signed=True) for d in range(3))],
      "psum[M, F] = or += stationary[K, M]^T . moving[K, F]; K = partitions p0..p0+pn (array rows), "
      "M = columns m0..m0+mn, F = n0*n1*n2 at most 512. `keep` uses the stationary tile already in place."),
     dict(flags=("accumulate", "keep"),
          rules=[PART, _r("partitions", "m0", "mn"), _r("pe_types", "x_type"), _r("pe_types", "w_type"),
                 _r("aligned", "x_addr", "x_type"), _r("aligned", "w_addr", "w_type"), _r("aligned", "y_addr", 4),
                 _r("free512", "n0", "n1", "n2")])),
    (("act", 0x20, ACT,
      [*partitions(), *shape(), *tensor("x"), *tensor("y"), Field("scale", 32, "scale: fp32 bits or reference"),
       Field("bias", 32, "bias: fp32 bits or reference"), Field("scale_mode", 2, "Mode of scale"),
       Field("bias_mode", 2, "Mode of bias"), Field("func", 4, "0-4 built in, 8-11 table slots"),
       Field("acc", 2, "running sum: none, start, continue"),
       Field("acc_addr", 18, "where `acc_write` stores the running sum, fp32")],
      "y = func(x*scale + bias), each step rounded; the running sum of func's fp32 values per lane."),
     dict(flags=("acc_write",),
          rules=[PART, *_operand("x"), _r("values", "y_space", frozenset({0})), *_operand("y"),
                 _r("values", "func", frozenset({0, 1, 2, 3, 4, 8, 9, 10, 11})),
                 _r("values", "acc", frozenset({0, 1, 2})), _r("values", "scale_mode", frozenset({0, 1, 2})),
                 _r("values", "bias_mode", frozenset({0, 1, 2})), _r("scalar", "scale_mode", "scale"),
                 _r("scalar", "bias_mode", "bias"), _r("aligned", "acc_addr", 4)])),
    (("tab", 0x21, ACT,
      [Field("p0", 7, "partition that holds the table"), Field("slot", 2, "table slot"),
       Field("x_addr", 18, "byte address of 388 words in that partition")],
      "Load a table slot of every lane from one partition of SBUF."),
     dict(rules=[_r("lane", "p0"), _r("aligned", "x_addr", 4)])),
    (("alu", 0x30, VEC,
      [*partitions(), *shape(), *tensor("x"), *tensor("b"), *tensor("y"), Field("a", 32, "a: bits or reference"),
       Field("a_mode", 2, "Mode of a"), Field("b_mode", 2, "Mode of b"), Field("op0", 5, "AluOp"),
       Field("op1", 5, "AluOp"), Field("b_imm", 32, "b as an immediate", over="b_addr")],
      "y = (x op0 a) op1 b; `rev0`, `rev1` swap the operands; `int` selects the integer class."),
     dict(flags=("rev0", "rev1", "int"),
          rules=[PART, *_operand("x"), _r("values", "y_space", frozenset({0})), *_operand("y"),
                 _r("values", "a_mode", frozenset({0, 1, 2})), _r("scalar", "a_mode", "a"),
                 _r("b_operand", "b_mode", "b"), _r("alu_op", "op0", "a_mode"), _r("alu_op", "op1", "b_mode"),
                 _r("int_types", "x", "y"), _r("one_psum", "x", "b")])),
    (("red", 0x31, VEC,
      [*partitions(), *shape(), *tensor("x"), *tensor("y"), Field("a", 32, "a: bits or reference"),
       Field("a_mode", 2, "Mode of a"), Field("op0", 5, "AluOp applied to each element first"),
       Field("op", 5, "add, max or min"), Field("axes", 2, "how many trailing axes are reduced, 1 to 3")],
      "y = reduce(x op0 a) over the last `axes` axes; the other axes use y's first strides."),
     dict(flags=("rev0", None, "int"),
          rules=[PART, *_operand("x"), _r("values", "y_space", frozenset({0})), *_operand("y"),
                 _r("values", "a_mode", frozenset({0, 1, 2})), _r("scalar", "a_mode", "a"), _r("alu_op", "op0", "a_mode"),
                 _r("values", "op", frozenset({1, 4, 5})), _r("values", "axes", frozenset({1, 2, 3})),
                 _r("int_types", "x", "y")])),
    (("sel", 0x32, VEC, [*partitions(), *shape(), *tensor("x"), *tensor("b"), *tensor("y")],
      "y = x where predicate b is non-zero; elsewhere y keeps its value. x and y have one type."),
     dict(rules=[PART, *_operand("x"), *_operand("b"), _r("values", "y_space", frozenset({0})), *_operand("y"),
                 _r("same", "x_type", "y_type"), _r("one_psum", "x", "b")])),
    (("gen", 0x33, VEC,
      [*partitions(), *shape(), *tensor("y"), Field("base", 32, "first value, or the constant's bits"),
       Field("step_p", 32, "added per partition"),
       *(Field(f"step{d}", 32, f"added per index of axis {d}") for d in range(3))],
      "y = base + partition*step_p + i*step0 + j*step1 + k*step2 in int32 modulo 2^32 (partition counts from p0), "
      "converted; with `const` y = the low bits of base, as they are."),
     dict(flags=("const",), rules=[PART, _r("values", "y_space", frozenset({0})), *_operand("y")])),
    (("scan", 0x34, VEC, [], "Reserved: r = (a op0 r) op1 b along the last axis."), dict(reserved=True)),
    (("ld", 0x40, DMA, [*_DMA_SIDE, *dram("d", "p012")],
      "SBUF x[p, i, j, k] = DRAM d[p, i, j, k]; `inner` makes the stream partition-inner (transposing load)."),
     dict(flags=("inner",), rules=[PART, *_operand("x", space=False)])),
    (("st", 0x41, DMA, [*_DMA_SIDE, *dram("d", "p012")],
      "DRAM d[p, i, j, k] = SBUF x[p, i, j, k]; `inner` as for ld."),
     dict(flags=("inner",), rules=[PART, *_operand("x", space=False)])),
    (("mv", 0x42, DMA,
      [*_DMA_SIDE, Field("q0", 7, "first destination partition"),
       Field("qn", 7, "number of destination partitions", minus_one=True), *shape("m"),
       *tensor("y", space=False, type_=False)],
      "SBUF to SBUF through a linear stream: source elements in the order (p, i, j, k), or (i, j, k, p) with "
      "`x_inner`; destination likewise with `y_inner`. Both shapes hold equally many elements of one type."),
     dict(flags=("x_inner", "y_inner"),
          rules=[PART, _r("partitions", "q0", "qn"), *_operand("x", space=False), _r("aligned", "y_addr", "x_type")])),
    (("cp", 0x43, DMA, [*shape(), Field("x_type", 4, "element type"), *dram("d", "012"), *dram("e", "012")],
      "DRAM e[i, j, k] = DRAM d[i, j, k]."),
     dict(rules=[_r("types", "x_type", ALL_TYPES)])),
    (("gat", 0x44, DMA,
      [*_DMA_SIDE, Field("d_addr", DRAM_ADDR_BITS, "byte offset of row 0"), Field("row_stride", 32, "elements", signed=True),
       Field("row_limit", 32, "number of rows"), Field("i_addr", 18, "SBUF address of each partition's int32 row")],
      "SBUF x[p] = contiguous DRAM row number index[p]; a row beyond the limit traps, or is skipped with `skip`."),
     dict(flags=("skip",), rules=[PART, *_operand("x", space=False), _r("aligned", "i_addr", 4)])),
    (("sca", 0x45, DMA,
      [*_DMA_SIDE, Field("d_addr", DRAM_ADDR_BITS, "byte offset of row 0"), Field("row_stride", 32, "elements", signed=True),
       Field("row_limit", 32, "number of rows"), Field("i_addr", 18, "SBUF address of each partition's int32 row")],
      "contiguous DRAM row number index[p] = SBUF x[p]; limits as for gat."),
     dict(flags=("skip",), rules=[PART, *_operand("x", space=False), _r("aligned", "i_addr", 4)])),
    (("snd", 0x48, DMA, [], "Reserved: SBUF to link."), dict(reserved=True)),
    (("rcv", 0x49, DMA, [], "Reserved: link to SBUF."), dict(reserved=True)),
))

BY_NAME = {i.name: i for i in INSTRUCTIONS}
BY_OPCODE = {i.opcode: i for i in INSTRUCTIONS}
QUEUES = ("pe", "act", "vec", "dma0", "dma1", "dma2", "dma3", "ext")


def queue_kind(queue):
    """'dma' for 'dma0'..'dma3', else the queue's own name."""
    return "dma" if queue.startswith("dma") else queue


def for_queue(queue):
    """Instructions that may stand on `queue` ('pe', 'act', 'vec', 'dma0'...)."""
    return tuple(i for i in INSTRUCTIONS if i.queue in (ANY, queue_kind(queue)) and not i.reserved)
