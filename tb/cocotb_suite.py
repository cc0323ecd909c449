"""Programs for the cocotb bench on the core: what is loaded, what is expected, both from golden."""

import numpy as np

from isa import registers as reg
from isa.config import preset
from sw.compiler import compile_matmul
from sw.device import Device, initial_dram
from tb.driver import DRAM_BASE, addressed, layout
from tb.suite import EXAMPLES, assembly, random_values

CONFIG = "tiny"


def comparison(program, inputs):
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


def programs():
    """(name, Program, inputs): a matmul and the examples, all for CONFIG."""
    config, rng = preset(CONFIG), np.random.default_rng(3)
    inputs = {"x": random_values(rng, (13, 11), "bf16"), "w": random_values(rng, (11, 9), "bf16")}
    yield "matmul 13x11x9 bf16", compile_matmul(config, 13, 11, 9, "bf16"), inputs
    for path in EXAMPLES:
        one = assembly(path)
        yield path, one.program, one.inputs
