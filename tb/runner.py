"""`Rtl`: a core in Verilog, simulated natively, with an AXI memory and a host, driven from Python.

    with Rtl(verilog) as rtl:
        rtl.set_memory(image, base=0x8000_0000)     # a NumPy buffer, shared, never copied
        rtl.configure(latency=20, stall=0.2, seed=7)
        rtl.reset()
        rtl.csr_write(0x10, 1)
        finished = rtl.run(100_000)                 # until irq
        assert finished and not rtl.protocol_errors

Long runs return to Python every CHUNK cycles, so that Ctrl-C works.
"""

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_uint32, c_uint64, c_void_p

import numpy as np

from sw.errors import TrapError
from tb.build import build

CHUNK = 5_000
CSR_DEADLINE = 10_000
RESET_CYCLES = 4
DEAD = {None: 0, "read": 1, "write": 2, "both": 3, "ready": 4}
RESPONSES = {0: "OKAY", 1: "EXOKAY", 2: "SLVERR", 3: "DECERR"}


class RtlError(TrapError):
    """The simulated core stopped (assertion), answered a CSR access with an error, or not at all."""


class Settings(ctypes.Structure):
    """Mirror of `Settings` in tb/common.h, which documents the fields."""

    _fields_ = [("seed", c_uint64), ("error_lo", c_uint64), ("error_hi", c_uint64), ("bandwidth", c_double),
                ("stall", c_double), ("latency", c_uint32), ("jitter", c_uint32), ("interleave", c_uint32),
                ("dead", c_uint32), ("outstanding", c_uint32), ("spare", c_uint32)]


class Stats(ctypes.Structure):
    """What the memory counted since it was made; `most_*` are maxima requested and not yet answered."""

    _fields_ = [(name, c_uint64) for name in ("read_bursts", "read_beats", "write_bursts", "write_beats",
                                              "most_read_beats", "most_write_bursts")]


_SIGNATURES = {
    "sys_open": (c_void_p, []), "sys_close": (None, [c_void_p]), "sys_axi_bytes": (c_uint32, []),
    "sys_settings_bytes": (c_uint32, []), "sys_configure": (None, [c_void_p, POINTER(Settings)]),
    "sys_memory": (None, [c_void_p, c_void_p, c_uint64, c_uint64]), "sys_cycles": (c_uint64, [c_void_p]),
    "sys_irq": (c_int, [c_void_p]), "sys_bus_idle": (c_int, [c_void_p]), "sys_fault": (c_char_p, [c_void_p]),
    "sys_stats": (None, [c_void_p, POINTER(Stats)]), "sys_trace": (c_int, [c_void_p, c_char_p]),
    "sys_trace_close": (None, [c_void_p]), "sys_reset": (c_int64, [c_void_p, c_uint32]),
    "sys_run": (c_int64, [c_void_p, c_int64, c_int]),
    "sys_csr_write": (c_int64, [c_void_p, c_uint32, c_uint32, c_int64]),
    "sys_csr_read": (c_int64, [c_void_p, c_uint32, POINTER(c_uint32), c_int64]),
    "sys_line": (c_char_p, [c_void_p, c_int, c_uint32]), "sys_line_count": (c_uint64, [c_void_p, c_int]),
}


def _load(path):
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    if library.sys_settings_bytes() != ctypes.sizeof(Settings):
        raise RtlError("tb/runner.py and tb/common.h disagree about Settings")
    return library


