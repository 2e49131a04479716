"""Launches of `streams.cu`."""

from __future__ import annotations

import numpy as np
from numpy import float32, int32

from .data import Array, deciding, mixed, of, random_bytes, random_words, uniform, zeros
from .plans import SEEN, Plan, measured


@measured(SEEN, 2**18, 2**22, 2**26)
def fill(n: int) -> Plan:
    return Plan(
        n // 256,
        256,
        (float32(1.5), zeros(n), int32(n)),
        lambda value, y, n: {1: np.full(n, value)},
    )


@measured(SEEN, 2**18, 2**22, 2**26)
def iota4(n: int) -> Plan:
    return Plan(n // 1024, 256, (zeros(n, int32), int32(n)), lambda y, n: {0: np.arange(n)})


@measured(SEEN, 2**18, 2**22, 2**26)
def expand(n: int) -> Plan:
    def expected(x: Array, y: Array, n: int) -> dict[int, Array]:
        return {1: np.repeat(x, 16) * np.tile(np.arange(1, 17, dtype=float32), n // 16)}

    return Plan(n // 256, 256, (uniform(n // 16), zeros(n), int32(n)), expected)


@measured(SEEN, 2**18, 2**22, 2**26)
def scale_in_place(n: int) -> Plan:
    arguments = float32(0.99), uniform(n), int32(n)
    return Plan(n // 1024, 256, arguments, lambda factor, x, n: {1: factor * x})


@measured(SEEN, 2**18, 2**22, 2**26)
def copy_by_few_blocks(n: int) -> Plan:
    return Plan(66, 512, (uniform(n), zeros(n), int32(n)), lambda x, y, n: {1: x})


@measured(SEEN, 2**15, 2**18, 2**21)
def every_line(n: int) -> Plan:
    arguments = uniform(32 * n), zeros(n), int32(n)
    return Plan(n // 256, 256, arguments, lambda x, y, n: {1: x[::32]})


@measured(SEEN, 2**17, 2**20, 2**23)
def every_sector(n: int) -> Plan:
    def expected(x: Array, y: Array, n: int) -> dict[int, Array]:
        made = np.zeros((n, 8), float32)
        made[:, 0] = x
        return {1: made.ravel()}

    return Plan(n // 256, 256, (uniform(n), zeros(8 * n), int32(n)), expected)


@measured(SEEN, 2**11, 2**14, 2**17, small=256)
def every_page(n: int) -> Plan:
    arguments = zeros(8192 * n), zeros(n), int32(n)
    return Plan(n // 128, 128, arguments, lambda x, y, n: {1: np.ones(n, float32)})


@measured(SEEN, 2**20, 2**23, 2**25)
def sweeps(n: int) -> Plan:
    threads = 528 * 256

    def expected(x: Array, y: Array, n: int) -> dict[int, Array]:
        sums = np.zeros(threads, float32)
        for _ in range(4):
            for begin in range(0, n, threads):
                part = x[begin : begin + threads]
                sums[: len(part)] = sums[: len(part)] * float32(0.5) + part
        return {1: sums}

    return Plan(528, 256, (uniform(n), zeros(threads), int32(n)), expected)


@measured(SEEN, 2**20, 2**23, 2**26)
def sector_by_words(n: int) -> Plan:
    threads = 528 * 256

    def expected(x: Array, y: Array, n: int) -> dict[int, Array]:
        rows = -(-n // 8 // threads)
        padded = np.zeros((rows * threads, 8), float32)
        padded[: n // 8] = x.reshape(-1, 8)
        return {1: padded.reshape(rows, threads, 8).sum((0, 2))}

    return Plan(528, 256, (uniform(n), zeros(threads), int32(n)), expected)


@measured(SEEN, 2**18, 2**22, 2**26)
def lane_rows(n: int) -> Plan:
    arguments = uniform(n), zeros(n // 32), int32(n)
    return Plan(n // 32 // 128, 128, arguments, lambda x, y, n: {1: x.reshape(-1, 32).sum(1)})


@measured(SEEN, 512, 1024, 2048, small=64)
def submatrix_add(n: int) -> Plan:
    arguments = uniform(8 * n * n), uniform(8 * n * n, 2), int32(n), int32(8 * n)

    def expected(x: Array, y: Array, width: int, pitch: int) -> dict[int, Array]:
        made = y.reshape(-1, pitch).copy()
        made[:, :width] += x.reshape(-1, pitch)[:, :width]
        return {1: made.ravel()}

    return Plan((n // 32, n // 8), (32, 8), arguments, expected)


@measured(SEEN, 2**15, 2**19, 2**23)
def particles_as_structs(n: int) -> Plan:
    def expected(dt: float, x: Array, n: int) -> dict[int, Array]:
        made = x.reshape(-1, 8).copy()
        made[:, :3] += dt * made[:, 3:6]
        return {1: made.ravel()}

    return Plan(n // 256, 256, (float32(0.01), uniform(8 * n), int32(n)), expected)


@measured(SEEN, 2**16, 2**20, 2**24)
def particles_as_arrays(n: int) -> Plan:
    places, speeds = [uniform(n, s) for s in (1, 2, 3)], [uniform(n, s) for s in (1, 2, 3)]

    def expected(
        dt: float, px: Array, py: Array, pz: Array, vx: Array, vy: Array, vz: Array, n: int
    ) -> dict[int, Array]:
        return {1: px + dt * vx, 2: py + dt * vy, 3: pz + dt * vz}

    return Plan(n // 256, 256, (float32(0.01), *places, *speeds, int32(n)), expected)


@measured(SEEN, 2**16, 2**20, 2**24)
def lengths(n: int) -> Plan:
    arguments = deciding(uniform(3 * n)), zeros(n), int32(n)
    return Plan(
        n // 256, 256, arguments, lambda x, y, n: {1: np.sqrt((x.reshape(-1, 3) ** 2).sum(1))}
    )


@measured(SEEN, 2**18, 2**22, 2**25)
def gray(n: int) -> Plan:
    def expected(x: Array, y: Array, n: int) -> dict[int, Array]:
        return {1: (x.reshape(-1, 3).astype(int) @ [77, 150, 29]) >> 8}

    return Plan(n // 256, 256, (random_bytes(3 * n), zeros(n, np.uint8), int32(n)), expected)


def _half(n: int, seed: int) -> Array:
    return uniform(n, seed).make().astype(np.float16)


@measured(SEEN, 2**19, 2**23, 2**26)
def saxpy_half2(n: int) -> Plan:
    x, y = of(lambda: _half(n, 1), n, np.float16), of(lambda: _half(n, 2), n, np.float16)
    return Plan(
        n // 512,
        256,
        (x, y, int32(n)),
        lambda x, y, n: {1: 2 * x.astype(float32) + y},
        tolerance=1e-3,
    )


@measured(SEEN, 2**20, 2**24, 2**27)
def dot_int8(n: int) -> Plan:
    def expected(x: Array, y: Array, out: Array, n: int) -> dict[int, Array]:
        total = int(x.view(np.int8).astype(np.int64) @ y.view(np.int8).astype(np.int64))
        return {2: np.array([total], np.int64).astype(int32)}

    arguments = random_words(n // 4), random_words(n // 4, 2), zeros(1, int32), int32(n)
    return Plan(264, 256, arguments, expected)


@measured(SEEN, 2**17, 2**21, 2**25)
def daxpy(n: int) -> Plan:
    def double(seed: int) -> Array:
        return uniform(n, seed).make().astype(np.float64)

    x, y = of(lambda: double(1), n, np.float64), of(lambda: double(2), n, np.float64)
    arguments = np.float64(0.3), x, y, int32(n)
    return Plan(n // 256, 256, arguments, lambda a, x, y, n: {2: a * x + y})


@measured(SEEN, 2**18, 2**22, 2**25)
def black_scholes(n: int) -> Plan:
    def expected(
        price: Array, strike: Array, years: Array, call: Array, put: Array, n: int
    ) -> dict[int, Array]:
        s, k, t = (v.astype(np.float64) + 1e-3 for v in (price, strike, years))
        root = np.sqrt(t)
        d1 = (np.log(s / k) + 0.065 * t) / (0.3 * root)
        n1, n2 = (1 / (1 + np.exp(-1.702 * d)) for d in (d1, d1 - 0.3 * root))
        left = k * np.exp(-0.02 * t)
        return {3: s * n1 - left * n2, 4: left * (1 - n2) - s * (1 - n1)}

    arguments = *(deciding(uniform(n, s)) for s in (1, 2, 3)), zeros(n), zeros(n), int32(n)
    return Plan(n // 256, 256, arguments, expected, tolerance=1e-4)


@measured(SEEN, 2**18, 2**22, 2**26)
def random_fill(n: int) -> Plan:
    return Plan(
        n // 256,
        256,
        (zeros(n, np.uint32), int32(n)),
        lambda y, n: {0: mixed(np.arange(n, dtype=np.uint32))},
    )


@measured(SEEN, 2**14, 2**17, 2**20, small=512)
def circle(n: int) -> Plan:
    points = 64

    def expected(inside: Array, points: int) -> dict[int, Array]:
        state = mixed(np.arange(n, dtype=np.uint32)) | np.uint32(1)
        hits = np.zeros(n, np.uint32)
        for _ in range(points):
            state ^= state << np.uint32(13)
            state ^= state >> np.uint32(17)
            state ^= state << np.uint32(5)
            x, y = (state & 0xFFFF).astype(np.uint64), (state >> np.uint32(16)).astype(np.uint64)
            hits += x * x + y * y < 2**32
        return {0: hits}

    return Plan(n // 128, 128, (zeros(n, np.uint32), int32(points)), expected)
