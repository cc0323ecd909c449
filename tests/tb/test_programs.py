"""Programs and hand-made binaries on the RTL of tiny: equal to golden, every trap by its name, nothing hangs."""

import numpy as np
import pytest

from isa.config import preset
from isa.dtypes import DType
from isa.encode import encode
from isa.registers import BUS_IDLE, ERROR, START, Trap
from sw.compiler import compile_matmul
from sw.device import Device
from sw.errors import TrapError
from tb.driver import DRAM_BASE, RtlCore
from tb.suite import random_values

CONFIG = preset("tiny")
IMAGE_BYTES = 4096
WATCHDOG = 3000
MAX_CYCLES = 100_000
BUSES = [dict(latency=1), dict(latency=200), dict(latency=60, jitter=140, stall=0.3, seed=3)]


@pytest.fixture(scope="module")
def core():
    one = RtlCore(CONFIG, watchdog=WATCHDOG)
    yield one
    one.close()


@pytest.mark.parametrize("bus", BUSES, ids=lambda b: "-".join(map(str, b.values())))
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16", "int8"])
def test_matmul(bus, dtype):
    rng = np.random.default_rng(5)
    with Device(CONFIG, "rtl", **bus) as device:
        for m, k, n in ((1, 1, 1), (5, 7, 3), (16, 16, 4), (19, 23, 17)):
            program = compile_matmul(CONFIG, m, k, n, dtype)
            inputs = {"x": random_values(rng, (m, k), dtype), "w": random_values(rng, (k, n), dtype)}
            expected = Device(CONFIG).run(program, inputs).outputs["y"]
            for _ in range(2):
                got = device.run(program, inputs).outputs["y"]
                assert got.tobytes() == expected.tobytes(), (m, k, n)


def ld(**changes):
    values = dict(p0=0, pn=4, n2=8, x_addr=0, x_type=DType.FP32, x_s2=1, d_addr=0, d_sp=8, d_s2=1)
    return encode("ld", **{**values, **changes})


def mm(**changes):
    values = dict(p0=0, pn=4, m0=0, mn=4, n2=4, x_s2=1, w_s=1, y_s2=1)
    return encode("mm", **{**values, **changes})


TRAPS = [
    ("opcode", "dma0", ld() & ~0xFF | 0x7F, Trap.OPCODE),
    ("queue", "pe", ld(), Trap.OPCODE),
    ("reserved", "dma0", ld() | 1 << 511, Trap.RESERVED),
    ("flag", "dma0", ld() | 1 << 12, Trap.RESERVED),
    ("partition", "dma0", ld(p0=2), Trap.PARTITION),
    ("align", "dma0", ld(x_addr=2), Trap.ALIGN),
    ("type", "dma0", ld(x_type=9), Trap.TYPE),
    ("operation", "act", encode("act", pn=4, func=7), Trap.OPERATION),
    ("moving", "pe", mm(n2=513), Trap.OPERATION),
    ("sbuf", "dma0", ld(x_addr=CONFIG.sbuf_bytes - 16), Trap.ADDRESS),
    ("below", "dma0", ld(x_addr=8, x_s2=-1), Trap.ADDRESS),
    ("act source", "act", encode("act", pn=4, n2=4, x_addr=CONFIG.sbuf_bytes - 8, x_s2=1, y_s2=1), Trap.ADDRESS),
    ("act target", "act", encode("act", pn=4, n2=4, x_s2=1, y_addr=CONFIG.sbuf_bytes - 8, y_s2=1), Trap.ADDRESS),
    ("act scalar", "act", encode("act", pn=4, n2=4, x_s2=1, y_s2=1, scale=CONFIG.sbuf_bytes, scale_mode=2),
     Trap.ADDRESS),
    ("table", "act", encode("tab", x_addr=CONFIG.sbuf_bytes - 8), Trap.ADDRESS),
    ("alu source", "vec", encode("alu", pn=4, n2=4, x_addr=CONFIG.psum_bytes - 8, x_space=1, x_s2=1, y_s2=1),
     Trap.ADDRESS),
    ("alu target", "vec", encode("alu", pn=4, n2=4, x_s2=1, y_addr=8, y_s2=-1), Trap.ADDRESS),
    ("mm moving", "pe", mm(x_addr=CONFIG.sbuf_bytes - 8), Trap.ADDRESS),
    ("mm tile", "pe", mm(w_addr=CONFIG.sbuf_bytes - 8), Trap.ADDRESS),
    ("st", "dma0", encode("st", pn=4, n2=8, x_addr=CONFIG.sbuf_bytes - 16, x_s2=1, d_s2=1, d_sp=8), Trap.ADDRESS),
    ("mv", "dma0", encode("mv", pn=1, n2=4, qn=1, m2=4, x_s2=1, y_addr=CONFIG.sbuf_bytes - 8, y_s2=1), Trap.ADDRESS),
    ("cp", "dma0", encode("cp", n2=8, d_s2=1, e_addr=IMAGE_BYTES - 16, e_s2=1), Trap.DRAM),
    ("psum", "pe", mm(y_addr=CONFIG.psum_bytes - 8), Trap.ADDRESS),
    ("dram", "dma0", ld(d_addr=IMAGE_BYTES - 16), Trap.DRAM),
    ("dram far", "dma0", ld(d_addr=1 << 47), Trap.DRAM),
    ("dram below", "dma0", ld(d_sp=-8), Trap.DRAM),
]


