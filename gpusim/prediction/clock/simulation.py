"""Simulation of an SM's blocks from the first to the last, and its sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gpusim.gpu.device import Device
from gpusim.host.fast import is_wanted
from gpusim.prediction.arithmetic.ticks import TICKS
from gpusim.prediction.clock.multiprocessor import StreamingMultiprocessor
from gpusim.prediction.clock.observation import Observed, Unobserved
from gpusim.prediction.clock.runs import Array, Extrapolated, extrapolated
from gpusim.prediction.clock.spans import SpanObserver
from gpusim.prediction.clock.stalls import STALLS
from gpusim.prediction.clock.steps import WarpSteps
from gpusim.prediction.compiled.evaluator import is_played
from gpusim.prediction.memory import MemoryShare


@dataclass
class Outcome:
    """Result of an SM's simulation: end in cycles, stalls and ticks by pc, summed over warps.

    `block_ends` are the cycles at which blocks left the SM, in order. `extrapolated` iterations of
    loops are included in the stalls, but not in cycles and instructions. `reasons` are the ticks of
    each stall reason by pc, (REASONS,).
    """

    cycles: float
    block_ends: list[float]
    stalls: list[float]
    by_pc: dict[int, float]
    instructions: int
    extrapolated: Extrapolated
    reasons: dict[int, Array] = field(default_factory=dict, compare=False)  # arrays have no `==`


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
    outcome = _outcome(sm)
    for observer in observers:
        observer.end(outcome.cycles)
    return outcome


def _outcome(sm: StreamingMultiprocessor) -> Outcome:
    """Add up the stalls of a completed simulation."""
    all_runs = list(sm.runs.values())
    stalls = [0.0] * len(STALLS)
    by_pc: dict[int, float] = {}
    reasons: dict[int, Array] = {}
    for runs in all_runs:
        runs.add_to(stalls, by_pc, reasons)
    return Outcome(
        cycles=max(sm.end, sm.units.memory.end) / TICKS,
        block_ends=[end / TICKS for end in sm.block_ends],
        stalls=stalls,
        by_pc=by_pc,
        instructions=sum(runs.count * runs.work.instructions for runs in all_runs),
        extrapolated=extrapolated(all_runs),
        reasons=reasons,
    )
