"""The reference manual, `docs/isa.md`, from the instruction table: `python -m isa.manual` writes it.

Tables come from the data that encoder, decoder and golden machine use; only what is not data is prose, here.
"""

from pathlib import Path

from isa import activation
from isa.dtypes import DType
from isa.fields import HEAD, HEAD_BITS, INSTRUCTION_BITS, INSTRUCTION_BYTES
from isa.legality import PE_TYPES, TRAP_OF
from isa.manual_text import NUMBERS, ORDER, PREFACE, TRAP_DOC
from isa.ops import COMPARES, FLOAT_OPS, INT_OPS, UNARY, AluOp, Func, TableMode
from isa.registers import REGISTERS, Trap
from isa.table import ALL_TYPES, INSTRUCTIONS, QUEUES, Acc, Mode
from isa.version import ISA_VERSION

PATH = Path(__file__).parents[1] / "docs" / "isa.md"
OPERATIONS = {"ADD": "x + a", "SUB": "x - a", "MUL": "x * a", "MAX": "the larger", "MIN": "the smaller", "EQ": "x = a",
              "NE": "x ≠ a", "GT": "x > a", "GE": "x ≥ a", "LT": "x < a", "LE": "x ≤ a", "ABS": "magnitude of x",
              "BYPASS": "x", "AND": "bitwise", "OR": "bitwise", "XOR": "bitwise", "SHL": "x << (a mod 32)",
              "SHR": "x >> (a mod 32), zeros come in", "SAR": "x >> (a mod 32), the sign comes in"}


def table(head, rows):
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(str(c).replace("|", "\\|") for c in line) + " |" for line in lines] + [""]


def _bits(f):
    return f"{f.offset + f.bits - 1}:{f.offset}" if f.bits > 1 else str(f.offset)


def _fields(fields):
    kind = {(False, False): "unsigned", (True, False): "signed", (False, True): "minus one"}
    return table(["bits", "field", "width", "stored", "meaning"],
                 [[_bits(f), f"`{f.name}`", f.bits, f"over `{f.over}`" if f.over else kind[f.signed, f.minus_one], f.doc]
                  for f in fields])


def _set(name, choices):
    if name.endswith("_type"):
        return "any element type" if set(choices) == ALL_TYPES else ", ".join(DType(c).label for c in sorted(choices))
    return ", ".join(map(str, sorted(choices)))


def rule_text(rule):
    """A legality rule in words."""
    a = [f"`{x}`" if isinstance(x, str) else x for x in rule.args]
    return {
        "partitions": lambda: f"{a[0]} + {a[1]} is at most `lanes`",
        "lane": lambda: f"{a[0]} is below `lanes`",
        "aligned": lambda: f"{a[0]} is a multiple of {a[1] if isinstance(a[1], int) else 'the size of ' + a[1]}",
        "types": lambda: f"{a[0]}: {_set(rule.args[0], rule.args[1])}",
        "values": lambda: f"{a[0]} is one of {_set(rule.args[0], rule.args[1])}",
        "psum32": lambda: f"{a[0]} in PSUM has a type of four bytes",
        "pe_types": lambda: f"{a[0]} is a type that the PEs take",
        "free512": lambda: f"{' × '.join(a)} is at most 512",
        "scalar": lambda: f"{a[1]}, where {a[0]} is partition: bits 22 to 31 are zero, a legal type, an aligned address",
        "b_operand": lambda: f"{a[1]}, where {a[0]} is partition or tensor: a legal type, an aligned address, and four "
                             "bytes in PSUM",
        "alu_op": lambda: f"{a[0]} exists in the instruction's class",
        "int_types": lambda: f"with `int`, {' and '.join(a)} are int8, uint8 or int32",
        "one_psum": lambda: f"{a[0]} and {a[1]} are not both in PSUM",
        "same": lambda: f"{a[0]} = {a[1]}",
    }[rule.kind]()


