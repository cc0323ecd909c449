"""Fits the table slots of `isa.activation`: 128 quadratics a function, close to the minimax ones.

Each segment is fitted on Chebyshev points by Lawson's algorithm (least squares, weights multiplied by the error until
it is level): on the relative error where the mode reduces the range, where the segment touches 0, and in tails (all
values below 2^-8); elsewhere on the absolute error. For this a value below 2^-12 of the segment's largest counts as
that. The coefficients round to fp32 one after the other, highest first, each time refitting the lower ones. A segment
that touches r = 0 has c0 = f(0) exactly.

Accuracy: `tests/isa/test_activation.py`. Far tails (sigmoid below -8, gelu below -4) are worse relatively than near 0,
and gelu, silu, softplus and sigmoid are exactly 0 below -32.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from isa.ops import TableMode

POINTS = 31
ROUNDS = 12
LEVEL = 2.0 ** -12
TAIL = 2.0 ** -8
FAR = 32.0  # beyond this, direct functions are straight lines

_erf, _erfc = (np.vectorize(f, otypes=[float]) for f in (math.erf, math.erfc))
_ROOT_2_OVER_PI = math.sqrt(2 / math.pi)


def _sigmoid(x):
    return np.exp(-np.logaddexp(0, -x))


def _normal_cdf(x):
    return 0.5 * _erfc(-x / math.sqrt(2))


def _normal_pdf(x):
    return np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def _gelu_inner(x):
    """Twice the argument of gelu_tanh's tanh, so that gelu_tanh(x) = x * sigmoid(inner)."""
    return 2 * _ROOT_2_OVER_PI * (x + 0.044715 * x ** 3)


def _d_gelu_tanh(x):
    s, other = _sigmoid(_gelu_inner(x)), _sigmoid(-_gelu_inner(x))
    return s + x * s * other * 2 * _ROOT_2_OVER_PI * (1 + 3 * 0.044715 * x ** 2)


@dataclass(frozen=True)
class Function:
    """`reference` in float64 over the real line; `reduced` over r where the mode reduces the range."""

    reference: object
    mode: TableMode = TableMode.DIRECT
    reduced: object = None
    header: tuple = ()  # f(0), f(+inf), f(-inf); derived for direct functions


_NAN = math.nan
FUNCTIONS = {
    "exp": Function(np.exp, TableMode.EXP, lambda r: np.exp2(r - 1), (1, math.inf, 0)),
    "reciprocal": Function(np.reciprocal, TableMode.RECIP, np.reciprocal, (math.inf, 0.0, -0.0)),
    "sqrt": Function(np.sqrt, TableMode.SQRT, np.sqrt, (0, math.inf, _NAN)),
    "rsqrt": Function(lambda x: 1 / np.sqrt(x), TableMode.RSQRT, lambda r: 1 / np.sqrt(r), (math.inf, 0, _NAN)),
    "log": Function(np.log, TableMode.LOG, np.log1p, (-math.inf, math.inf, _NAN)),
    "sigmoid": Function(_sigmoid),
    "tanh": Function(np.tanh),
    "erf": Function(_erf),
    "gelu": Function(lambda x: x * _normal_cdf(x)),
    "gelu_tanh": Function(lambda x: x * _sigmoid(_gelu_inner(x))),
    "silu": Function(lambda x: x * _sigmoid(x)),
    "softplus": Function(lambda x: np.logaddexp(0, x)),
    "d_gelu": Function(lambda x: _normal_cdf(x) + x * _normal_pdf(x)),
    "d_gelu_tanh": Function(_d_gelu_tanh),
    "d_silu": Function(lambda x: _sigmoid(x) * (1 + x * _sigmoid(-x))),
    "d_sigmoid": Function(lambda x: _sigmoid(x) * _sigmoid(-x)),
    "d_tanh": Function(lambda x: 4 * _sigmoid(2 * x) * _sigmoid(-2 * x)),
    "d_erf": Function(lambda x: 2 / math.sqrt(math.pi) * np.exp(-x * x)),
}


def segments(mode):
    """Ends of r in every segment, two float64[128]; of the unbounded ones (direct, group 7) NaN."""
    i = np.arange(128)
    if mode == TableMode.DIRECT:
        group, sub = i >> 3 & 7, i & 7
        octave = 2.0 ** (group - 2)
        low = np.where(group == 0, sub / 16, octave * (1 + sub / 8))
        high = np.where(group == 0, (sub + 1) / 16, octave * (1 + (sub + 1) / 8))
        low, high = (np.where(group == 7, np.nan, x) for x in (low, high))
        return np.where(i < 64, low, -high), np.where(i < 64, high, -low)
    if mode in (TableMode.SQRT, TableMode.RSQRT):
        octave = np.where(i < 64, 1.0, 2.0)
        return octave * (1 + i % 64 / 64), octave * (1 + (i % 64 + 1) / 64)
    low, high = 1 + i / 128, 1 + (i + 1) / 128
    if mode == TableMode.LOG:
        half = np.where(i < 64, 1.0, 0.5)
        return low * half - 1, high * half - 1
    return low, high


