"""Programs: instruction words per queue, DRAM tensors, constants and the source map; and their files.

A file is `.npz`: `queue_<name>` uint8[n, 64], `const_<tensor>` uint8[bytes], and `header`, a JSON text as uint8 with
ISA version, configuration and its hash, tensors, source map and a SHA-256 over everything else. NumPy alone opens it.
"""

import hashlib
import json
import math
from dataclasses import dataclass, field

import numpy as np

from isa.config import Config, ConfigError
from isa.dtypes import DType
from isa.encode import from_bytes, to_bytes
from isa.fields import DRAM_ADDR_BITS, INSTRUCTION_BYTES
from isa.version import ISA_VERSION
from sw.errors import ProgramError
from sw.files import DAMAGED, reason, whole

ROLES = ("input", "output", "const", "temp")
DRAM_END = 1 << DRAM_ADDR_BITS


@dataclass(frozen=True)
class DramTensor:
    """A named tensor at a byte offset in DRAM, row-major."""

    name: str
    dtype: DType
    shape: tuple
    offset: int
    role: str

    @property
    def bytes(self):
        return math.prod(self.shape) * self.dtype.size_bytes


@dataclass
class Program:
    """What runs: see the module's docstring. `source[tag]` says where an instruction came from."""

    config: Config
    queues: dict
    tensors: dict = field(default_factory=dict)
    constants: dict = field(default_factory=dict)
    source: list = field(default_factory=list)

    def save(self, path):
        """Write the file, whole or not at all."""
        arrays = {f"queue_{q}": np.frombuffer(b"".join(map(to_bytes, words)), np.uint8).reshape(-1, INSTRUCTION_BYTES)
                  for q, words in self.queues.items()}
        arrays |= {f"const_{n}": np.frombuffer(np.ascontiguousarray(a).tobytes(), np.uint8)
                   for n, a in self.constants.items()}
        header = {"isa_version": ISA_VERSION, "config": self.config.to_json(), "config_hash": self.config.hash,
                  "tensors": [{"name": t.name, "dtype": t.dtype.label, "shape": list(t.shape), "offset": t.offset,
                               "role": t.role} for t in self.tensors.values()],
                  "source": list(self.source)}
        header["sha256"] = _digest(arrays, header)
        arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
        with whole(path, ProgramError) as stream:
            np.savez_compressed(stream, **arrays)

    @classmethod
    def load(cls, path, config=None):
        """Read a file; ProgramError if it is damaged, for another ISA version, or not for `config`."""
        try:
            with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            header = dict(json.loads(arrays.pop("header").tobytes()))
        except FileNotFoundError:
            raise ProgramError(f"{path}: no such file") from None
        except DAMAGED as error:
            raise ProgramError(f"{path}: not a program file, or truncated or corrupted ({reason(error)})") from error
        return cls._from(path, arrays, header, config)

    @classmethod
    def _from(cls, path, arrays, header, config):
        version = header.get("isa_version")
        if version != ISA_VERSION:
            raise ProgramError(f"{path}: made for ISA version {version}; this is version {ISA_VERSION}")
        if header.pop("sha256", None) != _digest(arrays, header):
            raise ProgramError(f"{path}: corrupted: the checksum does not match")
        try:
            own = Config(**header["config"])
            if own.hash != header["config_hash"]:
                raise ProgramError(f"{path}: corrupted: the configuration does not match its hash")
            queues = {n[6:]: [from_bytes(row) for row in a] for n, a in arrays.items() if n.startswith("queue_")}
            tensors = {t["name"]: DramTensor(t["name"], DType.parse(t["dtype"]), tuple(t["shape"]), t["offset"],
                                             t["role"]) for t in header["tensors"]}
            _check(own, queues, tensors, arrays)
            constants = {n: arrays[f"const_{n}"].view(t.dtype.numpy).reshape(t.shape)
                         for n, t in tensors.items() if f"const_{n}" in arrays}
            source = list(header["source"])
        except (KeyError, TypeError, ValueError, ConfigError) as error:
            raise ProgramError(f"{path}: corrupted header: {error}") from error
        if config is not None and config.hash != own.hash:
            raise ProgramError(f"{path}: made for configuration {own.name} ({own.hash:#018x}), not for {config.name} "
                               f"({config.hash:#018x})")
        return cls(own, queues, tensors, constants, source)


def _check(config, queues, tensors, arrays):
    """ValueError for what no program may have: queues that the configuration lacks, tensors that cannot be placed, const
    tensors without values."""
    for name in queues:
        if name not in config.queues:
            raise ValueError(f"queue {name!r} does not exist in configuration {config.name}")
    for t in tensors.values():
        whole = all(type(n) is int for n in (t.offset, *t.shape))
        if not whole or t.role not in ROLES or t.offset < 0 or min(t.shape, default=1) < 1 or t.offset + t.bytes > DRAM_END:
            raise ValueError(f"tensor {t.name!r}: role {t.role!r}, offset {t.offset}, shape {t.shape}")
        if t.role == "const" and f"const_{t.name}" not in arrays:
            raise ValueError(f"tensor {t.name!r} is const and has no values")


def _digest(arrays, header):
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(name.encode() + b"\0" + np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()
