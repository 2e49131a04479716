"""Steps of single warps as sections: consecutive steps of one warp without a barrier.

Compiled code runs a warp to its next barrier: what holds for all of a section is worked out once.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpusim.launch.events import Placement, Steps
from gpusim.prediction.streams.ordering import ranges, stable_order, starts
from gpusim.typing import Array

_NONE = np.zeros((0, 2), dtype=np.int64)


@dataclass(frozen=True)
class Sections:
    """Sections of steps in their order: the `first` step, `counts` of steps, and the `rows`.

    `gaps` are the numbers of omitted steps before.
    """

    first: Array
    counts: Array
    rows: Array
    gaps: Array

    @classmethod
    def of(cls, rows: Array, borders: Array) -> Sections:
        """Return the sections of steps by their rows, also divided at some `borders`."""
        is_first = np.zeros(len(rows) + 1, dtype=bool)
        is_first[:1] = is_first[borders] = True
        is_first[1:-1] |= rows[1:] != rows[:-1]
        first = np.flatnonzero(is_first[:-1])
        counts = np.diff(first, append=len(rows))
        return cls(first, counts, rows[first].astype(np.int64), np.zeros_like(first))

    def __len__(self) -> int:
        return len(self.first)

    def at(self, which: Array) -> Sections:
        """Return some of the sections."""
        columns = (self.first, self.counts, self.rows, self.gaps)
        return Sections(*(column[which] for column in columns))

    def steps(self) -> Array:
        """Return the numbers of all steps."""
        return ranges(self.first, self.counts)


class Ran(NamedTuple):
    """Sections of some steps in compiled code, and the `opened` barriers, as in `Steps`."""

    sections: Sections
    opened: Array

    @classmethod
    def of(cls, steps: Steps) -> Ran:
        """Return the sections of some steps."""
        if steps.omitted is None:
            return cls(Sections.of(steps.row, steps.opened[:, 0]), steps.opened)
        at, period, times, *_ = steps.omitted
        sections = Sections.of(steps.row, np.append(steps.opened[:, 0], at))
        sections.gaps[np.searchsorted(sections.first, at)] = period * times
        return cls(sections, steps.opened)


def begun_sections(parts: Sequence[Ran], placement: Placement) -> tuple[Sections, Array]:
    """Return the sections of steps in compiled code, and each one's begin time.

    A time is the number of the warp's instructions before. The warps of a block have run equally
    many when a barrier opens.
    """
    counts = [int(one.sections.counts.sum()) for one in parts]
    begins = list(itertools.accumulate(counts, initial=0))
    both = list(zip(parts, begins, strict=False))
    none = np.zeros(0, dtype=np.int64)
    sections = Sections(
        np.concatenate([none, *(one.sections.first + begin for one, begin in both)]),
        np.concatenate([none, *(one.sections.counts for one, _ in both)]),
        np.concatenate([none, *(one.sections.rows for one, _ in both)]),
        np.concatenate([none, *(one.sections.gaps for one, _ in both)]),
    )
    opened = np.concatenate([_NONE, *(one.opened + np.array([begin, 0]) for one, begin in both)])
    return sections, begin_times(placement, sections, opened)


def begin_times(placement: Placement, sections: Sections, opened: Array) -> Array:
    """Return the time at which each section begins; `opened` are steps before, and the block."""
    warps, far = placement.warps_per_block, 1 + int(sections.counts.sum())
    block = sections.rows // warps
    # Intervals between openings are numbered through all blocks.
    openings = np.sort(opened[:, 1] * far + opened[:, 0])
    of_block = np.searchsorted(openings, np.arange(len(placement.blocks) + 1) * far)
    of_block += np.arange(len(of_block))
    interval = block + np.searchsorted(openings, block * far + sections.first, side="right")
    order = stable_order(sections.rows)
    begins = starts(sections.rows[order], interval[order])
    counts = sections.counts[order] + sections.gaps[order]
    before = np.cumsum(counts) - counts + sections.gaps[order]
    number = np.empty_like(before)
    starting = before[begins] - sections.gaps[order[begins]]
    number[order] = before - np.repeat(starting, np.diff(begins, append=len(order)))
    firsts = order[begins]
    ran = np.add.reduceat(counts, begins) if len(begins) else begins
    longest = np.zeros(int(of_block[-1]), dtype=np.int64)
    np.maximum.at(longest, interval[firsts], ran)
    done = np.cumsum(longest) - longest
    done -= np.repeat(done[of_block[:-1]], np.diff(of_block))
    return np.asarray(done[interval] + number)
