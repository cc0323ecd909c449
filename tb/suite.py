"""The program suite: what `make sim` runs on the RTL and on the golden model."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isa.config import preset
from isa.dtypes import DType
from sw.asm import assemble_file
from sw.cli_run import random_values
from sw.compiler import Dense, compile_dense, compile_matmul
from tb import digits

ROOT = Path(__file__).parent.parent
EXAMPLES = tuple(sorted(str(p.relative_to(ROOT)) for p in (ROOT / "examples").glob("*.sys")))  # hand-written assembly


@dataclass(frozen=True)
class Case:
    """A program, its inputs, its multiply-accumulates, and a check of the outputs (a text, or an exception)."""

    name: str
    config: object
    program: object
    inputs: dict
    macs: int
    check: object = None


def matmul(config, m, k, n, dtype, out_dtype="fp32"):
    """y = x @ w on random values."""
    rng = np.random.default_rng(m * 7919 + k * 31 + n)
    inputs = {"x": random_values(rng, (m, k), dtype), "w": random_values(rng, (k, n), dtype)}
    config = preset(config)
    return Case(f"matmul {m}x{k}x{n} {dtype}", config, compile_matmul(config, m, k, n, dtype, out_dtype), inputs,
                m * k * n)


def chain(config, batch, sizes, dtype):
    """Dense layers with bias and relu."""
    rng = np.random.default_rng(sum(sizes))
    layers = [Dense(rng.standard_normal((k, n)) / np.sqrt(k), rng.standard_normal(n), "relu")
              for k, n in zip(sizes, sizes[1:])]
    config = preset(config)
    name = f"dense {'-'.join(map(str, sizes))} x{batch} {dtype}"
    return Case(name, config, compile_dense(config, batch, layers, dtype),
                {"x": random_values(rng, (batch, sizes[0]), dtype)}, batch * sum(k * n for k, n in zip(sizes, sizes[1:])))


def digits_case(config, dtype):
    """The digits network; the check demands the accuracy."""
    data, config = digits.trained(), preset(config)
    if dtype == "int8":
        layers, quantise = digits.int8_chain(data)
        x = quantise(data.images)
    else:
        layers, x = digits.float_chain(data), data.images.astype(DType.parse(dtype).numpy)
    floating = data.accuracy(data.logits(data.images))

    def check(outputs):
        got = data.accuracy(outputs["y"])
        if got < 0.95 or abs(got - floating) > 0.005:
            raise AssertionError(f"accuracy {got:.4f}; the float network has {floating:.4f}")
        return f"{got:.2%} of {len(x)} images, float {floating:.2%}"

    macs = len(x) * sum(np.asarray(layer.weight).size for layer in layers)
    return Case(f"digits {dtype}", config, compile_dense(config, len(x), layers, dtype), {"x": x}, macs, check)


def assembly(path):
    """A hand-written program of `examples/`, on random inputs."""
    program = assemble_file(ROOT / path)
    rng = np.random.default_rng(0)
    inputs = {n: random_values(rng, t.shape, t.dtype) for n, t in program.tensors.items() if t.role == "input"}
    return Case(path, program.config, program, inputs, 0)


def cases():
    """All programs, the quick configurations first."""
    yield from map(assembly, EXAMPLES)
    yield matmul("tiny", 37, 101, 53, "fp32")
    yield matmul("tiny", 1, 1, 1, "bf16")
    yield matmul("tiny", 24, 1100, 9, "fp16")
    yield matmul("tiny", 13, 17, 19, "int8")
    yield chain("tiny", 12, (30, 20, 5), "fp32")
    yield matmul("small", 61, 67, 71, "bf16")
    yield chain("small", 33, (40, 24, 8), "fp16")
    yield matmul("edge", 37, 101, 53, "int8")
    yield digits_case("edge", "int8")
    yield matmul("base", 64, 64, 64, "bf16")
    yield digits_case("base", "bf16")
