"""Launches of `tensors.cu`."""

from __future__ import annotations

import numpy as np
from numpy import float16, float32, float64, int8, int32, uint64

from .data import Array, Numbers, afresh, deciding, of, random_words, uniform, words, zeros
from .plans import SEEN, Expected, Plan, measured

EXACT = 0.0


def _signed(length: int, seed: int) -> Numbers:
    """Return floats from -1 to 1."""
    return of(lambda: 2 * uniform(length, seed).make() - float32(1), length, float32)


@measured(SEEN, 32, 128, 512, small=16, instance="direct_conv<8>")
def direct_conv(n: int) -> Plan:
    channels, filters = 32, 32

    def expected(x: Array, weights: Array, bias: Array, *_: object) -> Expected:
        planes = np.pad(x.reshape(channels, n, n).astype(float64), ((0, 0), (1, 1), (1, 1)))
        made = np.repeat(bias, n * n).reshape(filters, n, n).astype(float64)
        for (i, j), weight in zip(
            np.ndindex(3, 3), weights.reshape(filters, channels, 9).transpose(2, 0, 1), strict=True
        ):
            made += np.einsum("fc,cyx->fyx", weight, planes[:, i : i + n, j : j + n])
        return {3: np.maximum(made, 0).ravel()}

    size = channels * n * n
    given = uniform(size), _signed(9 * channels * filters, 2), _signed(filters, 3)
    arguments = *given, zeros(filters * n * n), int32(n)
    return Plan((n // 16, n // 16, filters // 8), (16, 16), arguments, expected)


@measured(SEEN, 256, 4096, 2**14, small=16)
def gemv_int8(n: int) -> Plan:
    columns = 4096

    def expected(weights: Array, x: Array, scales: Array, scale: float32, *_: object) -> Expected:
        matrix = weights.view(int8).reshape(n, columns)
        sums = np.asarray([row.astype(int32) @ x.view(int8).astype(int32) for row in matrix])
        return {4: sums * scales * scale}

    given = random_words(n * columns // 4, 1), random_words(columns // 4, 2), uniform(n, 3)
    arguments = *given, float32(0.01), zeros(n), int32(columns // 16)
    return Plan(n // 8, (32, 8), arguments, expected)


@measured(SEEN, 8, 128, 1024, small=2)
def roi_align(n: int) -> Plan:
    channels, size = 64, 64
    total = n * channels * 49

    def rois() -> Array:
        parts = uniform(4 * n, 4).make().reshape(n, 4) * float32(40)
        parts[:, 2:] = parts[:, :2] + float32(0.5) * parts[:, 2:]
        return parts.ravel()

    def expected(features: Array, rois: Array, *_: object) -> Expected:
        planes = features.reshape(channels, size, size).astype(float64)
        made = np.zeros((n, channels, 7, 7))
        for k, (left, top, right, bottom) in enumerate(rois.reshape(n, 4).astype(float64)):
            steps = (np.arange(14) + 0.5) / 2
            y = np.clip(top + steps * max(bottom - top, 1) / 7, 0, size - 1)
            x = np.clip(left + steps * max(right - left, 1) / 7, 0, size - 1)
            inner = _lines(x, size) @ planes.transpose(0, 2, 1) @ _lines(y, size).T
            made[k] = inner.transpose(0, 2, 1).reshape(channels, 7, 2, 7, 2).mean((2, 4))
        return {2: made.ravel()}

    given = uniform(channels * size * size), deciding(of(rois, 4 * n, float32))
    arguments = *given, zeros(total), int32(channels), int32(size), int32(total)
    return Plan(-(-total // 256), 256, arguments, expected, tolerance=1e-4)


def _lines(at: Array, size: int) -> Array:
    """Return the interpolation weights of each place's two neighbours, shaped (places, size)."""
    made = np.zeros((len(at), size))
    first = at.astype(int)
    made[np.arange(len(at)), first] = 1 - at + first
    made[np.arange(len(at)), np.minimum(first + 1, size - 1)] += at - first
    return made


@measured(SEEN, 512, 4096, 2**14, small=128)
def nms_mask(n: int) -> Plan:
    threshold = float32(0.3)

    def boxes() -> Array:
        parts = uniform(4 * n, 5).make().reshape(n, 4) * float32(1000)
        parts[:, 2:] = parts[:, :2] + float32(20) + float32(0.2) * parts[:, 2:]
        return parts.ravel()

    def expected(boxes: Array, threshold: float32, masks: Array, n: int) -> Expected:
        x, y, right, bottom = boxes.reshape(n, 4).astype(float64).T
        area = (right - x) * (bottom - y)
        wide = np.minimum.outer(right, right) - np.maximum.outer(x, x)
        high = np.minimum.outer(bottom, bottom) - np.maximum.outer(y, y)
        both = np.maximum(wide, 0) * np.maximum(high, 0)
        marked = np.triu(both / (np.add.outer(area, area) - both) > threshold, 1)
        return {2: np.packbits(marked, bitorder="little").view(uint64)}

    arguments = deciding(of(boxes, 4 * n, float32)), threshold, zeros(n * n // 64, uint64), int32(n)
    return Plan((n // 64, n // 64), 64, arguments, expected, EXACT)


@measured(SEEN, 128, 512, 4096, small=32)
def rbf_matrix(n: int) -> Plan:
    gamma = float32(0.1)

    def expected(x: Array, y: Array, out: Array, gamma: float32, n: int) -> Expected:
        first, second = (a.reshape(n, 64).astype(float64) for a in (x, y))
        near = (first**2).sum(1)[:, None] + (second**2).sum(1) - 2 * first @ second.T
        return {2: np.exp(-gamma * near).ravel()}

    arguments = uniform(64 * n, 1), uniform(64 * n, 2), zeros(n * n), gamma, int32(n)
    return Plan((n // 16, n // 16), (16, 16), arguments, expected)


@measured(SEEN, 2**14, 2**18, 2**22)
def kmeans_update(n: int) -> Plan:
    def points() -> Array:
        return (
            uniform(4 * n, 6).make() + (words(n, 7) & np.uint32(3)).astype(float32).repeat(4)
        ).astype(float32)

    def expected(points: Array, centres: Array, *_: object) -> Expected:
        given, middle = points.reshape(n, 4).astype(float64), centres.reshape(16, 4)
        best = ((given[:, None] - middle) ** 2).sum(2).argmin(1)
        sums = [np.bincount(best, part, 16) for part in given.T]
        return {2: np.stack(sums, 1).ravel(), 3: np.bincount(best, minlength=16)}

    def centres() -> Array:
        return 4 * uniform(64, 8).make()

    given = deciding(of(points, 4 * n, float32)), deciding(of(centres, 64, float32))
    arguments = *given, afresh(zeros(64)), afresh(zeros(16, int32)), int32(n)
    return Plan(min(n // 256, 528), 256, arguments, expected, tolerance=1e-3)


@measured(SEEN, 2**10, 2**14, 2**17, small=2**8)
def selective_scan(n: int) -> Plan:
    steps = 48

    def rates() -> Array:
        return -(1 + np.arange(16 * n) % 16).astype(float32)

    def expected(u: Array, delta: Array, a: Array, b: Array, c: Array, *_: object) -> Expected:
        state, made = np.zeros((n, 16)), np.zeros((steps, n))
        rate = a.reshape(n, 16).astype(float64)
        into, out = b.reshape(steps, 16), c.reshape(steps, 16)
        for t, (given, dt) in enumerate(
            zip(u.reshape(steps, n), delta.reshape(steps, n).astype(float64), strict=True)
        ):
            state = state * np.exp(dt[:, None] * rate) + (given * dt)[:, None] * into[t]
            made[t] = state @ out[t]
        return {5: made.ravel()}

    size = steps * n
    given = uniform(size, 1), uniform(size, 2), of(rates, 16 * n, float32)
    of_all = uniform(16 * steps, 3), uniform(16 * steps, 4)
    arguments = *given, *of_all, zeros(size), int32(steps), int32(n)
    return Plan(n // 128, 128, arguments, expected, tolerance=1e-4)


@measured(SEEN, 2**16, 2**20, 2**24)
def huber_loss(n: int) -> Plan:
    delta = float32(0.3)

    def expected(predicted: Array, wanted: Array, *_: object) -> Expected:
        off = abs(predicted.astype(float64) - wanted)
        return {3: np.where(off <= delta, 0.5 * off**2, delta * (off - 0.5 * delta)).sum()}

    given = deciding(uniform(n, 1)), deciding(uniform(n, 2))
    arguments = *given, delta, afresh(zeros(1, float64)), int32(n)
    return Plan(min(n // 256, 1056), 256, arguments, expected)


def _halves(length: int, seed: int) -> Numbers:
    """Return halves from -1 to 1."""
    return of(lambda: _signed(length, seed).make().astype(float16), length, float16)


@measured(SEEN, 128, 2048, 2**15, small=8)
def residual_norm(n: int) -> Plan:
    def expected(x: Array, residual: Array, gamma: Array, out: Array) -> Expected:
        total = (x + residual).reshape(n, 1024)
        mean = (total.astype(float64) ** 2).mean(1, keepdims=True)
        made = (total / np.sqrt(mean + 1e-6)).astype(float16) * gamma
        return {1: total.ravel(), 3: made.ravel()}

    given = _halves(1024 * n, 1), afresh(_halves(1024 * n, 2)), _halves(1024, 3)
    return Plan(n, 128, (*given, zeros(1024 * n, float16)), expected, tolerance=2e-3)


@measured(SEEN, 2**12, 2**16, 2**20, small=2**9)
def eigen3x3(n: int) -> Plan:
    def given() -> Array:
        return uniform(6 * n, 9).make().astype(float64)

    def expected(m: Array, values: Array, n: int) -> Expected:
        matrices = m.reshape(6, n)[[0, 1, 2, 1, 3, 4, 2, 4, 5]].T.reshape(n, 3, 3)
        return {1: np.linalg.eigvalsh(matrices)[:, ::-1].T.ravel()}

    arguments = deciding(of(given, 6 * n, float64)), zeros(3 * n, float64), int32(n)
    return Plan(n // 128, 128, arguments, expected, tolerance=1e-7)


@measured(SEEN, 128, 2048, 2**15, small=4)
def hadamard(n: int) -> Plan:
    def expected(x: Array) -> Expected:
        made = x.reshape(n, 1024).astype(float64)
        for bit in range(10):
            pairs = made.reshape(n, -1, 2, 1 << bit)
            made = np.stack([pairs.sum(2), pairs[:, :, 0] - pairs[:, :, 1]], 2).reshape(n, 1024)
        return {0: made.ravel() / 32}

    return Plan(n, 256, (afresh(uniform(1024 * n)),), expected)


@measured(SEEN, 2**16, 2**20, 2**24)
def master_update(n: int) -> Plan:
    rate, beta, decay, unscale = (float32(part) for part in (0.01, 0.9, 0.0001, 1 / 128))

    def expected(weights: Array, momentum: Array, gradient: Array, *_: object) -> Expected:
        g = gradient.astype(float64) * unscale + decay * weights
        m = beta * momentum.astype(float64) + g
        w = weights - rate * m
        return {0: w, 1: m, 3: w.astype(float16)}

    given = afresh(_signed(n, 1)), afresh(_signed(n, 2)), _halves(n, 3)
    arguments = *given, zeros(n, float16), rate, beta, decay, unscale, int32(n)
    return Plan(n // 512, 256, arguments, expected, tolerance=1e-3)
