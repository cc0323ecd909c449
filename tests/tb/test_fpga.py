"""tb.fpga without its tools: the ring, the registry, missing tools, and a report that outlives a broken block."""

import json
import re

import pytest
from amaranth.back import verilog
from rich.console import Console

from hw.pe import PE
from tb import fpga


def test_ring_has_two_data_pins_and_registers_every_port():
    ring = fpga.Ring(PE("int8"))
    assert len(ring.inputs) == 8 + 1 + 1 + 8 + 1 + 32
    assert len(ring.outputs) == 8 + 1 + 1 + 8 + 32
    assert ring.own_cells == {"lut4": 50 + 50, "ff": 51 + 100}
    text = verilog.convert(ring, ports=[ring.serial_in, ring.serial_out], name="ring", emit_src=False)
    pins = re.search(r"^module ring\((.*?)\);", text, re.M | re.S).group(1)
    assert {p.strip() for p in pins.split(",")} == {"serial_in", "serial_out", "clk", "rst"}


@pytest.mark.parametrize("name", [n for n in fpga.ALL if "-edge" not in n and n != "Core-tiny"])
def test_every_part_can_be_emitted(name):
    ring = fpga.Ring(fpga.factory(name)())
    text = verilog.convert(ring, ports=[ring.serial_in, ring.serial_out], name="ring", emit_src=False)
    assert text.count("endmodule") >= 2 and ring.own_cells["ff"] > 0


def test_missing_tool_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(fpga.sys, "executable", "/nowhere/python")
    monkeypatch.setattr(fpga.shutil, "which", lambda name: None)
    monkeypatch.setattr(fpga, "factory", lambda name: object)  # nothing is built before the tools are found
    assert fpga.main(["PE-int8"]) == 2
    assert "pip install -e '.[fpga]'" in capsys.readouterr().err


def test_unknown_block_lists_the_known(capsys):
    with pytest.raises(SystemExit):
        fpga.main(["PE-fp4"])
    assert "PE-tf32" in capsys.readouterr().err


def test_report_goes_on_after_a_broken_block(monkeypatch, tmp_path):
    row = {"lut4": 1, "ff": 2, "mult": 0, "bram": 0, "fmax_mhz": 100.0}
    monkeypatch.setattr(fpga, "BUILD", tmp_path)
    monkeypatch.setattr(fpga, "measure", lambda block, name: dict(row))

    def broken():
        raise ImportError("no such block")

    console = Console(record=True, width=120)
    fpga.report([("bad", broken), ("good", object)], console)
    row |= {"asked_mhz": 0, "reached": True}
    assert json.loads((tmp_path / "fpga.json").read_text()) == {
        "bad": {"error": "ImportError: no such block"}, "good": row}
    assert "no such block" in console.export_text()


def test_too_slow_is_a_failure(monkeypatch, tmp_path, capsys):
    row = {"lut4": 1, "ff": 2, "mult": 0, "bram": 0, "fmax_mhz": 139.9}
    monkeypatch.setattr(fpga, "BUILD", tmp_path)
    monkeypatch.setattr(fpga, "measure", lambda block, name: dict(row))
    assert fpga.main(["PE-int8"]) == 1 and "MISSED" in capsys.readouterr().out
    assert fpga.main(["PE-bf16"]) == 0


def test_large_memories_as_registers_are_found():
    small, large = (f"module \\top.{name} (a);\n  reg {size};\nendmodule\n"
                    for name, size in (("small", "[0:0] storage [3:0]"), ("large", "[31:0] storage [63:0]")))
    text = small + large
    log = "using FF mapping for memory ring.block.{}.storage\n"
    assert fpga.large_registers(text, log.format("small")) == []
    assert fpga.large_registers(text, log.format("large")) == ["ring.block.large.storage"]
    assert fpga.large_registers(text, "mapping memory ring.block.large.storage via $__ECP5_DP16KD_") == []
