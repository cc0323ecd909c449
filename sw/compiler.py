"""A minimal compiler: a chain of dense layers to a program.

    program = compile_dense(preset("base"), batch=64, layers=[Dense(w0, b0, "relu"), Dense(w1, b1)], dtype="bf16")

Weights are [K, N] arrays. Storage is fp32, bf16, fp16 or int8; sums are fp32 (int32 on int8 PEs). With `scale` (one
number a channel) a layer computes f(scale * (x @ w) + bias), which is how int8 networks requantise.
"""

import numpy as np

from isa import activation
from isa.dtypes import DType
from sw.builder import Builder, DramView, View
from sw.dense import DenseLayer, LayerTensors, Queues, Resident, parts
from sw.errors import BuildError, CapacityError
from sw.layers import BUILT_IN, Dense, checked, positive, types
from sw.plan import MOVING_MAX, ceil_div, choose, pitch

SLOTS = 4


def compile_dense(config, batch, layers, dtype="bf16", out_dtype="fp32"):
    """Program with input tensor `x` [batch, K] and output `y` [batch, N]; errors name the layer and the rule."""
    return _Compiler(config, batch, layers, dtype, out_dtype).program()


def compile_matmul(config, m, k, n, dtype="bf16", out_dtype="fp32", weight=None):
    """Program for y = x @ w; with no `weight`, w is an input as well."""
    m, shape = positive("m", m), (positive("k", k), positive("n", n))
    if weight is not None and np.shape(weight) != shape:
        raise BuildError(f"weight has shape {np.shape(weight)}: must be {shape}")
    return _Compiler(config, m, [Dense(np.broadcast_to(np.uint8(0), shape) if weight is None else weight)],
                     dtype, out_dtype, weight_input=weight is None).program()


