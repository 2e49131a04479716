"""Workload of one SM: its blocks as steps for the clock."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heapreplace
from itertools import islice
from operator import itemgetter

import numpy as np

from gpusim.gpu.device import Device
from gpusim.launch.prepared import Prepared
from gpusim.prediction.clock.issue import Issue
from gpusim.prediction.clock.program_steps import ProgramSteps, program_steps
from gpusim.prediction.clock.warp_steps import WarpSteps
from gpusim.prediction.streams import BlockStream, Classes, WarpStream
from gpusim.typing import Array

MOST_ADDED_UP = 1 << 20  # blocks summed singly to find the SM with most work
FEW_ITERATIONS = 2  # loops whose counts differ by no more keep that difference when shortened
LEAST_PART = 4  # of the longest loop's iterations: a short loop beside it keeps a fourth of these


@dataclass(frozen=True)
class Budget:
    """The part of an SM's work that is simulated before a test for the steady state.

    `iterations` of a loop; `waves` of resident blocks, of at least `blocks` blocks. Without a
    steady state twice as many, within a limit of warp `instructions`; the rest is extrapolated.
    Waves are fewer where they have more than twice that limit.
    Twice as many waves move the mean error of 78 launches of the catalogue by 0.02 % of a time,
    and take 39 % more instructions. At most `steps` are built for distinct blocks, in some 0.3 s
    and 30 MB; other blocks have representatives among them.
    """

    iterations: int = 32
    waves: int = 16
    blocks: int = 32
    instructions: int = 1_000_000
    steps: int = 200_000


BUDGET = Budget()


class Workload:
    """The workload of the SM with most work, with `resident` blocks at a time.

    Steps are built once for each distinct warp. Uniform loops are shortened: callers give the
    number of iterations of the longest. `issued` are the program's instructions where they differ
    from the device's own; `code_is_cached` leaves out the fetch of code.
    """

    def __init__(
        self,
        prepared: Prepared,
        gpu: Device,
        classes: Classes,
        l2: str,
        resident: int,
        budget: Budget = BUDGET,
        issued: Sequence[Issue] | None = None,
        *,
        code_is_cached: bool = False,
    ) -> None:
        self.budget = budget
        self._gpu = gpu
        program = prepared.program
        if issued is None and not code_is_cached:
            self._steps = program_steps(program, gpu, l2)
        else:
            self._steps = ProgramSteps(program, gpu, l2, issued, code_is_cached=code_is_cached)
        self._by_stream: dict[tuple[int, int, bool, bool], list[WarpSteps]] = {}
        self._ranges = sorted(
            (first, last, c.stream) for c in classes.classes for first, last in c.ranges
        )
        self._sms = gpu.gpu.sms
        self._blocks = prepared.launch.blocks
        self.warps = len(self._ranges[0][2].warps)
        self._own = self._numbers(resident)
        self.blocks_on_sm = len(self._own)
        self._counted = self._own_streams()
        self._played = representatives(self._counted, budget.iterations, resident, budget.steps)
        self._similar = _similar(c.stream for c in classes.classes)
        self.longest_loop = max((max(counts) for counts in self._similar), default=0)

    def _numbers(self, resident: int) -> Sequence[int]:
        """Return the block numbers of the SM with most instructions.

        In large grids only SMs with one of the longest blocks are compared, by a sample of blocks.
        """
        counts = {id(stream): stream.instructions for _, _, stream in self._ranges}
        if len(set(counts.values())) == 1:
            return range(0, self._blocks, self._sms)
        if self._blocks <= MOST_ADDED_UP:
            sizes = [last - first + 1 for first, last, _ in self._ranges]
            of_ranges = [counts[id(stream)] for _, _, stream in self._ranges]
            return blocks_of_busiest(np.repeat(of_ranges, sizes), self._sms, resident)
        longest = max(counts.values())
        blocks = [last for _, last, stream in self._ranges if counts[id(stream)] == longest]
        firsts = sorted({0, *(block % self._sms for block in blocks[:8])})
        return max((range(k, self._blocks, self._sms) for k in firsts), key=self._work)

    def _work(self, numbers: Sequence[int]) -> int:
        """Return the instructions of a sample of these blocks."""
        places = range(0, len(numbers), max(1, len(numbers) // 64))
        return sum(self._stream(numbers[place]).instructions for place in places)

    def _stream(self, number: int) -> BlockStream:
        """Return the stream of a block of the grid."""
        at = bisect_left(self._ranges, number, hi=len(self._ranges) - 1, key=itemgetter(1))
        return self._ranges[at][2]

    def of_blocks(
        self, numbers: Sequence[int], most: int, *, first: int = 0, evenly: bool = False
    ) -> list[list[WarpSteps]]:
        """Return the warps of blocks of the grid, with `most` iterations of each loop.

        `evenly` shortens all loops by the fraction that leaves `most` iterations of the longest.
        The `first` ones on their SM also wait for cold code and constants.
        """
        streams = [self._played[id(self._stream(number))] for number in numbers]
        are_first = [k < first and self._steps.unlike_later for k in range(len(numbers))]
        keys = [
            (id(stream), most, is_first, evenly)
            for stream, is_first in zip(streams, are_first, strict=True)
        ]
        iterations = partial(self._iterations, most, evenly)
        missing = {
            key: [(warp, key[2]) for warp in self._shortened(stream, iterations)]
            for key, stream in dict(zip(keys, streams, strict=True)).items()
            if key not in self._by_stream
        }
        made = iter(self._steps.of([one for warps in missing.values() for one in warps]))
        for key, warps in missing.items():
            self._by_stream[key] = list(islice(made, len(warps)))
        return [self._by_stream[key] for key in keys]

    def _shortened(
        self, stream: BlockStream, iterations: Callable[[int, int], int]
    ) -> list[WarpStream]:
        made = [whole.written_out(iterations) for whole in stream.warps]
        if "divergence" in self._gpu.ablations:
            made = [warp.of_longest_lane() for warp in made]
        return made

    def _iterations(self, most: int, evenly: bool, number: int, times: int) -> int:
        """Return the number of simulated iterations of a warp's n-th loop: a fraction.

        The fraction is equal for all warps, and the extrapolated number for similar loops.
        """
        similar = self._similar[number]
        fraction = min(1.0, most / (self.longest_loop if evenly else max(similar)))
        kept = round(fraction * similar[times])
        if evenly:
            kept = max(kept, min(similar[times], most // LEAST_PART))
        return max(0, times - similar[times] + kept)

    def some(
        self, count: int, most: int, first: int = 0, *, evenly: bool = False
    ) -> list[list[WarpSteps]]:
        """Return `count` of the SM's blocks: the first, the last, and evenly between.

        The `first` ones begin with the launch.
        """
        steps, whole = max(1, count - 1), self.blocks_on_sm - 1
        numbers = [self._own[k * whole // steps] for k in range(count)]
        return self.of_blocks(numbers, most, first=first, evenly=evenly)

    @property
    def loops_are_equal(self) -> bool:
        """Whether the maxima of the loops' iterations are the same for all loops of a warp."""
        return len({max(counts) for counts in self._similar}) <= 1

    def instructions(self, most: int) -> int:
        """Return the SM's warp instructions with loops shortened evenly to `most` iterations.

        Blocks with a representative count as it.
        """
        iterations = partial(self._iterations, most, True)
        return sum(
            blocks * _shortened_length(warp, iterations)
            for stream, blocks in self._counted
            for warp in self._played[id(stream)].warps
        )

    def waits_for_memory(self, iterations: int) -> tuple[int, int]:
        """Return a warp's number of waits for global memory, the maximum in the SM's last block.

        First the simulated ones, with `iterations` of the longest loop, then all.
        """
        [last] = self.of_blocks([self._own[-1]], iterations)
        return max((warp.long_waits for warp in last), key=itemgetter(1))

    def are_alike(self, but: int) -> bool:
        """Return whether all but `but` of the SM's blocks are equal."""
        return max(count for _, count in self._counted) >= self.blocks_on_sm - but

    @property
    def shortest(self) -> int:
        """The first of the SM's blocks with the fewest instructions."""
        return min(self._firsts(), key=lambda number: self._stream(number).instructions)

    @property
    def longest(self) -> int:
        """The first of the SM's blocks with the most instructions."""
        return max(self._firsts(), key=lambda number: self._stream(number).instructions)

    def _firsts(self) -> Iterator[int]:
        """Yield the SM's first block in each range of equal blocks."""
        for first, last, _ in self._ranges:
            place = bisect_left(self._own, first)
            if place < len(self._own) and self._own[place] <= last:
                yield self._own[place]

    def _own_streams(self) -> list[tuple[BlockStream, int]]:
        """Return the distinct streams of the SM's blocks, with their numbers of blocks."""
        counts: dict[int, tuple[BlockStream, int]] = {}
        for first, last, stream in self._ranges:
            here = bisect_right(self._own, last) - bisect_left(self._own, first)
            if here:
                counts[id(stream)] = stream, here + counts.get(id(stream), (stream, 0))[1]
        return list(counts.values())


