"""Verilog of a configuration: the core with every cell emitted once, its ports, and a manifest."""

import json
import os
from pathlib import Path

from hw.cell import collecting, quiet
from hw.core import Core, axi_master
from hw.csr import axi_lite
from hw.emit import convert
from isa.registers import REGISTERS
from isa.version import ISA_VERSION

TOP = "top"


def ports(config):
    """[(name, direction, bits)] of the top module, in a fixed order."""
    core = Core(config)
    quiet(core)
    names = ["clk", "rst", "irq", *(f"m_axi_{n}" for n in axi_master(config.axi_data_bits)),
             *(f"s_axil_{n}" for n in axi_lite())]
    return [(n, "input" if core.signature.members[n].flow.name == "In" else "output", len(getattr(core, n)))
            for n in names]


def generate(config):
    """(Verilog text, names of the cell modules) of the whole core; the top module is called `top`."""
    core = Core(config)
    with collecting() as cells:
        text = convert(core, TOP, ports=[getattr(core, n) for n, _, _ in ports(config)])
    return cells.text + text, sorted(cells.modules)


def write_verilog(config, folder):
    """Write `top.v`, `ports.json` and `manifest.json` into `folder`, each whole or not at all; returns their paths."""
    text, cells = generate(config)
    manifest = {"config": config.to_json(), "config_hash": f"{config.hash:#018x}", "isa_version": ISA_VERSION,
                "top": TOP, "cells": cells,
                "registers": [{"name": r.name, "address": r.addr, "access": r.access, "doc": r.doc}
                              for r in REGISTERS]}
    listing = [{"name": n, "direction": d, "bits": b} for n, d, b in ports(config)]
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, content in ((f"{TOP}.v", text), ("ports.json", json.dumps(listing, indent=1)),
                          ("manifest.json", json.dumps(manifest, indent=1))):
        partial = folder / f".{name}.{os.getpid()}"
        partial.write_text(content)
        partial.replace(folder / name)
        written.append(folder / name)
    return written
