"""Where the time of the warps that ran a plan went, and what rounds that were left out take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from gpusim.prediction.clock.costs import TICKS
from gpusim.prediction.clock.stalls import SELECTED, STALLS, WAIT
from gpusim.prediction.clock.steps import MARKS, Action, WarpPlan


@dataclass(frozen=True)
class LeftOut:
    """What the rounds of laps that were not played take: cycles of the longest warp, and of all.

    `spread` is how far the rate in the second half of the rounds lies from that in the first.
    """

    longest: float = 0.0
    warps: float = 0.0
    spread: float = 0.0


class Runs:
    """How many warps ran a plan, and the ticks that they waited, by reason, before each step."""

    def __init__(self, plan: WarpPlan) -> None:
        self.plan = plan
        self.count = 0
        self.spent = [[0] * len(plan.steps) for _ in STALLS]
        self.marks = [0] * MARKS * len(plan.laps)

    def add_to(self, stalls: list[float], by_pc: dict[int, float]) -> None:
        """Add what the warps' time went to, rounds that were left out like those of their lap."""
        steps, count = self.plan.steps, self.count
        weights = np.ones(len(steps))
        for lap in self.plan.laps:
            weights[lap.begin : lap.end] += lap.lap.left / lap.rounds
        waited = np.array(self.spent) * weights
        before = waited.sum(axis=0)
        waited[SELECTED] += count * weights * [step.slot for step in steps]
        waited[WAIT] += (
            count
            * weights
            * [0 if step.action is Action.BARRIER else step.gap - step.slot for step in steps]
        )
        for reason, ticks_waited in enumerate(waited.sum(axis=1).tolist()):
            stalls[reason] += ticks_waited
        for step, spent in zip(steps, before.tolist(), strict=True):
            by_pc[step.pc] = by_pc.get(step.pc, 0.0) + spent
        for pc, spent in self.plan.charges.items():
            by_pc[pc] = by_pc.get(pc, 0.0) + count * spent
        for lap in self.plan.laps:
            for pc, spent in lap.charges.items():
                by_pc[pc] = by_pc.get(pc, 0.0) + count * spent * lap.lap.left / lap.rounds


@dataclass
class _Rate:
    """Ticks that warps took for so many rounds, in the first half of those noted and the second."""

    ticks: tuple[int, int] = (0, 0)
    rounds: tuple[int, int] = (0, 0)

    def add(self, runs: Runs, place: int) -> None:
        """Add what the warps of a plan took for its lap at a place."""
        lap = runs.plan.laps[place]
        begin, middle, end = runs.marks[MARKS * place : MARKS * (place + 1)]
        first, second = lap.middle * runs.count, (lap.rounds - lap.middle) * runs.count
        self.ticks = self.ticks[0] + middle - begin, self.ticks[1] + end - middle
        self.rounds = self.rounds[0] + first, self.rounds[1] + second

    @property
    def cycles(self) -> float:
        """Cycles that a warp takes for a round."""
        return sum(self.ticks) / sum(self.rounds) / TICKS

    @property
    def spread(self) -> float:
        """How far the second half's rate lies from the first's, as a part."""
        first, second = (t / r for t, r in zip(self.ticks, self.rounds, strict=True))
        return abs(second / first - 1)


def left_out(all_runs: Iterable[Runs]) -> LeftOut:
    """Return what rounds that were left out take, at the rates of those that were played.

    A warp's n-th lap has the rate of all n-th laps of which as many rounds are left out. One of
    which too few rounds are played for a rate has that of the longest.
    """
    rates: dict[tuple[int, int], _Rate] = {}
    for runs in all_runs:
        for place, of_plan in enumerate(runs.plan.laps):
            if of_plan.is_marked:
                key = of_plan.lap.left, of_plan.lap.number
                rates.setdefault(key, _Rate()).add(runs, place)
    if not rates:
        return LeftOut()
    most = rates[max(rates)]
    cycles: list[float] = []
    warps = 0.0
    for runs in all_runs:
        laps = [of_plan.lap for of_plan in runs.plan.laps]
        mine = sum(lap.left * rates.get((lap.left, lap.number), most).cycles for lap in laps)
        cycles.append(mine)
        warps += runs.count * mine
    return LeftOut(max(cycles), warps, most.spread)
