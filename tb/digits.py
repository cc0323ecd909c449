"""The real input: scikit-learn's handwritten digits, a small dense network, and its int8 quantisation.

1,797 images of 8x8; every fourth is held out. The network is 64 -> 48 (relu) -> 10, trained here in NumPy with Adam;
the seed is fixed, so everyone gets the same network.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sw.compiler import Dense

HIDDEN = 48
EPOCHS = 60
BATCH = 64


@dataclass(frozen=True)
class Digits:
    """Held-out images [n, 64] in 0..1 and labels [n]; float layers as (weight [K, N], bias [N])."""

    images: np.ndarray
    labels: np.ndarray
    train_images: np.ndarray
    layers: tuple

    def logits(self, images):
        """The float network."""
        hidden = np.maximum(images @ self.layers[0][0] + self.layers[0][1], 0)
        return hidden @ self.layers[1][0] + self.layers[1][1]

    def accuracy(self, logits):
        """Share of the held-out images that `logits` [n, 10] classify correctly."""
        return float(np.mean(np.argmax(np.asarray(logits, np.float32), axis=1) == self.labels))


@lru_cache(maxsize=1)
def trained():
    """The data and the trained network (about a second)."""
    from sklearn.datasets import load_digits
    data = load_digits()
    images = (data.data / 16.0).astype(np.float32)
    held = np.arange(len(images)) % 4 == 3
    layers = _train(images[~held], data.target[~held])
    return Digits(images[held], data.target[held], images[~held], layers)


def _train(x, labels, rate=3e-3):
    rng = np.random.default_rng(0)
    sizes = (x.shape[1], HIDDEN, 10)
    params = []
    for k, n in zip(sizes, sizes[1:]):
        params += [rng.standard_normal((k, n)) * np.sqrt(2 / k), np.zeros(n)]
    m, v = [np.zeros_like(p) for p in params], [np.zeros_like(p) for p in params]
    target = np.eye(10)[labels]
    step = 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(x))
        for start in range(0, len(x), BATCH):
            rows = order[start:start + BATCH]
            grads = _gradients(params, x[rows], target[rows])
            step += 1
            for p, g, mean, var in zip(params, grads, m, v):
                mean += 0.1 * (g - mean)
                var += 0.001 * (g * g - var)
                p -= rate * (mean / (1 - 0.9 ** step)) / (np.sqrt(var / (1 - 0.999 ** step)) + 1e-8)
    return tuple((w.astype(np.float32), b.astype(np.float32)) for w, b in zip(params[::2], params[1::2]))


def _gradients(params, x, target):
    w0, b0, w1, b1 = params
    hidden = np.maximum(x @ w0 + b0, 0)
    logits = hidden @ w1 + b1
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    error = (odds / odds.sum(axis=1, keepdims=True) - target) / len(x)
    back = (error @ w1.T) * (hidden > 0)
    return [x.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)]


def float_chain(digits):
    """The network as layers for the compiler."""
    (w0, b0), (w1, b1) = digits.layers
    return [Dense(w0, b0, "relu"), Dense(w1, b1)]


def _quantise(weight):
    scale = np.abs(weight).max(axis=0) / 127
    return np.rint(weight / scale).astype(np.int8), scale


def int8_chain(digits):
    """(layers, quantise): int8 weights with a scale per channel; activations with one scale a layer, from training data.

    A hidden value h is stored as round(h / s): the layer's scale and bias carry the division. `quantise` maps images
    to int8 inputs; the last layer's outputs are fp32 logits.
    """
    (w0, b0), (w1, b1) = digits.layers
    x_scale = 1 / 127
    hidden = np.maximum(digits.train_images @ w0 + b0, 0)
    h_scale = hidden.max() / 127
    q0, s0 = _quantise(w0)
    q1, s1 = _quantise(w1)
    layers = [Dense(q0, (b0 / h_scale).astype(np.float32), "relu", (s0 * x_scale / h_scale).astype(np.float32)),
              Dense(q1, b1, None, (s1 * h_scale).astype(np.float32))]
    return layers, lambda images: np.rint(images / x_scale).astype(np.int8)
