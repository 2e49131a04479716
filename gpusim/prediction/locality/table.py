"""Stretches of several blocks in one table: which blocks differ only in their addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from gpusim.prediction.streams.stretches import COLUMNS, Stretches

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Table:
    """The stretches of blocks `numbers`, block by block: those of the i-th end at `ends[i + 1]`."""

    rows: Stretches
    numbers: Array
    ends: Array

    @classmethod
    def of(cls, found: Mapping[int, Stretches]) -> Table:
        """Return the table of blocks, in ascending order."""
        numbers = sorted(found)
        parts = [found[b] for b in numbers]
        return cls(joined(parts), np.array(numbers), np.cumsum([0, *map(len, parts)]))

    def by_pc(self) -> Iterator[tuple[int, Table]]:
        """Yield the table of each instruction."""
        order = by_number(self.rows.pc)
        whose = np.repeat(np.arange(len(self.numbers)), np.diff(self.ends))[order]
        pcs = self.rows.pc[order]
        ends = [*np.flatnonzero(np.diff(pcs, prepend=-1)).tolist(), len(pcs)]
        for begin, end in pairwise(ends):
            of_blocks = np.searchsorted(whose[begin:end], np.arange(len(self.numbers) + 1))
            yield int(pcs[begin]), Table(self.rows.at(order[begin:end]), self.numbers, of_blocks)

    @cached_property
    def shapes(self) -> Array:
        """A number for each block: equal for those that differ only in their addresses."""
        rows, known = self.rows, dict[bytes, int]()
        columns = np.stack([rows.pc, rows.end - rows.begin, rows.times, rows.stride], axis=1)
        shapes = (columns[begin:end].tobytes() for begin, end in pairwise(self.ends.tolist()))
        return np.array([known.setdefault(one, len(known)) for one in shapes])

    def of_block(self, position: int) -> Stretches:
        """Return the stretches of the block at a position."""
        return self.rows.at(slice(self.ends[position], self.ends[position + 1]))

    def column(self, name: str, positions: Array) -> Array:
        """Return a column of blocks of one shape, shaped (blocks, stretches)."""
        size = np.arange(self.ends[positions[0] + 1] - self.ends[positions[0]])
        return np.asarray(getattr(self.rows, name)[self.ends[positions][:, None] + size])


def joined(parts: Sequence[Stretches]) -> Stretches:
    """Return stretches one after the other."""
    columns = {n: np.concatenate([getattr(one, n) for one in parts]) for n in COLUMNS}
    return Stretches(**columns, steps=max(one.steps for one in parts))


def by_number(numbers: Array) -> Array:
    """Return the order of numbers, stable: by radix if they are small."""
    return np.argsort(
        numbers.astype(np.min_scalar_type(int(numbers.max(initial=0)))), kind="stable"
    )
