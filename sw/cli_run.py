"""What `systolith run` reads and shows: input arrays, bus options, tables of outputs and counters."""

import zlib
from pathlib import Path

import numpy as np
from rich.table import Table

from isa.dtypes import DType
from sw.errors import InputError
from sw.files import DAMAGED, reason

TRACES = (".fst", ".vcd")
DEAD = ("read", "write", "both", "ready")


def read_inputs(program, given, seed):
    """Arrays by name: from `NAME=FILE.npy`, or all of a `FILE.npz`; the rest random."""
    rng = np.random.default_rng(seed)
    wanted = {n: t for n, t in program.tensors.items() if t.role == "input"}
    out = {name: random_values(rng, t.shape, t.dtype) for name, t in wanted.items()}
    for text in given:
        for name, array in _arrays(text, wanted).items():
            if name not in wanted:
                raise InputError(f"--input {text}: no input {name!r}; the program has: {', '.join(wanted) or 'none'}")
            out[name] = _typed(array, wanted[name])
    return out


def random_values(rng, shape, dtype):
    """Values of a type (DType or its name): normal floats, integers over their whole range."""
    dtype = DType.parse(dtype) if isinstance(dtype, str) else dtype
    if dtype.is_int:
        info = np.iinfo(dtype.numpy)
        return rng.integers(info.min, info.max + 1, shape).astype(dtype.numpy)
    return rng.standard_normal(shape).astype(np.float32).astype(dtype.numpy)


def _arrays(text, wanted):
    name, mark, file = text.partition("=")
    if name not in wanted if mark else not text.endswith(".npz"):
        raise InputError(f"--input {text}: must be FILE.npz, or NAME=FILE.npy with one of: {', '.join(wanted) or 'no inputs'}")
    try:
        with open(file or text, "rb") as stream:
            loaded = np.load(stream, allow_pickle=False)
            found = loaded if isinstance(loaded, np.ndarray) else {n: loaded[n] for n in loaded.files}
    except DAMAGED as error:
        raise InputError(f"--input {text}: cannot be read: {reason(error)}") from error
    if isinstance(found, dict) == bool(mark):
        raise InputError(f"--input {text}: {file or text} holds {'several arrays' if mark else 'one array'}; write "
                         f"{'FILE.npz' if mark else 'NAME=FILE.npy'}")
    return {name: found} if mark else found


def _typed(array, tensor):
    """The array, with the name of a small float type that .npy files cannot say."""
    wanted = np.dtype(tensor.dtype.numpy)
    return array.view(wanted) if array.dtype.kind == "V" and array.dtype.itemsize == wanted.itemsize else array


def bus_options(latency, jitter, stalls, seed, watchdog, error, dead, trace):
    """Options of the rtl backend; InputError names the option and its rule."""
    options = {"seed": seed, "latency": latency, "jitter": jitter, "stall": stalls, "watchdog": watchdog}
    if error is not None:
        options["error_range"] = _range(error)
    if dead is not None:
        if dead not in DEAD:
            raise InputError(f"--bus-dead {dead}: must be one of {', '.join(DEAD)}")
        options["dead"] = dead
    if trace is not None:
        if trace.suffix not in TRACES:
            raise InputError(f"--trace {trace}: the name must end in {' or '.join(TRACES)}")
        check_writable(trace)
        options["trace"] = str(trace)
    return options


def _range(text):
    low, mark, high = text.partition(":")
    try:
        low, high = int(low, 0), int(high, 0)
    except ValueError:
        mark = ""
    if not mark or not 0 <= low < high:
        raise InputError(f"--bus-error {text}: must be FIRST:END, byte offsets in DRAM with FIRST below END, as 0x40:0x80")
    from tb.driver import DRAM_BASE
    return DRAM_BASE + low, DRAM_BASE + high


def outputs_table(results):
    """(Table of the outputs, all equal)."""
    out = Table("output", "type", "shape", "smallest", "largest", "CRC-32", *(["RTL"] if len(results) > 1 else []))
    first, equal = results[0], True
    for name, array in first.outputs.items():
        values = array.astype(np.float64)
        row = [name, str(array.dtype), str(array.shape), f"{values.min():.6g}", f"{values.max():.6g}",
               f"{zlib.crc32(array.tobytes()):08x}"]
        if len(results) > 1:
            wrong = bytes_different(array, results[1].outputs[name])
            equal &= not wrong
            row.append(f"{wrong} bytes differ" if wrong else "equal")
        out.add_row(*row)
    return out, equal


def bytes_different(a, b):
    """How many bytes of two arrays of one shape and type differ."""
    raw = [np.frombuffer(x.tobytes(), np.uint8) for x in (a, b)]
    return int(np.sum(raw[0] != raw[1]))


def counters_table(result):
    """Per queue, what the RTL counted."""
    table = Table("queue", "completed", "busy cycles", "stalled cycles", title=f"{result.cycles:,} cycles")
    for queue, counts in result.counters.items():
        if isinstance(counts, dict):
            table.add_row(queue, *(f"{counts[n]:,}" for n in ("done", "busy", "stall")))
    return table


def check_writable(path):
    """InputError now, rather than after a long run, where an output cannot be written."""
    path = Path(path)
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise InputError(f"{path}: cannot be written: {path if path.is_dir() else path.parent} is "
                         f"{'a folder' if path.is_dir() else 'not a folder'}")
