"""The runtime: one object that runs programs on the golden machine or on the RTL.

    with Device(preset("tiny"), backend="rtl", latency=20) as device:
        result = device.run(program, {"x": array})
        result.outputs["y"], result.cycles

A device keeps its state from run to run, as hardware does. Reading anything that was never written is an error on
golden; the RTL starts from memories full of noise, so that a program that depends on it shows.
"""

from dataclasses import dataclass, field

import numpy as np

from isa.config import Config
from isa.machine import Machine
from sw.errors import InputError
from sw.progress import task

BACKENDS = ("golden", "rtl")
DRAM_SLACK = 4096  # bytes beyond the last tensor: an access there is an error all the same


@dataclass
class RunResult:
    """What a run gave: output tensors by name; cycles, and per-queue counters, where the backend has them."""

    outputs: dict
    cycles: object = None
    counters: dict = field(default_factory=dict)
    dram: object = None


def dram_bytes(program):
    """Size of the DRAM window that a program needs."""
    end = max((t.offset + t.bytes for t in program.tensors.values()), default=0)
    return -(-max(end, 1) // DRAM_SLACK) * DRAM_SLACK


def check_inputs(program, inputs):
    """Arrays in the tensors' types; InputError names the tensor and the rule."""
    wanted = {n: t for n, t in program.tensors.items() if t.role == "input"}
    if missing := sorted(set(wanted) - set(inputs)):
        raise InputError(f"inputs missing: {', '.join(missing)}")
    if unknown := sorted(set(inputs) - set(wanted)):
        raise InputError(f"no such inputs: {', '.join(unknown)}; the program has: {', '.join(wanted) or 'none'}")
    out = {}
    for name, tensor in wanted.items():
        array = np.asarray(inputs[name])
        if array.shape != tuple(tensor.shape):
            raise InputError(f"input {name!r} has shape {array.shape}; the program expects {tuple(tensor.shape)}")
        if array.dtype != np.dtype(tensor.dtype.numpy):
            raise InputError(f"input {name!r} has type {array.dtype}; the program expects {tensor.dtype.label}")
        out[name] = array
    return out


def initial_dram(program, inputs):
    """(uint8 image, bool mask of the bytes that hold something) before the run."""
    image = np.zeros(dram_bytes(program), np.uint8)
    known = np.zeros(image.size, bool)
    pieces = [(t.offset, program.constants[n]) for n, t in program.tensors.items() if n in program.constants]
    pieces += [(program.tensors[n].offset, a) for n, a in check_inputs(program, inputs).items()]
    for offset, array in pieces:
        raw = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        image[offset:offset + raw.size], known[offset:offset + raw.size] = raw, True
    return image, known


def outputs_of(program, image):
    """Output tensors as arrays."""
    out = {}
    for name, t in program.tensors.items():
        if t.role == "output":
            raw = image[t.offset:t.offset + t.bytes].tobytes()
            out[name] = np.frombuffer(raw, t.dtype.numpy).reshape(t.shape)
    return out


class Device:
    """`backend` is golden or rtl; further options go to the backend (rtl: latency, stall, seed, trace, ...)."""

    def __init__(self, config, backend="golden", **options):
        if backend not in BACKENDS:
            raise InputError(f"backend {backend!r}: must be one of {', '.join(BACKENDS)}")
        if not isinstance(config, Config):
            raise InputError(f"configuration {config!r}: must be a Config, as preset('tiny') gives")
        self.config, self.backend = config, backend
        if backend == "golden":
            self._core = _Golden(config, **options)
        else:
            from tb.driver import RtlCore
            self._core = RtlCore(config, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Free the simulation."""
        self._core.close()

    def run(self, program, inputs=None):
        """Run to the end; returns a RunResult. Another configuration's program is refused before anything runs."""
        if program.config.hash != self.config.hash:
            raise InputError(f"the program is for configuration {program.config.name} ({program.config.hash:#018x}), "
                             f"the device is {self.config.name} ({self.config.hash:#018x})")
        image, known = initial_dram(program, inputs or {})
        return self._core.run(program, image, known)


class _Golden:
    def __init__(self, config, races=True, seed=None):
        self.config, self.races, self.seed = config, races, seed
        self.machine = None

    def close(self):
        self.machine = None

    def run(self, program, image, known):
        machine = Machine(self.config, image.size, self.races)
        if self.machine is not None:
            machine.inherit(self.machine)
        self.machine = machine
        machine.dram.data[0], machine.dram.written[0] = image, known
        with task(f"golden model of {self.config.name}"):
            machine.run(program.queues, seed=self.seed, source=program.source)
        return RunResult(outputs_of(program, machine.dram.data[0]), dram=machine.dram.data[0].copy())
