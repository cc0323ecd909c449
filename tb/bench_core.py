"""cocotb bench: one program on the core, third-party AXI memory and host, random back-pressure on all ten channels.

Started by `tb.cocotb_run.run`, which documents the program's arrays and sets the environment variables read here.
"""

import os
import random

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam

CLOCK_NS = 10
RESET_CYCLES = 8
CSR_DEADLINE_NS = 100_000
GUARD = 64  # bytes on each side of the memory that must stay as they are
GUARD_BYTE = 0xA5


def pauses(seed, probability):
    """Endless random pause values for one channel."""
    rng = random.Random(seed)
    while True:
        yield rng.random() < probability


class Bench:
    """The core `dut` with its models; `program` maps names to arrays."""

    def __init__(self, dut, program, seed, pause):
        self.dut, self.program = dut, program
        self.base = int(program["base"]) if "base" in program else 0
        self.clk, self.irq = dut.clk, dut.irq
        cocotb.start_soon(Clock(dut.clk, CLOCK_NS, unit="ns").start())
        self.host = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
        self.ram = AxiRam(AxiBus.from_prefix(dut, "m_axi"), dut.clk, dut.rst, size=2**48)
        channels = [getattr(side, f"{name}_channel")
                    for model in (self.host, self.ram)
                    for side, names in ((model.write_if, ("aw", "w", "b")), (model.read_if, ("ar", "r")))
                    for name in names]
        for i, channel in enumerate(channels):
            channel.set_pause_generator(pauses(f"{seed} {i}", pause))

    async def reset(self):
        self.dut.rst.value = 1
        await ClockCycles(self.clk, RESET_CYCLES)
        self.dut.rst.value = 0
        await ClockCycles(self.clk, 2)

    def load(self):
        """Puts the initial memory in place, between guards."""
        self.size = len(self.program["mem_init"])
        self.ram.write(self.base, self.program["mem_init"].tobytes())
        for start in self._guards():
            self.ram.write(start, bytes([GUARD_BYTE] * GUARD))

    def _guards(self):
        return ([self.base - GUARD] if self.base >= GUARD else []) + [self.base + self.size]

    async def start(self):
        for addr, value in self.program["csr_writes"]:
            await cocotb.triggers.with_timeout(
                self.host.write(int(addr), int(value).to_bytes(4, "little")), CSR_DEADLINE_NS, "ns")

    async def finish(self, deadline_cycles):
        """Waits for irq; the number of cycles."""
        for cycle in range(deadline_cycles):
            await RisingEdge(self.clk)
            if self.irq.value == 1:
                return cycle
        raise AssertionError(f"no irq {deadline_cycles} cycles after the last CSR write")

    async def check(self):
        """Compares registers and memory with what the program expects; the number of bytes compared."""
        for addr, value, mask in self.program.get("csr_expect", ()):
            answer = await cocotb.triggers.with_timeout(self.host.read(int(addr), 4), CSR_DEADLINE_NS, "ns")
            got = int.from_bytes(answer.data, "little")
            assert got & int(mask) == int(value), f"CSR {int(addr):#x} is {got:#x}, expected {int(value):#x}"
        for start in self._guards():
            assert set(self.ram.read(start, GUARD)) == {GUARD_BYTE}, f"memory beyond the program at {start:#x} changed"
        expected = self.program["expected_mem"]
        assert len(expected) == self.size, f"expected_mem has {len(expected)} bytes, mem_init {self.size}"
        got = np.frombuffer(bytes(self.ram.read(self.base, self.size)), np.uint8)
        compared = 0
        for first, end in self.program.get("compare", [(0, self.size)]):
            wrong = np.flatnonzero(got[first:end] != expected[first:end])
            assert not wrong.size, (f"{wrong.size} bytes differ, first at offset {first + wrong[0]:#x}: got "
                                    f"{got[first + wrong[0]]:#x}, expected {expected[first + wrong[0]]:#x}")
            compared += int(end) - int(first)
        assert compared > 0, "the program compares no byte"
        return compared


@cocotb.test()
async def program_matches(dut):
    """The program gives the expected memory, `repeat` times in a row without a reset."""
    env = os.environ
    seed, pause = env["SYSTOLITH_BENCH_SEED"], float(env["SYSTOLITH_BENCH_PAUSE"])
    dut._log.info(f"seed {seed}, pause {pause}, program {env['SYSTOLITH_BENCH_NPZ']}")
    with np.load(env["SYSTOLITH_BENCH_NPZ"]) as file:
        program = dict(file)
    bench = Bench(dut, program, seed, pause)
    await bench.reset()
    for turn in range(int(env["SYSTOLITH_BENCH_REPEAT"])):
        bench.load()
        await bench.start()
        cycles = await bench.finish(int(env["SYSTOLITH_BENCH_DEADLINE"]))
        compared = await bench.check()
        dut._log.info(f"run {turn}: {cycles} cycles, {compared} bytes equal")
