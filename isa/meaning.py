"""What each instruction does, on the golden machine: the `execute` column of the instruction table."""

from isa import meaning_compute as compute
from isa import meaning_dma as dma

MEANING = {
    "nop": lambda machine, values, access: None,
    "mark": lambda machine, values, access: None,
    "mm": compute.mm, "act": compute.act, "tab": compute.tab,
    "alu": compute.alu, "red": compute.red, "sel": compute.sel, "gen": compute.gen,
    "ld": dma.ld, "st": dma.st, "mv": dma.mv, "cp": dma.cp, "gat": dma.gat, "sca": dma.sca,
}


def execute(machine, instruction, values, access):
    """Carry out one instruction whose waits are met and whose static rules hold."""
    MEANING[instruction.name](machine, values, access)