def _shortened_length(warp: WarpStream, iterations: Callable[[int, int], int]) -> int:
    """Return the instructions of a warp with some iterations of its loops beside the stored one."""
    counts = (iterations(number, loop.times) for number, loop in enumerate(warp.loops))
    further = zip(warp.loops, counts, strict=True)
    return len(warp) + sum((loop.end - loop.first) * count for loop, count in further)


def _similar(streams: Iterable[BlockStream]) -> list[dict[int, int]]:
    """Return, for warps' first loops, second and so on, a map of iteration counts to similar ones.

    The similar count is that of a loop with a few more iterations.
    """
    times: list[set[int]] = []
    for stream in streams:
        for warp in stream.warps:
            times.extend(set() for _ in range(len(times), len(warp.loops)))
            for number, loop in enumerate(warp.loops):
                times[number].add(loop.times)
    found = []
    for of_number in times:
        similar: dict[int, int] = {}
        most = math.inf
        for count in sorted(of_number, reverse=True):
            if most - count > FEW_ITERATIONS:
                most = count
            similar[count] = int(most)
        found.append(similar)
    return found


# The first wave is dealt to the SMs in turn, and each later block goes to the first free place. For
# blocks of about equal duration that gives every n-th block. For others, an SM with long blocks
# gets fewer: a strict round robin would give all working rows of a grid, with work in a part of its
# rows and a width that shares a factor with the number of SMs, to one SM.
# Excess of an SM with every n-th block over the mean, up to which blocks are not followed singly.
UNEVEN = 0.01


