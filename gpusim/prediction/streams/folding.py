"""Loops found in streams that were recorded whole.

Compiled code leaves out no iterations. Where instructions of a warp repeat with all their columns,
one period is stored and counted, as for iterations that NumPy's machine leaves out: nothing is
lost, and a long loop is not simulated whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gpusim.prediction.streams.ordering import stable_order
from gpusim.prediction.streams.stream import BlockStream, Loop, WarpStream

Array = np.ndarray[Any, Any]

FEWEST_TIMES = 16  # periods after the first: shorter loops are simulated whole anyway
FEWEST_INSTRUCTIONS = 4_096  # of a block: a smaller one takes no time
LEAST_SAVED = 0.5  # of a block's instructions: else loops of its warps have little in common
MOST_PERIODS = 8  # candidates compared in a section


class _Run(NamedTuple):
    """A section whose first `period` instructions run `times` more."""

    first: int
    period: int
    times: int

    @property
    def saved(self) -> int:
        return self.period * self.times

    @property
    def end(self) -> int:
        return self.first + self.period + self.saved


def folded(block: BlockStream, ids: Sequence[Array], are_barriers: Array) -> BlockStream:
    """Return the stream of a block with repeated instructions as loops; itself if there are few.

    `ids` of each warp's instructions are equal for those with equal columns. `are_barriers` tells
    by pc which instructions wait for other warps, or let them go on. They repeat in loops that all
    warps have alike, or else in none.
    """
    if block.kept < FEWEST_INSTRUCTIONS or block.loops:
        return block
    barriers = [are_barriers[warp.pc] for warp in block.warps]
    found = _meeting(_runs_of_warps(ids), barriers)
    if found is None:
        found = _runs_of_warps([_unlike(*both) for both in zip(ids, barriers, strict=True)])
    saved = sum(run.saved for runs in found for run in runs)
    if saved < LEAST_SAVED * block.kept:
        return block
    known: dict[tuple[int, tuple[_Run, ...]], WarpStream] = {}
    for warp, runs in zip(block.warps, map(tuple, found), strict=True):
        if (id(warp), runs) not in known:
            known[id(warp), runs] = _without(warp, runs)
    both = zip(block.warps, map(tuple, found), strict=True)
    return BlockStream(tuple(known[id(warp), runs] for warp, runs in both))


def is_worth_folding(blocks: Iterable[BlockStream]) -> bool:
    """Return whether none of a launch's blocks is long and without loops.

    Iterations that are left out of some blocks would not compete with those of such a block.
    """
    return all(block.loops or block.kept < FEWEST_INSTRUCTIONS for block in blocks)


def unfolded(block: BlockStream) -> BlockStream:
    """Return the stream of a block with all iterations of its loops."""
    whole = (warp.written_out(lambda _, times: times) for warp in block.warps)
    return BlockStream(tuple(replace(warp, simulated_loops=()) for warp in whole))


def _unlike(ids: Array, are_barriers: Array) -> Array:
    """Return the numbers with one of its own for each barrier."""
    own = np.arange(len(ids)) + len(ids)
    return np.where(are_barriers, own, ids)


def _runs_of_warps(ids: Sequence[Array]) -> list[list[_Run]]:
    """Return the runs of each warp: those of equal warps are found once."""
    known: dict[bytes, list[_Run]] = {}
    found = []
    for own in ids:
        key = own.tobytes()
        if key not in known:
            known[key] = _runs(own)
        found.append(known[key])
    return found


def _runs(ids: Array) -> list[_Run]:
    """Return sections of repeated periods, in order: of those that overlap, what saves most."""
    found: list[_Run] = []
    sections = [(0, len(ids))]
    while sections:
        first, end = sections.pop()
        begin = first
        for run in _best(ids[first:end]):
            run = run._replace(first=first + run.first)
            found.append(run)
            sections.append((begin, run.first))
            begin = run.end
        if begin > first:
            sections.append((begin, end))
    return sorted(found)


def _best(ids: Array) -> list[_Run]:
    """Return the runs of the period that saves most of a section."""
    made = [list(_of_period(ids, period)) for period in _periods(ids)]
    return max(made, key=lambda runs: sum(run.saved for run in runs), default=[])


def _periods(ids: Array) -> list[int]:
    """Return distances at which many instructions occur again, the shortest first.

    An instruction that occurs once in a period is as far from its last occurrence.
    """
    if len(ids) <= FEWEST_TIMES:
        return []
    order = stable_order(ids)
    apart = np.diff(order)[np.diff(ids[order]) == 0]
    counts = np.bincount(apart, minlength=2)
    covered = counts * np.arange(len(counts))
    covered[counts < FEWEST_TIMES] = 0
    most = np.argsort(-covered, kind="stable")[:MOST_PERIODS]
    return sorted(most[covered[most] > 0].tolist())


def _of_period(ids: Array, period: int) -> Iterator[_Run]:
    """Yield the sections that repeat with a period, often enough."""
    is_again = np.concatenate([[False], ids[period:] == ids[:-period], [False]])
    begins, ends = np.flatnonzero(np.diff(is_again)).reshape(-1, 2).T
    times = (ends - begins) // period
    end = 0
    for begin, often in zip(begins.tolist(), times.tolist(), strict=True):
        if often >= FEWEST_TIMES and begin >= end:
            run = _Run(begin, period, often)
            end = run.end
            yield run


def _meeting(found: list[list[_Run]], barriers: list[Array]) -> list[list[_Run]] | None:
    """Return the runs with those that have barriers beginning at one barrier in all warps.

    Runs with barriers then have an equal number among those of their warp, equally many barriers
    before them and in a period, and run equally often. None is returned where they cannot.
    """
    opened = [np.concatenate([[0], np.cumsum(one)]) for one in barriers]
    if not any(_barriers(*both) for both in zip(found, opened, strict=True)):
        return found
    if len({repr(_barriers(*both)) for both in zip(found, opened, strict=True)}) > 1:
        return None
    made = [list(runs) for runs in found]
    for number in _barriers(found[0], opened[0]):
        runs = [one[number] for one in found]
        after = max(int(own[run.first]) for own, run in zip(opened, runs, strict=True))
        begins = [
            max(run.first, int(np.searchsorted(own, after)))
            for own, run in zip(opened, runs, strict=True)
        ]
        times = min(
            (run.end - begin) // run.period - 1 for run, begin in zip(runs, begins, strict=True)
        )
        if times < FEWEST_TIMES:
            return None
        for own, run, begin in zip(made, runs, begins, strict=True):
            own[number] = _Run(begin, run.period, times)
    return made


def _barriers(runs: list[_Run], opened: Array) -> dict[int, int]:
    """Return the barriers in a period of the runs that have some, by the number of the run."""
    counts = [int(opened[run.first + run.period] - opened[run.first]) for run in runs]
    return {number: count for number, count in enumerate(counts) if count}


def _without(warp: WarpStream, runs: Sequence[_Run]) -> WarpStream:
    """Return a warp's stream with one period of each run, as a loop."""
    kept = np.ones(len(warp), dtype=bool)
    for run in runs:
        kept[run.first + run.period : run.end] = False
    new = np.cumsum(kept) - kept
    begins = [(int(new[run.first]), run.period, run.times) for run in runs]
    loops = tuple(Loop(first, first + n, times) for first, n, times in begins)
    return warp.at(np.flatnonzero(kept), loops)
