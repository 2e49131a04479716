"""What one SM does, from its first block to its last, of which only a part is played.

Waves of blocks that do the same take a time each that settles; so do rounds of a loop. Both are
carried on at the rate that was found. Beginning, ramp and tail are played.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from operator import itemgetter
from statistics import fmean

from gpusim.device import Device
from gpusim.isa import Program
from gpusim.launch import Launch
from gpusim.streams import BlockStream, Classes
from gpusim.timing.clock import Outcome, SpanListener, StreamingMultiprocessor
from gpusim.timing.costs import instruction_costs
from gpusim.timing.steps import Action, WarpPlan, plan
from gpusim.timing.units import Share, slowest_excess_cycles

# How many waves of resident blocks are played, with at least so many blocks; how many rounds of the
# longest loop make the first step. Where a further stretch changes the rate by more than counts
# as settled, it is twice as many, unless that were more warp instructions than are worth it.
FIRST_WAVES = 16
FIRST_BLOCKS = 32
WAVES_SETTLED = 0.005
FIRST_STEP = 16
MOST_ROUNDS = 96
MOST_INSTRUCTIONS = 1_000_000
ROUNDS_SETTLED = 0.01
FEW_ROUNDS = 2  # loops that differ by no more still do when they are shortened


class Plans:
    """The plans of the blocks that one SM gets, made once for each different warp.

    It is the SM with the most work, for the launch ends with it.
    """

    def __init__(self, program: Program, gpu: Device, classes: Classes, launch: Launch) -> None:
        self._program, self._gpu = program, gpu
        self._costs = instruction_costs(program, gpu)
        self._by_key: dict[bytes, WarpPlan] = {}
        self._by_stream: dict[tuple[int, float], list[WarpPlan]] = {}
        self._ranges = sorted(
            (first, last, c.stream) for c in classes.classes for first, last in c.ranges
        )
        self._sms = gpu.gpu.sms
        self._blocks = launch.blocks
        self._first = max(self._candidates(), key=self._work)
        self.blocks_on_sm = self._count(self._first)
        self._near = _near({r.times for c in classes.classes for r in c.stream.repeats})
        self.longest_loop = max(self._near, default=0)

    def _candidates(self) -> list[int]:
        """Return SMs that may have the most work: the first, and those of the longest blocks."""
        longest = max(stream.instructions for _, _, stream in self._ranges)
        blocks = [last for _, last, stream in self._ranges if stream.instructions == longest]
        return sorted({0, *(block % self._sms for block in blocks[:8])})

    def _count(self, sm: int) -> int:
        return math.ceil((self._blocks - sm) / self._sms)

    def _work(self, sm: int) -> int:
        """Return the instructions of an SM's blocks; of a large grid, of some of them."""
        count = self._count(sm)
        places = range(0, count, max(1, count // 64))
        return sum(self._stream(sm + k * self._sms).instructions for k in places)

    def _stream(self, number: int) -> BlockStream:
        """Return the stream of a block of the grid."""
        at = bisect_left(self._ranges, number, hi=len(self._ranges) - 1, key=itemgetter(1))
        return self._ranges[at][2]

    def of_block(self, number: int, part: float) -> list[WarpPlan]:
        """Return the plans of the warps of a block of the grid, with a part of loops' rounds."""
        stream = self._stream(number)
        key = id(stream), part
        if key not in self._by_stream:
            self._by_stream[key] = self._cut(stream, lambda times: self._rounds(times, part))
        return self._by_stream[key]

    def _cut(self, stream: BlockStream, rounds: Callable[[int], int]) -> list[WarpPlan]:
        plans = []
        for whole in stream.warps:
            warp = whole.written_out(rounds)
            if "divergence" in self._gpu.ablations:
                warp = warp.of_longest_lane()
            if warp.key not in self._by_key:
                self._by_key[warp.key] = plan(warp, self._program, self._costs)
            plans.append(self._by_key[warp.key])
        return plans

    def _rounds(self, times: int, part: float) -> int:
        """Return how many of a loop's rounds are played: as many are left out of those near it."""
        near = self._near[times]
        return max(0, times - near + round(part * near))

    def some(self, count: int, part: float) -> list[list[WarpPlan]]:
        """Return plans of `count` of the SM's blocks, the first, the last, and evenly between."""
        steps, whole = max(1, count - 1), self.blocks_on_sm - 1
        places = [k * whole // steps for k in range(count)]
        return [self.of_block(self._first + place * self._sms, part) for place in places]

    def waits_for_memory(self) -> int:
        """Return how often a warp of the SM's last block waits for global memory, at most."""
        last = self._stream(self._first + (self.blocks_on_sm - 1) * self._sms)
        found = least = self._long_waits(last, {})
        for times in self._near:
            once = self._long_waits(last, {times: 1})
            found = [f + times * (o - n) for f, o, n in zip(found, once, least, strict=True)]
        return max(found)

    def _long_waits(self, stream: BlockStream, rounds: Mapping[int, int]) -> list[int]:
        cut = self._cut(stream, lambda times: rounds.get(times, 0))
        return [_long_waits(plan) for plan in cut]

    def are_alike(self, but: int) -> bool:
        """Return whether all but so many of the SM's blocks do the same."""
        counts: dict[int, int] = {}
        for first, last, stream in self._ranges:
            here = self._upto(last) - self._upto(first - 1)
            counts[id(stream)] = counts.get(id(stream), 0) + here
        return max(counts.values()) >= self.blocks_on_sm - but

    def _upto(self, number: int) -> int:
        """Return how many of the SM's blocks have a number up to this one."""
        return max(0, (number - self._first) // self._sms + 1)


def _long_waits(warp: WarpPlan) -> int:
    """Return how often a warp waits for loads from global memory, those issued together once."""
    found, is_under_way = 0, False
    for step in warp.steps:
        is_under_way = is_under_way or step.action is Action.GLOBAL_LOAD
        if step.waits_long and is_under_way:
            found, is_under_way = found + 1, False
    return found


def _near(times: Iterable[int]) -> dict[int, int]:
    """Return, for each loop's rounds, those of the longest loop that has only few more."""
    found: dict[int, int] = {}
    most = math.inf
    for count in sorted(times, reverse=True):
        if most - count > FEW_ROUNDS:
            most = count
        found[count] = int(most)
    return found


@dataclass(frozen=True)
class Played:
    """An SM's work, played or carried on: cycles, and where the warps' ticks went.

    `blocks` of its blocks were played, with `rounds` of the longest loop: so many warp
    `instructions`. `spread` is how far the last stretch changed the rate, as a part.
    """

    cycles: float
    stalls: tuple[float, ...]
    by_pc: dict[int, float]
    blocks: int
    instructions: int
    rounds: int = 0
    spread: float = 0.0

    def carried_on(self, before: Played, times: float) -> Played:
        """Return what this becomes where all that came since `before` comes `times` more."""

        def grown(now: float, then: float) -> float:
            return max(0.0, now + times * (now - then))

        stalls = map(grown, self.stalls, before.stalls)
        by_pc = {pc: grown(now, before.by_pc.get(pc, 0)) for pc, now in self.by_pc.items()}
        cycles = grown(self.cycles, before.cycles)
        return replace(self, cycles=cycles, stalls=tuple(stalls), by_pc=by_pc)


def play_all(
    device: Device,
    share: Share,
    plans: Plans,
    resident: int,
    listener: SpanListener | None = None,
) -> Played:
    """Return what an SM that holds `resident` blocks at a time does with all of its blocks."""

    def play(part: float, count: int) -> Outcome:
        blocks = plans.some(count, part)
        return StreamingMultiprocessor(device, share, blocks, resident, listener).play()

    @cache
    def all_blocks(part: float) -> Played:
        return _all_waves(partial(play, part), plans, resident)

    done = _all_rounds(all_blocks, plans.longest_loop)
    late = slowest_excess_cycles(device, share, plans.waits_for_memory())
    return replace(done, cycles=done.cycles + late)


def play_alone(device: Device, share: Share, plans: Plans) -> Played:
    """Return what a block does that has an SM for itself, neither the first nor the last."""

    @cache
    def play(part: float) -> Played:
        blocks = plans.some(1, part)
        alone = StreamingMultiprocessor(device, share, blocks, 1, is_steady=True)
        return _as_played(alone.play(), 1)

    return _all_rounds(play, plans.longest_loop)


def _as_played(outcome: Outcome, blocks: int) -> Played:
    return Played(
        cycles=outcome.cycles,
        stalls=tuple(map(float, outcome.stalls)),
        by_pc={pc: float(spent) for pc, spent in outcome.by_pc.items()},
        blocks=blocks,
        instructions=outcome.instructions,
    )


def _all_rounds(play: Callable[[float], Played], longest: int) -> Played:
    """Play some of the longest loop's rounds, twice and three times as many, and carry on to all.

    `longest` is how many there are. Of other loops the same part is played.
    """
    step = FIRST_STEP
    if longest <= 3 * step:
        return replace(play(1.0), rounds=longest)
    while True:
        one, two, three = (play(count * step / longest) for count in (1, 2, 3))
        spread = _apart((three.cycles - one.cycles) / 2, two.cycles - one.cycles)
        more = 6 * step <= min(longest, MOST_ROUNDS) and _is_worth_twice(three)
        if spread <= ROUNDS_SETTLED or not more:
            break
        step *= 2
    whole = three.carried_on(one, (longest - 3 * step) / (2 * step))
    return replace(whole, rounds=3 * step, spread=max(three.spread, spread))


def _all_waves(play: Callable[[int], Outcome], plans: Plans, resident: int) -> Played:
    """Play some waves of blocks, then more of them, and carry on to all.

    Whole waves are left out, so that the tail that is played is as full as the launch's.
    """
    whole = plans.blocks_on_sm
    waves, before = max(FIRST_WAVES, -(-FIRST_BLOCKS // resident)), 0.0
    for count in (waves * resident, 2 * waves * resident):
        count = min(whole, count + whole % resident)
        outcome = play(count)
        made = _as_played(outcome, count)
        if count == whole:
            return made
        early, rate = _rates(outcome.block_ends, resident)
        spread = _apart(rate, before or early)
        settled = spread <= WAVES_SETTLED and (before or plans.are_alike(resident))
        if settled or not _is_worth_twice(made):
            break
        before = rate
    cycles = made.cycles + (whole - count) / resident * rate
    return replace(made, cycles=cycles, spread=spread)


def _rates(ends: Sequence[float], resident: int) -> tuple[float, float]:
    """Return the cycles between waves that leave, in the first half of them and in all.

    The first wave begins all at once, and the last has the SM for itself: both are left out.
    """
    waves = len(ends) // resident
    means = [fmean(ends[wave * resident : (wave + 1) * resident]) for wave in range(waves)]
    middle, last = waves // 2, waves - 2
    return (means[middle] - means[1]) / (middle - 1), (means[last] - means[1]) / (last - 1)


def _is_worth_twice(played: Played) -> bool:
    return 2 * played.instructions <= MOST_INSTRUCTIONS


def _apart(one: float, other: float) -> float:
    """Return how far two rates are apart, as a part of the second."""
    return abs(one / other - 1) if other else math.inf
