"""Repairs of the Verilog's text: memories of zeros, signals of no width."""

import pytest

from hw.emit import NO_WIDTH, zero_loops

MEMORY = """  reg [7:0] {name} [3:0];
  initial begin
    {name}[0] = 8'd0;
    {name}[1] = 8'd0;
    {name}[2] = 8'd0;
    {name}[3] = 8'd{last};
  end
  always @(posedge clk)
"""


@pytest.mark.parametrize("name", ["words", "\\a.b$1 "])
def test_zeros_become_a_loop(name):
    text = zero_loops(MEMORY.format(name=name, last=0))
    assert text.count("_at <= 3;") == 1 and "[2] = 8'd0" not in text
    assert text.startswith("  reg [7:0]") and text.endswith("  always @(posedge clk)\n")


def test_other_contents_stay():
    text = MEMORY.format(name="words", last=5)
    assert zero_loops(text) == text
    short = text.replace("    words[3] = 8'd5;\n", "")
    assert zero_loops(short) == short


def test_signals_of_no_width_go():
    assert NO_WIDTH.sub("", "  wire [-1:0] \\beat$1 ;\n  wire [1:0] beat;\n  reg [-1:0] x;\n") == "  wire [1:0] beat;\n"
