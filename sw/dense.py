"""One dense layer on the builder: Y^T = f(scale * (W^T X^T) + bias), block by block, double-buffered.

X comes from DRAM (row-major [M, K]) or is on chip already; Y goes to DRAM (row-major [M, N]) or stays on chip as
the next layer's X. On chip, features are partitions and the batch is the free axis.
"""

from dataclasses import dataclass

from isa.dtypes import DType
from isa.table import Mode
from sw.builder import DramView, View
from sw.plan import ceil_div, pitch


@dataclass
class Resident:
    """X^T on chip: `tiles` of `lanes` features, each [F] at a pitch."""

    block: object
    dtype: DType
    row: int  # elements from tile to tile

    def view(self, tile, f, tiles=1):
        """[f] of one tile, or [f, tiles] in the order of a transposing load."""
        addr = self.block.addr + tile * self.row * self.dtype.size_bytes
        if tiles == 1:
            return View("sbuf", addr, self.dtype, (f,), (1,))
        return View("sbuf", addr, self.dtype, (f, tiles), (1, self.row))


@dataclass(frozen=True)
class LayerTensors:
    """DRAM side of a layer and its constants on chip (word addresses of [n_tiles] fp32 rows, or None)."""

    k: int
    n: int
    weight: DramView
    dtype: DType
    scale_addr: object
    bias_addr: object
    func: int
    name: str


class Queues:
    """Which DMA queue does what, by how many there are."""

    def __init__(self, config):
        n = config.dma_queues
        self.x, self.w, self.y = "dma0", f"dma{1 if n > 2 else 0}", f"dma{n - 1}"


def parts(total, lanes, first, count):
    """Runs of tiles with equal partition counts: (first tile, tiles, partitions) within first..first+count."""
    whole = total // lanes
    end = first + count
    if first < whole:
        yield first, min(end, whole) - first, lanes
    if end > whole and total % lanes:
        yield whole, 1, total % lanes


