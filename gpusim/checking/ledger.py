"""Rows of numbers found by their first column, with cheap insertion."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from gpusim.typing import Array

MOST_ADDED = 1 << 16  # rows that wait to be sorted


class Ledger:
    """Rows in a few sorted parts, each more than twice as long as the next: adding stays cheap.

    Added rows are sorted when rows are next searched, or when there are many. `kept` selects, from
    rows of several additions, the ones to keep.
    """

    def __init__(self, kept: Callable[[Array], Array] | None = None) -> None:
        self._parts: list[Array] = []
        self._added: list[Array] = []
        self._count = 0
        self._kept = kept
        self._least = self._most = 0  # key

    def __bool__(self) -> bool:
        return bool(self._parts or self._added)

    def add(self, rows: Array) -> None:
        """Insert rows; missing columns at their end are zeros."""
        if len(rows):
            least, most = int(rows[:, 0].min()), int(rows[:, 0].max())
            self._least = min(self._least, least) if self else least
            self._most = max(self._most, most) if self else most
            self._added.append(rows)
            self._count += len(rows)
            if self._count > MOST_ADDED:
                self._sort()

    def _sort(self) -> None:
        """Make parts of the added rows."""
        if not self._added:
            return
        parts, self._added, self._count = self._added, [], 0
        count = sum(map(len, parts))
        while self._parts and len(self._parts[-1]) <= 2 * count:
            count += len(self._parts[-1])
            parts.insert(0, self._parts.pop())
        rows = parts[0]
        if len(parts) > 1:
            rows = np.concatenate(even(parts))
            rows = rows if self._kept is None else self._kept(rows)
        self._parts.append(rows[np.argsort(rows[:, 0], kind="stable")])

    def find(self, keys: Array, last: int | None = None) -> tuple[Array, Array]:
        """Return all rows with one of `keys` in the first column, and the index of each row's key.

        Of each part only the `last` ones with a key, if this is given.
        """
        found = list(self.each(keys, last))
        if not found:
            return np.zeros(0, dtype=np.int64), np.zeros((0, 1), dtype=np.int64)
        entries, rows = zip(*found[::-1], strict=True)
        return np.concatenate(entries), np.concatenate(even(list(rows)))

    def each(self, keys: Array, last: int | None = None) -> Iterator[tuple[Array, Array]]:
        """Yield what `find` returns part by part, the rows added last first."""
        if not len(keys) or int(keys.min()) > self._most or int(keys.max()) < self._least:
            return
        self._sort()
        for part in reversed(self._parts):
            first = np.searchsorted(part[:, 0], keys)
            count = np.searchsorted(part[:, 0], keys, side="right") - first
            if last is not None:
                first, count = first + np.maximum(count - last, 0), np.minimum(count, last)
            if not count.any():
                continue
            entry = np.repeat(np.arange(len(keys)), count)
            within = np.arange(len(entry)) - np.repeat(np.cumsum(count) - count, count)
            yield entry, part[first[entry] + within]

    @property
    def rows(self) -> Array:
        """All rows."""
        return np.concatenate(even([*self._parts, *self._added]))

    def clear(self) -> None:
        """Forget all rows."""
        self._parts.clear()
        self._added.clear()
        self._count = 0


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
