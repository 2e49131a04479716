"""Launches of `grids.cu`."""

from __future__ import annotations

import numpy as np
from numpy import int32

from .data import Array, afresh, below, deciding, uniform, zeros
from .plans import SEEN, Expected, Plan, measured


@measured(SEEN, 2**18, 2**22, 2**26)
def sum_by_last_block(n: int) -> Plan:
    arrived = deciding(afresh(zeros(1, np.uint32)))
    arguments = deciding(uniform(n)), deciding(zeros(1056)), arrived, deciding(zeros(1)), int32(n)
    return Plan(1056, 256, arguments, lambda x, *_: {3: x.sum(dtype=np.float64)}, 1e-4)


@measured(SEEN, 2**18, 2**22, 2**25)
def fence_each(n: int) -> Plan:
    arguments = uniform(n), zeros(n), zeros(n // 256, int32), int32(n)
    return Plan(n // 256, 256, arguments, lambda x, *_: {1: 2 * x})


def _sums(x: Array, *_: object) -> Expected:
    return {1: np.cumsum(x, dtype=int32)}


@measured(SEEN, 2**16, 2**18, 2**20)
def chained_scan(n: int) -> Plan:
    blocks = n // 256
    states = tuple(deciding(afresh(zeros(size, int32))) for size in (blocks, blocks, 1))
    return Plan(
        blocks, 256, (deciding(below(16, n)), deciding(zeros(n, int32)), *states, int32(n)), _sums
    )


@measured(SEEN, 2**18, 2**21, 2**24)
def lookback_scan(n: int) -> Plan:
    blocks = n // 1024
    states = deciding(afresh(zeros(blocks, np.uint64))), deciding(afresh(zeros(1, int32)))
    return Plan(
        blocks, 256, (deciding(below(16, n)), deciding(zeros(n, int32)), *states, int32(n)), _sums
    )


@measured(SEEN, 2**18, 2**20, 2**22, small=2**12)
def rounds_of_grid(n: int) -> Plan:
    rounds = 8

    def expected(x: Array, *_: object) -> Expected:
        made = x.astype(np.float64)
        for _round in range(rounds):
            left, right = np.r_[made[0], made[:-1]], np.r_[made[1:], made[-1]]
            made = 0.5 * made + 0.25 * (left + right)
        return {0: made}

    arguments = (
        deciding(afresh(uniform(n))),
        deciding(zeros(n)),
        deciding(afresh(zeros(1, int32))),
        int32(n),
        int32(rounds),
    )
    return Plan(132, 256, arguments, expected)
