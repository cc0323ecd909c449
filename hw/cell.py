"""Cells: components that occur many times and are emitted once.

Amaranth emits one Verilog module per instance, which makes a 16x16 array slow to write and slower to compile. `place`
adds a component as an ordinary submodule when the design is simulated in Python; while a `CellLibrary` is
active it adds an instance of a module that the library emits a single time.
"""

import re
from contextlib import contextmanager

from amaranth import ClockSignal, Instance, ResetSignal

from hw.emit import convert

_active = None


class CellLibrary:
    """Collects the Verilog of every distinct cell while a design is converted."""

    def __init__(self):
        self.modules = {}  # name -> (Verilog text, has rst port)

    def add(self, name, component):
        """Emit `component` as module `name` unless that is done already."""
        if name not in self.modules:
            text = convert(component, name)
            header = re.search(rf"^module {re.escape(name)}\((.*?)\);", text, re.M | re.S).group(1)
            ports = {p.strip() for p in header.split(",")}
            self.modules[name] = (text, "clk" in ports, "rst" in ports)
        return self.modules[name]

    @property
    def text(self):
        """Verilog of all cells."""
        return "\n".join(module[0] for module in self.modules.values())


@contextmanager
def _use(library):
    global _active
    before, _active = _active, library
    try:
        yield library
    finally:
        _active = before


def collecting():
    """Context in which `place` instantiates cells and collects them in the library it yields."""
    return _use(CellLibrary())


def quiet(component):
    """A component that only lends its signals need not be elaborated: no warning about it."""
    component._MustUse__silence = True


def place(m, name, component, module):
    """Put `component` into `m` as `name`; components given one `module` name must be identical."""
    if _active is None:
        m.submodules[name] = component
        return component
    _text, has_clk, has_rst = _active.add(module, component)
    ports = {}
    for path, member, value in component.signature.flatten(component):
        ports[("i_" if member.flow.name == "In" else "o_") + "__".join(map(str, path))] = value
    if has_clk:
        ports["i_clk"] = ClockSignal()
    if has_rst:
        ports["i_rst"] = ResetSignal()
    m.submodules[name] = Instance(module, **ports)
    quiet(component)
    return component
