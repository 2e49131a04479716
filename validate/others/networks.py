"""Launches of `networks.cu`."""

from __future__ import annotations

import numpy as np
from numpy import float32, int32

from .data import Array, Numbers, afresh, deciding, uniform, zeros
from .plans import SEEN, Expected, Plan, measured

CHANNELS = 64


@measured(SEEN, 2**18, 2**22, 2**26)
def leaky_relu4(n: int) -> Plan:
    def expected(x: Array, y: Array, n: int) -> Expected:
        return {1: np.where(x > 0, x, float32(0.01) * x)}

    return Plan(n // 1024, 256, (_signed(n), zeros(n), int32(n)), expected)


def _signed(length: int) -> Numbers:
    """Return floats from -1 to 1."""
    plain = uniform(length)
    return Numbers(plain.dtype, length, lambda: 2 * plain.make() - 1, decides=True)


@measured(SEEN, 64, 256, 1024, small=32)
def max_pool(n: int) -> Plan:
    half = n // 2

    def expected(x: Array, y: Array, n: int) -> Expected:
        return {1: x.reshape(CHANNELS, half, 2, half, 2).max((2, 4)).ravel()}

    arguments = uniform(CHANNELS * n * n), zeros(CHANNELS * half * half), int32(n)
    return Plan((-(-half // 32), half // 8, CHANNELS), (32, 8), arguments, expected)


@measured(SEEN, 64, 128, 512, small=32)
def depthwise3x3(n: int) -> Plan:
    def expected(x: Array, weights: Array, y: Array, n: int) -> Expected:
        wide = np.pad(x.reshape(CHANNELS, n, n), ((0, 0), (1, 1), (1, 1)))
        w = weights.reshape(CHANNELS, 3, 3, 1, 1)
        made = sum(wide[:, i : i + n, j : j + n] * w[:, i, j] for i in range(3) for j in range(3))
        return {2: np.asarray(made).ravel()}

    size = CHANNELS * n * n
    arguments = uniform(size), uniform(9 * CHANNELS, 2), zeros(size), int32(n)
    return Plan((n // 32, n // 8, CHANNELS), (32, 8), arguments, expected)


@measured(SEEN, 2**18, 2**22, 2**26)
def batch_norm(n: int) -> Plan:
    plane = 28 * 28

    def expected(x: Array, mean: Array, variance: Array, scale: Array, shift: Array,
                 y: Array, plane: int, n: int) -> Expected:  # fmt: skip
        channel = np.arange(n) // plane % CHANNELS
        factor = scale / np.sqrt(variance + float32(1e-5))
        return {5: (x - mean[channel]) * factor[channel] + shift[channel]}

    of_channels = tuple(uniform(CHANNELS, seed) for seed in (2, 3, 4, 5))
    arguments = uniform(n), *of_channels, zeros(n), int32(plane), int32(n)
    return Plan(min(n // 256, 2112), 256, arguments, expected, tolerance=1e-4)


@measured(SEEN, 2**18, 2**22, 2**26)
def adam(n: int) -> Plan:
    def expected(weights: Array, gradient: Array, first: Array, second: Array,
                 rate: float32, n: int) -> Expected:  # fmt: skip
        m = float32(0.9) * first + float32(0.1) * gradient
        v = float32(0.999) * second + float32(0.001) * gradient**2
        return {0: weights - rate * m / (np.sqrt(v) + float32(1e-8)), 2: m, 3: v}

    state = [deciding(uniform(n, seed)) for seed in (1, 2, 3, 4)]
    weights, gradient, first, second = state
    arrays = afresh(weights), gradient, afresh(first), afresh(second)
    return Plan(n // 256, 256, (*arrays, float32(1e-3), int32(n)), expected)


@measured(SEEN, 2**18, 2**22, 2**26)
def quantize_rows(n: int) -> Plan:
    rows = n // 1024

    def expected(x: Array, y: Array, scales: Array) -> Expected:
        most = np.abs(x.reshape(rows, 1024)).max(1, keepdims=True)
        return {1: np.rint(x.reshape(rows, 1024) * (127 / most)).ravel(), 2: most.ravel() / 127}

    arguments = _signed(n), zeros(n, np.int8), zeros(rows)
    return Plan(rows, 256, arguments, expected, tolerance=1e-2)


@measured(SEEN, 128, 1024, 4096, small=32)
def attend(n: int) -> Plan:
    heads = 256

    def expected(query: Array, keys: Array, values: Array, y: Array, n: int) -> Expected:
        scores = np.einsum("hd,hkd->hk", query.reshape(heads, 64), keys.reshape(heads, n, 64)) / 8
        weights = np.exp(scores - scores.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
        return {3: np.einsum("hk,hkd->hd", weights, values.reshape(heads, n, 64)).ravel()}

    size = 64 * heads
    sizes = (size, 1), (size * n, 2), (size * n, 3)
    given = [deciding(uniform(*one)) for one in sizes]
    return Plan(heads, 256, (*given, zeros(size), int32(n)), expected, tolerance=1e-4)


@measured(SEEN, 256, 1024, 4096, small=64)
def windows(n: int) -> Plan:
    def expected(x: Array, y: Array, n: int) -> Expected:
        wide = np.pad(x.reshape(n, n), 1)
        parts = [wide[i : i + n, j : j + n].ravel() for i in range(3) for j in range(3)]
        return {1: np.concatenate(parts)}

    return Plan(n * n // 256, 256, (uniform(n * n), zeros(9 * n * n), int32(n)), expected)


@measured(SEEN, 256, 1024, 4096, small=64)
def enlarge(n: int) -> Plan:
    def expected(x: Array, y: Array, n: int) -> Expected:
        place = np.maximum(0.5 * np.arange(2 * n) - 0.25, 0)
        low = place.astype(int)
        high, part = np.minimum(low + 1, n - 1), place - low
        rows = x.reshape(n, n)[low] * (1 - part)[:, None] + x.reshape(n, n)[high] * part[:, None]
        return {1: (rows[:, low] * (1 - part) + rows[:, high] * part).ravel()}

    arguments = uniform(n * n), zeros(4 * n * n), int32(n)
    return Plan((n // 8, n // 8), (16, 16), arguments, expected)


@measured(SEEN, 512, 1024, 2048, small=64)
def product_of_tiles(n: int) -> Plan:
    def expected(a: Array, b: Array, c: Array, n: int) -> Expected:
        return {2: (a.reshape(n, n) @ b.reshape(n, n)).ravel()}

    arguments = uniform(n * n), uniform(n * n, 2), zeros(n * n), int32(n)
    return Plan((n // 64, n // 64), 256, arguments, expected)
