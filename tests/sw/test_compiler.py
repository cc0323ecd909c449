"""Dense chains on the golden machine against float64, for every storage type and awkward shapes."""

import numpy as np
import pytest

from isa.config import preset
from isa.dtypes import DType
from sw.compiler import Dense, compile_dense, compile_matmul
from sw.device import Device
from sw.errors import BuildError, CapacityError, InputError

TOLERANCE = {"fp32": 2e-3, "bf16": 2e-2, "fp16": 3e-3, "int8": 0}


def values(rng, shape, dtype):
    if dtype == "int8":
        return rng.integers(-128, 128, shape).astype(np.int8)
    return rng.standard_normal(shape).astype(DType.parse(dtype).numpy)


@pytest.mark.parametrize("config,dtype", [("tiny", "fp32"), ("small", "bf16"), ("base", "fp16"), ("edge", "int8"),
                                          ("tiny", "int8")])
@pytest.mark.parametrize("m,k,n", [(1, 1, 1), (5, 7, 3), (17, 33, 41), (64, 128, 96), (3, 509, 13)])
def test_matmul(config, dtype, m, k, n):
    rng = np.random.default_rng(m * 1000 + k + n)
    x, w = values(rng, (m, k), dtype), values(rng, (k, n), dtype)
    config = preset(config)
    y = Device(config, seed=3).run(compile_matmul(config, m, k, n, dtype), {"x": x, "w": w}).outputs["y"]
    exact = x.astype(np.float64) @ w.astype(np.float64)
    assert y.shape == (m, n) and np.all(np.isfinite(y))
    assert np.abs(y - exact).max() <= TOLERANCE[dtype] * np.abs(exact).max()


def test_larger_than_sbuf():
    config, rng = preset("tiny"), np.random.default_rng(5)
    m, k, n = 24, 1100, 9
    x, w = values(rng, (m, k), "fp32"), values(rng, (k, n), "fp32")
    assert x.nbytes > config.sbuf_bytes * config.lanes
    y = Device(config).run(compile_matmul(config, m, k, n, "fp32"), {"x": x, "w": w}).outputs["y"]
    exact = x.astype(np.float64) @ w.astype(np.float64)
    assert np.abs(y - exact).max() <= 2e-3 * np.abs(exact).max()


@pytest.mark.parametrize("config,batch,sizes", [("tiny", 5, (7, 9, 3)), ("base", 100, (64, 48, 10)),
                                                ("tiny", 12, (400, 300, 5))])
def test_chain(config, batch, sizes):
    config, rng = preset(config), np.random.default_rng(11)
    layers = [Dense(rng.standard_normal((k, n)) / np.sqrt(k), rng.standard_normal(n), "relu")
              for k, n in zip(sizes, sizes[1:])]
    x = rng.standard_normal((batch, sizes[0])).astype(np.float32)
    y = Device(config, seed=1).run(compile_dense(config, batch, layers, "fp32"), {"x": x}).outputs["y"]
    h = x.astype(np.float64)
    for layer in layers:
        h = np.maximum(h @ layer.weight + layer.bias, 0)
    assert np.abs(y - h).max() <= 4e-3 * np.abs(h).max()


def test_order_does_not_matter():
    config, rng = preset("small"), np.random.default_rng(2)
    program = compile_matmul(config, 40, 50, 60, "bf16")
    inputs = {"x": values(rng, (40, 50), "bf16"), "w": values(rng, (50, 60), "bf16")}
    results = {Device(config, seed=s).run(program, inputs).outputs["y"].tobytes() for s in (None, 1, 2, 3)}
    assert len(results) == 1