def _level(basis, target, weight):
    """Coefficients [S, k] that make weight * |basis . c - target| nearly level; basis [S, N, k], others [S, N]."""
    weight = weight / weight.max(axis=1, keepdims=True)
    importance = np.ones_like(target)
    best, best_error = None, None
    for _ in range(ROUNDS):
        scaled = basis * (importance * weight ** 2)[..., None]
        normal = np.einsum("snj,snk->sjk", scaled, basis)
        c = np.linalg.solve(normal, np.einsum("snj,sn->sj", scaled, target)[..., None])[..., 0]
        error = np.abs(np.einsum("snk,sk->sn", basis, c) - target) * weight
        largest = error.max(axis=1, keepdims=True)
        if best is None:
            best, best_error = c, largest
        best = np.where(largest < best_error, c, best)
        best_error = np.minimum(largest, best_error)
        importance = importance * (error / np.maximum(largest, 1e-300)) + 1e-9
    return best


def _fit(low, high, f, pin, relative):
    """fp32 c2, c1, c0 [S, 3] of f over [low, high]; `pin` fixes c0 (then low or high is 0), on the relative error."""
    angle = np.cos(np.pi * np.arange(POINTS) / (POINTS - 1))
    middle, half = (low + high) / 2, (high - low) / 2
    r = middle[:, None] + half[:, None] * angle
    value = f(r)
    size = np.abs(value)
    largest = size.max(axis=1, keepdims=True)
    weight = 1 / np.maximum(np.maximum(size, LEVEL * largest), 1e-300)
    if pin is None:
        weight = np.where(relative | (largest < TAIL), weight, 1.0)
    target = value - (0 if pin is None else pin)
    centre = middle if pin is None else np.zeros_like(middle)
    u = (r - centre[:, None]) / half[:, None]
    c = np.zeros((len(low), 3))
    lowest = 0 if pin is None else 1
    for degree in range(2, lowest - 1, -1):
        basis = np.stack([u ** k for k in range(lowest, degree + 1)], axis=-1)
        local = _level(basis, target, weight)
        c[:, 2 - degree] = (local[:, -1] / half ** degree).astype(np.float32)
        target = target - c[:, 2 - degree, None] * r ** degree
    if pin is not None:
        c[:, 2] = pin
    return c.astype(np.float32)


def _fit_all(low, high, f, relative):
    """Coefficients of every bounded segment, [128, 3]; segments that touch 0 are pinned to f(0)."""
    c = np.zeros((128, 3), np.float32)
    bounded = ~np.isnan(low)
    touching = bounded & ((low == 0) | (high == 0))
    free = bounded & ~touching
    c[free] = _fit(low[free], high[free], f, None, relative)
    if touching.any():
        c[touching] = _fit(low[touching], high[touching], f, float(f(np.zeros(1))[0]), relative)
    return c


def _asymptote(f, sign):
    """(c2, c1, c0) and the limit of a direct function far out."""
    near, far = (float(f(np.array([sign * x]))[0]) for x in (FAR, 2 * FAR))
    slope = round((far - near) / (sign * FAR))
    level = float(round(near - slope * sign * FAR))
    return (0.0, slope, level), (math.inf * sign * slope if slope else level)


@lru_cache(maxsize=None)
def table(name):
    """The slot of function `name`: read-only uint32[388]. KeyError lists the names."""
    if name not in FUNCTIONS:
        raise KeyError(f"no table {name!r}: must be one of {', '.join(FUNCTIONS)}")
    function = FUNCTIONS[name]
    f = function.reduced or function.reference
    with np.errstate(under="ignore", over="ignore"):
        c = _fit_all(*segments(function.mode), f, function.mode != TableMode.DIRECT)
        header = function.header
        if function.mode == TableMode.DIRECT:
            (c[56:64], plus), (c[120:128], minus) = _asymptote(f, 1), _asymptote(f, -1)
            header = (float(f(np.zeros(1))[0]), plus, minus)
    values = np.concatenate([np.array(header, np.float32), c.ravel()])
    words = np.concatenate([[np.uint32(function.mode)], np.ascontiguousarray(values, np.float32).view(np.uint32)])
    words = words.astype(np.uint32)
    words.flags.writeable = False
    return words
