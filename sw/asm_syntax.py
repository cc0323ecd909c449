"""Operands of each instruction, derived from the fields of the instruction table; assembler and disassembler share it.

    fields                                operand
    p0, pn (sizes "minus one")            p=first:end       any stem; a half-open range
    n0, n1, n2 ("minus one")              shape=(n0, n1, n2); another stem s: sshape=
    x_addr with x_s.. (and type, space)   x=space:address:type:(strides)
    d_addr of 48 bits with d_s..          d=address:(strides), in DRAM
    a, a_mode                             a=number, a=part:address:type
    b_addr .. with b_mode                 b= either of the last two
    all others                            name=value, or the name of an operation, function or type
"""

from dataclasses import dataclass
from functools import lru_cache

from isa.dtypes import DType
from isa.fields import DRAM_ADDR_BITS
from isa.ops import AluOp, Func
from isa.table import BY_NAME, Acc, Mode

TABLES = {f"table{i}": 8 + i for i in range(4)}
TYPES = {t.label: int(t) for t in DType}
SPACES = {"sbuf": 0, "psum": 1}


def _names(enum):
    return {e.name.lower(): int(e) for e in enum}


def value_names(field):
    """{name: value} of the names that a plain field may be given by; empty where it takes numbers only."""
    if field.endswith("_type"):
        return TYPES
    if field.endswith("_mode"):
        return _names(Mode)
    if field.endswith("_space"):
        return SPACES
    return {"op0": _names(AluOp), "op1": _names(AluOp), "op": _names(AluOp), "acc": _names(Acc),
            "func": _names(Func) | TABLES}.get(field, {})


@dataclass(frozen=True)
class Operand:
    """`kind`: range, shape, tensor, dram, scalar or field. Names of its fields; '' or () where it has none."""

    key: str
    kind: str
    fields: tuple          # range: first, count; shape: three sizes; scalar, field: one
    strides: tuple = ()
    type: str = ""
    space: str = ""
    mode: str = ""
    imm: str = ""
    psum: bool = False     # the address is one of PSUM

    @property
    def addr(self):
        return self.fields[0]

    @property
    def all_fields(self):
        return {f for f in (*self.fields, *self.strides, self.type, self.space, self.mode, self.imm) if f}


def _one(name, placed):
    stem = name[:-1]
    if name.endswith("0") and f"{stem}n" in placed:
        return Operand(stem, "range", (name, f"{stem}n"))
    if name.endswith("0") and placed[name].minus_one and f"{stem}2" in placed:
        return Operand("shape" if stem == "n" else f"{stem}shape", "shape", tuple(f"{stem}{d}" for d in range(3)))
    if name.endswith("_addr"):
        stem = name[:-len("_addr")]
        strides = tuple(f"{stem}_s{d}" for d in ("", "p", "0", "1", "2") if f"{stem}_s{d}" in placed)
        if strides:
            kind = "dram" if placed[name].bits == DRAM_ADDR_BITS else "tensor"
            parts = {k: f"{stem}_{k}" for k in ("type", "space", "mode", "imm") if f"{stem}_{k}" in placed}
            return Operand(stem, kind, (name,), strides, psum="PSUM" in placed[name].doc, **parts)
    if f"{name}_mode" in placed:
        return Operand(name, "scalar", (name,), mode=f"{name}_mode")
    return Operand(name, "field", (name,))


@lru_cache(maxsize=None)
def operands(instruction_name):
    """{key: Operand} of an instruction, in the order of its fields."""
    placed, out, taken = BY_NAME[instruction_name].placed, {}, set()
    for name in placed:
        if name not in taken:
            operand = _one(name, placed)
            out[operand.key] = operand
            taken |= operand.all_fields
    return out


def optional(operand, instruction, flags):
    """The operand may be left out: it has a mode `none`, zero is legal, or `keep` makes it idle."""
    if operand.kind == "field":
        rules = [r for r in instruction.rules if r.kind == "values" and r.args[0] == operand.key]
        return all(0 in r.args[1] for r in rules) and not operand.key.endswith("_type")
    return operand.kind == "shape" or bool(operand.mode) or ("keep" in flags and operand.key == "w")
