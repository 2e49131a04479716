"""What one SM does, from its first block to its last, of which only a part is played.

Waves of blocks that do the same take a time each that settles; so do rounds of a loop. Both are
carried on at the rate that was found. Beginning, ramp and tail are played.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from statistics import fmean

from gpusim.device import Device
from gpusim.prediction.clock.clock import Outcome, SpanListener, StreamingMultiprocessor
from gpusim.prediction.clock.steps import Action, WarpPlan, issues, plan
from gpusim.prediction.clock.units import Share, slowest_excess_cycles
from gpusim.prediction.streams import BlockStream, Classes
from gpusim.prepared import Prepared

# How many waves of resident blocks are played, with at least so many blocks; and how many rounds of
# a loop. Where the second half of them has another rate than the first by more than counts as
# settled, it is twice as many, unless that were more warp instructions than are worth it.
FIRST_WAVES = 16
FIRST_BLOCKS = 32
FIRST_ROUNDS = 32
MOST_INSTRUCTIONS = 1_000_000
SETTLED = 0.01
FEW_ROUNDS = 2  # loops that differ by no more still do when they are shortened


class Plans:
    """The plans of the blocks that one SM gets, made once for each different warp.

    It is the SM with the most work, for the launch ends with it.
    """

    def __init__(self, prepared: Prepared, gpu: Device, classes: Classes) -> None:
        self._gpu = gpu
        self._issues = issues(prepared.program, gpu)
        self._by_key: dict[bytes, WarpPlan] = {}
        self._by_stream: dict[tuple[int, int], list[WarpPlan]] = {}
        self._ranges = sorted(
            (first, last, c.stream) for c in classes.classes for first, last in c.ranges
        )
        self._sms = gpu.gpu.sms
        self._blocks = prepared.launch.blocks
        self.warps = len(self._ranges[0][2].warps)
        self._first = max(self._candidates(), key=self._work)
        self.blocks_on_sm = self._count(self._first)
        self._near = _near(c.stream for c in classes.classes)
        self.longest_loop = max((max(near) for near in self._near), default=0)

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

    def of_block(self, number: int, most: int) -> list[WarpPlan]:
        """Return the plans of the warps of a block of the grid, with `most` rounds of a loop."""
        stream = self._stream(number)
        key = id(stream), most
        if key not in self._by_stream:
            self._by_stream[key] = self._cut(stream, partial(self._rounds, most))
        return self._by_stream[key]

    def _cut(self, stream: BlockStream, rounds: Callable[[int, int], int]) -> list[WarpPlan]:
        plans = []
        for whole in stream.warps:
            warp = whole.written_out(rounds)
            if "divergence" in self._gpu.ablations:
                warp = warp.of_longest_lane()
            if warp.key not in self._by_key:
                self._by_key[warp.key] = plan(warp, self._issues)
            plans.append(self._by_key[warp.key])
        return plans

    def _rounds(self, most: int, number: int, times: int) -> int:
        """Return how many rounds of a warp's n-th loop are played: a part, the same for all warps.

        As many are left out of those that have about as many.
        """
        near = self._near[number]
        part = min(1.0, most / max(near))
        return max(0, times - near[times] + round(part * near[times]))

    def some(self, count: int, most: int) -> list[list[WarpPlan]]:
        """Return plans of `count` of the SM's blocks, the first, the last, and evenly between."""
        steps, whole = max(1, count - 1), self.blocks_on_sm - 1
        places = [k * whole // steps for k in range(count)]
        return [self.of_block(self._first + place * self._sms, most) for place in places]

    def waits_for_memory(self, rounds: int) -> tuple[int, int]:
        """Return how often a warp of the SM's last block waits for global memory, at most.

        First as far as it is played, with so many rounds of the longest loop, then in all.
        """
        last = self.of_block(self._first + (self.blocks_on_sm - 1) * self._sms, rounds)
        return max(map(_long_waits, last), key=itemgetter(1))

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


def _long_waits(warp: WarpPlan) -> tuple[int, int]:
    """Return how often a warp waits for loads from global memory, those issued together once.

    First in what is planned, then with the rounds of its loops that are left out.
    """
    counts = [0] * (len(warp.steps) + 1)  # waits before each step
    is_under_way = False
    for step in warp.steps:
        is_under_way = is_under_way or step.action is Action.GLOBAL_LOAD
        waits = step.waits_long and is_under_way
        is_under_way = is_under_way and not waits
        counts[step.place + 1] = counts[step.place] + waits
    left_out = sum(
        of.lap.left * (counts[of.end] - counts[of.begin]) // of.rounds for of in warp.laps
    )
    return counts[-1], counts[-1] + left_out


def _near(streams: Iterable[BlockStream]) -> list[dict[int, int]]:
    """Return, for warps' first loops, second and so on, by rounds those of one with few more."""
    times: list[set[int]] = []
    for stream in streams:
        for warp in stream.warps:
            times.extend(set() for _ in range(len(times), len(warp.repeats)))
            for number, repeat in enumerate(warp.repeats):
                times[number].add(repeat.times)
    found = []
    for of_number in times:
        near: dict[int, int] = {}
        most = math.inf
        for count in sorted(of_number, reverse=True):
            if most - count > FEW_ROUNDS:
                most = count
            near[count] = int(most)
        found.append(near)
    return found


@dataclass(frozen=True)
class Played:
    """An SM's work, played or carried on: cycles, and where the warps' ticks went.

    `blocks` of its blocks were played, with `rounds` of the longest loop: so many warp
    `instructions`. `spread` is how far the last stretch changed a rate, as a part;
    `rounds_spread` that of rounds alone.
    """

    cycles: float
    stalls: tuple[float, ...]
    by_pc: dict[int, float]
    blocks: int
    instructions: int
    rounds: int
    spread: float
    rounds_spread: float


def play_all(
    device: Device,
    share: Share,
    plans: Plans,
    resident: int,
    listener: SpanListener | None = None,
) -> Played:
    """Return what an SM that holds `resident` blocks at a time does with all of its blocks."""

    def play(most: int) -> Played:
        def of_blocks(count: int) -> Outcome:
            blocks = plans.some(count, most)
            return StreamingMultiprocessor(device, share, blocks, resident, listener).play()

        return _all_waves(of_blocks, plans, resident)

    done = _settled(play, plans.longest_loop)
    # With as many rounds as were played, whose plans there are; a shorter loop is whole in them.
    played, whole = plans.waits_for_memory(max(FIRST_ROUNDS, done.rounds))
    warps = min(resident, plans.blocks_on_sm) * plans.warps
    late = slowest_excess_cycles(device, share, (played, warps), (whole, share.sms * warps))
    if share.sms > 1 and "block-launch" not in device.ablations:
        late += device.latency_cycles.launch_spread
    return replace(done, cycles=done.cycles + late)


def play_alone(device: Device, share: Share, plans: Plans) -> float:
    """Return the cycles of a block that has an SM for itself, neither the first nor the last.

    It leaves without waiting for what it has stored.
    """
    blocks = plans.some(1, FIRST_ROUNDS)
    alone = StreamingMultiprocessor(device, share, blocks, 1, is_steady=True).play()
    played, whole = plans.waits_for_memory(FIRST_ROUNDS)
    late = slowest_excess_cycles(device, share, (played, plans.warps), (whole, plans.warps))
    return alone.block_ends[-1] + alone.left_out.longest + late


def _as_played(outcome: Outcome, blocks: int, left_out: float, spread: float = 0.0) -> Played:
    return Played(
        cycles=outcome.cycles + left_out,
        stalls=tuple(outcome.stalls),
        by_pc=outcome.by_pc,
        blocks=blocks,
        instructions=outcome.instructions,
        rounds=0,
        spread=max(spread, outcome.left_out.spread),
        rounds_spread=outcome.left_out.spread,
    )


def _settled(play: Callable[[int], Played], longest: int) -> Played:
    """Play some rounds of loops, of which the longest has so many, twice as many where needed."""
    most = FIRST_ROUNDS
    done = play(most)
    if done.rounds_spread > SETTLED and 2 * most <= longest and _is_worth_twice(done.instructions):
        most *= 2
        done = play(most)
    return replace(done, rounds=min(most, longest))


def _all_waves(play: Callable[[int], Outcome], plans: Plans, resident: int) -> Played:
    """Play some waves of blocks, then more of them, and carry on to all.

    Whole waves are left out, so that the tail that is played is as full as the launch's.
    """
    whole = plans.blocks_on_sm
    waves, before = max(FIRST_WAVES, -(-FIRST_BLOCKS // resident)), 0.0
    for count in (waves * resident, 2 * waves * resident):
        count = min(whole, count + whole % resident)
        outcome = play(count)
        places = min(resident, count) * plans.warps
        left_out = max(outcome.left_out.longest, outcome.left_out.warps * whole / count / places)
        if count == whole:
            return _as_played(outcome, count, left_out)
        early, rate = _rates(outcome.block_ends, resident)
        spread = _apart(rate, before or early)
        settled = spread <= SETTLED and (before or plans.are_alike(resident))
        if settled or not _is_worth_twice(outcome.instructions):
            break
        before = rate
    left_out += (whole - count) / resident * rate
    return _as_played(outcome, count, left_out, spread)


def _rates(ends: Sequence[float], resident: int) -> tuple[float, float]:
    """Return the cycles between waves that leave, in the first half of them and in all.

    The first wave begins all at once, and the last has the SM for itself: both are left out.
    """
    waves = len(ends) // resident
    means = [fmean(ends[wave * resident : (wave + 1) * resident]) for wave in range(waves)]
    middle, last = waves // 2, waves - 2
    return (means[middle] - means[1]) / (middle - 1), (means[last] - means[1]) / (last - 1)


def _is_worth_twice(instructions: int) -> bool:
    return 2 * instructions <= MOST_INSTRUCTIONS


def _apart(one: float, other: float) -> float:
    """Return how far two rates are apart, as a part of the second."""
    return abs(one / other - 1) if other else math.inf
