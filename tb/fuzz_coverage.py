"""What the fuzzer ran: instructions, their element types, modes and flags, from the instruction table; and buses."""

from collections import Counter

from rich.table import Table

from isa.dtypes import DType
from isa.encode import decode
from isa.legality import ALU_FLOAT, ALU_INT, PE_TYPES
from isa.table import INSTRUCTIONS, Mode


def points(instruction, config):
    """Every (field or flag, value) that a legal instruction can have, of those with few values."""
    out = [(flag, value) for flag in instruction.flags if flag for value in (False, True)]
    for rule in instruction.rules:
        if rule.kind in ("values", "types"):
            out += [(rule.args[0], int(v)) for v in rule.args[1]]
        elif rule.kind == "pe_types":
            out += [(rule.args[0], int(v)) for v in PE_TYPES[config.pe]]
        elif rule.kind == "alu_op":
            out += [(rule.args[0], int(v)) for v in ALU_FLOAT | ALU_INT]
        elif rule.kind == "b_operand":
            out += [(rule.args[0], int(v)) for v in Mode]
        elif rule.kind == "psum32":
            out += [(f"{rule.args[0]}_space", v) for v in (0, 1)]
    return [p for p in out if p != ("y_space", 1)]


class Coverage:
    """Counts of (instruction), and of (instruction, field, value)."""

    def __init__(self):
        self.instructions, self.values = Counter(), Counter()
        self.latencies, self.stalled = Counter(), 0

    def add(self, program):
        self.latencies[program.bus["latency"]] += 1
        self.stalled += program.bus["stall"] > 0
        for item in program.items:
            instruction, v = decode(item.word)
            self.instructions[instruction.name] += 1
            self.values.update((instruction.name, key, value) for key, value in v.items()
                               if key.endswith(("_type", "_mode", "_space")) or key in instruction.flags
                               or instruction.placed.get(key) is not None and instruction.placed[key].bits <= 5)

    def missing(self, config):
        """Names of the points that no instruction had."""
        return [f"{i.name} {key}={value}" for i in INSTRUCTIONS if not i.reserved for key, value in points(i, config)
                if not self.values[i.name, key, value]] + [
                    i.name for i in INSTRUCTIONS if not i.reserved and not self.instructions[i.name]]

    def buses(self):
        """How many programs had which latency, and stalls."""
        return ", ".join(f"{n} at latency {c}" for c, n in sorted(self.latencies.items())) + f"; {self.stalled} with stalls"

    def table(self, title):
        """Instructions by element types of their operands."""
        table = Table("instruction", "count", *(t.label for t in DType), title=title)
        total = Counter()
        for i in INSTRUCTIONS:
            if not i.reserved:
                types = [sum(n for (name, key, value), n in self.values.items()
                             if name == i.name and key.endswith("_type") and value == t) for t in DType]
                total.update(dict(zip(DType, types)))
                table.add_row(i.name, f"{self.instructions[i.name]:,}", *(f"{n:,}" if n else "" for n in types))
        table.add_row("all", f"{sum(self.instructions.values()):,}", *(f"{total[t]:,}" for t in DType))
        return table
