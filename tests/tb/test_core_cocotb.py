"""The core under cocotb with third-party AXI models: programs equal golden, with back-pressure, twice without reset."""

import numpy as np
import pytest

from isa import registers as reg
from isa.config import preset
from sw.compiler import compile_matmul
from sw.device import Device, initial_dram
from tb import cocotb_run
from tb.driver import DRAM_BASE, addressed, layout, verilog
from tb.suite import assembly, random_values

CONFIG = preset("tiny")


def case(program, inputs):
    """The arrays that `tb.cocotb_run` takes, with golden's DRAM as what is expected."""
    image, _ = initial_dram(program, inputs)
    memory, registers = layout(program.config, program.queues, image)
    expected = memory.copy()
    expected[:image.size] = Device(program.config).run(program, inputs).dram
    writes = [pair for name, value in registers.items() for pair in addressed(name, value)]
    writes.append((reg.ADDRESS["control"], reg.START))
    return {"mem_init": memory, "csr_writes": np.array(writes, np.uint64), "expected_mem": expected,
            "base": np.uint64(DRAM_BASE),
            "csr_expect": np.array([[reg.ADDRESS["status"], reg.DONE | reg.BUS_IDLE, 0x1F]], np.uint64)}


@pytest.mark.parametrize("name", ["matmul", "examples/add.sys", "examples/relu_matmul.sys"])
def test_program(name):
    if name == "matmul":
        rng = np.random.default_rng(3)
        program = compile_matmul(CONFIG, 13, 11, 9, "bf16")
        inputs = {"x": random_values(rng, (13, 11), "bf16"), "w": random_values(rng, (11, 9), "bf16")}
    else:
        one = assembly(name)
        program, inputs = one.program, one.inputs
    assert cocotb_run.run(verilog(CONFIG), case(program, inputs), seed=5, pause=0.3) >= 1
