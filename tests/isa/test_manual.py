"""docs/isa.md is what the table says now."""

import re

from isa.manual import PATH, manual
from isa.registers import REGISTERS, Trap
from isa.table import INSTRUCTIONS


def test_not_stale():
    assert PATH.read_text(encoding="utf-8") == manual(), "run: python -m isa.manual"


def test_complete():
    text = manual()
    for i in INSTRUCTIONS:
        part = text.split(f"### `{i.name}`")[1].split("\n### ")[0]
        assert f"{i.opcode:#04x}" in part
        if not i.reserved:
            assert all(f"| `{f}` |" in part for f in i.placed)
            assert all(f"`{f}` (bit" in part for f in i.flags if f)
            assert len(re.findall(r"^\d+\. ", part, re.M)) == len(i.rules)
    assert all(f"| {t.name} |" in text for t in Trap)
    assert all(f"`{r.name}`" in text for r in REGISTERS if not re.match(r"q[1-6]_", r.name))


def test_tables_are_well_formed():
    """Rows of one table have as many cells as its head."""
    width = None
    for line in manual().split("\n"):
        if not line.startswith("|"):
            width = None
            continue
        cells = len(re.findall(r"(?<!\\)\|", line)) - 1
        assert width in (None, cells), line
        width = cells