class DenseLayer:
    """Emits one layer for one batch block at a time."""

    def __init__(self, builder, layer, plan, queues):
        self.b, self.layer, self.plan, self.queues = builder, layer, plan, queues
        self.lanes = builder.config.lanes
        self.k_tiles, self.n_tiles = ceil_div(layer.k, self.lanes), ceil_div(layer.n, self.lanes)
        size = layer.dtype.size_bytes
        self.w_row = plan.group * self.lanes
        self.w_ring = [builder.sbuf.take(plan.chunk * self.w_row * size, f"{layer.name} weights")
                       for _ in range(plan.w_buffers)]
        self.psum_sets = 2 if 2 * plan.group * plan.f <= builder.config.psum_words else 1
        self.w_next = self.set_next = 0

    def release(self):
        for block in self.w_ring:
            self.b.sbuf.free(block)

    def load_x(self, source, stride, x, f0, f, tile, count, tile_base=0):
        """Transposing loads of `count` K tiles from `tile` into x (its tile 0 is K tile `tile_base`)."""
        size = x.dtype.size_bytes
        for first, tiles, p in parts(self.layer.k, self.lanes, tile, count):
            address = source.addr + (f0 * stride + first * self.lanes) * size
            view = x.view(first - tile_base, f, tiles)
            strides = (1, stride, self.lanes) if tiles > 1 else (1, stride)
            self._dram(self.queues.x, "ld", source, address, strides, view, p, f"{self.layer.name}: load x")

    def _dram(self, queue, op, tensor, address, strides, view, p, note, inner=1):
        free = strides[1:]
        d = DramView(tensor.name, address, (strides[0], *(0,) * (3 - len(free)), *free))
        self.b.emit(queue, op, note, disjoint=op == "st", p0=0, pn=p, x=view, d=d, inner=inner)

    def load_w(self, tile, count, n_tile, group):
        """Weights of K tiles tile..tile+count, N tiles n_tile..n_tile+group; returns their block."""
        block = self.w_ring[self.w_next]
        self.w_next = (self.w_next + 1) % len(self.w_ring)
        layer, lanes, size = self.layer, self.lanes, self.layer.dtype.size_bytes
        columns = min(group * lanes, layer.n - n_tile * lanes)
        for first, tiles, p in parts(layer.k, lanes, tile, count):
            address = layer.weight.addr + (first * lanes * layer.n + n_tile * lanes) * size
            view = View("sbuf", block.addr + (first - tile) * self.w_row * size, layer.dtype, (tiles, columns),
                        (self.w_row, 1))
            self._dram(self.queues.w, "ld", layer.weight, address, (layer.n, lanes * layer.n, 1), view, p,
                       f"{layer.name}: load weights", inner=0)
        return block

    def run(self, f, x_load, x_view, y_sink, first):
        """All of N for one batch block of `f` columns.

        `x_load(tile, count)` makes K tiles available (or does nothing), `x_view(tile)` is a tile's moving operand;
        `y_sink(n_tile, p, source)` evicts a finished PSUM tile; `first`: nothing is on chip yet, start gently.
        """
        plan = self.plan
        for n_tile in range(0, self.n_tiles, plan.group):
            group = min(plan.group, self.n_tiles - n_tile)
            base = self.set_next * plan.group * plan.f * 4
            self.set_next = (self.set_next + 1) % self.psum_sets
            tile = 0
            for count in plan.ramp(self.k_tiles, first and n_tile == 0):
                if n_tile == 0 or not plan.resident:
                    x_load(tile, count)
                block = self.load_w(tile, count, n_tile, group)
                for g in range(group):
                    self._multiply(f, block, tile, count, n_tile, g, base, x_view, y_sink)
                tile += count

    def _multiply(self, f, block, tile, count, n_tile, g, base, x_view, y_sink):
        """The matmuls of one N tile over one chunk of K, and its eviction after the last chunk."""
        layer, lanes = self.layer, self.lanes
        size = layer.dtype.size_bytes
        mn = min(lanes, layer.n - (n_tile + g) * lanes)
        y = View("psum", base + g * self.plan.f * 4, DType.FP32, (f,), (1,))
        for t in range(tile, tile + count):
            rows = min(lanes, layer.k - t * lanes)
            w = View("sbuf", block.addr + ((t - tile) * self.w_row + g * lanes) * size, layer.dtype, (mn,), (1,))
            self.b.emit("pe", "mm", f"{layer.name}: matmul", p0=0, pn=rows, m0=0, mn=mn, x=x_view(t), w=w, y=y,
                        accumulate=int(t > 0))
        if tile + count == self.k_tiles:
            y_sink(n_tile + g, mn, View("psum", y.addr, self._psum_type(), (f,), (1,)))

    def _psum_type(self):
        return DType.INT32 if self.b.config.pe == "int8" else DType.FP32

    def evict(self, n_tile, p, source, target):
        """target = f(scale*source + bias) on the activation engine."""
        layer, fields = self.layer, {}
        for key, addr in (("scale", layer.scale_addr), ("bias", layer.bias_addr)):
            if addr is not None:
                fields |= {key: (addr + 4 * n_tile) | DType.FP32 << 18, f"{key}_mode": int(Mode.PARTITION)}
        self.b.emit("act", "act", f"{layer.name}: bias and activation", p0=0, pn=p, x=source, y=target,
                    func=layer.func, **fields)

    def store(self, tensor, f0, n_tile, p, source, y):
        """Evict to the buffer view `y` and store it, transposing, to rows f0.. of the DRAM tensor."""
        self.evict(n_tile, p, source, y)
        address = tensor.addr + (f0 * self.layer.n + n_tile * self.lanes) * y.dtype.size_bytes
        self._dram(self.queues.y, "st", tensor, address, (1, self.layer.n), y, p, f"{self.layer.name}: store y")


__all__ = ["DenseLayer", "LayerTensors", "Queues", "Resident", "parts", "pitch"]
