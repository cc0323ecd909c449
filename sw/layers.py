"""Dense layers as the compiler takes them, and what is refused: every error names the layer and the rule."""

from dataclasses import dataclass, replace

import numpy as np

from isa import activation
from isa.config import Config
from isa.dtypes import DType
from isa.ops import Func
from sw.errors import BuildError

STORAGE = ("fp32", "bf16", "fp16", "int8")
BUILT_IN = {None: Func.IDENTITY, "identity": Func.IDENTITY, "relu": Func.RELU, "square": Func.SQUARE,
            "abs": Func.ABS, "sign": Func.SIGN}


@dataclass(frozen=True)
class Dense:
    """weight [K, N], bias [N] or None, activation by name, scale [N] or None."""

    weight: np.ndarray
    bias: object = None
    activation: object = None
    scale: object = None


def positive(name, value):
    """The integer; BuildError unless it is one, of at least 1."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise BuildError(f"{name} = {value!r}: must be an integer of at least 1")
    return int(value)


def types(config, dtype, out_dtype):
    """(storage type, output type) as DTypes."""
    if not isinstance(config, Config):
        raise BuildError(f"configuration {config!r}: must be a Config, as preset('tiny') gives")
    if dtype not in STORAGE:
        raise BuildError(f"storage type {dtype!r}: must be one of {', '.join(STORAGE)}")
    if config.pe == "int8" and dtype != "int8":
        raise BuildError(f"storage type {dtype}: configuration {config.name} has int8 PEs and takes int8 only")
    try:
        return DType.parse(dtype), DType.parse(out_dtype)
    except ValueError as error:
        raise BuildError(f"output type: {error}") from None


def _numbers(value, what):
    try:
        array = np.asarray(value)
        real = array.dtype.kind in "biuf" or array.dtype in {np.dtype(t.numpy) for t in DType}
    except ValueError:  # lists of different lengths
        real = False
    if not real:
        raise BuildError(f"{what} must be an array of real numbers")
    return array


def checked(layers):
    """The layers with their values as arrays."""
    layers, out = list(layers), []
    if not layers:
        raise BuildError("no layers: a chain has at least one")
    for i, layer in enumerate(layers):
        if not isinstance(layer, Dense):
            raise BuildError(f"layer {i}: a {type(layer).__name__}: must be a Dense")
        arrays = {name: _numbers(value, f"layer {i}: {name}") for name in ("weight", "bias", "scale")
                  if (value := getattr(layer, name)) is not None or name == "weight"}
        shape = arrays["weight"].shape
        if len(shape) != 2 or 0 in shape:
            raise BuildError(f"layer {i}: weight has shape {shape}: must be [K, N], both at least 1")
        if out and shape[0] != out[-1].weight.shape[1]:
            raise BuildError(f"layer {i}: weight has K = {shape[0]}, but the layer before gives {out[-1].weight.shape[1]} features")
        for name in arrays.keys() - {"weight"}:
            if arrays[name].shape != shape[1:]:
                raise BuildError(f"layer {i}: {name} has shape {arrays[name].shape}: must be ({shape[1]},)")
        known = [*BUILT_IN, *activation.TABLES]
        if not any(layer.activation == name for name in known):
            raise BuildError(f"layer {i}: activation {layer.activation!r}: must be one of {', '.join(n for n in known if n)}")
        out.append(replace(layer, **arrays))
    return out