def blocks_of_busiest(work: Array, sms: int, resident: int) -> Sequence[int]:
    """Return the block numbers of the busiest SM.

    `work` is the work of each block of the grid; an SM holds `resident` blocks at a time.
    """
    totals = np.bincount(np.arange(len(work)) % sms, work, sms)
    first = int(totals.argmax())
    if totals[first] <= (1 + UNEVEN) * math.ceil(len(work) / sms) * work.mean():
        return range(first, len(work), sms)
    owners = _owners(work, sms, resident)
    busiest = np.bincount(owners, work, sms).argmax()
    found: list[int] = np.flatnonzero(owners == busiest).tolist()
    return found


def _owners(work: Array, sms: int, resident: int) -> Array:
    """Return each block's SM. A place on an SM is free at the end of its block's work."""
    places = sms * resident
    owners = np.arange(len(work)) % sms
    free = sorted((done, place) for place, done in enumerate(work[:places].tolist()))
    for block, own in enumerate(work[places:].tolist(), start=places):
        done, place = free[0]
        heapreplace(free, (done + own, place))
        owners[block] = place % sms
    return owners


# The SM's blocks, ordered by instruction count, are divided into equal parts, and a block near the
# mean of a part represents it: their total work hardly changes.
Counted = tuple[BlockStream, int]  # a stream, and the number of its blocks on the SM


def representatives(
    own: Sequence[Counted], iterations: int, resident: int, steps: float
) -> dict[int, BlockStream]:
    """Return the stream played for each, by its `id`: most often itself.

    `own` are the SM's streams with block counts. At most `iterations` of each loop are played, of
    at most `resident` blocks at a time. If all blocks are resident they begin together, and the
    longest one ends the SM: it is played itself, beside the representatives of the others.
    """
    ordered = sorted(own, key=lambda counted: counted[0].instructions)
    blocks = np.array([count for _, count in ordered])
    each = float(np.average([one.steps(iterations) for one, _ in ordered], weights=blocks))
    parts = max(1, int(steps / each))
    if len(ordered) <= parts:
        return {id(one): one for one, _ in ordered}
    if blocks.sum() > resident:
        return _of_parts(ordered, parts)
    longest = ordered.pop()[0]
    return {**_of_parts(ordered, max(1, parts - 1)), id(longest): longest}


def _of_parts(ordered: Sequence[Counted], parts: int) -> dict[int, BlockStream]:
    """Return for each stream the representative of its part, of `parts` equal parts."""
    blocks = np.array([count for _, count in ordered])
    middles = np.cumsum(blocks) - blocks / 2
    part_of = (middles * parts / blocks.sum()).astype(np.int64)
    found = {}
    for part in sorted(set(part_of.tolist())):
        here = [one for one, at in zip(ordered, part_of, strict=True) if at == part]
        found.update({id(one): _middle(here) for one, _ in here})
    return found


def _middle(counted: Sequence[Counted]) -> BlockStream:
    """Return the stream with an instruction count nearest to the blocks' mean."""
    instructions = [one.instructions for one, _ in counted]
    mean = np.average(instructions, weights=[count for _, count in counted])
    return counted[int(np.abs(np.array(instructions) - mean).argmin())][0]
