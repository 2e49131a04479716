"""Stretches of several blocks in one table: which blocks differ only in their addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from gpusim.prediction.streams.stretches import COLUMNS, Stretches
from gpusim.typing import Array


class Columns(dict[str, Array]):
    """The columns of stretches, one after the other; each is joined when it is requested."""

    def __init__(self, parts: Sequence[Stretches]) -> None:
        super().__init__()
        self._parts = parts
        self.steps = max((one.steps for one in parts), default=1)

    def __missing__(self, name: str) -> Array:
        found = [getattr(one, name) for one in self._parts]
        self[name] = found[0] if len(found) == 1 else _joined(found)
        return self[name]

    def at(self, which: Array) -> Stretches:
        """Return some of the rows."""
        return Stretches(**{name: self[name][which] for name in COLUMNS}, steps=self.steps)


@dataclass(frozen=True)
class Table:
    """Stretches of blocks `numbers`, block by block: those of the i-th end before `ends[i + 1]`.

    Each is one of the `rows` of the columns.
    """

    columns: Columns
    rows: Array
    numbers: Array
    ends: Array

    @classmethod
    def of(cls, found: Mapping[int, Stretches]) -> Table:
        """Return the table of blocks, in ascending order."""
        numbers = sorted(found)
        parts = [found[b] for b in numbers]
        ends = np.cumsum([0, *map(len, parts)])
        return cls(Columns(parts), np.arange(ends[-1]), np.array(numbers), ends)

    def by_pc(self) -> Iterator[tuple[int, Table]]:
        """Yield the table of each instruction."""
        pcs = self.columns["pc"][self.rows]
        order = by_number(pcs)
        whose = np.repeat(np.arange(len(self.numbers)), np.diff(self.ends))[order]
        rows, pcs = self.rows[order], pcs[order]
        ends = [*np.flatnonzero(np.diff(pcs, prepend=-1)).tolist(), len(pcs)]
        for begin, end in pairwise(ends):
            of_blocks = np.searchsorted(whose[begin:end], np.arange(len(self.numbers) + 1))
            yield int(pcs[begin]), Table(self.columns, rows[begin:end], self.numbers, of_blocks)

    @cached_property
    def shapes(self) -> Array:
        """A number for each block: equal for those that differ only in their addresses."""
        known: dict[bytes | int, int] = {}
        counts = np.diff(self.ends)
        is_alone = (np.bincount(counts) == 1)[counts]
        names = ("pc", "begin", "end", "times", "stride")
        pc, begin, end, times, stride = (self.columns[name][self.rows] for name in names)
        shapes = np.stack([pc, end - begin, times, stride], axis=1)
        blocks = zip(self.ends.tolist(), self.ends[1:].tolist(), is_alone.tolist(), strict=False)
        keys = (b - a if alone else shapes[a:b].tobytes() for a, b, alone in blocks)
        return np.array([known.setdefault(one, len(known)) for one in keys])

    def of_block(self, position: int) -> Stretches:
        """Return the stretches of the block at a position."""
        rows = self.rows[self.ends[position] : self.ends[position + 1]]
        columns = {name: self.columns[name][rows] for name in COLUMNS}
        return Stretches(**columns, steps=self.columns.steps)

    def column(self, name: str, positions: Array, most: int | None = None) -> Array:
        """Return a column of blocks of one shape, shaped (blocks, stretches); at most the first."""
        size = np.arange(self.ends[positions[0] + 1] - self.ends[positions[0]])[:most]
        return np.asarray(self.columns[name][self.rows[self.ends[positions][:, None] + size]])


def joined(parts: Sequence[Stretches]) -> Stretches:
    """Return stretches one after the other."""
    columns = Columns(parts)
    return Stretches(**{name: columns[name] for name in COLUMNS}, steps=columns.steps)


def _joined(columns: Sequence[Array]) -> Array:
    """Return columns one after the other, collapsed to a scalar if all parts agree."""
    values = {int(one[0]) if len(one) and not one.strides[0] else None for one in columns}
    if len(values) == 1 and None not in values:
        return np.broadcast_to(columns[0][0], sum(map(len, columns)))
    return np.concatenate(columns)


def by_number(numbers: Array) -> Array:
    """Return the order of numbers, stable: by radix if they are small."""
    return np.argsort(
        numbers.astype(np.min_scalar_type(int(numbers.max(initial=0)))), kind="stable"
    )
