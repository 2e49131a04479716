"""Launches of `training.cu`."""

from __future__ import annotations

import numpy as np
from numpy import float16, float32, int32

from .data import (
    Array,
    Numbers,
    afresh,
    deciding,
    of,
    random_words,
    skewed,
    uniform,
    zeros,
)
from .plans import SEEN, Expected, Plan, measured


def _signed(length: int, seed: int = 1) -> Numbers:
    """Return floats from -2 to 2, as operands of quotients and exponentials."""
    return deciding(of(lambda: 4 * uniform(length, seed).make() - 2, length, float32))


@measured(SEEN, 2, 32, 512, small=1)
def group_norm(n: int) -> Plan:
    channels, pixels, groups = 128, 1024, 32

    def expected(x: Array, gamma: Array, beta: Array, y: Array, *_: int) -> Expected:
        of_groups = x.reshape(n, groups, -1)
        mean = of_groups.mean(2, dtype=np.float64, keepdims=True)
        scale = 1 / np.sqrt(of_groups.var(2, dtype=np.float64, keepdims=True) + 1e-5)
        made = ((of_groups - mean) * scale).reshape(n, channels, pixels)
        return {3: (made * gamma[:, None] + beta[:, None]).ravel()}

    size = n * channels * pixels
    arrays = _signed(size), uniform(channels, 2), uniform(channels, 3), zeros(size)
    numbers = int32(pixels), int32(channels), int32(groups)
    return Plan(n * groups, 512, (*arrays, *numbers), expected, tolerance=1e-4)