class _Compiler:
    def __init__(self, config, batch, layers, dtype, out_dtype, weight_input=False):
        self.dtype, self.out_dtype = types(config, dtype, out_dtype)
        self.config, self.layers, self.weight_input = config, checked(layers), weight_input
        self.batch = positive("batch", batch)
        self.b = Builder(config)
        self.slots = {}

    def program(self):
        """Emit everything; returns the Program."""
        b, last = self.b, self.layers[-1].weight.shape[1]
        self.x = b.dram("x", (self.batch, self.layers[0].weight.shape[0]), self.dtype, "input")
        self.tensors = [self._tensors(i, layer) for i, layer in enumerate(self.layers)]
        self.y = b.dram("y", (self.batch, last), self.out_dtype, "output")
        self._tables()
        self.queues = Queues(self.config)
        plans = self._plan_fused()
        if plans:
            self._run_fused(plans)
        else:
            self._run_apart()
        return b.program()

    def _tensors(self, i, layer):
        k, n = layer.weight.shape
        if self.weight_input:
            weight = self.b.dram("w", (k, n), self.dtype, "input")
        else:
            weight = self.b.dram(f"w{i}", (k, n), self.dtype, "const", self._cast(layer.weight, i))
        name = f"layer {i}"
        addresses = []
        for key in ("scale", "bias"):
            value = getattr(layer, key)
            addresses.append(None if value is None else self._vector(f"{key}{i}", value, n, name))
        return LayerTensors(k, n, weight, self.dtype, *addresses, self._func(layer.activation), name)

    def _cast(self, weight, i):
        weight = np.asarray(weight)
        if self.dtype == DType.INT8:
            if weight.dtype.kind not in "iu" or weight.min() < -128 or weight.max() > 127:
                raise BuildError(f"layer {i}: int8 storage needs integer weights from -128 to 127")
        return weight.astype(self.dtype.numpy)

    def _vector(self, name, value, n, layer):
        """Load a per-channel vector: tile t of it in word t, channel in partition."""
        lanes = self.config.lanes
        tiles = ceil_div(n, lanes)
        tensor = self.b.dram(name, (n,), DType.FP32, "const", np.asarray(value, np.float32))
        block = self.b.sbuf.take(4 * tiles, f"{layer} {name}")
        for first, count, p in parts(n, lanes, 0, tiles):
            view = View("sbuf", block.addr + 4 * first, DType.FP32, (count,), (1,))
            self.b.emit("dma0", "ld", f"{layer}: load {name}", p0=0, pn=p, x=view, inner=1,
                        d=DramView(name, tensor.addr + 4 * first * lanes, (1, 0, 0, lanes)))
        return block.addr

    def _func(self, name):
        if name in BUILT_IN:
            return int(BUILT_IN[name])
        if name not in self.slots:
            if len(self.slots) == SLOTS:
                raise BuildError(f"more than {SLOTS} different table functions in one chain: {', '.join(self.slots)}, "
                                 f"{name}")
            self.slots[name] = len(self.slots)
        return 8 + self.slots[name]

    def _tables(self):
        for name, slot in self.slots.items():
            table = np.asarray(activation.TABLES[name], np.uint32)
            tensor = self.b.dram(f"table_{name}", table.shape, DType.INT32, "const", table.view(np.int32))
            block = self.b.sbuf.take(table.nbytes, f"table of {name}")
            view = View("sbuf", block.addr, DType.INT32, (table.size,), (1,))
            self.b.emit("dma0", "ld", f"load table {name}", p0=0, pn=1, x=view,
                        d=DramView(tensor.name, tensor.addr, (0, 0, 0, 1)))
            self.b.emit("act", "tab", f"load table {name}", p0=0, slot=slot, x_addr=block.addr)
            self.b.sbuf.free(block)

    def _plan_fused(self):
        """One plan per layer with the same batch block, or None when the chain does not fit on chip."""
        free = self.b.sbuf.largest
        size = self.dtype.size_bytes
        for f in sorted({min(self.batch, b) for b in (MOVING_MAX, 256, 128, 64, 32, 16, 8, 4, 2, 1)}, reverse=True):
            row = pitch(f, size) * size
            inner = sum(ceil_div(t.k, self.config.lanes) * row + 16 for t in self.tensors[1:])
            try:
                plans = []
                left = free - inner
                for i, t in enumerate(self.tensors):
                    last = i == len(self.tensors) - 1
                    plan = choose(self.config, self.batch, t.k, t.n, size, self.out_dtype.size_bytes, left,
                                  x_given=i > 0, y_on_chip=not last, f=f)
                    plans.append(plan)
                    left -= self._fixed(t, plan, first=i == 0, last=last)
                if f == min(self.batch, MOVING_MAX) or f >= 2 * self.config.lanes:
                    return plans
            except CapacityError:
                continue
        return None

    def _fixed(self, t, plan, first, last):
        """Bytes that the layer keeps for the whole run, with room for alignment."""
        size = t.dtype.size_bytes
        row = pitch(plan.f, size) * size
        x = 0
        if first:
            blocks = self._x_blocks(plan)
            x = blocks * ((ceil_div(t.k, self.config.lanes) if plan.resident else 2 * plan.chunk) * row + 16)
        w = plan.w_buffers * (plan.chunk * plan.group * self.config.lanes * size + 16)
        y = plan.y_buffers * (pitch(plan.f, self.out_dtype.size_bytes) * self.out_dtype.size_bytes + 16) if last else 0
        return x + w + y

    def _x_blocks(self, plan):
        return 1

    def _blocks(self, f):
        return [(f0, min(f, self.batch - f0)) for f0 in range(0, self.batch, f)]

    def _run_fused(self, plans):
        b = self.b
        runs = [DenseLayer(b, t, p, self.queues) for t, p in zip(self.tensors, plans)]
        inner = [self._resident(t, plans[0].f, f"{t.name} x") for t in self.tensors[1:]]
        first, last = _Input(self, runs[0], self.x), _Output(self, runs[-1], self.y)
        for f0, f in self._blocks(plans[0].f):
            for i, run in enumerate(runs):
                if i == 0:
                    load, view = first.begin(f0, f)
                else:
                    load, view = (lambda tile, count: None), (lambda t, x=inner[i - 1], f=f: x.view(t, f))
                if i == len(runs) - 1:
                    sink = last.begin(f0)
                else:
                    def sink(n, p, source, run=run, x=inner[i], f=f):
                        run.evict(n, p, source, x.view(n, f))
                run.run(f, load, view, sink, first=f0 == 0 and i == 0)

    def _run_apart(self):
        """Each layer alone, with its output in DRAM."""
        source = self.x
        for i, t in enumerate(self.tensors):
            last = i == len(self.tensors) - 1
            out_dtype = self.out_dtype if last else self.dtype
            target = self.y if last else self.b.dram(f"hidden{i}", (self.batch, t.n), out_dtype, "temp")
            plan = choose(self.config, self.batch, t.k, t.n, t.dtype.size_bytes, out_dtype.size_bytes,
                          self.b.sbuf.largest)
            run = DenseLayer(self.b, t, plan, self.queues)
            inputs, outputs = _Input(self, run, source), _Output(self, run, target, out_dtype)
            for f0, f in self._blocks(plan.f):
                run.run(f, *inputs.begin(f0, f), outputs.begin(f0), first=f0 == 0)
            for owner in (run, inputs, outputs):
                owner.release()
            source = target

    def _resident(self, t, f, what):
        row = pitch(f, t.dtype.size_bytes)
        tiles = ceil_div(t.k, self.config.lanes)
        return Resident(self.b.sbuf.take(tiles * row * t.dtype.size_bytes, what), t.dtype, row)


