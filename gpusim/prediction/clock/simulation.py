"""Simulation of an SM's blocks from the first to the last, and its sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from gpusim.errors import InputError
from gpusim.gpu.device import Device
from gpusim.host.fast import is_wanted
from gpusim.prediction.arithmetic.grouping import numbers
from gpusim.prediction.arithmetic.ticks import TICKS
from gpusim.prediction.clock.multiprocessor import StreamingMultiprocessor
from gpusim.prediction.clock.observation import Observed, Unobserved
from gpusim.prediction.clock.runs import Extrapolated, Runs, extrapolated
from gpusim.prediction.clock.spans import REASONS, SELECTED, STALLS, WAIT, SpanObserver
from gpusim.prediction.clock.steps import Action
from gpusim.prediction.clock.warp_steps import WarpSteps
from gpusim.prediction.compiled.evaluator import is_played
from gpusim.prediction.memory import MemoryShare
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


MOST_KEPT_STEPS = 25_000  # of some 80 bytes each, with an outcome whose sums nobody has requested


@dataclass
class Outcome:
    """Result of an SM's simulation: end in cycles, stalls and ticks by pc, summed over warps.

    `block_ends` are the cycles at which blocks left the SM, in order. `extrapolated` iterations of
    loops are included in the stalls, but not in cycles and instructions. `runs` are those of the
    warps, until the sums over them are known.
    """

    cycles: float
    block_ends: list[float]
    instructions: int
    extrapolated: Extrapolated
    runs: Sequence[Runs] = field(compare=False, repr=False)

    def let_go(self, most_steps: int = MOST_KEPT_STEPS) -> None:
        """Add up, and keep no runs whose steps take much memory, of an outcome that is kept."""
        if sum(len(runs.steps) for runs in self.runs) > most_steps:
            _ = self._sums
            self.runs = ()

    @property
    def stalls(self) -> list[float]:
        """The warps' ticks by stall reason."""
        return self._sums.stalls

    @property
    def by_pc(self) -> dict[int, float]:
        """The warps' ticks by pc."""
        return self._sums.by_pc

    @property
    def reasons(self) -> dict[int, Array]:
        """The ticks of each stall reason by pc, (REASONS,)."""
        return self._sums.reasons

    @cached_property
    def _sums(self) -> Sums:
        return sums(self.runs)


def simulate(
    device: Device,
    share: MemoryShare,
    blocks: Sequence[Sequence[WarpSteps]],
    resident: int,
    observers: Sequence[SpanObserver] = (),
    *,
    is_steady: bool = False,
) -> Outcome:
    """Simulate blocks on one SM of a device, to the end of the last.

    `blocks[i]` are the warps of the i-th block of this SM; it holds `resident` blocks at a time.
    `is_steady` leaves out the cold-start effects of the first wave.
    """
    watch = Observed(observers) if observers else Unobserved()
    sm = StreamingMultiprocessor(device, share, blocks, resident, watch, is_steady=is_steady)
    for observer in observers:
        observer.begin(len(blocks))
    if not is_wanted() or observers or not is_played(sm):
        from gpusim.prediction.clock.processes import play  # it imports SimPy: 20 ms

        play(sm)
    if len(sm.block_ends) < len(blocks):
        raise InputError(
            "warps wait for mbarrier phases that do not end in this order of arrivals: "
            "their time is not simulated"
        )
    outcome = _outcome(sm)
    for observer in observers:
        observer.end(outcome.cycles)
    return outcome


def _outcome(sm: StreamingMultiprocessor) -> Outcome:
    """Return the sums of a completed simulation."""
    all_runs = list(sm.runs.values())
    return Outcome(
        cycles=max(sm.end, sm.units.memory.end) / TICKS,
        block_ends=[end / TICKS for end in sm.block_ends],
        instructions=sum(runs.count * runs.work.instructions for runs in all_runs),
        extrapolated=extrapolated(all_runs),
        runs=all_runs,
    )
