"""Stall accounting of warps with equal steps, and durations of extrapolated iterations."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, MutableSequence, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpusim.prediction.arithmetic.ticks import TICKS
from gpusim.prediction.clock.spans import REASONS, SELECTED, WAIT
from gpusim.prediction.clock.steps import MARKS, Step
from gpusim.prediction.clock.warp_steps import WarpSteps
from gpusim.typing import Array


@dataclass(frozen=True)
class Extrapolated:
    """Duration of extrapolated iterations, in cycles: of the longest warp, and of all warps.

    `spread` is the relative difference between the rates of the second and the first half.
    """

    longest: float = 0.0
    warps: float = 0.0
    spread: float = 0.0


class Runs:
    """Warps with equal steps: their number, and the ticks stalled before each step, by reason.

    All reasons of a step are adjacent. If they are `by_pc`, `spent` is that of all warps on the SM,
    by the pc of the step. `marks` are sums over warps of the times at each mark.
    """

    steps: Sequence[Step]
    tags: int
    count: int
    by_pc: bool
    spent: MutableSequence[int]
    marks: list[int]

    def __init__(self, work: WarpSteps, spent_by_pc: MutableSequence[int] | None) -> None:
        self.work = work
        self.steps = work.steps
        self.tags = work.tags
        self.count = 0
        self.by_pc = spent_by_pc is not None
        self.spent = zeros(len(work.steps)) if spent_by_pc is None else spent_by_pc
        self.marks = [0] * MARKS * len(work.loops)

    @cached_property
    def _waited(self) -> Array:
        """Ticks of the warps before each step by reason, with extrapolated iterations of loops."""
        # NumPy's implicit conversion of integers aborts the process when out of memory.
        ticks = np.array(self.spent, dtype=float)
        waited = np.ascontiguousarray(ticks.reshape(-1, REASONS).T)
        return np.asarray(waited * self.work.weights)

    @cached_property
    def _all(self) -> Array:
        """The same with the steps' own ticks, (REASONS, steps)."""
        whole = self._waited.copy()
        whole[SELECTED] += self.count * self.work.weights * self.work.slots
        whole[WAIT] += self.count * self.work.weights * self.work.waits
        return whole

    @property
    def stalls(self) -> list[float]:
        """The warps' ticks by reason, with extrapolated iterations of their loops."""
        return [float(ticks) for ticks in self._all.sum(axis=1)]

    def add_to(self, by_pc: dict[int, float]) -> None:
        """Add the warps' time by pc, with extrapolated iterations of their loops."""
        count, waited = self.count, self._waited.sum(axis=0)
        pcs, firsts, places = self.work.pcs
        sums = np.array([by_pc.get(pc, 0.0) for pc in pcs.tolist()])
        np.add.at(sums, places, waited)
        order = np.argsort(firsts)
        by_pc.update(zip(pcs[order].tolist(), sums[order].tolist(), strict=True))
        for pc, spent in self.work.charges.items():
            by_pc[pc] = by_pc.get(pc, 0.0) + count * spent
        for marked in self.work.loops:
            extrapolated = marked.loop.extrapolated
            for pc, spent in marked.charges.items():
                by_pc[pc] = by_pc.get(pc, 0.0) + count * spent * extrapolated / marked.iterations

    def add_reasons_to(self, reasons: dict[int, Array]) -> None:
        """Add the warps' ticks of each stall reason by pc, (REASONS,)."""
        pcs, _, places = self.work.pcs
        table = np.array([np.bincount(places, row, len(pcs)) for row in self._all]).T
        for pc, row in zip(pcs.tolist(), table, strict=True):
            reasons[pc] = reasons[pc] + row if pc in reasons else row


def zeros(rows: int) -> MutableSequence[int]:
    """Return no ticks for each reason of some steps or pcs."""
    return array("q", [0]) * (REASONS * rows)


def by_pc_if_exact(works: Collection[WarpSteps]) -> MutableSequence[int] | None:
    """Return a table of the ticks of warps by pc, None where these have to be kept by step.

    Without extrapolated iterations all sums are of whole numbers, the same in any order.
    """
    if any(work.loops for work in works):
        return None
    return zeros(1 + max(int(work.steps.column("pc").max()) for work in works))


@dataclass
class _Rate:
    """Ticks and iterations of warps, in the first and the second half of a marked loop."""

    ticks: tuple[int, int] = (0, 0)
    iterations: tuple[int, int] = (0, 0)

    def add(self, runs: Runs, place: int) -> None:
        """Add the warps' time in their loop at an index."""
        marked = runs.work.loops[place]
        begin, middle, end = runs.marks[MARKS * place : MARKS * (place + 1)]
        first = marked.middle * runs.count
        second = (marked.iterations - marked.middle) * runs.count
        self.ticks = self.ticks[0] + middle - begin, self.ticks[1] + end - middle
        self.iterations = self.iterations[0] + first, self.iterations[1] + second

    @property
    def cycles(self) -> float:
        """Cycles per iteration of a warp."""
        return sum(self.ticks) / sum(self.iterations) / TICKS

    @property
    def spread(self) -> float:
        """Relative difference between the rates of the two halves."""
        first, second = (t / n for t, n in zip(self.ticks, self.iterations, strict=True))
        return abs(second / first - 1)


def extrapolated(all_runs: Iterable[Runs]) -> Extrapolated:
    """Return the duration of extrapolated iterations, at the rates of simulated ones.

    A warp's n-th loop has the mean rate of all n-th loops with as many extrapolated iterations. A
    loop with too few simulated iterations has the rate of the longest.
    """
    rates: dict[tuple[int, int], _Rate] = {}
    for runs in all_runs:
        for place, marked in enumerate(runs.work.loops):
            if marked.is_marked:
                key = marked.loop.extrapolated, marked.loop.number
                rates.setdefault(key, _Rate()).add(runs, place)
    if not rates:
        return Extrapolated()
    most = rates[max(rates)]
    cycles: list[float] = []
    warps = 0.0
    for runs in all_runs:
        loops = [marked.loop for marked in runs.work.loops]
        mine = sum(
            loop.extrapolated * rates.get((loop.extrapolated, loop.number), most).cycles
            for loop in loops
        )
        cycles.append(mine)
        warps += runs.count * mine
    return Extrapolated(max(cycles), warps, most.spread)
