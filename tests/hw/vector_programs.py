"""Random legal instructions of the vector engine, drawn against a reference that refuses the illegal ones."""

import numpy as np

from isa.dtypes import DType
from isa.ops import FLOAT_OPS, INT_OPS, AluOp
from isa.table import INT_TYPES, Mode
from tests.hw.datapath import CORNERS, random_fp32

KINDS = ("alu", "alu", "alu", "red", "red", "sel", "gen", "nop", "mark")


def interesting_words(rng, n):
    """Words that are fp32 numbers of like size, corner cases, small bytes, or anything."""
    kind = rng.integers(0, 5, n)
    small = rng.integers(0, 3, (n, 4), np.uint8) * rng.integers(0, 2, (n, 4), np.uint8)
    choices = [random_fp32(rng, n), rng.choice(CORNERS, n), small.view(np.uint32)[:, 0],
               rng.integers(0, 1 << 32, n, np.uint32),
               (rng.integers(-300, 300, n) / np.float32(8)).astype(np.float32).view(np.uint32)]
    return np.choose(kind, choices).astype(np.uint32)


def fill(rng, memory):
    """Interesting contents for a memory [partitions, bytes]."""
    memory[:] = interesting_words(rng, memory.size // 4).view(np.uint8).reshape(memory.shape)


class Draw:
    """Random field values for one configuration; `elements` bounds the size of an instruction."""

    def __init__(self, rng, config, elements):
        self.rng, self.config, self.elements = rng, config, elements

    def pick(self, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, p):
        return self.rng.random() < p

    def partitions(self):
        p0 = int(self.rng.integers(self.config.lanes))
        return {"p0": p0, "pn": int(self.rng.integers(1, self.config.lanes - p0 + 1))}

    def shape(self):
        """Sizes of three axes, with many ones among them."""
        left, sizes = self.elements, []
        for limit in (4, 6, 40):
            n = 1 if self.chance(0.3) else int(self.rng.integers(1, min(limit, left) + 1))
            sizes.append(n)
            left = max(1, left // n)
        return sizes

    def tensor(self, name, dtype, sizes, distinct, psum=False):
        """An operand that is dense, or has random strides (any sign, zero where it is read)."""
        size = dtype.size_bytes
        strides = [sizes[1] * sizes[2], sizes[2], 1]
        if self.chance(0.4):
            low = 1 if distinct else 0
            strides = [int(s) * self.pick((1, -1, 1, 2 if distinct else low)) for s in strides]
            if not distinct and self.chance(0.5):
                strides[int(self.rng.integers(3))] = int(self.rng.integers(-5, 6))
        low = sum(min(0, (n - 1) * s) for n, s in zip(sizes, strides, strict=True))
        high = sum(max(0, (n - 1) * s) for n, s in zip(sizes, strides, strict=True))
        limit = (self.config.psum_bytes if psum else self.config.sbuf_bytes) // size
        start = int(self.rng.integers(-low, max(1 - low, limit - high)))
        out = {f"{name}_addr": start * size, f"{name}_type": dtype,
               **{f"{name}_s{d}": s for d, s in enumerate(strides)}}
        return {**out, f"{name}_space": int(psum)}

    def dtype(self, integer):
        return DType(self.pick(sorted(INT_TYPES))) if integer else DType(int(self.rng.integers(8)))

    def immediate(self, integer):
        return int(self.rng.integers(0, 40)) if integer and self.chance(0.5) else int(interesting_words(self.rng, 1)[0])

    def scalar(self, integer):
        """(mode, bits) of a scalar operand."""
        mode = Mode(int(self.rng.integers(3)))
        if mode != Mode.PARTITION:
            return mode, self.immediate(integer)
        dtype = self.dtype(integer)
        return mode, int(self.rng.integers(self.config.sbuf_bytes // dtype.size_bytes)) * dtype.size_bytes | dtype << 18

    def op(self, integer):
        return AluOp.BYPASS if self.chance(0.25) else self.pick(sorted(INT_OPS if integer else FLOAT_OPS))

    def source(self, name, integer, sizes, psum=True):
        dtype = self.dtype(integer)
        return self.tensor(name, dtype, sizes, False, psum and dtype.size_bytes == 4 and self.chance(0.5))

    def instruction(self, name):
        """Values of an instruction called `name`."""
        if name in ("nop", "mark"):
            return {}
        sizes, integer = self.shape(), self.chance(0.4)
        values = {**self.partitions(), **{f"n{d}": n for d, n in enumerate(sizes)}}
        return {**values, **getattr(self, f"_{name}")(sizes, integer)}

    def _alu(self, sizes, integer):
        x = self.source("x", integer, sizes)
        out = {**x, "int": integer, "op0": self.op(integer), "op1": self.op(integer), "rev0": self.chance(0.3),
               "rev1": self.chance(0.3)}
        out["a_mode"], out["a"] = self.scalar(integer)
        y_type = x["x_type"] if self.chance(0.3) else self.dtype(integer)
        out |= self.tensor("y", y_type, sizes, True)
        if y_type == x["x_type"] and not x["x_space"] and self.chance(0.4):
            out |= {k.replace("x_", "y_"): v for k, v in x.items()}
        if self.chance(0.5):
            out |= {"b_mode": Mode.TENSOR, **self.source("b", integer and self.chance(0.9), sizes, not x["x_space"])}
            return out
        out["b_mode"], b = self.scalar(integer)
        if out["b_mode"] == Mode.PARTITION:
            return out | {"b_addr": b & 0x3FFFF, "b_type": b >> 18}
        return out | {"b_imm": b}

    def _red(self, sizes, integer):
        axes = int(self.rng.integers(1, 4))
        kept = [*sizes[:3 - axes], 1, 1, 1][:3]
        out = {**self.source("x", integer, sizes), **self.tensor("y", self.dtype(integer), kept, True), "axes": axes,
               "int": integer, "op0": self.op(integer), "rev0": self.chance(0.3),
               "op": self.pick((AluOp.ADD, AluOp.MAX, AluOp.MIN))}
        if axes < 3:  # the kept axes use y's first strides
            out["y_s0"], out["y_s1"] = (kept[1] + 1, 1) if axes == 1 else (self.pick((1, -1, 3)), 0)
        out["a_mode"], out["a"] = self.scalar(integer)
        return out

    def _sel(self, sizes, _integer):
        x = self.source("x", False, sizes)
        return {**x, **self.source("b", False, sizes, not x["x_space"]), **self.tensor("y", x["x_type"], sizes, True)}

    def _gen(self, sizes, _integer):
        out = self.tensor("y", self.dtype(False), sizes, True)
        big = self.chance(0.3)
        for name in ("base", "step_p", "step0", "step1", "step2"):
            out[name] = int(self.rng.integers(1 << 32)) if big else int(self.rng.integers(-20, 90)) & 0xFFFFFFFF
        return out | {"const": self.chance(0.2), "step_p": out["step_p"] * int(self.chance(0.7))}


def program(rng, reference, length, elements=40):
    """`length` random instructions of all kinds in turn, executed by `reference`; and (name, values) of each."""
    draw, out, drawn = Draw(rng, reference.config, elements), [], []
    kinds, tries = [str(k) for k in rng.permutation(KINDS)], 0
    while len(out) < length:
        tries += 1
        assert tries < 100 * length, "the draw makes hardly any legal instruction"
        name = kinds[len(out) % len(kinds)]
        values = draw.instruction(name)
        done = reference.run(name, **values)
        if done is not None:
            out.append(done)
            drawn.append((name, values))
    return out, drawn
