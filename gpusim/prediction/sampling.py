"""Sampled simulation of one SM: warm-up, steady state and tail of its blocks.

Waves of equal blocks reach a steady duration, and so do iterations of a loop; both are extrapolated
at the measured rate. Warm-up and tail are simulated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean

from gpusim.gpu.device import Device
from gpusim.host.garbage import uncollected
from gpusim.prediction.clock.simulation import Outcome, simulate
from gpusim.prediction.clock.spans import LG, MATH, MIO, NOT_SELECTED, SpanObserver
from gpusim.prediction.memory import MemoryShare, slowest_excess_cycles
from gpusim.prediction.workload import Budget, Workload

# If the second half of the waves has a rate that differs from the first half's by more, their
# number is doubled, and likewise that of loop iterations, within the budget of instructions.
SETTLED = 0.01

# Waves that are simulated at least: the first and the last are no measure, two make a rate.
FEWEST_WAVES = 4

# Stalls by contention between warps. Above this fraction of warp time, old warps run first and
# young ones after them, each almost as fast as a lone warp.
KEPT_BY_OTHERS = (NOT_SELECTED, MATH, MIO, LG)
CONTENDED = 0.2


@dataclass(frozen=True)
class SmTime:
    """An SM's work, simulated or extrapolated: cycles, and the simulation's `outcome`.

    `simulated_cycles` leave out extrapolated iterations. `blocks` of its blocks were simulated,
    with `iterations` of the longest loop: `instructions` warp instructions. `spread` is the
    relative change of a rate in the last simulated section; `iterations_spread` that of iterations
    alone.
    """

    cycles: float
    simulated_cycles: float
    outcome: Outcome
    blocks: int
    instructions: int
    iterations: int
    spread: float
    iterations_spread: float

    @property
    def is_contended(self) -> bool:
        """Whether warps mostly stall by contention."""
        stalls = self.outcome.stalls
        kept = sum(stalls[reason] for reason in KEPT_BY_OTHERS)
        return kept > CONTENDED * sum(stalls)


@uncollected()
def simulate_all(
    device: Device,
    share: MemoryShare,
    work: Workload,
    resident: int,
    observers: Sequence[SpanObserver] = (),
    *,
    demand: float = 0.0,
) -> SmTime:
    """Return the time of an SM for all its blocks, with `resident` of them at a time.

    `demand` is the service demand of a block at the busiest unit, in cycles: no steady state has
    less between blocks (Denning and Buzen 1978), though queues of stores and atomics hide it from
    the simulated blocks.
    """

    def of_iterations(
        most: int, observers: Sequence[SpanObserver] = (), *, evenly: bool = False
    ) -> SmTime:
        def of_blocks(count: int) -> Outcome:
            blocks = work.some(count, most, first=resident, evenly=evenly)
            return simulate(device, share, blocks, resident, observers)

        return _all_waves(of_blocks, work, resident, _waves(work, resident, most), demand)

    longest = work.longest_loop
    done = _settled(partial(of_iterations, observers=observers), longest, work.budget)
    if done.iterations < longest and done.is_contended:
        done = _with_further(done, partial(of_iterations, evenly=True), work)
    done.outcome.let_go()
    # Uses the steps built for the simulated iterations; a shorter loop is complete.
    simulated, whole = work.waits_for_memory(max(work.budget.iterations, done.iterations))
    warps = min(resident, work.blocks_on_sm) * work.warps
    late = slowest_excess_cycles(device, share, (simulated, warps), (whole, share.sms * warps))
    if share.sms > 1 and "block-launch" not in device.ablations:
        latency = device.latency_cycles
        late = max(latency.launch_last, latency.launch_spread + late)
    return replace(done, cycles=done.cycles + late)


@uncollected()
def simulate_alone(
    device: Device, share: MemoryShare, work: Workload, number: int, *, is_first: bool = False
) -> float:
    """Return the cycles of one of the grid's blocks alone on an SM: its first one, or a later one.

    It ends without waiting for its stores.
    """
    iterations = work.budget.iterations
    blocks = work.of_blocks([number], iterations)
    alone = simulate(device, share, blocks, 1, is_steady=not is_first)
    simulated, whole = work.waits_for_memory(iterations)
    late = slowest_excess_cycles(device, share, (simulated, work.warps), (whole, work.warps))
    return alone.block_ends[-1] + alone.extrapolated.longest + late


def _sm_time(
    outcome: Outcome, blocks: int, iterations: float, waves: float = 0.0, spread: float = 0.0
) -> SmTime:
    """Return an SM's time, with the cycles of extrapolated iterations and waves added."""
    simulated = outcome.cycles + waves
    return SmTime(
        cycles=simulated + iterations,
        simulated_cycles=simulated,
        outcome=outcome,
        blocks=blocks,
        instructions=outcome.instructions,
        iterations=0,
        spread=max(spread, outcome.extrapolated.spread),
        iterations_spread=outcome.extrapolated.spread,
    )