@pytest.mark.parametrize("arguments,words", [
    (dict(batch=0), "batch = 0"),
    (dict(layers=[]), "no layers"),
    (dict(layers=[Dense(np.zeros(4))]), "layer 0: weight has shape (4,)"),
    (dict(layers=[Dense(np.zeros((4, 5))), Dense(np.zeros((4, 5)))]), "layer 1: weight has K = 4"),
    (dict(layers=[Dense(np.zeros((4, 5)), bias=np.zeros(4))]), "layer 0: bias has shape (4,)"),
    (dict(layers=[Dense(np.zeros((4, 5)), activation="tan")]), "activation 'tan'"),
    (dict(dtype="fp8"), "storage type 'fp8'"),
    (dict(out_dtype="fp33"), "output type: no element type 'fp33'"),
    (dict(batch=True), "batch = True"),
    (dict(layers=[np.zeros((4, 5))]), "layer 0: a ndarray: must be a Dense"),
    (dict(layers=[Dense(np.zeros((4, 5), complex))]), "layer 0: weight must be an array of real numbers"),
    (dict(layers=[Dense([[1, 2], [3]])]), "layer 0: weight must be an array of real numbers"),
    (dict(layers=[Dense(np.zeros((4, 2)), bias=["a", "b"])]), "layer 0: bias must be an array of real numbers"),
    (dict(layers=[Dense(np.zeros((4, 2)), activation=["relu"])]), "layer 0: activation ['relu']"),
    (dict(config="tiny"), "configuration 'tiny': must be a Config"),
    (dict(dtype="int8", layers=[Dense(np.full((4, 5), 0.5))]), "integer weights"),
])
def test_wrong_arguments(arguments, words):
    given = {"config": preset("tiny"), "batch": 2, "layers": [Dense(np.zeros((4, 5)))], "dtype": "fp32", **arguments}
    with pytest.raises(BuildError) as error:
        compile_dense(**given)
    assert words in str(error.value)


def test_int8_pes_take_int8_only():
    with pytest.raises(BuildError, match="int8 PEs"):
        compile_matmul(preset("edge"), 4, 4, 4, "bf16")


def test_beyond_sbuf():
    config = preset("tiny").with_(sbuf_kib=1)
    wide = [Dense(np.zeros((4, 4096), np.float32), np.zeros(4096))]
    with pytest.raises(CapacityError, match="SBUF|sbuf"):
        compile_dense(config, 4, wide, "fp32")


@pytest.mark.parametrize("inputs,words", [
    ({}, "missing: w, x"),
    ({"x": np.zeros((2, 3), np.float32), "w": np.zeros((3, 4), np.float32), "z": 1}, "no such inputs: z"),
    ({"x": np.zeros((3, 3), np.float32), "w": np.zeros((3, 4), np.float32)}, "shape (3, 3)"),
    ({"x": np.zeros((2, 3), np.float64), "w": np.zeros((3, 4), np.float32)}, "type float64"),
])
def test_wrong_inputs(inputs, words):
    config = preset("tiny")
    with pytest.raises(InputError) as error:
        Device(config).run(compile_matmul(config, 2, 3, 4, "fp32"), inputs)
    assert words in str(error.value)


def test_other_configuration():
    program = compile_matmul(preset("tiny"), 2, 3, 4, "fp32")
    with pytest.raises(InputError, match="configuration tiny"):
        Device(preset("small")).run(program, {})


@pytest.mark.parametrize("sizes,words", [((0, 3, 4), "m = 0"), ((2, 3.5, 4), "k = 3.5"), ((2, "3", 4), "k = '3'"),
                                         ((2, 3, -1), "n = -1")])
def test_wrong_sizes(sizes, words):
    with pytest.raises(BuildError, match=words):
        compile_matmul(preset("tiny"), *sizes, "fp32")


def test_weight_of_another_shape():
    with pytest.raises(BuildError, match=r"weight has shape \(4, 3\): must be \(3, 4\)"):
        compile_matmul(preset("tiny"), 2, 3, 4, "fp32", weight=np.zeros((4, 3)))


def test_device_takes_a_configuration():
    with pytest.raises(InputError, match="must be a Config"):
        Device("tiny")


def test_lists_are_arrays():
    program = compile_dense(preset("tiny"), 1, [Dense([[1, 2], [3, 4]], [10, 20])], "fp32")
    y = Device(preset("tiny")).run(program, {"x": np.array([[1, 1]], np.float32)}).outputs["y"]
    assert y.tolist() == [[14, 26]]
