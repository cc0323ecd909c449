"""Shared by the tests of the DMA queue: bus and SBUF models for Amaranth's simulator, and NumPy copies as oracle.

The oracle copies bytes by address arrays and shares nothing with the golden model of `isa`.
"""

from collections import deque

import numpy as np
from amaranth.sim import Simulator

from isa.dtypes import DType
from isa.encode import encode

BASE = 0x4_0000_0040  # bus address of DRAM offset 0: above 32 bits, aligned to no large burst


class Bus:
    """AXI memory behind one reader and one writer: latency in cycles, probability of a stall, addresses that fail.

    A write reaches memory with its response. Protocol errors raise.
    """

    def __init__(self, dut, dram, rng, latency=5, stall=0.0, bad=()):
        self.r, self.w, self.dram, self.rng = dut.axi_r, dut.axi_w, dram, rng
        self.width = dut.config.axi_bytes
        self.latency, self.stall, self.bad = latency, stall, bad
        self.reads, self.writes, self.answers = deque(), deque(), deque()
        self.now = self.read_beats = self.write_beats = self.read_bursts = self.write_bursts = 0
        self.offer = None
        self.read_cycles, self.write_cycles, self.last_strobe = [], [], 0

    def _burst(self, addr, length):
        assert addr % self.width == 0 and length < 16, "unaligned or long burst"
        assert addr // 4096 == (addr + (length + 1) * self.width - 1) // 4096, "burst crosses 4 KiB"

    def _slow(self):
        return self.rng.random() < self.stall

    def _index(self, addr):
        return addr - BASE + np.arange(self.width)

    def step(self, ctx, s):
        """`s`: signals sampled at the clock edge; sets those of the next cycle."""
        self.now += 1
        if s["ar_valid"] and s["ar_ready"]:
            self._burst(s["ar_addr"], s["ar_len"])
            self.read_bursts += 1
            for beat in range(s["ar_len"] + 1):
                self.reads.append((self.now + self.latency, s["ar_addr"] + beat * self.width, beat == s["ar_len"]))
        if s["r_valid"]:
            assert s["r_ready"], "reads are never refused"
            self.read_beats += 1
            self.read_cycles.append(self.now)
            self.offer = None
        if s["aw_valid"] and s["aw_ready"]:
            self._burst(s["aw_addr"], s["aw_len"])
            self.write_bursts += 1
            self.writes.append([s["aw_addr"], s["aw_len"], []])
        if s["w_valid"] and s["w_ready"]:
            burst = next(b for b in self.writes if len(b[2]) <= b[1])  # fails if the data precede the address
            burst[2].append((s["w_data"], s["w_strb"]))
            assert s["w_last"] == (len(burst[2]) == burst[1] + 1), "last beat"
            self.write_beats += 1
            self.last_strobe = self.now if s["w_strb"] else self.last_strobe
            self.write_cycles.append(self.now)
        while self.writes and len(self.writes[0][2]) == self.writes[0][1] + 1:
            self.answers.append((self.now + self.latency, self.writes.popleft()))
        if self.offer is None and self.reads and self.reads[0][0] <= self.now and not self._slow():
            self.offer = self.reads.popleft()
            _, addr, last = self.offer
            at = self._index(addr)
            inside = (at >= 0) & (at < self.dram.size)
            data = np.where(inside, self.dram[at.clip(0, self.dram.size - 1)], 0xEE).astype(np.uint8)
            ctx.set(self.r.r_data, int.from_bytes(data.tobytes(), "little"))
            ctx.set(self.r.r_last, last)
            ctx.set(self.r.r_resp, 2 if addr in self.bad else 0)
        ctx.set(self.r.r_valid, self.offer is not None)
        ctx.set(self.r.ar_ready, not self._slow())
        ctx.set(self.w.aw_ready, not self._slow())
        ctx.set(self.w.w_ready, not self._slow())
        answer = bool(self.answers) and self.answers[0][0] <= self.now and not self._slow()
        ctx.set(self.w.b_valid, answer)
        if answer:
            _, (addr, _, beats) = self.answers.popleft()
            for n, (data, strobes) in enumerate(beats):
                at = self._index(addr + n * self.width)
                mask = np.array([strobes >> b & 1 for b in range(self.width)], bool)
                assert ((at >= 0) & (at < self.dram.size))[mask].all(), "write outside DRAM"
                self.dram[at[mask]] = np.frombuffer(data.to_bytes(self.width, "little"), np.uint8)[mask]
            ctx.set(self.w.b_resp, 2 if addr in self.bad else 0)

    @property
    def quiet(self):
        return not (self.reads or self.writes or self.answers or self.offer)


class Rows:
    """SBUF behind the queue's two row ports; `sbuf` is uint8[lanes, bytes]."""

    def __init__(self, dut, sbuf, rng, stall=0.0):
        self.r, self.w, self.sbuf, self.rng, self.stall = dut.sbuf_read, dut.sbuf_write, sbuf, rng, stall
        self.pending = None

    def step(self, ctx, s):
        ctx.set(self.r.rsp_valid, self.pending is not None)
        if self.pending is not None:
            row = self.sbuf[:, self.pending * 4:self.pending * 4 + 4]
            ctx.set(self.r.rsp_data, int.from_bytes(row.tobytes(), "little"))
        self.pending = s["rd_addr"] if s["rd_valid"] and s["rd_ready"] else None
        if s["wr_valid"] and s["wr_ready"]:
            data = np.frombuffer(s["wr_data"].to_bytes(4 * len(self.sbuf), "little"), np.uint8).reshape(-1, 4)
            for p in range(len(self.sbuf)):
                for b in range(4):
                    if s["wr_lanes"] >> p & 1 and s["wr_bytes"] >> b & 1:
                        self.sbuf[p, s["wr_addr"] * 4 + b] = data[p, b]
        ctx.set(self.r.ready, self.rng.random() >= self.stall)
        ctx.set(self.w.ready, self.rng.random() >= self.stall)