@pytest.mark.parametrize("name,queue,word,trap", TRAPS, ids=[t[0] for t in TRAPS])
def test_trap(core, name, queue, word, trap):
    """A bad instruction after two good ones: code, queue and index are right, and a good program runs afterwards."""
    core.rtl.configure(latency=9)
    nop = encode("nop")
    with pytest.raises(TrapError) as error:
        core.run_queues({queue: [nop, nop, word]}, np.zeros(IMAGE_BYTES, np.uint8), MAX_CYCLES)
    assert (error.value.trap, error.value.queue, error.value.index) == (trap, queue, 2)
    assert error.value.bus_idle and not core.rtl.address_errors
    copy_works(core)


def copy_works(core):
    """ld and st move bytes: the core is usable."""
    image = np.random.default_rng(1).integers(0, 256, IMAGE_BYTES, dtype=np.uint8)
    back = encode("st", pn=4, n2=8, x_s2=1, d_addr=1024, d_sp=8, d_s2=1, wait_mask=1 << 3, wait3=1)
    memory, _ = core.run_queues({"dma0": [ld()], "dma1": [back]}, image, MAX_CYCLES)
    assert np.array_equal(memory[1024:1152], image[:128])


def test_row_limit(core):
    core.rtl.configure(latency=9)
    gather = encode("gat", pn=4, n2=4, x_addr=256, x_s2=1, d_addr=512, row_stride=4, row_limit=3, i_addr=0,
                    wait_mask=1 << 3, wait3=1)
    image = np.zeros(IMAGE_BYTES, np.uint8)
    image.view(np.int32)[:4] = [0, 2, 3, 1]
    index = ld(n2=1, d_sp=1)
    with pytest.raises(TrapError) as error:
        core.run_queues({"dma0": [index, gather]}, image, MAX_CYCLES)
    assert error.value.trap == Trap.ROW
    copy_works(core)


@pytest.mark.parametrize("low,trap", [(0, Trap.BUS_READ), (1024, Trap.BUS_WRITE)])
def test_bus_error(core, low, trap):
    core.rtl.configure(latency=9, error_range=(DRAM_BASE + low, DRAM_BASE + low + 64))
    back = encode("st", pn=4, n2=8, x_s2=1, d_addr=1024, d_sp=8, d_s2=1, wait_mask=1 << 3, wait3=1)
    with pytest.raises(TrapError) as error:
        core.run_queues({"dma0": [ld()], "dma1": [back]}, np.zeros(IMAGE_BYTES, np.uint8), MAX_CYCLES)
    assert error.value.trap == trap and DRAM_BASE + low <= error.value.address < DRAM_BASE + low + 64
    core.rtl.configure(latency=9)
    copy_works(core)


def test_nothing_starts_after_an_error(core):
    """A store that waits for a failed load stays put: the bus is quiet, and memory as it was."""
    core.rtl.configure(latency=9, error_range=(DRAM_BASE, DRAM_BASE + 64))
    back = encode("st", pn=4, n2=8, x_s2=1, d_addr=1024, d_sp=8, d_s2=1, wait_mask=1 << 3, wait3=1)
    image = np.full(IMAGE_BYTES, 0xA5, np.uint8)
    memory = core.load({"dma0": [ld()], "dma1": [back]}, image)
    core.write("control", START)
    assert core.rtl.run(MAX_CYCLES)
    core.rtl.step(2000)
    assert core.read("status") == ERROR | BUS_IDLE
    assert np.array_equal(memory[:IMAGE_BYTES], image)
    core.soft_reset()
    core.rtl.configure(latency=9)
    copy_works(core)


def test_fetch_error(core):
    core.rtl.configure(latency=9, error_range=(DRAM_BASE + IMAGE_BYTES, DRAM_BASE + IMAGE_BYTES + 64))
    with pytest.raises(TrapError) as error:
        core.run_queues({"dma0": [ld()]}, np.zeros(IMAGE_BYTES, np.uint8), MAX_CYCLES)
    assert error.value.trap == Trap.FETCH
    core.rtl.configure(latency=9)
    copy_works(core)


def test_deadlock(core):
    """A wait that nothing fulfils ends by the watchdog, which names the waiting instruction."""
    core.rtl.configure(latency=9)
    with pytest.raises(TrapError) as error:
        core.run_queues({"pe": [encode("nop"), encode("nop", wait_mask=2, wait1=5)]},
                        np.zeros(IMAGE_BYTES, np.uint8), MAX_CYCLES)
    assert (error.value.trap, error.value.queue, error.value.index) == (Trap.WATCHDOG, "pe", 1)
    copy_works(core)
