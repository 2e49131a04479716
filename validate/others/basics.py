"""Launches of `basics.cu`."""

from __future__ import annotations

import numpy as np
from numpy import float32, int32

from .data import Array, afresh, below, deciding, uniform, zeros
from .plans import SEEN, Expected, Plan, measured

WIDE = 32, 8


@measured(SEEN, 2**20, 2**24, 2**26)
def copy(n: int) -> Plan:
    return Plan(n // 128, 128, (uniform(n), zeros(n), int32(n)), lambda x, y, n: {1: x})


@measured(SEEN, 2**20, 2**24, 2**26)
def saxpy(n: int) -> Plan:
    arguments = float32(2), uniform(n), uniform(n, 2), int32(n)
    return Plan(n // 512, 512, arguments, lambda a, x, y, n: {2: a * x + y})


@measured(SEEN, 2**20, 2**24, 2**26)
def saxpy_stride(n: int) -> Plan:
    arguments = float32(2), uniform(n), uniform(n, 2), int32(n)
    return Plan(1056, 256, arguments, lambda a, x, y, n: {2: a * x + y})


@measured(SEEN, 2**20, 2**24, 2**26)
def add4(n: int) -> Plan:
    arguments = uniform(n), uniform(n, 2), zeros(n)
    return Plan(n // 1024, 256, arguments, lambda x, y, z: {2: x + y})


@measured(SEEN, 2**20, 2**24, 2**26)
def stencil(n: int) -> Plan:
    def expected(x: Array, y: Array, n: int) -> Expected:
        return {1: np.r_[0, x[:-2] + x[1:-1] + x[2:], 0]}

    return Plan(n // 128, 128, (uniform(n), zeros(n), int32(n)), expected)


@measured(SEEN, 1024, 4096, 8192, small=64)
def stencil2d(n: int) -> Plan:
    def expected(x: Array, y: Array, n: int) -> Expected:
        p, made = x.reshape(n, n), np.zeros((n, n), float32)
        around = p[1:-1, :-2] + p[1:-1, 2:] + p[:-2, 1:-1] + p[2:, 1:-1]
        made[1:-1, 1:-1] = float32(0.2) * (p[1:-1, 1:-1] + around)
        return {1: made.ravel()}

    return Plan((n // 32, n // 8), WIDE, (uniform(n * n), zeros(n * n), int32(n)), expected)


@measured(SEEN, 2**20, 2**24, 2**26)
def convolution(n: int) -> Plan:
    def expected(x: Array, weights: Array, y: Array, n: int) -> Expected:
        padded = np.r_[np.zeros(4, float32), x, np.zeros(4, float32)]
        return {2: sum(weights[k] * padded[k : k + n] for k in range(9))}

    return Plan(n // 256, 256, (uniform(n), uniform(9, 2), zeros(n), int32(n)), expected)


@measured(SEEN, 2**20, 2**24, 2**26)
def polynomial(n: int) -> Plan:
    def expected(x: Array, y: Array, n: int) -> Expected:
        made = np.full(n, 0.5)
        for _ in range(64):
            made = made * x + x
        return {1: made}

    return Plan(n // 512, 512, (uniform(n), zeros(n), int32(n)), expected, 1e-4)


@measured(SEEN, 2**18, 2**22, 2**24)
def gather(n: int) -> Plan:
    arguments = uniform(2**22), deciding(below(2**22, n, 3)), zeros(n), int32(n)
    return Plan(n // 256, 256, arguments, lambda x, places, y, n: {2: x[places]})


def _turned(x: Array, y: Array, n: int) -> Expected:
    return {1: x.reshape(n, n).T.ravel()}


@measured(SEEN, 1024, 4096, 8192, small=64)
def transpose(n: int) -> Plan:
    return Plan((n // 32, n // 32), WIDE, (uniform(n * n), zeros(n * n), int32(n)), _turned)


@measured(SEEN, 1024, 4096, 8192, small=64, instance="transpose_tile<32>")
def transpose_tile(n: int) -> Plan:
    return transpose(n)


@measured(SEEN, 1024, 4096, 8192, small=64, instance="transpose_tile<33>")
def transpose_padded(n: int) -> Plan:
    return transpose(n)


def _product(n: int) -> Plan:
    def expected(a: Array, b: Array, c: Array, n: int) -> Expected:
        return {2: a.reshape(n, n) @ b.reshape(n, n)}

    arguments = uniform(n * n), uniform(n * n, 2), zeros(n * n), int32(n)
    return Plan((n // 16, n // 16), (16, 16), arguments, expected, 1e-4)


@measured(SEEN, 256, 512, 1024, small=64)
def matrix_product(n: int) -> Plan:
    return _product(n)


@measured(SEEN, 256, 512, 768, small=64)
def matrix_product_plain(n: int) -> Plan:
    return _product(n)


@measured(SEEN, 1024, 4096, 8192, small=64)
def row_sums(n: int) -> Plan:
    arguments = uniform(n * n), zeros(n), int32(n)
    return Plan(n // 8, WIDE, arguments, lambda x, y, n: {1: x.reshape(n, n).sum(1)}, 1e-4)


@measured(SEEN, 1024, 4096, 8192, small=64)
def column_sums(n: int) -> Plan:
    arguments = uniform(n * n), zeros(n), int32(n)
    return Plan(n // 64, 64, arguments, lambda x, y, n: {1: x.reshape(n, n).sum(0)}, 1e-4)


@measured(SEEN, 2**20, 2**24, 2**26)
def dot(n: int) -> Plan:
    def expected(x: Array, y: Array, out: Array, n: int) -> Expected:
        products = np.zeros(-(-n // 270336) * 270336)
        products[:n] = x.astype(np.float64) * y
        return {2: products.reshape(-1, 1056, 256).sum((0, 2))}

    return Plan(1056, 256, (uniform(n), uniform(n, 2), zeros(1056), int32(n)), expected, 1e-4)


@measured(SEEN, 1024, 4096, 8192, small=64)
def softmax(n: int) -> Plan:
    def expected(x: Array, y: Array, n: int) -> Expected:
        made = np.exp(x.reshape(n, n).astype(np.float64))
        return {1: (made / made.sum(1, keepdims=True)).ravel()}

    return Plan(n, 256, (deciding(uniform(n * n)), deciding(zeros(n * n)), int32(n)), expected)


@measured(SEEN, 2**18, 2**22, 2**24)
def histogram(n: int) -> Plan:
    arguments = deciding(below(256, n, 3)), afresh(zeros(256, int32)), int32(n)
    return Plan(n // 2048, 256, arguments, lambda x, counts, n: {1: np.bincount(x, minlength=256)})


@measured(SEEN, 2**18, 2**22, 2**24)
def sum_by_atomics(n: int) -> Plan:
    arguments = uniform(n), afresh(zeros(1)), int32(n)
    return Plan(n // 256, 256, arguments, lambda x, *_: {1: x.sum(dtype=np.float64)}, 1e-3)


@measured(SEEN, 2**18, 2**20, 2**22)
def bitonic_sort(n: int) -> Plan:
    arguments = (afresh(deciding(uniform(n))),)
    return Plan(n // 512, 512, arguments, lambda x: {0: np.sort(x.reshape(-1, 512), 1).ravel()})


@measured(SEEN, 2048, 4096, 8192, small=512)
def bodies(n: int) -> Plan:
    def expected(px: Array, py: Array, pz: Array, ax: Array, n: int) -> Expected:
        made = np.zeros(n)
        for i in range(n):
            dx, dy, dz = (p.astype(np.float64) - p[i] for p in (px, py, pz))
            made[i] = (dx * (dx * dx + dy * dy + dz * dz + 0.01)).sum()
        return {3: made}

    arguments = *(uniform(n, seed) for seed in (1, 2, 3)), zeros(n), int32(n)
    return Plan(n // 256, 256, arguments, expected, 1e-4)


@measured(SEEN, 256, 512, 1024, small=64)
def mandelbrot(n: int) -> Plan:
    """A point on the edge may take a round more or less where the last bit differs."""
    arguments = zeros(n * n, int32), int32(n), int32(256)
    return Plan((n // 16, n // 16), (16, 16), arguments, lambda *_: {})
