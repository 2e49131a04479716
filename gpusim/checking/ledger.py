"""Rows of numbers found by their first column, with cheap insertion."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpusim.typing import Array


class Ledger:
    """Rows in a few sorted parts, each more than twice as long as the next: adding stays cheap.

    `kept` selects, from sorted rows, the ones to keep when parts are merged.
    """

    def __init__(self, kept: Callable[[Array], Array] | None = None) -> None:
        self._parts: list[Array] = []
        self._kept = kept

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, rows: Array) -> None:
        """Insert rows; missing columns at their end are zeros."""
        if not len(rows):
            return
        while self._parts and len(self._parts[-1]) <= 2 * len(rows):
            rows = np.concatenate(even([self._parts.pop(), rows]))
            rows = rows if self._kept is None else self._kept(rows)
        self._parts.append(rows[np.argsort(rows[:, 0], kind="stable")])

    def find(self, keys: Array, last: int | None = None) -> tuple[Array, Array]:
        """Return all rows with one of `keys` in the first column, and the index of each row's key.

        Of each part only the `last` ones with a key, if this is given.
        """
        entries, rows = [], []
        for part in self._parts:
            first = np.searchsorted(part[:, 0], keys)
            count = np.searchsorted(part[:, 0], keys, side="right") - first
            if last is not None:
                first, count = first + np.maximum(count - last, 0), np.minimum(count, last)
            if not count.any():
                continue
            entry = np.repeat(np.arange(len(keys)), count)
            within = np.arange(len(entry)) - np.repeat(np.cumsum(count) - count, count)
            entries.append(entry)
            rows.append(part[first[entry] + within])
        if not entries:
            return np.zeros(0, dtype=np.int64), np.zeros((0, 1), dtype=np.int64)
        return np.concatenate(entries), np.concatenate(even(rows))

    @property
    def rows(self) -> Array:
        """All rows."""
        return np.concatenate(even(self._parts))

    def clear(self) -> None:
        """Forget all rows."""
        self._parts.clear()


def last_of_each(rows: Array, columns: Array) -> Array:
    """Return the last of the rows that agree in some `columns`, one array for each."""
    order = np.lexsort((*columns[::-1], rows[:, 0]))
    ordered = columns[:, order]
    same = (rows[order[1:], 0] == rows[order[:-1], 0]) & (ordered[:, 1:] == ordered[:, :-1]).all(0)
    last: Array = rows[np.sort(order[~np.append(same, False)])]
    return last


def even(parts: list[Array]) -> list[Array]:
    """Return rows with as many columns as the longest have."""
    width = max(part.shape[1] for part in parts)
    return [
        part if part.shape[1] == width else np.pad(part, ((0, 0), (0, width - part.shape[1])))
        for part in parts
    ]
