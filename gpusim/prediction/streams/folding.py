"""Detection of loops in completely recorded streams.

Compiled code leaves out no iterations. Where instructions of a warp repeat with all their columns,
one period is stored with its count, without loss, and a long loop is simulated in part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gpusim.prediction.streams.ordering import stable_order
from gpusim.prediction.streams.stream import BlockStream, Loop, WarpStream
from gpusim.typing import Array

FEWEST_TIMES = 16  # periods after the first: shorter loops are simulated whole anyway
FEWEST_INSTRUCTIONS = 4_096  # of a block: a smaller one takes no time
LEAST_SAVED = 0.5  # of a block's instructions: else loops of its warps have little in common
MOST_PERIODS = 8  # candidates compared in a section


class UnsteadyError(Exception):
    """Omitted iterations may differ from the recorded ones before and after."""


class Gap(NamedTuple):
    """Omitted instructions: those `length` before the place `at` run `times` more times there.

    Twice `kept` such iterations precede and follow.
    """

    at: int
    length: int
    times: int
    kept: int

    @property
    def omitted(self) -> int:
        """The number of omitted instructions."""
        return self.length * self.times


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


_Runs = tuple[tuple[_Run, int], ...]  # with the repetitions in gaps


def folded(
    block: BlockStream, are_barriers: Array, gaps: Sequence[Sequence[Gap]] = ()
) -> BlockStream:
    """Return the stream of a block with repeated instructions as loops; itself if there are few.

    Its warps have one table. `are_barriers` tells by pc which instructions wait for other warps, or
    let them go on. They repeat in loops that all warps have alike, or else in none. At the `gaps`
    of each warp instructions are omitted: they are part of loops, or else written out.
    """
    omitted = sum(gap.omitted for own in gaps for gap in own)
    if block.kept + omitted < FEWEST_INSTRUCTIONS or block.loops:
        return written_out(block, gaps)
    ids = [warp.numbers for warp in block.warps]
    found = _runs_of_warps(ids)
    rows = are_barriers[block.warps[0].table.columns["pc"]]
    if rows.any():
        barriers = [rows.take(own) for own in ids]
        found = _meeting(found, barriers) or _runs_of_warps(
            [_unlike(*both) for both in zip(ids, barriers, strict=True)]
        )
    often = [_often(*both) for both in zip(found, gaps or [()] * len(found), strict=True)]
    if any(one is None for one in often):
        return folded(written_out(block, gaps), are_barriers)
    saved = sum(run.saved for runs in found for run in runs) + omitted
    if saved < LEAST_SAVED * (block.kept + omitted):
        return written_out(block, gaps)
    known: dict[tuple[int, _Runs], WarpStream] = {}
    keys = [(id(warp), runs or ()) for warp, runs in zip(block.warps, often, strict=True)]
    for warp, key in zip(block.warps, keys, strict=True):
        if key not in known:
            known[key] = _without(warp, key[1])
    return BlockStream(tuple(known[key] for key in keys))


def _often(runs: Sequence[_Run], gaps: Sequence[Gap]) -> _Runs | None:
    """Return the runs with their repetitions in gaps; None for a gap outside all runs."""
    more = [0] * len(runs)
    for gap in gaps:
        inside = [n for n, run in enumerate(runs) if run.first + run.period <= gap.at <= run.end]
        if not inside or gap.omitted % runs[inside[0]].period:
            return None
        more[inside[0]] += gap.omitted // runs[inside[0]].period
    return tuple(zip(runs, more, strict=True))


def steady(block: BlockStream, gaps: Sequence[Sequence[Gap]]) -> BlockStream:
    """Return the stream of a block with equal instructions on both sides of gaps.

    The first ones after a gap lack loads before them. UnsteadyError for differences further on.
    """
    warps = []
    for warp, own in zip(block.warps, gaps, strict=True):
        numbers = warp.numbers.copy()
        for at, each, _, kept in own:
            length = each * kept
            before = numbers[at - length : at]
            if not np.array_equal(before, numbers[at + length : at + 2 * length]):
                raise UnsteadyError
            numbers[at : at + length] = before
        warps.append(replace(warp, numbers=numbers) if own else warp)
    return BlockStream(tuple(warps))


def written_out(block: BlockStream, gaps: Sequence[Sequence[Gap]]) -> BlockStream:
    """Return the stream of a block with the omitted instructions in its gaps."""
    if not any(gaps):
        return block
    warps = []
    for warp, own in zip(block.warps, gaps, strict=True):
        done, parts = 0, []
        for gap in own:
            parts += [warp.numbers[done : gap.at]]
            parts += [np.tile(warp.numbers[gap.at - gap.length : gap.at], gap.times)]
            done = gap.at
        numbers = np.concatenate([*parts, warp.numbers[done:]])
        warps.append(replace(warp, numbers=numbers) if own else warp)
    return BlockStream(tuple(warps))


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
    own = np.arange(len(ids)) + 1 + int(ids.max(initial=0))
    return np.where(are_barriers, own, ids)


def _runs_of_warps(ids: Sequence[Array]) -> list[list[_Run]]:
    """Return the runs of each warp, found once for equal warps."""
    known: dict[bytes, list[_Run]] = {}
    found = []
    for own in ids:
        key = own.tobytes()
        if key not in known:
            known[key] = _runs(own)
        found.append(known[key])
    return found


def _runs(ids: Array) -> list[_Run]:
    """Return sections of repeated periods, in order: of overlapping ones, the largest saving."""
    found: list[_Run] = []
    sections = [(0, len(ids))]
    apart = _apart(ids)
    while sections:
        first, end = sections.pop()
        begin = first
        for run in _best(ids[first:end], apart[first:end]):
            run = run._replace(first=first + run.first)
            found.append(run)
            sections.append((begin, run.first))
            begin = run.end
        if begin > first:
            sections.append((begin, end))
    return sorted(found)


def _apart(ids: Array) -> Array:
    """Return how far each instruction is from the last one like it; their number if none is."""
    order = stable_order(ids)
    ordered = ids.take(order)
    again = 1 + np.flatnonzero(ordered[1:] == ordered[:-1])
    at = order.take(again)
    apart = np.full(len(order), len(order), dtype=np.int32)
    apart[at] = at - order.take(again - 1)
    return apart


def _best(ids: Array, apart: Array) -> list[_Run]:
    """Return the runs of the period that saves most of a section, of the shortest such one.

    A period saves at most the instructions that are like the one a period before.
    """
    best: list[_Run] = []
    most = 0, 0
    again = {period: ids[period:] == ids[:-period] for period in _periods(apart)}
    counts = {period: np.count_nonzero(is_again) for period, is_again in again.items()}
    for period in sorted(again, key=lambda period: -counts[period]):
        if counts[period] < most[0]:
            break
        runs = list(_of_period(again[period], period))
        saved = sum(run.saved for run in runs)
        if runs and (saved, -period) > most:
            best, most = runs, (saved, -period)
    return best


def _periods(apart: Array) -> list[int]:
    """Return distances at which many instructions occur again, the shortest first.

    An instruction that occurs once in a period is as far from its last occurrence.
    """
    # The instructions of a run but those of its first period are no further apart than a period.
    longest = len(apart) // (1 + FEWEST_TIMES)
    if np.count_nonzero(apart <= longest) < FEWEST_TIMES:
        return []
    counts = np.bincount(apart[apart <= np.arange(len(apart))])
    often = np.flatnonzero(counts >= FEWEST_TIMES)
    most = often[np.argsort(-often * counts[often], kind="stable")[:MOST_PERIODS]]
    return sorted(most[most <= longest].tolist())


def _of_period(is_again: Array, period: int) -> Iterator[_Run]:
    """Yield the sections that repeat with a period, often enough.

    `is_again` tells of the instructions after the first period whether they are like the one a
    period before.
    """
    changes = 1 + np.flatnonzero(is_again[1:] != is_again[:-1])
    limits = np.append(changes if not is_again[0] else np.append(0, changes), len(is_again))
    begins = limits[:-1:2]
    times = (limits[1::2] - begins) // period
    some = np.flatnonzero(times >= FEWEST_TIMES)
    end = 0
    for begin, often in zip(begins[some].tolist(), times[some].tolist(), strict=True):
        if begin >= end:
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


def _without(warp: WarpStream, runs: _Runs) -> WarpStream:
    """Return a warp's stream with one period of each run, as a loop."""
    kept, loops, done, length = [], [], 0, 0
    for run, further in runs:
        kept.append(warp.numbers[done : run.first + run.period])
        length += len(kept[-1])
        loops.append(Loop(length - run.period, length, run.times + further))
        done = run.end
    numbers = np.concatenate([*kept, warp.numbers[done:]])
    return WarpStream(warp.table, numbers, tuple(loops))
