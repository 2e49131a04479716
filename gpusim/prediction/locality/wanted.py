"""Queries for the last touch of bytes before a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.prediction.streams.kinds_by_pc import STORE
from gpusim.typing import Array

Pairs = tuple[Array, Array]  # indices of wanted bytes, and of stretches
NEVER = -np.inf
SOON = 1e-10  # block durations: a touch is before another one


@dataclass(frozen=True)
class Wanted:
    """Queries, one per row: the last touch of bytes from `begin` up to `end` before `time`.

    Where `sms` is not 0, only blocks on the same SM as `block` count; where `kinds` are given, only
    touches of these kinds. The rows are those of several `queries` of one length.
    """

    begin: Array
    end: Array
    time: Array
    block: Array
    sms: int = 0
    kinds: tuple[int, ...] = ()
    queries: int = 1

    def __len__(self) -> int:
        return len(self.begin)

    @classmethod
    def joined(cls, queries: Sequence[Wanted]) -> Wanted:
        """Return queries of one length as one: all for the same `sms` and `kinds`."""
        begin, end, time, block = (
            np.concatenate([getattr(one, name) for one in queries])
            for name in ("begin", "end", "time", "block")
        )
        first = queries[0]
        return cls(begin, end, time, block, first.sms, first.kinds, len(queries))

    def at(self, which: Any) -> Wanted:
        """Return some of the rows."""
        begin, end, time = self.begin[which], self.end[which], self.time[which]
        return Wanted(begin, end, time, self.block[which], self.sms, self.kinds)


def are_among(touches: Array, kinds: tuple[int, ...], *, is_of_sm: bool) -> Array:
    """Return the touches of admissible kinds, as a mask: those given in `kinds`, if any.

    By default, loads and stores for an SM, all kinds otherwise.
    """
    if kinds:
        return np.isin(touches, kinds)
    return np.asarray(touches <= STORE) if is_of_sm else np.ones(len(touches), dtype=bool)


def within(numbers: Array, ranges: Array) -> Array:
    """Return the numbers within sorted ranges (first, last), as a mask."""
    at = np.searchsorted(ranges[:, 0], numbers, side="right") - 1
    return np.asarray((at >= 0) & (numbers <= ranges[np.maximum(at, 0), 1]))
