"""Verilog text from a component, with three repairs.

Signals of no width are declared as [-1:0], which is two bits in Verilog; nothing uses them, and they are left out.

A memory of zeros is initialised word by word, in thousands of lines; a loop says the same.

Where part of a signal is constant, the Verilog writer emits `always @*` around an assignment that reads nothing. By
the language's rules such a block never runs, so in simulation the constant is never there (synthesis sees it). Each
one gets something to be sensitive to: a register that is initialised and never changes, which triggers the block once.
"""

import re

from amaranth.back import verilog

PLAIN = str.maketrans("$.[]", "____")
DUMMY = "emit_once"
NEVER_RUNS = re.compile(r"^  always @\*\n    ([^\n=]+= (?:\d+'[shbdo]+[0-9a-fxz]+|\{[^a-zA-Z\\$}]*\}));$", re.M)
NO_WIDTH = re.compile(r"^  (?:wire|reg) \[-1:0\] \S+ ?;\n", re.M)
ZEROS = re.compile(r"^  reg \[(\d+):0\] (\S+) +\[(\d+):0\];\n  initial begin\n((?:    \2 *\[\d+\] = \d+'[bhd]0+;\n)+)  end\n",
                   re.M)
MODULE = re.compile(r"^module .*?^endmodule", re.M | re.S)


def run_constants(text):
    """`text` in which every process of one constant assignment runs once at the start."""
    def module(match):
        body, count = NEVER_RUNS.subn(rf"  always @* begin\n    if ({DUMMY}) begin end\n    \1;\n  end", match[0])
        return body.replace(");", f");\n  reg {DUMMY} = 0;", 1) if count else body
    return MODULE.sub(module, text)


def zero_loops(text):
    """`text` with a loop where all words of a memory are set to zero one by one."""
    def loop(match):
        width, name, last, lines = match.groups()
        if lines.count("\n") != int(last) + 1:
            return match[0]
        label = "zero_" + name.lstrip("\\").translate(PLAIN)
        return (f"  reg [{width}:0] {name} [{last}:0];\n  initial begin : {label}\n    integer {label}_at;\n"
                f"    for ({label}_at = 0; {label}_at <= {last}; {label}_at = {label}_at + 1) {name} [{label}_at] = 0;\n  end\n")
    return ZEROS.sub(loop, text)


def convert(component, name, **options):
    """Verilog of `component` as module `name`."""
    text = verilog.convert(component, name=name, emit_src=False, strip_internal_attrs=True, **options)
    return run_constants(zero_loops(NO_WIDTH.sub("", text)))
