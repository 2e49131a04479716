"""Launches of `surveys.cu`."""

from __future__ import annotations

import numpy as np
from numpy import float32, float64, int16, int32, uint16

from .data import Array, Numbers, afresh, deciding, of, permuted, uniform, words, zeros
from .plans import HELD, Expected, Plan, measured

EXACT = 0.0


def _between(low: float, high: float, length: int, seed: int) -> Numbers:
    """Return floats between two limits."""

    def made() -> Array:
        return (low + (high - low) * uniform(length, seed).make()).astype(float32)

    return of(made, length, float32)


@measured(HELD, 2**12, 2**16, 2**20, small=2**9)
def nearest_depot(n: int) -> Plan:
    count = 48

    def expected(places: Array, depots: Array, *_: object) -> Expected:
        p, d = (v.reshape(-1, 1, 2).astype(float64) for v in (places, depots))
        best = np.full(n, 4.0)
        for depot in d[:, 0]:
            a, b = (np.sin(0.5 * (p[:, 0, k] - depot[k])) for k in range(2))
            h = a * a + np.cos(p[:, 0, 0]) * np.cos(depot[0]) * b * b
            best = np.minimum(best, h)
        return {3: 12742.0 * np.arcsin(np.sqrt(best))}

    places, depots = _between(-1.4, 1.4, 2 * n, 1), _between(-1.4, 1.4, 2 * count, 2)
    arguments = deciding(places), deciding(depots), zeros(n, int32), zeros(n)
    return Plan(n // 256, 256, (*arguments, int32(count), int32(n)), expected, 1e-4)


@measured(HELD, 2**16, 2**20, 2**25)
def sliding_max(n: int) -> Plan:
    def expected(x: Array, *_: object) -> Expected:
        padded = np.pad(x, 16, constant_values=-1e30)
        return {1: np.lib.stride_tricks.sliding_window_view(padded, 33).max(1)}

    return Plan(n // 256, 256, (uniform(n, 3), zeros(n), int32(n)), expected, EXACT)


@measured(HELD, 512, 2048, 8192, small=64)
def slopes(n: int) -> Plan:
    def given() -> Array:
        return (words(n * n, 4) & 1023).astype(int16)

    def expected(heights: Array, *_: object) -> Expected:
        h = heights.reshape(n, n).astype(float64)
        across, down = h[:, 2:] - h[:, :-2], h[2:] - h[:-2]
        dx = across[:-2] + 2 * across[1:-1] + across[2:]
        dy = down[:, :-2] + 2 * down[:, 1:-1] + down[:, 2:]
        made = np.zeros((n, n))
        made[1:-1, 1:-1] = np.arctan(np.hypot(dx, dy) / 240)
        return {1: made.ravel()}

    arguments = of(given, n * n, int16), zeros(n * n), int32(n)
    return Plan((n // 32, n // 8), (32, 8), arguments, expected, 1e-4)


@measured(HELD, 2**10, 2**14, 2**18, small=2**6)
def track_lengths(n: int) -> Plan:
    sizes = 2 + (words(n, 5) % np.uint32(120)).astype(int32)
    begins = np.r_[0, np.cumsum(sizes)].astype(int32)
    total = int(begins[-1])

    def expected(begins: Array, points: Array, *_: object) -> Expected:
        steps = np.hypot(*np.diff(points.reshape(-1, 2).astype(float64), axis=0).T)
        steps = np.r_[steps, 0.0]
        steps[begins[1:] - 1] = 0
        return {2: np.add.reduceat(steps, begins[:-1])}

    given = deciding(of(lambda: begins, n + 1, int32)), uniform(2 * total, 6)
    return Plan(n // 8, 256, (*given, zeros(n), int32(n)), expected, 1e-4)


@measured(HELD, 2**14, 2**19, 2**24)
def into_cells(n: int) -> Plan:
    side = 512

    def expected(points: Array, *_: object) -> Expected:
        places = (points.reshape(n, 2) * float32(side)).astype(int32)
        cells = places[:, 1] * side + places[:, 0]
        return {1: np.bincount(cells, minlength=side * side), 2: cells}

    points, counts = deciding(uniform(2 * n, 7)), afresh(zeros(side * side, int32))
    arguments = points, counts, zeros(n, int32), int32(side), int32(n)
    return Plan(n // 256, 256, arguments, expected, EXACT)


@measured(HELD, 2**18, 2**22, 2**26)
def through_table(n: int) -> Plan:
    def expected(x: Array, table: Array, *_: object) -> Expected:
        place = x * float32(4095)
        k = place.astype(int32)
        low = table[k]
        return {2: low + (place - k) * (table[k + 1] - low)}

    arguments = deciding(uniform(n, 8)), uniform(4097, 9), zeros(n), int32(n)
    return Plan(min(n // 256, 1056), 256, arguments, expected, 1e-4)


@measured(HELD, 2**16, 2**20, 2**25)
def follow_chains(n: int) -> Plan:
    def expected(chain: Array, *_: object) -> Expected:
        at = np.arange(n)
        for _step in range(16):
            at = chain[at]
        return {1: at}

    arguments = deciding(permuted(n)), zeros(n, int32), int32(n)
    return Plan(n // 256, 256, arguments, expected, EXACT)


@measured(HELD, 2**16, 2**20, 2**23, small=2**12)
def correct_counts(n: int) -> Plan:
    pixels = min(n, 2**16)

    def counts(length: int, mask: int, seed: int) -> Numbers:
        return of(lambda: (words(length, seed) & mask).astype(uint16), length, uint16)

    def expected(raw: Array, dark: Array, gain: Array, *_: object) -> Expected:
        off = raw.reshape(-1, 4 * pixels).astype(int32) - dark.astype(int32)
        return {3: np.clip(off.astype(float32) * gain, 0, 65535).astype(uint16).ravel()}

    given = counts(4 * n, 16383, 10), counts(4 * pixels, 511, 11), uniform(4 * pixels, 12)
    arguments = *given, zeros(4 * n, uint16), int32(pixels), int32(n)
    return Plan(n // 256, 256, arguments, expected, EXACT)


@measured(HELD, 64, 1024, 16384, small=4)
def lags(n: int) -> Plan:
    def expected(a: Array, b: Array, _out: Array) -> Expected:
        windows = np.lib.stride_tricks.sliding_window_view(b[: n * 1024 + 256], 1024)
        rows = [
            windows[1024 * k : 1024 * k + 256].astype(float64) @ a[1024 * k : 1024 * k + 1024]
            for k in range(n)
        ]
        return {2: np.concatenate(rows)}

    arguments = uniform(1024 * n, 13), uniform(1024 * n + 256, 14), zeros(256 * n)
    return Plan(n, 256, arguments, expected, 1e-4)


@measured(HELD, 2**10, 2**14, 2**18, small=2**7)
def filter_channels(n: int) -> Plan:
    samples = 96

    def expected(x: Array, *_: object) -> Expected:
        rows = x.reshape(samples, n).astype(float64)
        made = np.zeros((samples + 2, n))
        taken = np.vstack([np.zeros((2, n)), rows])
        for k in range(2, samples + 2):
            made[k] = 0.2 * taken[k] + 0.4 * taken[k - 1] + 0.2 * taken[k - 2]
            made[k] += 0.3 * made[k - 1] - 0.1 * made[k - 2]
        return {1: made[2:].ravel()}

    arguments = uniform(samples * n, 15), zeros(samples * n), int32(samples), int32(n)
    return Plan(n // 128, 128, arguments, expected, 1e-4)


@measured(HELD, 256, 1024, 4096, small=64)
def local_variance(n: int) -> Plan:
    def expected(x: Array, *_: object) -> Expected:
        padded = np.pad(x.reshape(n, n).astype(float64), 3, mode="edge")
        mean, squares = np.zeros((n, n)), np.zeros((n, n))
        for j in range(7):
            for k in range(7):
                part = padded[j : j + n, k : k + n]
                mean, squares = mean + part / 49, squares + part * part / 49
        return {1: (squares - mean * mean).ravel()}

    arguments = uniform(n * n, 16), zeros(n * n), int32(n)
    return Plan((n // 32, n // 16), (32, 16), arguments, expected, 1e-3)


@measured(HELD, 64, 1024, 16384, small=4)
def sine_integrals(n: int) -> Plan:
    def given() -> Array:
        return 1 + 30 * uniform(n, 17).make().astype(float64)

    def expected(limits: Array, _out: Array) -> Expected:
        places = limits[:, None] * np.arange(2049) / 2048
        values = np.sinc(places / np.pi)
        return {1: np.trapezoid(values, places, axis=1)}

    return Plan(n, 256, (deciding(of(given, n, float64)), zeros(n, float64)), expected, 1e-6)
