"""Launches of `rows.cu`: `n` elements in rows of a width that the kernel's name stands for."""

from __future__ import annotations

import math

import numpy as np
from numpy import int32

from .data import Array, afresh, below, deciding, uniform, zeros
from .plans import SEEN, Plan, measured


@measured(SEEN, 2**18, 2**22, 2**26, small=2**12)
def layernorm(n: int) -> Plan:
    width = {2**18: 1024, 2**22: 1024}.get(n, 8192) if n >= 2**18 else 512

    def expected(x: Array, scale: Array, shift: Array, y: Array, w: int) -> dict[int, Array]:
        rows = x.reshape(-1, width).astype(np.float64)
        centred = rows - rows.mean(1, keepdims=True)
        return {3: centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * scale + shift}

    arguments = deciding(uniform(n)), uniform(width, 2), uniform(width, 3), zeros(n), int32(width)
    return Plan(n // width, 256, arguments, expected, tolerance=1e-4)


@measured(SEEN, 2**18, 2**22, 2**26, small=2**14)
def rmsnorm(n: int) -> Plan:
    width = 4096 if n >= 2**20 else 2048

    def expected(x: Array, scale: Array, y: Array, w: int) -> dict[int, Array]:
        rows = x.reshape(-1, width).astype(np.float64)
        return {2: rows / np.sqrt((rows**2).mean(1, keepdims=True) + 1e-5) * scale}

    arguments = deciding(uniform(n)), uniform(width, 2), zeros(n), int32(width)
    return Plan(n // width // 4, (32, 4), arguments, expected, tolerance=1e-4)


@measured(SEEN, 2**18, 2**22, 2**26)
def softmax_online(n: int) -> Plan:
    width = 2048 if n > 2**22 else 512

    def expected(x: Array, y: Array, w: int) -> dict[int, Array]:
        made = np.exp(x.reshape(-1, width).astype(np.float64))
        return {1: made / made.sum(1, keepdims=True)}

    return Plan(n // width // 8, (32, 8), (deciding(uniform(n)), zeros(n), int32(width)), expected)


@measured(SEEN, 2**21, 2**24, 2**26, small=2**13)
def cross_entropy(n: int) -> Plan:
    width = 65536 if n >= 2**20 else 1024
    rows = n // width

    def expected(x: Array, labels: Array, loss: Array, w: int) -> dict[int, Array]:
        all_rows = x.reshape(rows, width).astype(np.float64)
        return {2: np.log(np.exp(all_rows).sum(1)) - all_rows[np.arange(rows), labels]}

    arguments = deciding(uniform(n)), deciding(below(1024, rows, 2)), zeros(rows), int32(width)
    return Plan(rows, 256, arguments, expected, tolerance=1e-4)


@measured(SEEN, 2**18, 2**22, 2**26)
def variance(n: int) -> Plan:
    width = 1024

    def expected(x: Array, y: Array, w: int) -> dict[int, Array]:
        return {1: x.reshape(-1, width).astype(np.float64).var(1)}

    return Plan(
        n // width // 8, (32, 8), (deciding(uniform(n)), zeros(n // width), int32(width)), expected
    )


@measured(SEEN, 2**18, 2**21, 2**24)
def argmax(n: int) -> Plan:
    width = 4096

    def expected(x: Array, y: Array, w: int) -> dict[int, Array]:
        return {1: x.reshape(-1, width).argmax(1)}

    arguments = deciding(uniform(n)), zeros(n // width, int32), int32(width)
    return Plan(n // width, 256, arguments, expected)


@measured(SEEN, 2**18, 2**21, 2**24)
def top4(n: int) -> Plan:
    rows = n // 64

    def expected(x: Array, y: Array, r: int) -> dict[int, Array]:
        return {1: np.sort(x.reshape(64, rows), axis=0)[:-5:-1].ravel()}

    return Plan(rows // 128, 128, (deciding(uniform(n)), zeros(4 * rows), int32(rows)), expected)


@measured(SEEN, 2**18, 2**22, 2**26, small=2**14)
def gemv_rows(n: int) -> Plan:
    width = math.isqrt(n)
    begin = 4096

    def expected(a: Array, numbers: Array, begin: int, y: Array, w: int) -> dict[int, Array]:
        return {3: a.reshape(width, width) @ numbers[begin : begin + width].astype(np.float64)}

    arguments = uniform(n), uniform(2**24, 2), int32(begin), zeros(width), int32(width)
    return Plan(width // 8, (32, 8), arguments, expected)


@measured(SEEN, 2**18, 2**22, 2**26, small=2**16)
def gemv_columns(n: int) -> Plan:
    width = math.isqrt(n)

    def expected(a: Array, x: Array, y: Array, w: int) -> dict[int, Array]:
        return {2: x.astype(np.float64) @ a.reshape(width, width)}

    arguments = uniform(n), uniform(width, 2), afresh(zeros(width)), int32(width)
    return Plan((width // 128, width // 64), 128, arguments, expected)


@measured(SEEN, 2**18, 2**22, 2**26)
def bias_gelu(n: int) -> Plan:
    width = 1024 if n < 2**26 else 4096

    def expected(x: Array, bias: Array, y: Array, w: int) -> dict[int, Array]:
        v = x.reshape(-1, width).astype(np.float64) + bias[:width]
        return {2: 0.5 * v * (1 + np.tanh(0.7978845608 * (v + 0.044715 * v**3)))}

    arguments = deciding(uniform(n)), deciding(uniform(2**24, 2)), zeros(n), int32(width)
    return Plan((width // 256, n // width), 256, arguments, expected)


@measured(SEEN, 2**18, 2**22, 2**26)
def rotary(n: int) -> Plan:
    rows = n // 128
    positions = min(2048, rows // 2)

    def expected(x: Array, cosines: Array, sines: Array, p: int) -> dict[int, Array]:
        pairs = x.reshape(-1, positions, 64, 2).astype(np.float64)
        c, s = cosines.reshape(positions, 64), sines.reshape(positions, 64)
        a, b = pairs[..., 0], pairs[..., 1]
        return {0: np.stack([a * c - b * s, a * s + b * c], -1).ravel()}

    tables = uniform(positions * 64, 2), uniform(positions * 64, 3)
    return Plan(rows, 64, (uniform(n), *tables, int32(positions)), expected)


@measured(SEEN, 2**14, 2**18, 2**22, small=512)
def small_products(n: int) -> Plan:
    def expected(a: Array, x: Array, y: Array, n: int) -> dict[int, Array]:
        return {2: (a.reshape(n, 4, 4) @ x.reshape(n, 4, 1)).ravel()}

    arguments = uniform(16 * n), uniform(4 * n, 2), zeros(4 * n), int32(n)
    return Plan(n // 256, 256, arguments, expected)


@measured(SEEN, 512, 2048, 8192, small=64)
def triangle(n: int) -> Plan:
    def expected(a: Array, x: Array, y: Array, n: int) -> dict[int, Array]:
        return {2: np.tril(a.reshape(n, n)) @ x.astype(np.float64)}

    arguments = uniform(n * n), uniform(n, 2), zeros(n), int32(n)
    return Plan(n // 8, (32, 8), arguments, expected)