class Rtl:
    """One core. `verilog` is text or {file name: text} with top module `top`; `config` (with `axi_data_bits`) is
    checked against it; further arguments go to `tb.build.build` (trace, no_inline, opt, cache, ...)."""

    def __init__(self, verilog, config=None, **build_options):
        self.library_path = build(verilog, **build_options)
        self._lib = _load(self.library_path)
        self.axi_bytes = self._lib.sys_axi_bytes()
        if config is not None and config.axi_data_bits != 8 * self.axi_bytes:
            raise ValueError(f"the Verilog has a {8 * self.axi_bytes}-bit AXI data bus, the configuration asks for "
                             f"{config.axi_data_bits}")
        self._memory = None
        self._sim = self._lib.sys_open()
        self.configure()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the simulation and its trace; further calls raise RtlError. May be called again."""
        if self._sim:
            self._lib.sys_close(self._sim)
        self._sim = None

    @property
    def _handle(self):
        if not self._sim:
            raise RtlError("this simulation is closed")
        return self._sim

    def configure(self, *, latency=1, jitter=0, bandwidth=0.0, stall=0.0, interleave=None, seed=1, error_range=None,
                  dead=None, outstanding=64):
        """Sets how the bus behaves from now on; what is not given goes back to its default.

        latency       cycles from a read request to its first beat, and from the last write beat to its response
        jitter        most additional cycles of latency, random for each burst
        bandwidth     bytes a cycle, reads and writes together; 0: one beat a cycle each way
        stall         probability that a channel (CSR channels too) waits, drawn every cycle
        interleave    answers of different ids in random order; default: when `stall` or `jitter` is set
        seed          of every random choice
        error_range   (low, high) addresses whose beats answer SLVERR; writes there are not done
        dead          "read", "write", "both": requests are taken and never answered; "ready": never taken
        outstanding   bursts taken and not yet answered, each direction
        """
        if dead not in DEAD:
            raise ValueError(f"dead = {dead!r}: must be one of {', '.join(map(repr, DEAD))}")
        if not (latency >= 1 and jitter >= 0 and bandwidth >= 0 and 0 <= stall < 1 and outstanding >= 1):
            raise ValueError(f"latency {latency} and outstanding {outstanding} must be at least 1, jitter {jitter} and "
                             f"bandwidth {bandwidth} not negative, stall {stall} in [0, 1)")
        low, high = error_range or (0, 0)
        mix = bool(stall or jitter) if interleave is None else bool(interleave)
        settings = Settings(seed=seed, error_lo=low, error_hi=high, bandwidth=bandwidth, stall=stall, latency=latency,
                            jitter=jitter, interleave=mix, dead=DEAD[dead], outstanding=outstanding)
        self._lib.sys_configure(self._handle, ctypes.byref(settings))

    def set_memory(self, array, base=0):
        """`array` (uint8, contiguous, whole beats) answers at bus addresses base .. base + len; kept, not copied."""
        if not (isinstance(array, np.ndarray) and array.dtype == np.uint8 and array.ndim == 1
                and array.flags.c_contiguous and array.flags.writeable):
            raise ValueError("memory must be a writable, contiguous, one-dimensional NumPy array of uint8")
        if len(array) % self.axi_bytes or base % self.axi_bytes:
            raise ValueError(f"memory of {len(array)} bytes at {base:#x}: both must be multiples of {self.axi_bytes}")
        self._memory = array
        self._lib.sys_memory(self._handle, array.ctypes.data, base, len(array))

    def _checked(self, result):
        if result == -2:
            raise RtlError(self._lib.sys_fault(self._handle).decode())
        return result

    def reset(self, cycles=RESET_CYCLES):
        """Holds `rst` for `cycles` and forgets everything in flight on the bus; memory and cycle count stay."""
        self._checked(self._lib.sys_reset(self._handle, cycles))

    def csr_write(self, addr, value):
        """Writes a 32-bit register, stepping the clock until the response; RtlError if it is not OKAY."""
        self._answer("write", addr, self._lib.sys_csr_write(self._handle, addr, value, CSR_DEADLINE))

    def csr_read(self, addr):
        """Reads a 32-bit register, stepping the clock until the data; RtlError if the response is not OKAY."""
        value = c_uint32()
        self._answer("read", addr, self._lib.sys_csr_read(self._handle, addr, ctypes.byref(value), CSR_DEADLINE))
        return value.value

    def _answer(self, what, addr, result):
        if self._checked(result) == -1:
            raise RtlError(f"CSR {what} at {addr:#x}: no answer in {CSR_DEADLINE} cycles (reset the core to go on)")
        if result:
            raise RtlError(f"CSR {what} at {addr:#x} answered {RESPONSES[result]}")

    def step(self, n=1):
        """Runs exactly `n` cycles."""
        self.run(n, until=None)

    def run(self, max_cycles, until="irq", report=None):
        """Runs until `irq` is high (True) or for `max_cycles` (False); with until=None always all of them. `report` is
        called now and then with the cycles run so far."""
        if until not in ("irq", None):
            raise ValueError(f"until = {until!r}: must be 'irq' or None")
        left = max_cycles
        while left > 0:
            left -= self._checked(self._lib.sys_run(self._handle, min(left, CHUNK), until == "irq"))
            if until and self.irq:
                return True
            if report:
                report(max_cycles - left)
        return False

    @property
    def irq(self):
        """Level of `irq` in the last cycle."""
        return bool(self._lib.sys_irq(self._handle))

    @property
    def cycles(self):
        """Clock cycles since the simulation was made, reset included."""
        return self._lib.sys_cycles(self._handle)

    @property
    def bus_idle(self):
        """True if the memory owes no answer."""
        return bool(self._lib.sys_bus_idle(self._handle))

    @property
    def stats(self):
        """A copy of the memory's `Stats`."""
        stats = Stats()
        self._lib.sys_stats(self._handle, ctypes.byref(stats))
        return stats

    def _lines(self, which):
        count = self._lib.sys_line_count(self._handle, which)
        lines = []
        while (line := self._lib.sys_line(self._handle, which, len(lines))) is not None:
            lines.append(line.decode())
        return lines + ([f"... and {count - len(lines)} more"] if count > len(lines) else [])

    @property
    def protocol_errors(self):
        """AXI rules the core broke, as text with the cycle; the first hundred."""
        return self._lines(0)

    @property
    def address_errors(self):
        """Accesses outside the memory (answered DECERR), as text with the cycle; the first hundred."""
        return self._lines(1)

    def trace(self, path):
        """Starts a waveform file (build with trace="fst" or "vcd"); it ends at `trace_stop` or `close`."""
        if not self._lib.sys_trace(self._handle, str(path).encode()):
            raise RtlError(f"cannot trace to {path}: build with trace='vcd' or 'fst', and check the path")

    def trace_stop(self):
        self._lib.sys_trace_close(self._handle)