@measured(SEEN, 512, 8192, 32768, small=16)
def layernorm_backward(n: int) -> Plan:
    def expected(dy: Array, x: Array, means: Array, scales: Array, gamma: Array,
                 dx: Array, rows: int) -> Expected:  # fmt: skip
        scale = scales[:, None]
        centred = (x.reshape(n, 768) - means[:, None]) * scale
        grad = dy.reshape(n, 768) * gamma
        along = (grad * centred).mean(1, keepdims=True)
        made = scale * (grad - grad.mean(1, keepdims=True) - centred * along)
        return {5: made.ravel()}

    size = 768 * n
    of_rows = [deciding(uniform(*one)) for one in ((n, 3), (n, 4), (768, 5))]
    arrays = _signed(size), _signed(size, 2), *of_rows, zeros(size)
    return Plan(n // 8, 256, (*arrays, int32(n)), expected, tolerance=1e-4)


@measured(SEEN, 2**10, 2**14, 2**17, small=64)
def softmax_backward(n: int) -> Plan:
    columns = 200

    def expected(y: Array, dy: Array, dx: Array, columns: int, rows: int) -> Expected:
        probabilities, gradients = y.reshape(n, columns), dy.reshape(n, columns)
        dots = (probabilities * gradients).sum(1, keepdims=True)
        return {2: (probabilities * (gradients - dots)).ravel()}

    size = columns * n
    arguments = uniform(size), uniform(size, 2), zeros(size), int32(columns), int32(n)
    return Plan(n // 4, (32, 4), arguments, expected)


@measured(SEEN, 128, 512, 1024, small=32)
def causal_scores(n: int) -> Plan:
    heads = 16

    def expected(q: Array, k: Array, scores: Array, factor: float32, n: int) -> Expected:
        made = q.reshape(heads, n, 64) @ k.reshape(heads, n, 64).transpose(0, 2, 1) * factor
        return {2: np.where(np.tri(n, dtype=bool), made, float32(-1e9)).ravel()}

    size = heads * n * 64
    arrays = uniform(size), uniform(size, 2), zeros(heads * n * n)
    grid = n // 16, n // 16, heads
    return Plan(grid, (16, 16), (*arrays, float32(0.125), int32(n)), expected, tolerance=1e-12)


@measured(SEEN, 2**18, 2**22, 2**26)
def unpack_int4(n: int) -> Plan:
    def expected(packed: Array, scales: Array, y: Array, n: int) -> Expected:
        fours = packed[:, None] >> np.arange(0, 32, 4, dtype=np.uint32) & np.uint32(15)
        return {2: (fours.astype(int32) - 8).ravel() * np.repeat(scales, 128)}

    arguments = random_words(n // 8), uniform(n // 128), zeros(n), int32(n)
    return Plan(n // 2048, 256, arguments, expected)


@measured(SEEN, 2**10, 2**14, 2**17, small=2**8)
def embedding_backward(n: int) -> Plan:
    vocabulary = 2**15

    def expected(tokens: Array, dy: Array, table: Array, n: int) -> Expected:
        made = np.zeros((vocabulary, 128))
        np.add.at(made, tokens, dy.reshape(n, 128))
        made[0] = 0
        return {2: made.ravel()}

    tokens = deciding(skewed(vocabulary, n, 5))
    arguments = tokens, uniform(128 * n), afresh(zeros(128 * vocabulary)), int32(n)
    return Plan(n // 8, (32, 8), arguments, expected, tolerance=1e-4)


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x.astype(np.float64))))


@measured(SEEN, 2**16, 2**20, 2**24)
def lstm_cell(n: int) -> Plan:
    def expected(gates: Array, cells: Array, hidden: Array, n: int) -> Expected:
        i, f, g, o = (part.ravel() for part in gates.reshape(-1, 4, 512).transpose(1, 0, 2))
        cell = _sigmoid(f) * cells + _sigmoid(i) * np.tanh(g)
        return {1: cell, 2: _sigmoid(o) * np.tanh(cell)}

    arguments = _signed(4 * n), afresh(deciding(uniform(n, 2))), zeros(n), int32(n)
    return Plan(n // 128, 128, arguments, expected)


@measured(SEEN, 56, 224, 448, small=16)
def pool_with_places(n: int) -> Plan:
    channels, half = 64, n // 2

    def expected(x: Array, y: Array, places: Array, n: int, total: int) -> Expected:
        lowest = float32(-3.4e38)
        wide = np.pad(x.reshape(channels, n, n), ((0, 0), (1, 1), (1, 1)), constant_values=lowest)
        seen = np.stack([wide[:, i : i + n : 2, j : j + n : 2] for i in range(3) for j in range(3)])
        i, j = np.divmod(seen.argmax(0), 3)
        row, column = np.ogrid[:half, :half]
        found = (2 * row - 1 + i) * n + 2 * column - 1 + j
        return {1: seen.max(0).ravel(), 2: found.ravel()}

    total = channels * half * half
    arrays = deciding(uniform(channels * n * n)), zeros(total), zeros(total, int32)
    return Plan(min(-(-total // 512), 4096), 512, (*arrays, int32(n), int32(total)), expected)


@measured(SEEN, 2**12, 2**16, 2**20, small=2**10)
def causal_convolution(n: int) -> Plan:
    channels = 64

    def expected(x: Array, weights: Array, bias: Array, y: Array, n: int) -> Expected:
        wide = np.pad(x.reshape(channels, n), ((0, 0), (3, 0)))
        w = weights.reshape(channels, 4)
        total = bias[:, None] + sum(w[:, k : k + 1] * wide[:, k : k + n] for k in range(4))
        return {3: (total * _sigmoid(total)).ravel()}

    size = channels * n
    of_channels = _signed(4 * channels, 2), deciding(uniform(channels, 3))
    arguments = _signed(size), *of_channels, zeros(size), int32(n)
    return Plan((n // 1024, channels), 256, arguments, expected)


@measured(SEEN, 256, 4096, 16384, small=8)
def batched_matvec(n: int) -> Plan:
    def expected(matrices: Array, vectors: Array, y: Array) -> Expected:
        made = matrices.reshape(n, 48, 48) @ vectors.reshape(n, 48, 1)
        return {2: made.ravel()}

    return Plan(n, 64, (uniform(48 * 48 * n), uniform(48 * n, 2), zeros(48 * n)), expected)


@measured(SEEN, 2**18, 2**22, 2**26)
def swiglu_half(n: int) -> Plan:
    def halves(seed: int) -> Numbers:
        return deciding(of(lambda: _signed(n, seed).make().astype(float16), n, float16))

    def expected(gate: Array, up: Array, y: Array, n: int) -> Expected:
        return {2: gate * _sigmoid(gate) * up}

    arguments = halves(1), halves(2), zeros(n, float16), int32(n)
    return Plan(min(n // 512, 1056), 256, arguments, expected, tolerance=1e-3)


@measured(SEEN, 2**10, 2**14, 2**17, small=512)
def bias_gradient(n: int) -> Plan:
    def expected(dy: Array, bias: Array, n: int) -> Expected:
        return {1: dy.reshape(n, 512).sum(0, dtype=np.float64)}

    arguments = uniform(512 * n), afresh(zeros(512)), int32(n)
    return Plan((16, n // 256), (32, 8), arguments, expected, tolerance=1e-4)
