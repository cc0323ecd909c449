"""Blocks: compiled once, called on the clock edge; modules that cannot be blocks are refused."""

import numpy as np
import pytest
from copy_core import BASE, copy_core

from tb.blocks import CHECKED, BlockError, closure, ports, replace, split
from tb.runner import Rtl, RtlError

CELL = """module cell(clk, a, q);
  input clk;
  input [39:0] a;
  output [39:0] q;
  \\cell.inner  inner (
    .d(a)
  );
endmodule
module \\cell.inner (d);
  input d;
endmodule
module other(clk);
  input clk;
endmodule
"""


def test_block_gives_the_same(make_copy):
    plain, block = make_copy(), make_copy(blocks=("total",))
    for run in (plain, block, plain):  # two simulations at once, of two libraries
        assert run.go() and run.copied() and run.rtl.csr_read(0x20) == run.expected_sum()
    assert "total_clock" in (block.rtl.library_path.parent / "top.v").read_text()
    assert plain.rtl.cycles == 2 * block.rtl.cycles - 4  # reset once


def test_two_simulations_of_one_library(make_copy):
    first, second = make_copy(blocks=("total",)), make_copy(blocks=("total",))
    assert first.rtl.library_path == second.rtl.library_path
    assert first.go()
    first.rtl.close()
    assert second.go() and second.rtl.csr_read(0x20) == second.expected_sum()


def test_combinational_path_is_found():
    leaky = copy_core(64).replace("assign sum = kept;", "assign sum = kept ^ {32{add}};")
    assert leaky != copy_core(64)
    with Rtl(leaky, blocks=("total",)) as rtl:
        rtl.set_memory(np.full(2 * 32 * 8, 7, np.uint8), BASE)
        rtl.reset()
        for address, value in ((0x4, BASE), (0x8, BASE + 32 * 8), (0xC, 32), (0x10, 1)):
            rtl.csr_write(address, value)
        with pytest.raises(RtlError, match="combinational path .* in total"):
            rtl.run(CHECKED)


def test_closure_and_ports():
    modules = split(CELL)
    assert list(modules) == ["cell", "cell.inner", "other"]
    assert closure(modules, "cell") == ["cell", "cell.inner"]
    assert [(p.name, p.width, p.output) for p in ports("cell", modules["cell"])] == [("a", 40, False), ("q", 40, True)]


def test_what_cannot_be_a_block():
    with pytest.raises(BlockError, match="no module cel"):
        replace(CELL, ["cel"])
    with pytest.raises(BlockError, match="other cannot be a block: it needs clk and an output"):
        replace(CELL, ["other"])
    with pytest.raises(BlockError, match="inner cannot be a block"):
        replace(CELL, ["cell.inner"])
    with pytest.raises(BlockError, match="a__b"):
        replace(CELL.replace("40:0] a;", "40:0] a__b;").replace("[39:0] a;", "[39:0] a__b;"), ["cell"])
