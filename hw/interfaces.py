"""Interfaces between blocks: signatures and payload layouts, and the named view of an instruction word."""

from types import SimpleNamespace

from amaranth import signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from isa.fields import INSTRUCTION_BITS

INSN = data.StructLayout({"bits": INSTRUCTION_BITS, "index": 32})
"""An instruction whose static rules hold, and its number in its queue."""

TRAP = data.StructLayout({"valid": 1, "code": 8, "index": 32, "addr": 48})
"""`valid` is a one-cycle pulse; the core keeps the first."""

SBUF_READ_LATENCY = 2
"""Cycles from a granted read request to its data, for SBUF and PSUM."""


def fields(bits, instruction):
    """Named slices of the 512-bit Value `bits`, signed where the table says so; `minus_one` fields stay stored."""
    out = {}
    for name, f in instruction.all_fields.items():
        part = bits[f.offset:f.offset + f.bits]
        out[name] = part.as_signed() if f.signed else part
    for bit, name in enumerate(instruction.flags):
        if name:
            out[f"flag_{name}"] = bits[8 + bit]
    return SimpleNamespace(**out)


def engine_signature():
    """What the core sees of an engine; from the engine's side, so `insn` is In."""
    return {
        "insn": In(stream.Signature(INSN)),
        "done": Out(1),   # one pulse per completed instruction, in order
        "trap": Out(TRAP),
        "idle": Out(1),   # nothing in progress
    }


class RowRead(wiring.Signature):
    """Read port of SBUF or PSUM, from the client's side: one word address, all partitions.

    A request is granted in the cycle in which `valid` and `ready` are high; its data come with `rsp_valid`
    SBUF_READ_LATENCY cycles later, in order, and cannot be refused. `urgent` raises the priority.
    `ready` may depend combinationally on `valid`, `addr` and `urgent`, never the other way round.
    """

    def __init__(self, lanes, addr_bits):
        super().__init__({
            "valid": Out(1), "addr": Out(addr_bits), "urgent": Out(1), "ready": In(1),
            "rsp_valid": In(1), "rsp_data": In(32 * lanes),
        })


class RowWrite(wiring.Signature):
    """Write port, from the client's side: the word is in memory one cycle after `valid` and `ready`."""

    def __init__(self, lanes, addr_bits):
        super().__init__({
            "valid": Out(1), "addr": Out(addr_bits), "urgent": Out(1), "ready": In(1),
            "data": Out(32 * lanes), "lanes": Out(lanes), "bytes": Out(4),
        })


WALK = data.StructLayout({
    "addr": 18, "s0": signed(18), "s1": signed(18), "s2": signed(18),
    "n0": 16, "n1": 16, "n2": 16, "size": 2, "index": 32})
"""A strided walk over one partition: byte address, signed strides (in elements), sizes less one,
log2 of the element size, and the index of the instruction it belongs to (for traps)."""


def axi_read(data_bits, beats_bits=8):
    """Read master port of one reader (its id is added by the arbiter). Response beats of one reader come in order."""
    return wiring.Signature({
        "ar_valid": Out(1), "ar_ready": In(1), "ar_addr": Out(48), "ar_len": Out(beats_bits),
        "r_valid": In(1), "r_ready": Out(1), "r_data": In(data_bits), "r_resp": In(2), "r_last": In(1)})


def axi_write(data_bits, beats_bits=8):
    """Write master port of one queue. The client raises `aw_valid` only when every beat of the burst is buffered,
    and sends the beats after the address was taken."""
    return wiring.Signature({
        "aw_valid": Out(1), "aw_ready": In(1), "aw_addr": Out(48), "aw_len": Out(beats_bits),
        "w_valid": Out(1), "w_ready": In(1), "w_data": Out(data_bits), "w_strb": Out(data_bits // 8),
        "w_last": Out(1),
        "b_valid": In(1), "b_resp": In(2)})


__all__ = ["INSN", "TRAP", "WALK", "SBUF_READ_LATENCY", "fields", "engine_signature", "RowRead", "RowWrite",
           "axi_read", "axi_write"]
