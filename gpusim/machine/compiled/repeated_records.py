"""Repeated iterations of a loop among records of steps: stored once, with their count.

They equal the iterations before, with addresses shifted by a constant number of lines. A loop of
millions of iterations then takes no more memory than one of hundreds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpusim.gpu.memory import LINE_BYTES
from gpusim.typing import Array

LEAST = 1_024  # records of a loop, with those of its accesses: a shorter one is kept whole
KEPT = 64  # of whole iterations: twice as many are kept before, and after
MOST_PERIODS = 32  # records or iterations of the longest period tried
_ROW, _FIRST, _LAST = 1, 0, 1
_LOWEST, _RUNS = 5, 7


class Repeated(NamedTuple):
    """Records from `begin` up to `end` that repeat the `period` records before, `times` times.

    Twice `kept` further iterations precede and follow. `strides` are the bytes by which each
    address range of a period moves per iteration.
    """

    begin: int
    end: int
    period: int
    times: int
    kept: int
    strides: Array


def repeated(
    blocks: Array, owned: Array, details: Array, runs: Array, is_global: Array
) -> Repeated | None:
    """Return the middle of the longest loop of one warp among records, None of none so long.

    `owned` counts the details of each record; `is_global` says which of them have stretches in
    global memory.
    """
    if len(blocks) + len(details) < LEAST:
        return None
    words = np.stack([*blocks.T[:3], owned])
    middle = len(blocks) // 2
    again = np.flatnonzero((words[:, middle + 1 :] == words[:, [middle]]).all(axis=0))
    ends = np.append(0, np.cumsum(owned))
    touched = np.append(0, np.cumsum(details[:, _RUNS]))
    for period in (again[:MOST_PERIODS] + 1).tolist():
        unlike = np.flatnonzero((words[:, period:] != words[:, :-period]).any(axis=0))
        at = int(np.searchsorted(unlike, middle))
        first = int(unlike[at - 1]) + 1 if at else 0
        last = int(unlike[at]) if at < len(unlike) else len(blocks) - period  # which may leave it
        weight = period + int(ends[first + period] - ends[first])
        kept = -(-KEPT // weight)
        many = (last - first) // period
        if many * weight < LEAST or many <= 4 * kept:
            continue
        mine = slice(ends[first], ends[first + many * period])
        stretches = runs[touched[mine.start] : touched[mine.stop]]
        strides = _strides(details[mine], stretches, is_global[mine], many)
        if strides is not None:
            begin, times = first + 2 * kept * period, many - 4 * kept
            return Repeated(begin, begin + times * period, period, times, kept, strides)
    return None


def _strides(details: Array, runs: Array, is_global: Array, times: int) -> Array | None:
    """Return the distances by which stretches advance from part to part, None if parts differ."""
    if len(details) % times or len(runs) % times:
        return None
    details = details.reshape(times, -1, details.shape[1])
    runs = runs.reshape(times, -1, runs.shape[1]).astype(np.int64)
    others = np.delete(np.arange(details.shape[2]), _LOWEST)
    if (details[1:][..., others] != details[0][..., others]).any():
        return None
    if (runs[1:, :, _LAST + 1 :] != runs[0, :, _LAST + 1 :]).any():
        return None
    moves = np.diff(runs[:, :, : _LAST + 1], axis=0)
    lines = np.diff(details[..., _LOWEST].astype(np.int64), axis=0)
    if (moves != moves[:1, :, :1]).any() or (lines != lines[:1]).any():
        return None
    strides = moves[0, :, _FIRST]
    counts = details[0, :, _RUNS]
    own = np.zeros(details.shape[1], dtype=np.int64)
    has = counts > 0
    own[has] = strides[(np.cumsum(counts) - counts)[has]]
    of_global = is_global[: len(own)] & (details[0, :, _LOWEST] >= 0)
    is_even = not (strides % LINE_BYTES).any()
    is_even &= bool((lines[0] == np.where(of_global, own // LINE_BYTES, 0)).all())
    return strides if is_even else None
