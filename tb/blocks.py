"""Blocks: modules that occur many times, compiled once, and called on their clock edge.

Verilator writes the C++ of every instance of a module again; a large array then no longer fits the caches of the
machine that simulates it. A block is verilated alone, and its instances become stubs that call the one compiled
model, each with its own state. A stub calls at the rising edge of its clock only, so every output of a block must come
from a register: each instance tests that, in its first CHECKED clock cycles, and the simulation stops if it does not hold.
"""

import re
from dataclasses import dataclass

CHECKED = 500
MODULE = re.compile(r"^module (\\?[^ (]+) *\(.*?^endmodule\n?", re.M | re.S)
PORT = re.compile(r"^  (input|output) (?:reg |wire )?(?:\[(\d+):0\] )?(\w+);", re.M)
INSTANCE = re.compile(r"^  (\\?\S+) +\\?\S+ +\(", re.M)


class BlockError(ValueError):
    """A module that cannot be a block; the message says why."""


@dataclass(frozen=True)
class Port:
    """A port of a block; width in bits."""

    name: str
    width: int
    output: bool

    @property
    def declaration(self):
        return f"{'output' if self.output else 'input'} bit [{self.width - 1}:0] {self.name}"

    @property
    def argument(self):
        return f"{'' if self.output else 'const '}svBitVecVal* {self.name}"


def split(text):
    """{module name: text} of Verilog `text`, in its order."""
    return {match[1].lstrip("\\"): match[0] for match in MODULE.finditer(text)}


def closure(modules, name):
    """Names of the modules that `name` is made of, itself included."""
    found, todo = [], [name]
    while todo:
        now = todo.pop()
        if now not in found:
            found.append(now)
            todo += [n for n in (m[1].lstrip("\\") for m in INSTANCE.finditer(modules[now])) if n in modules]
    return found


def ports(name, text):
    """The ports of a block's Verilog without its clock, inputs first; BlockError if it has none called clk."""
    found = [Port(m[3], int(m[2] or 0) + 1, m[1] == "output") for m in PORT.finditer(text)]
    odd = [p.name for p in found if "__" in p.name]
    if "clk" not in [p.name for p in found] or odd or not any(p.output for p in found):
        raise BlockError(f"module {name} cannot be a block: it needs clk and an output, and no __ in a port's name {odd}")
    return sorted((p for p in found if p.name != "clk"), key=lambda p: p.output)


def stub(name, listed):
    """Verilog of the module that stands for block `name`."""
    outputs = [p for p in listed if p.output]
    call = ", ".join(["handle", *(p.name if not p.output else f"{p.name}_next" for p in listed)])
    got = ", ".join(["handle", *(f"{p.name}_next" for p in outputs)])
    return "\n".join([
        f"module {name}(input bit clk, {', '.join(p.declaration for p in listed)});",
        f'  import "DPI-C" function chandle {name}_new(input string scope);',
        f'  import "DPI-C" function void {name}_delete(input chandle handle);',
        f'  import "DPI-C" function void {name}_get(input chandle handle, {", ".join(p.declaration for p in outputs)});',
        f'  import "DPI-C" function void {name}_clock(input chandle handle, {", ".join(p.declaration for p in listed)});',
        "  chandle handle;",
        *(f"  bit [{p.width - 1}:0] {p.name}_next;" for p in outputs),
        f'  initial begin handle = {name}_new($sformatf("%m")); {name}_get({got});',
        *(f"    {p.name} = {p.name}_next;" for p in outputs),
        "  end",
        f"  final {name}_delete(handle);",
        f"  always @(posedge clk) begin {name}_clock({call});",
        *(f"    {p.name} <= {p.name}_next;" for p in outputs),
        "  end", "endmodule", ""])


def glue(name, listed):
    """C++ between the stub and the block's model `V{name}`."""
    inputs, outputs = [p for p in listed if not p.output], [p for p in listed if p.output]
    arguments = ", ".join(["void* handle", *(p.argument for p in listed)])
    return "\n".join([
        f'#include "V{name}.h"', '#include "block.h"', f"using Model = Block<V{name}>;", 'extern "C" {',
        f"void* {name}_new(const char* scope) {{ return create<V{name}>(scope); }}",
        f"void {name}_delete(void* handle) {{ discard(static_cast<Model*>(handle)); }}",
        f"void {name}_get({', '.join(['void* handle', *(p.argument for p in outputs)])}) {{",
        "  auto& top = static_cast<Model*>(handle)->top;",
        *(f"  get(top.{p.name}, {p.name});" for p in outputs), "}",
        f"void {name}_clock({arguments}) {{",
        "  auto& model = *static_cast<Model*>(handle);", "  auto& top = model.top;",
        *(f"  put(top.{p.name}, {p.name});" for p in inputs),
        f"  if (VL_UNLIKELY(model.calls < {CHECKED})) {{",
        *(f"    const auto before_{p.name} = top.{p.name};" for p in outputs),
        "    top.eval();",
        f"    model.check({' && '.join(f'same(top.{p.name}, before_{p.name})' for p in outputs)}, \"{name}\");", "  }",
        "  model.edge();", *(f"  get(top.{p.name}, {p.name});" for p in outputs), "}", "}", ""])


def replace(text, names):
    """(`text` with stubs for the blocks `names`, {name: (Verilog, C++ glue)})."""
    modules = split(text)
    missing = [n for n in names if n not in modules]
    if missing:
        raise BlockError(f"no module {', '.join(missing)} to make a block of")
    made = {}
    for name in names:
        listed = ports(name, modules[name])
        made[name] = "".join(modules[n] for n in closure(modules, name)), glue(name, listed)
        modules[name] = stub(name, listed)
    return "".join(modules.values()), made
