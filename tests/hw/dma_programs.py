"""Random legal DMA instructions: every stride pattern whose destination bytes are distinct, packed into small memories."""

import numpy as np

from hw.dma import DmaQueue
from isa.dtypes import DType
from tests.hw.datapath import generator
from tests.hw.dma_bench import apply, run, word

TYPES = (DType.FP32, DType.BF16, DType.INT8, DType.FP8E4, DType.INT32)
SBUF, DRAM = 1024, 4096  # bytes used; the index row of gather and scatter follows in SBUF
OPS = ("ld", "st", "mv", "cp", "gat", "sca")


def layout(rng, shape, distinct, gap=3):
    """(strides in elements, lowest and highest element) of a random layout: any axis order, any signs, with gaps;
    where the elements need not be `distinct`, sometimes zero strides."""
    strides, reach = [0] * len(shape), 1
    order = rng.permutation(len(shape)) if rng.random() < 0.5 else np.arange(len(shape))[::-1]
    for axis in order:
        strides[axis] = reach if rng.random() < 0.6 else reach + int(rng.integers(0, gap))
        reach = strides[axis] * (shape[axis] - 1) + reach
        if rng.random() < 0.2:
            strides[axis] = -strides[axis]
        if not distinct and rng.random() < 0.15:
            strides[axis] = 0
        if shape[axis] == 1 and rng.random() < 0.5:
            strides[axis] = int(rng.integers(-5, 6))
    ends = [s * (n - 1) for s, n in zip(strides, shape)]
    return strides, sum(min(e, 0) for e in ends), sum(max(e, 0) for e in ends)


def place(rng, shape, size, room, distinct, aligned):
    """(byte address, strides) of a layout that fits `room` bytes, or None."""
    strides, low, high = layout(rng, shape, distinct)
    free = room - (high - low + 1) * size
    if free < 0:
        return None
    base = int(rng.integers(0, free + 1))
    if aligned:
        base -= base % size
    return base - low * size, strides


def sizes(rng, most):
    """Three sizes with at most `most` elements; the innermost is often the largest."""
    n2 = int(rng.choice([1, 2, 3, int(rng.integers(1, most + 1))]))
    n1 = int(rng.integers(1, max(2, min(4, most // n2) + 1)))
    n0 = int(rng.integers(1, max(2, min(3, most // (n2 * n1)) + 1)))
    return n0, n1, n2


def factors(rng, count, lanes):
    """(qn, m0, m1, m2) whose product is `count`."""
    out = []
    for most in (lanes, 65535, 65535):
        divisors = [d for d in range(1, min(count, most) + 1) if count % d == 0]
        out.append(int(rng.choice(divisors)))
        count //= out[-1]
    return (*out, count)


def side(rng, name, shape, size, room, distinct):
    """Fields of an SBUF operand, or None."""
    found = place(rng, shape, size, room, distinct, aligned=True)
    return found and {f"{name}_addr": found[0], **{f"{name}_s{d}": s for d, s in enumerate(found[1])}}


def random_instruction(rng, config, sbuf_bytes, dram_bytes, op=None, most=60):
    """(name, values) of a legal instruction within the first `sbuf_bytes` and `dram_bytes`."""
    while True:
        made = _attempt(rng, config, sbuf_bytes, dram_bytes, op or str(rng.choice(OPS)), most)
        if made:
            return made


def _attempt(rng, config, sbuf_bytes, dram_bytes, name, most):
    dtype = DType(int(rng.choice([int(t) for t in TYPES])))
    size = dtype.size_bytes
    pn = int(rng.choice([config.lanes, int(rng.integers(1, config.lanes + 1))]))
    p0 = int(rng.integers(0, config.lanes - pn + 1))
    shape = sizes(rng, most)
    v = {"x_type": int(dtype), **{f"n{d}": n for d, n in enumerate(shape)}}
    half = dram_bytes // 2
    if name == "cp":
        source, target = place(rng, shape, size, half, False, False), place(rng, shape, size, half, True, False)
        if not source or not target:
            return None
        v |= {"d_addr": source[0], "e_addr": target[0] + half}
        v |= {f"{n}_s{d}": s[d] for n, (_, s) in (("d", source), ("e", target)) for d in range(3)}
        return name, v
    v |= {"p0": p0, "pn": pn}
    if name == "mv":
        room = sbuf_bytes // 2
        target = factors(rng, pn * int(np.prod(shape)), config.lanes)
        v |= {"qn": target[0], "q0": int(rng.integers(0, config.lanes - target[0] + 1))}
        v |= {f"m{d}": n for d, n in enumerate(target[1:])}
        x, y = side(rng, "x", shape, size, room, False), side(rng, "y", target[1:], size, room, True)
        if not x or not y:
            return None
        y["y_addr"] += room  # a multiple of four
        return name, v | x | y | {"x_inner": bool(rng.integers(2)), "y_inner": bool(rng.integers(2))}
    x = side(rng, "x", shape, size, sbuf_bytes, name in ("ld", "gat"))
    if not x:
        return None
    if name in ("gat", "sca"):
        row = int(np.prod(shape))
        limit = dram_bytes // 2 // size // row
        if limit < config.lanes + 1:
            return None
        return name, v | x | {"d_addr": int(rng.integers(0, 64)), "row_stride": row, "row_limit": limit - 1, "skip": True,
                              "i_addr": sbuf_bytes}
    d = place(rng, (pn, *shape), size, dram_bytes, name == "st", False)
    if not d:
        return None
    return name, v | x | {"d_addr": d[0], "d_sp": d[1][0], **{f"d_s{i}": d[1][i + 1] for i in range(3)},
                          "inner": bool(rng.integers(2))}


def index_row(rng, config, limit):
    """Distinct row numbers for all partitions as bytes [lanes, 4]; some are beyond `limit`, some negative."""
    rows = rng.permutation(max(limit, config.lanes))[:config.lanes].astype(np.int64)
    rows[rng.random(config.lanes) < 0.2] = limit + int(rng.integers(0, 5))
    rows[rng.random(config.lanes) < 0.1] = -1
    return rows.astype(np.int32).view(np.uint8).reshape(-1, 4)


def check_random(config, op, count, latency, stall):
    """One program of `count` random instructions (all of one kind, or of any) on the queue and on the oracle."""
    rng = generator(f"dma {config.lanes} {config.axi_data_bits} {op} {latency}")
    sbuf = rng.integers(0, 256, (config.lanes, SBUF + 4), dtype=np.uint8)
    dram = rng.integers(0, 256, DRAM, dtype=np.uint8)
    program = [random_instruction(rng, config, SBUF, DRAM, op) for _ in range(count)]
    limits = [v["row_limit"] for _, v in program if "row_limit" in v]
    sbuf[:, SBUF:] = index_row(rng, config, min(limits, default=100))
    expected_sbuf, expected_dram = sbuf.copy(), dram.copy()
    for name, values in program:
        apply(name, values, expected_sbuf, expected_dram)
    assert (expected_sbuf != sbuf).any() or (expected_dram != dram).any()
    bus = run(DmaQueue(config), [word(n, **v) for n, v in program], sbuf, dram, rng, latency=latency, stall=stall)
    assert not bus.traps
    np.testing.assert_array_equal(sbuf, expected_sbuf)
    np.testing.assert_array_equal(dram, expected_dram)
