"""The core under cocotb with third-party AXI models: programs equal golden, with back-pressure, twice without reset."""

import pytest

from isa.config import preset
from tb import cocotb_run
from tb.cocotb_suite import CONFIG, comparison, programs
from tb.driver import verilog

PROGRAMS = list(programs())


def test_there_are_programs():
    assert len(PROGRAMS) >= 3


@pytest.mark.parametrize("name,program,inputs", PROGRAMS, ids=[p[0] for p in PROGRAMS])
def test_program(name, program, inputs):
    assert cocotb_run.run(verilog(preset(CONFIG)), comparison(program, inputs), seed=5, pause=0.3) >= 1


def test_wrong_result_fails():
    """One expected byte changed is found: the comparison compares."""
    _, program, inputs = PROGRAMS[0]
    wrong = comparison(program, inputs)
    wrong["expected_mem"][program.tensors["y"].offset] ^= 1
    with pytest.raises(cocotb_run.CocotbError, match="1 bytes differ"):
        cocotb_run.run(verilog(preset(CONFIG)), wrong, seed=5, pause=0.3, repeat=1)
