"""The parameters of one core, and the presets.

A `Config` is frozen and checks itself where it is built; everything derived is a property, so that hardware,
golden model and software read one number. `Config.hash` identifies the parameters a program depends on.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, replace

from isa.version import ISA_VERSION

PE_KINDS = ("bf16", "tf32", "int8")
PSUM_BANK_WORDS = 512  # 2 KiB of 32-bit words a partition
WORD_BYTES = 4


class ConfigError(ValueError):
    """A parameter that breaks a rule; the message names the parameter, its value and the rule."""


@dataclass(frozen=True)
class Config:
    """Shape of a core.

    lanes            rows, columns, partitions and lanes; a power of two, 4 to 128
    pe               format of the array's multiplier input
    sbuf_kib         KiB per partition, 1 to 256, a multiple of the bank size
    psum_banks       2 KiB banks per partition, 1 to 8
    axi_data_bits    data bus, 32 to 512, a power of two
    dma_queues       1 to 4
    lane_fold        cycles a row takes in the activation and vector engines
    sbuf_banks       banks interleaved on the low word address bits
    axi_read_beats   most read beats requested and not yet received
    """

    name: str = "custom"
    lanes: int = 16
    pe: str = "tf32"
    sbuf_kib: int = 64
    psum_banks: int = 8
    axi_data_bits: int = 128
    dma_queues: int = 3
    lane_fold: int = 1
    sbuf_banks: int = 4
    axi_read_beats: int = 128

    def __post_init__(self):
        def need(ok, field, rule):
            if not ok:
                raise ConfigError(f"{field} = {getattr(self, field)!r}: must be {rule}")

        for field in ("lanes", "sbuf_kib", "psum_banks", "axi_data_bits", "dma_queues", "lane_fold", "sbuf_banks",
                      "axi_read_beats"):
            value = getattr(self, field)
            need(isinstance(value, int) and not isinstance(value, bool), field, "an integer")
        need(self.lanes in (4, 8, 16, 32, 64, 128), "lanes", "a power of two from 4 to 128")
        need(self.pe in PE_KINDS, "pe", "one of " + ", ".join(PE_KINDS))
        need(1 <= self.sbuf_kib <= 256, "sbuf_kib", "from 1 to 256 (18 address bits)")
        need(self.psum_banks in (1, 2, 4, 8), "psum_banks", "1, 2, 4 or 8")
        need(self.axi_data_bits in (32, 64, 128, 256, 512), "axi_data_bits", "32, 64, 128, 256 or 512")
        need(1 <= self.dma_queues <= 4, "dma_queues", "from 1 to 4")
        need(self.lane_fold in (1, 2, 4, 8) and self.lane_fold <= self.lanes, "lane_fold",
             "1, 2, 4 or 8 and at most lanes")
        need(self.sbuf_banks in (1, 2, 4, 8, 16), "sbuf_banks", "1, 2, 4, 8 or 16")
        need(16 <= self.axi_read_beats <= 256, "axi_read_beats", "from 16 to 256")

    @property
    def sbuf_bytes(self):
        """Bytes of SBUF per partition."""
        return self.sbuf_kib * 1024

    @property
    def sbuf_words(self):
        return self.sbuf_bytes // WORD_BYTES

    @property
    def psum_words(self):
        """32-bit words of PSUM per partition."""
        return self.psum_banks * PSUM_BANK_WORDS

    @property
    def psum_bytes(self):
        return self.psum_words * WORD_BYTES

    @property
    def axi_bytes(self):
        return self.axi_data_bits // 8

    @property
    def physical_lanes(self):
        """Arithmetic lanes of the activation and vector engines."""
        return self.lanes // self.lane_fold

    @property
    def queues(self):
        """Names of the queues that exist, in the order of the wait counts."""
        return ("pe", "act", "vec", *(f"dma{i}" for i in range(self.dma_queues)))

    @property
    def hash(self):
        """64-bit hash of every parameter and the ISA version (the name does not count)."""
        values = {k: v for k, v in asdict(self).items() if k != "name"}
        text = json.dumps({"isa": ISA_VERSION, **values}, sort_keys=True)
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")

    def with_(self, **changes):
        """A copy with some parameters changed (named 'custom' unless a name is given)."""
        return replace(self, **{"name": "custom", **changes})

    def to_json(self):
        return asdict(self)


PRESETS = {c.name: c for c in (
    Config("tiny", lanes=4, pe="tf32", sbuf_kib=4, psum_banks=2, axi_data_bits=64, dma_queues=2, lane_fold=2),
    Config("small", lanes=8, pe="bf16", sbuf_kib=16, psum_banks=4, axi_data_bits=64, dma_queues=2),
    Config("base"),
    Config("edge", lanes=8, pe="int8", sbuf_kib=16, psum_banks=4, axi_data_bits=64, dma_queues=2, lane_fold=4),
    Config("trn", lanes=128, pe="tf32", sbuf_kib=192, psum_banks=8, axi_data_bits=512, dma_queues=4, sbuf_banks=8),
)}


def preset(name):
    """The preset called `name`; a `ConfigError` lists the names there are."""
    if not isinstance(name, str) or name not in PRESETS:
        raise ConfigError(f"no configuration {name!r}; there are: {', '.join(PRESETS)}")
    return PRESETS[name]
