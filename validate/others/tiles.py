"""Launches of `tiles.cu`."""

from __future__ import annotations

import numpy as np
from numpy import float32, int32

from .data import Array, below, deciding, of, random_bytes, uniform, words, zeros
from .plans import SEEN, Expected, Plan, measured


@measured(SEEN, 512, 1024, 2048, small=64)
def matrix_product_4x4(n: int) -> Plan:
    def expected(a: Array, b: Array, c: Array, n: int) -> Expected:
        return {2: a.reshape(n, n) @ b.reshape(n, n)}

    arguments = uniform(n * n), uniform(n * n, 2), zeros(n * n), int32(n)
    return Plan((n // 64, n // 64), 256, arguments, expected)


@measured(SEEN, 2**12, 2**14, 2**16, small=256)
def thin_product(n: int) -> Plan:
    depth = 1024 if n >= 2**12 else 256

    def expected(a: Array, b: Array, c: Array, n: int, k: int) -> Expected:
        return {2: a.reshape(8, k) @ b.reshape(k, n)}

    arguments = uniform(8 * depth), uniform(n * depth, 2), zeros(8 * n), int32(n), int32(depth)
    return Plan(n // 128, 128, arguments, expected)


@measured(SEEN, 64, 128, 384, small=32)
def stencil3d(n: int) -> Plan:
    def expected(x: Array, y: Array, n: int) -> Expected:
        c = x.reshape(n, n, n)
        made = np.zeros_like(c)
        around = c[1:-1, 1:-1, :-2] + c[1:-1, 1:-1, 2:] + c[1:-1, :-2, 1:-1]
        around = around + c[1:-1, 2:, 1:-1] + c[:-2, 1:-1, 1:-1] + c[2:, 1:-1, 1:-1]
        made[1:-1, 1:-1, 1:-1] = float32(0.4) * c[1:-1, 1:-1, 1:-1] + float32(0.1) * around
        return {1: made.ravel()}

    arguments = uniform(n**3), zeros(n**3), int32(n)
    return Plan((n // 32, n // 4, n // 16), (32, 4), arguments, expected)


def _window(x: Array, n: int, rows: range, columns: range) -> list[Array]:
    """Return the picture moved by each step of a window, its rim repeated."""
    r, c = np.arange(n), np.arange(n)
    picture = x.reshape(n, n)
    return [
        picture[np.clip(r + i, 0, n - 1)][:, np.clip(c + j, 0, n - 1)]
        for i in rows
        for j in columns
    ]


@measured(SEEN, 512, 1024, 4096, small=64)
def blur_tile(n: int) -> Plan:
    def expected(x: Array, y: Array, n: int) -> Expected:
        return {1: sum(_window(x, n, range(-2, 3), range(-2, 3))) / float32(25)}

    arguments = uniform(n * n), zeros(n * n), int32(n)
    return Plan((n // 32, n // 8), (32, 8), arguments, expected)


@measured(SEEN, 512, 1024, 4096, small=64)
def convolution_5x5(n: int) -> Plan:
    weights = uniform(25, 9)

    def expected(x: Array, y: Array, n: int) -> Expected:
        moved = _window(x, n, range(-2, 3), range(-2, 3))
        made = sum(w * picture for w, picture in zip(weights.make(), moved, strict=True))
        inner = np.zeros((n, n), float32)
        inner[2:-2, 2:-2] = np.asarray(made)[2:-2, 2:-2]
        return {1: inner.ravel()}

    arguments = uniform(n * n), zeros(n * n), int32(n)
    given = (("weights", weights),)
    return Plan((n // 32, n // 8), (32, 8), arguments, expected, constants=given)


@measured(SEEN, 512, 1024, 4096, small=64)
def blur_columns(n: int) -> Plan:
    def expected(x: Array, y: Array, n: int) -> Expected:
        return {1: sum(_window(x, n, range(-8, 9), range(1))) / float32(17)}

    arguments = deciding(uniform(n * n)), zeros(n * n), int32(n)
    return Plan((n // 32, n // 8), (32, 8), arguments, expected)


@measured(SEEN, 256, 1024, 4096, small=64)
def halve_picture(n: int) -> Plan:
    def expected(x: Array, y: Array, n: int) -> Expected:
        return {1: x.reshape(n, 2, n, 2).mean((1, 3)).ravel()}

    arguments = uniform(4 * n * n), zeros(n * n), int32(n)
    return Plan((n // 32, n // 8), (32, 8), arguments, expected)


@measured(SEEN, 512, 2048, 4096, small=64)
def game_of_life(n: int) -> Plan:
    cells = of(lambda: random_bytes(n * n).make() & 1, n * n, np.uint8)

    def expected(x: Array, y: Array, n: int) -> Expected:
        world = x.reshape(n, n)
        moves = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
        alive = sum(np.roll(world, move, (0, 1)) for move in moves)
        return {1: (alive == 3) | ((world > 0) & (alive == 4))}

    arguments = cells, zeros(n * n, np.uint8), int32(n)
    return Plan((n // 64, n // 4), (64, 4), arguments, expected)


@measured(SEEN, 2**20, 2**23, 2**26, small=2**15)
def tiles_ahead(n: int) -> Plan:
    tiles = 8 if n < 2**26 else 32
    blocks = n // tiles // 1024

    def expected(x: Array, y: Array, t: int) -> Expected:
        turned = np.roll(x.reshape(blocks, tiles, 1024), -1, 2)
        return {1: turned.reshape(blocks, tiles, 4, 256).sum((1, 2), dtype=np.float64).ravel()}

    return Plan(blocks, 256, (uniform(n), zeros(blocks * 256), int32(tiles)), expected)


@measured(SEEN, 1024, 2048, 4096, small=512)
def gravity(n: int) -> Plan:
    def expected(bodies: Array, forces: Array, n: int) -> Expected:
        of_each = bodies.reshape(n, 4).astype(np.float64)
        made = np.zeros((n, 4))
        for i in range(n):
            d = of_each[:, :3] - of_each[i, :3]
            pull = of_each[:, 3] / ((d**2).sum(1) + 0.01) ** 1.5
            made[i, :3] = pull @ d
        return {1: made.ravel()}

    return Plan(n // 256, 256, (uniform(4 * n), zeros(4 * n), int32(n)), expected, 1e-4)


@measured(SEEN, 2**18, 2**22, 2**26)
def block_scan(n: int) -> Plan:
    def expected(x: Array, y: Array, n: int) -> Expected:
        return {1: np.cumsum(x.reshape(-1, 1024), 1).ravel()}

    return Plan(n // 1024, 1024, (below(16, n), zeros(n, int32), int32(n)), expected)


@measured(SEEN, 2**18, 2**22, 2**25)
def tree_scan(n: int) -> Plan:
    def expected(x: Array, y: Array, n: int) -> Expected:
        rows = x.reshape(-1, 512)
        return {1: (np.cumsum(rows, 1) - rows).ravel()}

    return Plan(n // 512, 256, (below(16, n), zeros(n, int32), int32(n)), expected)


@measured(SEEN, 2**18, 2**22, 2**26)
def bitonic_step(n: int) -> Plan:
    distance, size = n // 4, n // 2

    def expected(x: Array, y: Array, distance: int, size: int) -> Expected:
        i = np.arange(n)
        other = x[i ^ distance]
        is_lower = ((i & distance) != 0) == ((i & size) != 0)
        return {1: np.where(is_lower, np.minimum(x, other), np.maximum(x, other))}

    return Plan(n // 256, 256, (uniform(n), zeros(n), int32(distance), int32(size)), expected)


@measured(SEEN, 512, 2048, 8192, small=128)
def transpose_bytes(n: int) -> Plan:
    def expected(x: Array, y: Array, n: int) -> Expected:
        turned = np.ascontiguousarray(x.view(np.uint8).reshape(n, n).T)
        return {1: turned.view(np.uint32).ravel()}

    given = of(lambda: words(n * n // 4, 1), n * n // 4, np.uint32)
    arguments = given, zeros(n * n // 4, np.uint32), int32(n)
    return Plan((n // 64, n // 64), (16, 16), arguments, expected)


@measured(SEEN, 2**14, 2**17, 2**20, small=512)
def straight_code(n: int) -> Plan:
    def expected(x: Array, y: Array, n: int) -> Expected:
        v = x.astype(np.float64)
        for first in range(4):
            for k in range(first, first + 4096):
                v = v * float(float32(0.75) + float32(0.0001) * float32(k % 97)) + 0.125
        return {1: v}

    return Plan(n // 256, 256, (uniform(n), zeros(n), int32(n)), expected, 1e-4)
