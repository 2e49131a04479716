"""Steps of warp streams, from the additions of their pieces.

Equal pieces of streams are processed once: an iteration, or a section between loops, that begins
in the state of an earlier one adds the same steps. The same holds for fully recorded loops, such as
data-dependent ones. Pieces are equal if they have the same instructions; their requests to units
are numbered afterwards, those of many warps together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from gpusim.prediction.clock.additions import CODE_BYTES, Added, Content, Seen
from gpusim.prediction.clock.issue import Issue
from gpusim.prediction.clock.requests import Asking
from gpusim.prediction.clock.step_table import StepTable
from gpusim.prediction.clock.steps import MARKS, LoopMarks
from gpusim.prediction.clock.warp_steps import WarpSteps
from gpusim.prediction.streams import SimulatedLoop, WarpStream
from gpusim.typing import Array

FEWEST = 16  # instructions of a piece that ends at a jump forward
_CACHED: Mapping[int, int] = MappingProxyType({})  # all code and constants hit


class _Piece(NamedTuple):
    """A section of a stream: between loops, or one iteration, repeated if `is_again`."""

    begin: int
    end: int
    is_again: bool = False


class Fetching(NamedTuple):
    """A warp's stream, with the ticks of missed code lines and constants by position in it."""

    stream: WarpStream
    code: Mapping[int, int] = _CACHED
    constants: Mapping[int, int] = _CACHED


class _Misses:
    """Misses of code lines and constants in the order of a stream: kind, position and ticks."""

    def __init__(self, warp: Fetching) -> None:
        found = enumerate((warp.code, warp.constants))
        made = sorted((at, kind, ticks) for kind, those in found for at, ticks in those.items())
        self._made = [(kind, at, ticks) for at, kind, ticks in made]
        self._at = [at for at, _, _ in made]

    def within(self, piece: _Piece) -> tuple[tuple[int, int, int], ...]:
        """Return those of a piece of the stream, by position from its begin."""
        if not self._at:
            return ()
        first, end = (bisect_left(self._at, limit) for limit in (piece.begin, piece.end))
        return tuple((kind, at - piece.begin, ticks) for kind, at, ticks in self._made[first:end])


class _Chain:
    """The additions of a stream's pieces one after the other, with the marks of its loops."""

    def __init__(self, warp: Fetching, seen: Seen) -> None:
        self.stream, self.late = warp.stream, warp.constants
        self.begins: list[int] = []  # of pieces, in the stream
        self.added: list[Added] = []
        self.charges: dict[int, int] = {}
        self._firsts: list[int] = []  # the number of steps before each piece
        self._ended: list[int] = []  # rows of steps that pieces left open, as they have ended
        self._ends: list[int] = []  # their places
        self._marker = Marker()
        self._counts: dict[Added, int] = {}  # of additions that are not yet charged
        for loop in warp.stream.simulated_loops:
            if loop.extrapolated and loop.simulated and loop.length:
                self._marker.add(loop)
        self._go_through(warp, seen)
        self._charge()
        self.tags = max(one.tags for one in set(self.added))

    def _go_through(self, warp: Fetching, seen: Seen) -> None:
        codes, length, noted = _codes(warp.stream), len(warp.stream), self._marker.at
        misses, counts, ended = _Misses(warp), self._counts, seen.distinct.ended
        state = begun = seen.first
        known: Added | None = None
        line = count = row = 0
        for piece in _pieces(warp.stream):
            missed, is_last = misses.within(piece), piece.end == length
            is_repeated = piece.is_again and known is not None and known.left is begun
            if known is None or not is_repeated or missed or is_last:
                here = codes[CODE_BYTES * piece.begin : CODE_BYTES * piece.end]
                content = Content(here, missed, line if missed else 0, is_last)
                known, begun = seen.added(state, content), state
            if piece.begin in noted:
                self._charge()
                self._marker.note(piece.begin, count + known.opened, dict(self.charges))
            self.begins.append(piece.begin)
            self.added.append(known)
            self._firsts.append(count)
            counts[known] = counts.get(known, 0) + 1
            if known.ended is not None:
                row = ended(row, known.ended)
            if known.open is not None:
                if count:
                    self._ended.append(row)
                    self._ends.append(count - 1)
                count += known.count
                row = known.open
            state = known.left
            line = line + known.ticks if known.line is None else known.line
        self._ended.append(row)
        self._ends.append(count - 1)

    def _charge(self) -> None:
        """Add up the ticks of additions by pc."""
        charges = self.charges
        for added, times in self._counts.items():
            for pc, spent in added.charges.items():
                charges[pc] = charges.get(pc, 0) + times * spent
        self._counts.clear()

    def rows(self, seen: Seen) -> Array:
        """Return the numbers of the rows of all steps, with marks."""
        rows = np.concatenate([one.rows for one in self.added])
        rows[self._ends] = self._ended
        there = (self.tags,)
        for place, mark in self._marker.marks.items():
            rows[place] = seen.distinct.marked(int(rows[place]), mark, there)
        return rows

    @property
    def asking(self) -> Asking:
        """The instructions with requests to units."""
        counts = [len(one.places) for one in self.added]
        places = np.concatenate([one.places for one in self.added])
        steps = np.concatenate([one.steps for one in self.added])
        return Asking(
            self.stream,
            places + np.repeat(self.begins, counts),
            np.concatenate([one.under_way for one in self.added]),
            steps + np.repeat(self._firsts, counts),
            self.begins,
            self.late,
        )

    def steps(self, numbers: Array, seen: Seen) -> WarpSteps:
        """Return the steps of the warp, given their numbers."""
        return WarpSteps(
            StepTable(numbers, seen.distinct),
            self.tags + 1,
            self.charges,
            tuple(self._marker.made),
            sum(one.issued for one in self.added),
        )


