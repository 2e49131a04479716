"""Sums of a simulation over its warps: ticks by stall reason, by pc, and by both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpusim.prediction.arithmetic.grouping import numbers
from gpusim.prediction.clock.runs import Runs
from gpusim.prediction.clock.stalls import REASONS, SELECTED, STALLS, WAIT
from gpusim.prediction.clock.steps import Action
from gpusim.typing import Array


@dataclass(frozen=True)
class Sums:
    """The warps' ticks by stall reason; by pc; and the ticks of each reason by pc, (REASONS,)."""

    stalls: list[float]
    by_pc: dict[int, float]
    reasons: dict[int, Array]


def sums(all_runs: Sequence[Runs]) -> Sums:
    """Return the sums over warps."""
    if all_runs[0].by_pc:
        return _sums_by_pc(all_runs)
    stalls, by_pc, reasons = [0.0] * len(STALLS), dict[int, float](), dict[int, Array]()
    for runs in all_runs:
        stalls = [before + ticks for before, ticks in zip(stalls, runs.stalls, strict=True)]
        runs.add_to(by_pc)
        runs.add_reasons_to(reasons)
    return Sums(stalls, by_pc, reasons)


def _sums_by_pc(all_runs: Sequence[Runs]) -> Sums:
    """Return the sums of warps whose ticks were added up by pc: of whole numbers, in any order."""
    # NumPy's implicit conversion of integers aborts the process when out of memory.
    waited = np.array(all_runs[0].spent, dtype=float).reshape(-1, REASONS)
    pc, slot, gap, action = (
        np.concatenate([runs.work.steps.column(name) for runs in all_runs])
        for name in ("pc", "slot", "gap", "action")
    )
    lengths = [len(runs.steps) for runs in all_runs]
    times = np.repeat([float(runs.count) for runs in all_runs], lengths)
    after = np.where(action == Action.BARRIER, 0, gap - slot)
    table = waited.copy()
    table[:, SELECTED] += np.bincount(pc, times * slot, len(table))
    table[:, WAIT] += np.bincount(pc, times * after, len(table))
    by_pc = dict.fromkeys(_in_order(all_runs, pc), 0.0)
    for runs in all_runs:
        for at, ticks in runs.work.charges.items():
            by_pc[at] += runs.count * ticks
    pcs = numbers(pc)
    for at, ticks in zip(pcs, waited[pcs].sum(axis=1).tolist(), strict=True):
        by_pc[at] += ticks
    return Sums(table.sum(axis=0).tolist(), by_pc, {at: table[at] for at in pcs})


def _in_order(all_runs: Sequence[Runs], pc: Array) -> list[int]:
    """Return the pcs in the order of warps, those of a warp's steps before those without a step.

    `pc` is that of each step, warp after warp.
    """
    firsts = np.full(int(pc.max()) + 1, -1)
    firsts[pc[::-1]] = np.arange(len(pc))[::-1]
    pcs = np.flatnonzero(firsts >= 0)
    begun = {at: (first, 0) for at, first in zip(pcs.tolist(), firsts[pcs].tolist(), strict=True)}
    end = 0
    for runs in all_runs:
        end += len(runs.steps)
        for number, at in enumerate(runs.work.charges, 1):
            behind = end - 1, number
            if at not in begun or begun[at] > behind:
                begun[at] = behind
    return sorted(begun, key=begun.__getitem__)
