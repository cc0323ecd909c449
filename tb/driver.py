"""Programs on the RTL: builds the core's simulation and talks to its registers as a host driver would."""

import inspect
import time

import numpy as np

from hw.array import ROW
from isa import registers as reg
from isa.encode import to_bytes
from isa.version import ISA_VERSION
from sw.device import RunResult, outputs_of
from sw.errors import TrapError
from sw.progress import task
from tb.generate import generated
from tb.runner import Rtl

DRAM_BASE = 0x1_0000_0000
PAGE = 4096
NO_INLINE = ("psum_add_lane", "psum_add_int", "round_*_lane")
BLOCKS = (ROW, "act_lane", "vector_lane")  # compiled once, called by their instances
MAX_CYCLES = 500_000_000
RESET_POLLS = 1000

_verilog = {}


def verilog(config, gated=False):
    """Verilog text of a configuration; read once a process. `gated`: see `hw.cell.clock_while`."""
    key = config.hash, gated
    if key not in _verilog:
        _verilog[key] = generated(config, gated=gated)[0]
    return _verilog[key]


def layout(config, queues, image, watchdog=reg.DEFAULT_WATCHDOG):
    """(memory bytes from DRAM_BASE: the DRAM image, then the instructions; {register: value} before the start)."""
    code, bases, at = [], {}, -(-image.size // PAGE) * PAGE
    for q, words in queues.items():
        raw = b"".join(map(to_bytes, words))
        bases[q] = DRAM_BASE + at
        code.append((at, raw))
        at += -(-len(raw) // 64) * 64
    memory = np.zeros(-(-at // PAGE) * PAGE + PAGE, np.uint8)
    memory[:image.size] = image
    for offset, raw in code:
        memory[offset:offset + len(raw)] = np.frombuffer(raw, np.uint8)
    registers = {"dram_base": DRAM_BASE, "dram_bytes": image.size, "watchdog": watchdog}
    for i, q in enumerate(config.queues):
        registers |= {f"q{i}_base": bases.get(q, DRAM_BASE), f"q{i}_count": len(queues.get(q, ()))}
    return memory, registers


def addressed(name, value):
    """[(address, 32 bits)] of a register by name; a name with _lo and _hi takes 64 bits."""
    if name in reg.ADDRESS:
        return [(reg.ADDRESS[name], value & 0xFFFFFFFF)]
    return [(reg.ADDRESS[f"{name}_{half}"], value >> shift & 0xFFFFFFFF) for half, shift in (("lo", 0), ("hi", 32))]


def build_options(config, fast=True):
    """How the core is built: arguments of `tb.build.build`; `fast` as in RtlCore."""
    return dict(no_inline=NO_INLINE, blocks=BLOCKS if fast else (), opt="-O3", label=f"the simulation of {config.name}")


class RtlCore:
    """One simulated core. Bus options (latency, stall, seed, ...) as in `tb.runner.Rtl.configure`.

    `fast`: cells are blocks, and the clocks of idle ones stop; else, and in waveforms, it is the Verilog as written.
    """

    def __init__(self, config, trace=None, watchdog=reg.DEFAULT_WATCHDOG, fast=True, **bus):
        self.config, self.bus, self.watchdog = config, bus, watchdog
        inspect.signature(Rtl.configure).bind_partial(None, **bus)  # a misspelt option, before the minutes of a build
        kind = None if trace is None else ("vcd" if str(trace).endswith(".vcd") else "fst")
        fast = fast and kind is None
        self.rtl = Rtl(verilog(config, gated=fast), config, trace=kind, **build_options(config, fast))
        if trace:
            self.rtl.trace(trace)
        self.rtl.configure(**bus)
        self.rtl.set_memory(np.zeros(PAGE, np.uint8), DRAM_BASE)
        self.rtl.reset()
        self._identify()

    def close(self):
        self.rtl.close()

    def write(self, name, value):
        """Write a register by name, 32 or 64 bits."""
        for address, part in addressed(name, value):
            self.rtl.csr_write(address, part)

    def read(self, name):
        """Read a register by name, 32 or 64 bits."""
        if name in reg.ADDRESS:
            return self.rtl.csr_read(reg.ADDRESS[name])
        return self.read(f"{name}_lo") | self.read(f"{name}_hi") << 32

    def _identify(self):
        found = self.read("magic"), self.read("isa_version"), self.read("config_hash")
        expected = reg.MAGIC, ISA_VERSION, self.config.hash
        if found != expected:
            raise TrapError(f"the core says {found}, the configuration {expected} (magic, ISA version, hash)")

    def soft_reset(self):
        """Clear an error; TrapError if the bus never lets go."""
        self.write("control", reg.SOFT_RESET)
        for _ in range(RESET_POLLS):
            if not self.read("status") & reg.RESETTING:
                return
        raise TrapError("soft reset does not end: the bus owes answers (status: resetting, bus not idle)")

    def load(self, queues, image):
        """Put DRAM image and instructions into memory; set the registers. Returns the memory."""
        memory, registers = layout(self.config, queues, image, self.watchdog)
        self.rtl.set_memory(memory, DRAM_BASE)
        for name, value in registers.items():
            self.write(name, value)
        return memory

    def run_queues(self, queues, image, max_cycles=MAX_CYCLES):
        """Run raw instruction words; returns (DRAM bytes after the run, cycles). TrapError reports a trap."""
        memory = self.load(queues, image)
        self.write("control", reg.START)
        with task(f"simulating {self.config.name}") as detail:
            ended = self.rtl.run(max_cycles, report=lambda cycles: detail(f"{cycles:,} cycles"))
        if not ended:
            raise TrapError(f"no end after {max_cycles} cycles")
        if self.read("status") & reg.ERROR:
            self._report(queues)
        return memory[:image.size], self.read("cycles")

    def _report(self, queues):
        code = self.read("error_code")
        trap, queue = reg.Trap(code & 0xFF), self.config.queues[code >> 8 & 0xFF]
        error = TrapError(trap=trap, queue=queue, index=self.read("error_index"), address=self.read("error_addr"),
                          queues=queues, bus_idle=bool(self.read("status") & reg.BUS_IDLE))
        if error.bus_idle:
            self.soft_reset()
        raise error

    def run(self, program, image, _known):
        """The Device's backend call."""
        start, before = time.perf_counter(), self.rtl.cycles
        try:
            dram, cycles = self.run_queues(program.queues, image)
        except TrapError as error:
            raise error.located(program) from None
        seconds = time.perf_counter() - start
        if self.rtl.protocol_errors:
            raise TrapError("AXI protocol broken: " + "; ".join(self.rtl.protocol_errors[:3]))
        counters = {"seconds": seconds, "simulated": self.rtl.cycles - before}
        for i, q in enumerate(self.config.queues):
            counters[q] = {n: self.read(f"q{i}_{n}") for n in ("done", "busy", "stall")}
        return RunResult(outputs_of(program, dram), cycles, counters, dram.copy())
