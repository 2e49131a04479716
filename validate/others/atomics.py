"""Launches of `atomics.cu`."""

from __future__ import annotations

import numpy as np
from numpy import float32, int32

from .data import (
    Array,
    Numbers,
    afresh,
    below,
    deciding,
    random_words,
    skewed,
    uniform,
    zeros,
)
from .plans import SEEN, Expected, Plan, measured

LIMIT = float32(0.5)


def counter(length: int, dtype: object = np.int32) -> Numbers:
    """Return a counter array, zeroed before every launch."""
    return deciding(afresh(zeros(length, dtype)))


@measured(SEEN, 2**18, 2**21, 2**24)
def count_above(n: int) -> Plan:
    arguments = deciding(uniform(n)), LIMIT, counter(1), int32(n)
    return Plan(n // 256, 256, arguments, lambda x, limit, *_: {2: (x > limit).sum()})


@measured(SEEN, 2**14, 2**17, 2**20)
def float_to_one_word(n: int) -> Plan:
    arguments = uniform(n), counter(1, float32), int32(n)
    return Plan(n // 256, 256, arguments, lambda x, *_: {1: x.sum(dtype=np.float64)}, 1e-3)


def _kept(x: Array, limit: float, y: Array, count: Array, n: int) -> Expected:
    return {3: (x > limit).sum()}


@measured(SEEN, 2**18, 2**21, 2**24)
def keep_by_tickets(n: int) -> Plan:
    arguments = deciding(uniform(n)), LIMIT, zeros(n), counter(1), int32(n)
    return Plan(n // 256, 256, arguments, _kept)


@measured(SEEN, 2**18, 2**21, 2**24)
def keep_by_warps(n: int) -> Plan:
    arguments = deciding(uniform(n)), float32(0.9), zeros(n), counter(1), int32(n)
    return Plan(n // 256, 256, arguments, _kept)


def _counts(x: Array, counts: Array, *_: object) -> Expected:
    return {1: np.bincount(x, minlength=len(counts))}


@measured(SEEN, 2**16, 2**19, 2**22)
def histogram_global(n: int) -> Plan:
    return Plan(n // 256, 256, (deciding(below(16, n)), counter(16), int32(n)), _counts)


@measured(SEEN, 2**18, 2**21, 2**24)
def histogram_of_many(n: int) -> Plan:
    bins = 2**16
    return Plan(n // 256, 256, (deciding(below(bins, n)), counter(bins), int32(n)), _counts)


@measured(SEEN, 2**18, 2**21, 2**24)
def histogram_skewed(n: int) -> Plan:
    return Plan(264, 256, (deciding(skewed(256, n)), counter(256), int32(n)), _counts)


@measured(SEEN, 2**16, 2**18, 2**20)
def float_to_sector(n: int) -> Plan:
    def expected(x: Array, *_: object) -> Expected:
        return {1: x.reshape(-1, 8).sum(0, dtype=np.float64)}

    return Plan(n // 256, 256, (uniform(n), counter(8, float32), int32(n)), expected, 1e-3)


@measured(SEEN, 2**16, 2**19, 2**22)
def float_to_line(n: int) -> Plan:
    def expected(x: Array, *_: object) -> Expected:
        return {1: x.reshape(-1, 32).sum(0, dtype=np.float64)}

    return Plan(n // 256, 256, (uniform(n), counter(32, float32), int32(n)), expected, 1e-3)


@measured(SEEN, 2**18, 2**21, 2**24)
def scatter_add(n: int) -> Plan:
    words = 2**20

    def expected(x: Array, places: Array, *_: object) -> Expected:
        return {2: np.bincount(places, x, words)}

    arguments = uniform(n), deciding(below(words, n, 2)), counter(words, float32), int32(n)
    return Plan(n // 256, 256, arguments, expected, 1e-3)


@measured(SEEN, 2**18, 2**22, 2**26)
def largest(n: int) -> Plan:
    arguments = below(2**30, n), counter(1), int32(n)
    return Plan(528, 256, arguments, lambda x, *_: {1: x.max()})


@measured(SEEN, 2**14, 2**16, 2**18)
def shared_float_sum(n: int) -> Plan:
    def expected(x: Array, *_: object) -> Expected:
        return {1: x.reshape(-1, 256).sum(1, dtype=np.float64)}

    return Plan(n // 256, 256, (deciding(uniform(n)), zeros(n // 256), int32(n)), expected, 1e-4)


@measured(SEEN, 2**18, 2**21, 2**24)
def radix_count(n: int) -> Plan:
    blocks = n // 2048

    def expected(x: Array, counts: Array, shift: int, n: int) -> Expected:
        digits = (x >> np.uint32(shift) & np.uint32(15)).astype(np.int64).reshape(blocks, 2048)
        numbered = digits * blocks + np.arange(blocks)[:, None]
        return {1: np.bincount(numbered.ravel(), minlength=16 * blocks)}

    arguments = deciding(random_words(n)), zeros(16 * blocks, int32), int32(8), int32(n)
    return Plan(blocks, 256, arguments, expected)


@measured(SEEN, 2**18, 2**21, 2**24)
def exchange(n: int) -> Plan:
    """The values found in a slot depend on the order of threads: no result is expected."""
    slots = 2**16

    def expected(held: Array, places: Array, y: Array, n: int) -> Expected:
        return {}

    return Plan(
        n // 256,
        256,
        (counter(slots), deciding(below(slots, n, 2)), zeros(n, int32), int32(n)),
        expected,
    )
