"""Shared by the tests of the activation engine: memories that stall, a run of a program, random programs."""

from types import SimpleNamespace

import numpy as np
from amaranth import Cat
from amaranth.sim import Simulator

from hw.activation import ActivationEngine
from hw.interfaces import SBUF_READ_LATENCY
from isa import activation
from isa.dtypes import DType
from isa.encode import decode, encode
from isa.machine import Machine
from isa.operands import Operand
from isa.table import Mode
from tests.hw.datapath import random_fp32

DEADLINE = 30_000
BASE = 4 * activation.SLOT_WORDS  # sources (and the table) below, destinations from here on: no waits are needed


class Memory:
    """The Python side of one memory's ports: grants at random, answers two cycles after the grant."""

    def __init__(self, data, reads, write, stall, rng):
        self.words = np.ascontiguousarray(data).view(np.uint32).T.copy()  # [words, lanes]
        self.reads, self.write, self.stall, self.rng = reads, write, stall, rng
        self.pipes = [[None] * (SBUF_READ_LATENCY - 1) for _ in reads]
        ports = [*reads, *([write] if write is not None else [])]
        self.inputs = Cat(*(p.ready for p in ports), *(p.rsp_valid for p in reads), *(p.rsp_data for p in reads))
        self.outputs = [v for p in ports for v in (p.valid, p.addr)]
        if write is not None:
            self.outputs += [write.data, write.lanes, write.bytes]

    @property
    def data(self):
        return np.ascontiguousarray(self.words.T).view(np.uint8)

    def drive(self):
        """The value of `inputs` for this cycle."""
        count = len(self.reads) + (self.write is not None)
        self.ready = [int(self.stall == 0 or self.rng.random() >= self.stall) for _ in range(count)]
        rows = [pipe.pop(0) for pipe in self.pipes]
        bits = [(r, 1) for r in self.ready] + [(int(r is not None), 1) for r in rows]
        bits += [(r or 0, 32 * self.words.shape[1]) for r in rows]
        value, at = 0, 0
        for v, width in bits:
            value, at = value | v << at, at + width
        return value

    def clock(self, outputs):
        """Take in what the ports did in this cycle."""
        for i, pipe in enumerate(self.pipes):
            valid, addr = outputs[2 * i:2 * i + 2]
            granted = valid and self.ready[i]
            pipe.append(int.from_bytes(self.words[addr].tobytes(), "little") if granted else None)
        if self.write is not None and self.ready[-1] and outputs[-5]:
            addr, data, lanes, enables = outputs[-4:]
            if not lanes:
                return  # a suppressed access; its address may be anything
            row = np.frombuffer(data.to_bytes(4 * self.words.shape[1], "little"), np.uint8)
            old = self.words[addr].view(np.uint8)
            for i in range(len(row)):
                if lanes >> (i // 4) & 1 and enables >> i % 4 & 1:
                    old[i] = row[i]


def execute(config, sbuf, psum, program, stall=0.0, rng=None):
    """Run a program on the engine: `sbuf` afterwards, `done` cycles of completions, `traps` (code, index, addr)."""
    e = ActivationEngine(config)
    memories = (Memory(sbuf, (e.sbuf_read, e.scalar_read), e.sbuf_write, stall, rng),
                Memory(psum, (e.psum_read,), None, stall, rng))
    result = SimpleNamespace(done=[], traps=[], sbuf=None)
    insn = Cat(e.insn.valid, e.insn.payload)
    inputs = Cat(insn, *(m.inputs for m in memories))
    watched = [e.insn.ready, e.done, e.idle, e.trap.valid, e.trap.code, e.trap.index, e.trap.addr,
               *memories[0].outputs, *memories[1].outputs]

    async def main(ctx):
        sent = cycles = 0
        while len(result.done) < len(program):
            offer = sent < len(program)
            value, at = 1 | program[sent] << 1 | sent << 513 if offer else 0, len(insn)
            for memory in memories:
                value, at = value | memory.drive() << at, at + len(memory.inputs)
            ctx.set(inputs, value)
            _, _, ready, finished, idle, trap, code, index, addr, *ports = await ctx.tick().sample(*watched)
            memories[0].clock(ports[:len(memories[0].outputs)])
            memories[1].clock(ports[len(memories[0].outputs):])
            assert idle == (len(result.done) == sent), "idle exactly when nothing is inside"
            sent += bool(offer and ready)
            if finished:
                result.done.append(cycles)
            if trap:
                result.traps.append((code, index, addr))
            cycles += 1
            assert cycles < DEADLINE, "deadline"
        assert ctx.get(e.idle)

    sim = Simulator(e)
    sim.add_clock(1e-8)
    sim.add_testbench(main)
    sim.run()
    result.sbuf = memories[0].data
    return result


def golden(config, sbuf, psum, program):
    """SBUF after the golden machine ran the program (which also proves that it needs no waits)."""
    machine = Machine(config, 64)
    for memory, contents in ((machine.sbuf, sbuf), (machine.psum, psum)):
        memory.data[:], memory.written[:] = contents, True
    machine.run({"act": program})
    return machine.sbuf.data


def compare(config, sbuf, psum, program, **options):
    """Engine against golden machine; the run's result."""
    want = golden(config, sbuf, psum, program)
    result = execute(config, sbuf, psum, program, **options)
    assert not result.traps
    bad = np.argwhere(result.sbuf != want)
    assert not bad.size, f"{len(bad)} bytes differ, first partition {bad[0][0]}, byte {bad[0][1]:#x}"
    assert not np.array_equal(want, sbuf), "the program changed nothing"
    return result


def memories(config, rng):
    """(SBUF, PSUM), uint8[lanes, bytes], with plausible fp32 numbers everywhere."""
    return tuple(random_fp32(rng, config.lanes * n).reshape(config.lanes, n).view(np.uint8).copy()
                 for n in (config.sbuf_words, config.psum_words))


def load_table(sbuf, name, slot, p0):
    """Put a table at the bottom of partition `p0`; the instruction that loads it."""
    sbuf[p0, :BASE] = activation.TABLES[name].view(np.uint8)
    return encode("tab", p0=p0, slot=slot, x_addr=0)


def random_act(rng, config, functions):
    """A legal act that reads below BASE (or PSUM) and writes above."""
    while True:
        x_space = int(rng.integers(2))
        x_type = DType(int(rng.choice([0, 7]) if x_space else rng.integers(8)))
        shape = [int(n) for n in rng.integers(1, (3, 4, 14))]
        p0 = int(rng.integers(config.lanes))
        limit = config.psum_bytes if x_space else BASE
        values = {f"n{d}": shape[d] for d in range(3)} | {f"x_s{d}": int(rng.integers(-20, 21)) for d in range(3)}
        values |= {f"y_s{d}": s * int(rng.choice([-1, 1])) for d, s in enumerate((shape[1] * shape[2], shape[2], 1))}
        values |= {
            "p0": p0, "pn": int(rng.integers(1, config.lanes - p0 + 1)), "x_space": x_space, "x_type": x_type,
            "y_type": DType(int(rng.integers(8))), "func": int(rng.choice(functions)),
            "x_addr": int(rng.integers(limit >> x_type.size_log2)) << x_type.size_log2,
            "y_addr": int(rng.integers(BASE >> 2, config.sbuf_words)) << 2,
            "acc": int(rng.choice(3, p=[0.6, 0.2, 0.2])), "acc_write": int(rng.random() < 0.3),
            "acc_addr": int(rng.integers(BASE >> 2, config.sbuf_words)) << 2}
        for name in ("scale", "bias"):
            mode, t = Mode(int(rng.integers(3))), DType(int(rng.integers(8)))
            address = int(rng.integers(BASE >> t.size_log2)) << t.size_log2
            immediate = int(rng.normal(0, 2, 1).astype(np.float32).view(np.uint32)[0])
            values[f"{name}_mode"] = mode
            values[name] = {Mode.NONE: 0, Mode.IMM: immediate, Mode.PARTITION: address | t << 18}[mode]
        word = encode("act", **values)
        if _inside(config, word, limit):
            return word


def _inside(config, word, limit):
    """Whether all addresses are where they should be, and the sum's place is not among the results'."""
    values = decode(word)[1]
    x, y = (Operand(Machine(config, 64, races=False), values, name, None) for name in "xy")
    inside = x.at.min() >= 0 and x.at.max() < limit and y.at.min() >= BASE and y.at.max() < config.sbuf_bytes
    return inside and not (values["acc_write"] and np.isin(np.arange(4) + values["acc_addr"], y.at).any())