def steps_of_warps(warps: Sequence[Fetching], seen: Seen) -> list[WarpSteps]:
    """Return the steps of some warps of a program; pieces `seen` in others are not built again."""
    if not warps:
        return []
    chains = [_Chain(warp, seen) for warp in warps]
    rows = [chain.rows(seen) for chain in chains]
    ends = np.cumsum([len(one) for one in rows])
    firsts = [0, *ends[:-1].tolist()]
    asking = [chain.asking for chain in chains]
    asked = np.concatenate([one.steps + at for one, at in zip(asking, firsts, strict=True)])
    requests = seen.requests.numbers(asking)
    numbers = seen.distinct.numbers(np.concatenate(rows), asked, requests)
    parts = np.split(numbers, firsts[1:])
    return [chain.steps(part, seen) for chain, part in zip(chains, parts, strict=True)]


def steps_of(
    stream: WarpStream,
    program: Sequence[Issue],
    fetched: Mapping[int, int] = _CACHED,
    late: Mapping[int, int] = _CACHED,
    seen: Seen | None = None,
) -> WarpSteps:
    """Return the steps of a warp with a stream of a program's instructions.

    `fetched` holds the ticks of missed code lines and `late` those of missed constants, by position
    in the stream.
    """
    warp = Fetching(stream, fetched, late)
    return steps_of_warps([warp], Seen(program) if seen is None else seen)[0]


def _pieces(stream: WarpStream) -> Iterator[_Piece]:
    """Yield a stream's loop iterations, and the sections between loops."""
    done = 0
    for loop in stream.simulated_loops:
        yield from _between(stream, done, loop.first)
        done = loop.first + loop.simulated * loop.length
        for number in range(loop.simulated if loop.length else 0):
            begin = loop.first + number * loop.length
            yield _Piece(begin, begin + loop.length, number > 0)
    yield from _between(stream, done, len(stream))
    if not len(stream):
        yield _Piece(0, 0)


def _between(stream: WarpStream, begin: int, end: int) -> Iterator[_Piece]:
    """Yield the section between loops, split after jumps: backward ones, and some forward.

    Loops are fully recorded if data determine them or depend on their results, and warps whose
    lanes part have much in common.
    """
    pc = stream.pc[begin:end]
    is_backward = np.diff(pc) <= 0
    behind = np.flatnonzero(is_backward | stream.is_taken[begin : end - 1])
    first = begin
    for place, backward in zip(
        (begin + 1 + behind).tolist(), is_backward[behind].tolist(), strict=True
    ):
        if backward or place - first >= FEWEST:
            yield _Piece(first, place)
            first = place
    if first < end:
        yield _Piece(first, end)


def _codes(stream: WarpStream) -> bytes:
    """Return a number for each instruction of a stream: all that its step is built from."""
    pc, is_taken, is_on = (
        column.astype(np.uint32) for column in (stream.pc, stream.is_taken, stream.is_on)
    )
    return (pc << 2 | is_taken << 1 | is_on).tobytes()


# The first eighth and the last twelfth of a loop are warm-up and tail; in a shorter loop than this
# no rate is measured.
FIRST_PART, LAST_PART = 8, 12
LEAST_MARKED = 12


@dataclass
class Marker:
    """Records the steps of a stream's loops, and the ticks of their iterations.

    `marks` are the numbers of marks by the step's place.
    """

    marks: dict[int, int] = field(default_factory=dict)
    made: list[LoopMarks] = field(default_factory=list)
    at: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    begun: dict[int, tuple[int, dict[int, int]]] = field(default_factory=dict)
    loops: list[tuple[SimulatedLoop, int, int, int]] = field(default_factory=list)

    def add(self, loop: SimulatedLoop) -> None:
        """Add a loop with extrapolated iterations."""
        begin = loop.simulated // FIRST_PART
        end = loop.simulated - loop.simulated // LAST_PART
        middle = (begin + end) // 2
        for mark, number in enumerate((begin, middle, end)):
            place = loop.first + number * loop.length
            self.at.setdefault(place, []).append((len(self.loops), mark))
        self.loops.append((loop, begin, middle, end))

    def note(self, place: int, step: int, charges: dict[int, int]) -> None:
        """Record the place of the step of the instruction at a position of the stream.

        `charges` are the ticks of everything before it, by pc.
        """
        for number, mark in self.at.get(place, ()):
            loop, begin, middle, end = self.loops[number]
            is_marked = loop.simulated >= LEAST_MARKED
            if is_marked:
                self.marks[step] = MARKS * len(self.made) + mark
            if mark == 0:
                self.begun[number] = step, charges
            elif mark == 2:
                first, before = self.begun.pop(number)
                taken = {pc: spent - before.get(pc, 0) for pc, spent in charges.items()}
                self.made.append(
                    LoopMarks(loop, first, step, end - begin, middle - begin, is_marked, taken)
                )