def ports(dut):
    """What the models sample."""
    names = {n: getattr(dut.axi_r, n) for n in ("ar_valid", "ar_ready", "ar_addr", "ar_len", "r_valid", "r_ready")}
    names |= {n: getattr(dut.axi_w, n) for n in ("aw_valid", "aw_ready", "aw_addr", "aw_len", "w_valid", "w_ready",
                                                 "w_data", "w_strb", "w_last")}
    for short, port in (("rd", dut.sbuf_read), ("wr", dut.sbuf_write)):
        names |= {f"{short}_{n}": getattr(port, n) for n in ("valid", "ready", "addr")}
    names |= {f"wr_{n}": getattr(dut.sbuf_write, n) for n in ("data", "lanes", "bytes")}
    t = dut.trap
    return names | {"insn_ready": dut.insn.ready, "insn_valid": dut.insn.valid, "done": dut.done, "idle": dut.idle,
                    "trap": t.valid, "code": t.code, "index": t.index, "addr": t.addr}


def run(dut, words, sbuf, dram, rng, deadline=20_000, latency=5, stall=0.0, bad=(), halt_at=None, after=40):
    """Run instruction words; `sbuf` and `dram` change in place. Returns the bus, with `traps` [(code, index, addr)],
    `done` (cycles) and `cycles`. With `halt_at` the queue is halted in that cycle and must fall silent."""
    bus, rows = Bus(dut, dram, rng, latency, stall, bad), Rows(dut, sbuf, rng, stall)
    bus.traps, bus.done, bus.cycles = [], [], 0
    watched = ports(dut)

    async def bench(ctx):
        ctx.set(dut.dram_base, BASE)
        ctx.set(dut.dram_bytes, dram.size)
        at, quiet = 0, 0
        while quiet < after:
            ctx.set(dut.halt, halt_at is not None and bus.cycles >= halt_at)
            ctx.set(dut.insn.valid, at < len(words) and (bool(ctx.get(dut.insn.valid)) or rng.random() >= stall))
            if at < len(words):
                ctx.set(dut.insn.payload.bits, words[at])
                ctx.set(dut.insn.payload.index, 100 + at)
            values = await ctx.tick().sample(*watched.values())
            s = dict(zip(watched, values[2:]))
            bus.step(ctx, s)
            rows.step(ctx, s)
            bus.cycles += 1
            assert bus.cycles < deadline, f"deadline: {len(bus.done)} of {len(words)} done"
            if s["trap"]:
                bus.traps.append((s["code"], s["index"], s["addr"]))
            if s["done"]:
                bus.done.append(bus.cycles)
            if s["insn_valid"] and s["insn_ready"]:
                at += 1
                ctx.set(dut.insn.valid, 0)
            over = halt_at is not None and bus.cycles > halt_at or len(bus.done) == len(words) and s["idle"]
            quiet = quiet + 1 if over and bus.quiet else 0

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    return bus


def grid(strides, shape, size, base):
    """Byte addresses [*shape, size] of a strided tensor."""
    at = np.full((*shape, size), base) + np.arange(size)
    for axis, (s, n) in enumerate(zip(strides, shape)):
        at = at + (np.arange(n) * s * size).reshape([-1 if a == axis else 1 for a in range(len(shape) + 1)])
    return at


def apply(name, v, sbuf, dram):
    """What instruction `name` with all values `v` does, as NumPy copies."""
    size = DType(v["x_type"]).size_bytes
    shape = tuple(v[f"n{d}"] for d in range(3))
    if name == "cp":
        source, target = (grid([v[f"{n}_s{d}"] for d in range(3)], shape, size, v[f"{n}_addr"]) for n in "de")
        dram[target] = dram[source]
        return
    x = grid([v[f"x_s{d}"] for d in range(3)], shape, size, v["x_addr"])
    lanes = np.arange(v["p0"], v["p0"] + v["pn"])
    if name == "mv":
        other = tuple(v[f"m{d}"] for d in range(3))
        y = grid([v[f"y_s{d}"] for d in range(3)], other, size, v["y_addr"])
        values = sbuf[lanes][:, x]
        flow = (np.moveaxis(values, 0, 3) if v["x_inner"] else values).reshape(-1, size)
        to = np.arange(v["q0"], v["q0"] + v["qn"])
        if v["y_inner"]:
            flow = np.moveaxis(flow.reshape(*other, v["qn"], size), 3, 0)
        for n, p in enumerate(to):
            sbuf[p, y] = flow.reshape(v["qn"], *other, size)[n]
        return
    if name in ("ld", "st"):
        d = grid([v["d_sp"], *(v[f"d_s{i}"] for i in range(3))], (v["pn"], *shape), size, v["d_addr"])
    for n, p in enumerate(lanes):
        if name in ("gat", "sca"):
            row = int.from_bytes(sbuf[p, v["i_addr"]:v["i_addr"] + 4].tobytes(), "little")
            if row >= v["row_limit"]:
                continue
            at = grid([shape[1] * shape[2], shape[2], 1], shape, size, v["d_addr"] + row * v["row_stride"] * size)
        else:
            at = d[n]
        if name in ("ld", "gat"):
            sbuf[p, x] = dram[at]
        else:
            dram[at] = sbuf[p, x]


def word(name, **values):
    """The instruction word."""
    return encode(name, **values)
