"""Verilog of a configuration: the core with every cell emitted once, and its ports."""

from hw.cell import collecting, quiet
from hw.core import Core, axi_master
from hw.csr import axi_lite
from hw.emit import convert

TOP = "top"


def ports(config):
    """[(name, direction, bits)] of the top module, in a fixed order."""
    core = Core(config)
    quiet(core)
    names = ["clk", "rst", "irq", *(f"m_axi_{n}" for n in axi_master(config.axi_data_bits)),
             *(f"s_axil_{n}" for n in axi_lite())]
    return [(n, "input" if core.signature.members[n].flow.name == "In" else "output", len(getattr(core, n)))
            for n in names]


def generate(config, gated=False):
    """(Verilog text, names of the cell modules) of the whole core; the top module is called `top`."""
    core = Core(config)
    with collecting(gated) as cells:
        text = convert(core, TOP, ports=[getattr(core, n) for n, _, _ in ports(config)])
    return cells.text + text, sorted(cells.modules)