class _Input:
    """X from DRAM: blocks that stay for a whole batch block, or a ring of chunks."""

    def __init__(self, compiler, run, source):
        self.run, self.source = run, source
        plan, t, b = run.plan, run.layer, compiler.b
        self.row = pitch(plan.f, t.dtype.size_bytes)
        tiles = run.k_tiles if plan.resident else plan.chunk
        size = tiles * self.row * t.dtype.size_bytes
        count = 2 if not plan.resident or (compiler.batch > plan.f and b.sbuf.largest > 2 * size + b.config.sbuf_bytes // 2
                                           ) else 1
        self.ring = [Resident(b.sbuf.take(size, f"{t.name} x"), t.dtype, self.row) for _ in range(count)]
        self.next = -1
        self.base = 0
        self.free = b.sbuf.free

    def begin(self, f0, f):
        """(load, view) callbacks for one batch block."""
        plan, run = self.run.plan, self.run
        if plan.resident:
            self.next = (self.next + 1) % len(self.ring)

        def load(tile, count):
            if not plan.resident:
                self.next, self.base = (self.next + 1) % len(self.ring), tile
            run.load_x(self.source, run.layer.k, self.ring[self.next], f0, f, tile, count, self.base)

        return load, lambda t: self.ring[self.next].view(t - self.base, f)

    def release(self):
        for x in self.ring:
            self.free(x.block)


class _Output:
    """Y to DRAM through a ring of buffers."""

    def __init__(self, compiler, run, target, dtype=None):
        self.run, self.target = run, target
        self.dtype = dtype or compiler.out_dtype
        size = pitch(run.plan.f, self.dtype.size_bytes) * self.dtype.size_bytes
        self.ring = [compiler.b.sbuf.take(size, f"{run.layer.name} y") for _ in range(run.plan.y_buffers)]
        self.next = 0
        self.free = compiler.b.sbuf.free

    def begin(self, f0):
        """The eviction callback for one batch block."""
        def sink(n_tile, p, source):
            block = self.ring[self.next]
            self.next = (self.next + 1) % len(self.ring)
            y = View("sbuf", block.addr, self.dtype, source.shape, (1,))
            self.run.store(self.target, f0, n_tile, p, source, y)
        return sink

    def release(self):
        for block in self.ring:
            self.free(block)
