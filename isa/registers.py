"""Control and status registers (AXI4-Lite, 32 bits wide) and codes, as data: RTL, host and manual read this list.

Sixty-four-bit values take two registers, low word first.
"""

from dataclasses import dataclass
from enum import IntEnum

MAGIC = 0x53595354  # "SYST"


class Trap(IntEnum):
    """Why the core stopped."""

    NONE = 0
    OPCODE = 1       # no such instruction on this queue
    RESERVED = 2     # a bit that must be zero is set
    PARTITION = 3    # partitions beyond the lanes
    ADDRESS = 4      # SBUF or PSUM access beyond the memory
    ALIGN = 5        # address not a multiple of the element size
    TYPE = 6         # element type not allowed here
    OPERATION = 7    # field value or operation not allowed
    DRAM = 8         # DRAM access outside dram_base .. dram_base + dram_bytes
    BUS_READ = 9     # the bus answered a read with an error
    BUS_WRITE = 10   # the bus answered a write with an error
    WATCHDOG = 11    # no completion, beat or grant for `watchdog` cycles
    ROW = 12         # gather or scatter row beyond the limit
    FETCH = 13       # the bus answered an instruction fetch with an error


@dataclass(frozen=True)
class Register:
    name: str
    addr: int
    access: str  # "ro", "rw", "wo"
    doc: str


def _list():
    regs, at = [], 0

    def add(name, access, doc, words=1):
        nonlocal at
        for w in range(words):
            regs.append(Register(name if words == 1 else f"{name}_{'lo' if w == 0 else 'hi'}", at, access, doc))
            at += 4

    add("magic", "ro", "0x53595354")
    add("isa_version", "ro", "version of the instruction set")
    add("config_hash", "ro", "hash of the configuration", 2)
    add("control", "wo", "bit 0: start; bit 1: soft reset")
    add("status", "ro", "bit 0: running; 1: done; 2: error; 3: resetting; 4: bus idle")
    add("error_code", "ro", "Trap of the first error; bits 8-15: queue")
    add("error_index", "ro", "index of the instruction in its queue")
    add("error_addr", "ro", "address of the first error, where it has one", 2)
    add("watchdog", "rw", "cycles without progress before a trap; 0: never")
    add("dram_base", "rw", "bus address of DRAM offset 0", 2)
    add("dram_bytes", "rw", "size of the DRAM window", 2)
    add("external", "wo", "raises the external count by this much")
    add("cycles", "ro", "cycles from start to done", 2)
    for q in range(7):
        add(f"q{q}_base", "rw", f"bus address of queue {q}'s first instruction, 64-byte aligned", 2)
        add(f"q{q}_count", "rw", f"instructions of queue {q}")
        add(f"q{q}_done", "ro", f"completed instructions of queue {q}")
        add(f"q{q}_busy", "ro", f"cycles in which queue {q}'s engine was busy")
        add(f"q{q}_stall", "ro", f"cycles in which queue {q} waited for counts")
    return tuple(regs)


REGISTERS = _list()
ADDRESS = {r.name: r.addr for r in REGISTERS}
START, SOFT_RESET = 1, 2
RUNNING, DONE, ERROR, RESETTING, BUS_IDLE = 1, 2, 4, 8, 16
DEFAULT_WATCHDOG = 100_000