def _instruction(i):
    out = [f"### `{i.name}`", "", f"Opcode {i.opcode:#04x}, queue: {i.queue}. {i.doc}", ""]
    if i.reserved:
        return out
    flags = [f"`{name}` (bit {8 + bit})" for bit, name in enumerate(i.flags) if name]
    if flags:
        out += [f"Flags: {', '.join(flags)}.", ""]
    if i.placed:
        out += _fields(i.placed.values())
        out += [f"Bits {i.end} to {INSTRUCTION_BITS - 1} are reserved: {i.end} of {INSTRUCTION_BITS} are used.", ""]
    if i.rules:
        out += ["Checked in this order before the start:", ""]
        out += [f"{n}. {rule_text(r)} ({TRAP_OF[r.kind].name})" for n, r in enumerate(i.rules, 1)] + [""]
    return out


def _types():
    return table(["code", "type", "bytes", *(f"{kind} PEs" for kind in PE_TYPES)],
                 [[int(t), t.label, t.size_bytes, *("yes" if t in taken else "" for taken in PE_TYPES.values())]
                  for t in DType])


def _operations():
    return table(["code", "operation", "result", "float class", "integer class", "second operand"],
                 [[int(o), o.name.lower(), OPERATIONS[o.name] + (" ? 1 : 0" if o in COMPARES else ""),
                   "yes" if o in FLOAT_OPS else "", "yes" if o in INT_OPS else "", "" if o in UNARY else "yes"]
                  for o in AluOp])


def _codes(*enums):
    out = []
    for title, enum in enums:
        out += [f"{title}: " + ", ".join(f"{int(e)} {e.name.lower()}" for e in enum) + "."]
    return out + [""]


def _traps():
    kinds = {t: ", ".join(f"`{k}`" for k, v in TRAP_OF.items() if v == t) for t in Trap}
    return table(["code", "trap", "meaning", "static rules"],
                 [[int(t), t.name, TRAP_DOC[t.name], kinds[t]] for t in Trap])


def _registers():
    return table(["address", "register", "access", "meaning"],
                 [[f"{r.addr:#05x}", f"`{r.name}`", r.access, r.doc] for r in REGISTERS if not r.name.startswith("q")
                  or r.name.startswith("q0")])


def manual():
    """Text of the manual."""
    out = ["# Systolith: instruction set reference", "", f"ISA version {ISA_VERSION}. Generated by `python -m isa.manual` "
           "from the instruction table; do not edit.", "", PREFACE.strip(), "", "## Encoding", "",
           f"An instruction is {INSTRUCTION_BYTES} bytes, little-endian. All begin with the same head of {HEAD_BITS} bits. "
           "A field stores an unsigned or two's complement value; `minus one` fields store their value less one. Bits that "
           "belong to no field or named flag must be zero.", ""]
    out += _fields(HEAD.values())
    out += ["Queues, in the order of mask bits and wait counts: " + ", ".join(QUEUES) + ". `ext` is the external count.", ""]
    out += ["## Order", "", ORDER.strip(), "", "## Element types", ""] + _types()
    out += ["## Operations and functions", ""] + _operations()
    out += ["`rev0` and `rev1` swap the operands of `op0` and `op1`. An absent second operand counts as zero.", ""]
    out += _codes(("Functions of `act`", Func), ("Operand modes", Mode), ("Running sum (`acc`)", Acc),
                  ("Range reductions of a table", TableMode))
    out += ["Functions 8 to 11 are the table slots 0 to 3.", "", "## Instructions", ""]
    for i in INSTRUCTIONS:
        out += _instruction(i)
    out += ["## Numbers", "", NUMBERS.strip(), "", "### Activation tables", "", "```text",
            activation.__doc__.strip(), "```", "", "## Traps", ""]
    out += _traps()
    out += ["## Registers", "", "AXI4-Lite, 32 bits wide. Queue q's registers follow queue 0's; their names begin with `q1` "
            "to `q6`.", ""]
    out += _registers()
    return "\n".join(out).rstrip() + "\n"


def main():
    """Write the manual."""
    PATH.write_text(manual(), encoding="utf-8")
    print(PATH)


if __name__ == "__main__":
    main()
