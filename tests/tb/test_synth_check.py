"""The Verilog synthesises without latches and loops; planted faults are found."""

import pytest

from isa.config import preset
from tb.generate import generated
from tb.synth_check import check


def test_core():
    assert check(generated(preset("tiny"))[0]) == []


def test_good_module():
    assert check("module good(input clk, input a, output reg q); always @(posedge clk) q <= a; endmodule", "good") == []


@pytest.mark.parametrize("body,word", [
    ("always @* if (a) q = b;", "atch"), ("wire x; assign x = x ^ a; always @* q = x;", "loop"),
    ("wire x; always @* q = x & a;", "no driver"), ("wire x; assign x = a; assign x = b; always @* q = x;", "multiple"),
    ("always @* q = a +;", "syntax"), ("missing m(.a(a)); always @* q = a;", "missing")])
def test_faults_are_found(body, word):
    found = check(f"module bad(input a, input b, output reg q); {body} endmodule", "bad")
    assert any(word in line for line in found), found
