"""Constants that the Verilog writer would lose: every process reads something."""

import re

import pytest
from amaranth import Module
from amaranth.lib import data, wiring

from hw.emit import convert, run_constants
from hw.top import generate
from isa.config import preset


class Part(wiring.Component):
    """Three fields of one signal: constant, conditional, and a constant after it."""

    def __init__(self):
        super().__init__({"go": wiring.In(1), "o": wiring.Out(data.StructLayout({"low": 8, "mid": 8, "top": 8}))})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [self.o.low.eq(4), self.o.top.eq(0x5A)]
        with m.If(self.go):
            m.d.comb += self.o.mid.eq(1)
        return m


def processes(text):
    """Bodies of the combinational processes."""
    return re.findall(r"^  always @\*(.*?)(?=^  (?:always|assign|end\b|reg|wire|initial)|^  \\|^endmodule)", text, re.M | re.S)


def reads(body):
    """Whether a process reads any name."""
    without_targets = re.sub(r"^\s*[^=\n]+ <?= ", "", body, flags=re.M)
    return re.search(r"[A-Za-z_\\]", re.sub(r"\d+\'[shbdo]+[0-9a-fxz]+|\b(begin|end)\b", "", without_targets)) is not None


def test_part():
    text = convert(Part(), "part")
    assert text.count("if (emit_once) begin end") == 2 and text.count("reg emit_once = 0;") == 1


def test_only_constants_change():
    text = "module a(x);\n  always @*\n    y = x;\n  always @*\n    z = 4'h2;\nendmodule"
    changed = run_constants(text)
    assert "    y = x;" in changed and changed.count("emit_once") == 2


@pytest.mark.parametrize("config", ["tiny", "edge"])
def test_core(config):
    text, _ = generate(preset(config))
    found = processes(text)
    assert len(found) > 100
    silent = [body for body in found if not reads(body)]
    assert not silent, silent[:3]