def _settled(simulate: Callable[[int], SmTime], longest: int, budget: Budget) -> SmTime:
    """Simulate iterations of the longest loop, twice as many before a steady state."""
    most = budget.iterations
    done = simulate(most)
    is_unsettled = done.iterations_spread > SETTLED
    if is_unsettled and 2 * most <= longest and _is_worth_twice(done.instructions, budget):
        most *= 2
        done = simulate(most)
    return replace(done, iterations=min(most, longest))


def _waves(work: Workload, resident: int, iterations: int) -> int:
    """Return the number of waves that are simulated first, with that many iterations of loops."""
    budget = work.budget
    waves = max(budget.waves, -(-budget.blocks // resident))
    each = work.instructions(iterations) * resident / work.blocks_on_sm
    return max(FEWEST_WAVES, min(waves, int(2 * budget.instructions / max(1, each))))


def _all_waves(
    simulate: Callable[[int], Outcome], work: Workload, resident: int, waves: int, demand: float
) -> SmTime:
    """Simulate some waves of blocks, then more of them, and extrapolate to all.

    Whole waves are extrapolated, so that the simulated tail is as full as the launch's, at no less
    than the blocks' `demand` on the busiest unit.
    """
    whole = work.blocks_on_sm
    budget = work.budget
    before = 0.0
    for count in (waves * resident, 2 * waves * resident):
        count = min(whole, count + whole % resident)
        outcome = simulate(count)
        places = min(resident, count) * work.warps
        loops = outcome.extrapolated
        extrapolated = max(loops.longest, loops.warps * whole / count / places)
        if count == whole:
            return _sm_time(outcome, count, extrapolated)
        early, rate = _rates(outcome.block_ends, resident)
        spread = _apart(rate, before or early)
        settled = spread <= SETTLED and (before or work.are_alike(resident))
        if settled or not _is_worth_twice(outcome.instructions, budget):
            break
        before = rate
    rate = max(rate, demand * resident)
    return _sm_time(outcome, count, extrapolated, (whole - count) / resident * rate, spread)


def _with_further(done: SmTime, simulate: Callable[[int], SmTime], work: Workload) -> SmTime:
    """Return the time of all iterations, at the rate of the second half of the simulated ones.

    All loops are shortened by one fraction, so that loops one after the other overlap alike. The
    rate is by instructions, of which each loop has its own number; where it differs from the rate
    of the quarter before, twice as many iterations are simulated.
    """
    most, longest = done.iterations, work.longest_loop
    cycles = [simulate(most // 4).simulated_cycles, simulate(most // 2).simulated_cycles]
    last = done if work.loops_are_equal else simulate(most)
    issued = [work.instructions(count) for count in (most // 4, most // 2, most)]
    while True:
        cycles.append(last.simulated_cycles)
        now, rate = issued[-1], _growth(cycles[-2:], issued[-2:])
        spread = _apart(rate, _growth(cycles[-3:-1], issued[-3:-1]))
        is_worth = spread > SETTLED and _is_worth_twice(last.instructions, work.budget)
        if most == longest or not is_worth:
            break
        most = min(longest, 2 * most)
        last = simulate(most)
        issued.append(work.instructions(most))
    whole = cycles[-1] + rate * (work.instructions(longest) - now)
    spread = last.spread if most == longest else max(last.spread, spread)
    return replace(last, cycles=whole, iterations=most, spread=spread)


def _growth(cycles: Sequence[float], issued: Sequence[int]) -> float:
    """Return the cycles of each further instruction, from a time to one with more iterations."""
    return (cycles[1] - cycles[0]) / max(1, issued[1] - issued[0])


def _rates(ends: Sequence[float], resident: int) -> tuple[float, float]:
    """Return the cycles between the ends of waves, in the first half of them and in all.

    The first wave begins together, and the last has the SM for itself: both are left out.
    """
    waves = len(ends) // resident
    means = [fmean(ends[wave * resident : (wave + 1) * resident]) for wave in range(waves)]
    middle, last = waves // 2, waves - 2
    return (means[middle] - means[1]) / (middle - 1), (means[last] - means[1]) / (last - 1)


def _is_worth_twice(instructions: int, budget: Budget) -> bool:
    return 2 * instructions <= budget.instructions


def _apart(one: float, other: float) -> float:
    """Return the relative difference of two rates, to the second."""
    return abs(one / other - 1) if other else math.inf
