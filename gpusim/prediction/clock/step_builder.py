"""From a warp stream to steps, once for each different stream.

Iterations of a loop are alike: what one adds that begins as one before did is a copy. So it is with
loops that were recorded whole, as those that data decide about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from gpusim.prediction.clock.builder import Added, Builder, Row, State
from gpusim.prediction.clock.issue import Issue
from gpusim.prediction.clock.loop_marks import Marker
from gpusim.prediction.clock.steps import Step, WarpSteps
from gpusim.prediction.streams import WarpStream

Array = np.ndarray[Any, Any]
# What pieces of streams add: by how they find a builder, and by what they do.
Seen = dict[tuple[State | None, bytes], Added]

MANY_JUMPS = 16  # back, in instructions outside loops, which are then looked at one by one

_CACHED: Mapping[int, int] = MappingProxyType({})  # code and constants are where they are used


class _Piece(NamedTuple):
    """Some of a stream: what lies between loops, or an iteration; it may be one `again`.

    It `may_repeat` what another did.
    """

    begin: int
    end: int
    may_repeat: bool = False
    is_again: bool = False


class _Missed(NamedTuple):
    """Lines of code and constants that no cache holds: the ticks they take, by place."""

    code: Mapping[int, int]
    constants: Mapping[int, int]

    def is_within(self, piece: _Piece) -> bool:
        """Return whether a piece of a stream waits for any."""
        return any(
            place in those for those in self if those for place in range(piece.begin, piece.end)
        )


class _Begun:
    """A builder where a piece of a stream begins."""

    def __init__(self, builder: Builder, state: State | None) -> None:
        self._state = state
        self._steps = len(builder.made)
        self._issued = builder.made[-1].issued if builder.made else 0
        self._cursor = builder.cursor
        self._charges = dict(builder.charges)

    def added(self, builder: Builder, opened: Step) -> Added | None:
        """Return what the piece added, None where it is not known how it began, or has no steps.

        Its first instruction is part of the step that it `opened`.
        """
        made, first = builder.made, self._steps
        if self._state is None or len(made) == first:
            return None
        ended = made[first - 1].again(first - 1)
        spent = {pc: now - self._charges.get(pc, 0) for pc, now in builder.charges.items()}
        steps = made[first:]
        # Of these two alone it is not known yet what they will be.
        for place in {opened.place, len(made) - 1} - {first - 1}:
            steps[place - first] = made[place].again(place)
        return Added(
            begun=self._state,
            ended=ended,
            issued=ended.issued - self._issued,
            steps=tuple(steps),
            tags=1 + max(step.tag for step in steps),
            opened=opened.place - first + 1,
            ticks=builder.cursor - self._cursor,
            charges={pc: ticks for pc, ticks in spent.items() if ticks},
            left=builder.left(),
        )


def steps_of(
    stream: WarpStream,
    program: Sequence[Issue],
    fetched: Mapping[int, int] = _CACHED,
    late: Mapping[int, int] = _CACHED,
    seen: Seen | None = None,
) -> WarpSteps:
    """Return what a warp does that runs a stream of a program's instructions.

    Code that no cache holds is `fetched`: the ticks of each line, by its place in the stream.
    Constants of which the same is true are so many ticks `late`. Iterations that were `seen` in
    other streams of the program are not gone through again.
    """
    builder, marker, missed = Builder(), Marker(), _Missed(fetched, late)
    seen = {} if seen is None else seen
    for loop in stream.simulated_loops:
        if loop.extrapolated and loop.simulated and loop.length:
            marker.add(loop)
    known: Added | None = None
    for piece in _pieces(stream):
        is_last = piece.end == len(stream)
        is_whole = piece.may_repeat and not is_last and not missed.is_within(piece)
        charges = dict(builder.charges) if piece.begin in marker.at else {}
        if not (known and known.is_again and piece.is_again and is_whole):
            state = (known.left.state if known else builder.state()) if is_whole else None
            key = state, _content(stream, piece) if state else b""
            known = seen.get(key)
        if known:
            opened = builder.repeat(known)
        else:
            begun = _Begun(builder, state)
            opened = _add(piece, stream, program, missed, builder)
            known = begun.added(builder, opened)
            if known:
                seen[key] = known
        marker.note(piece.begin, opened, charges)
    builder.finish(int(stream.pc[-1]) if len(stream) else 0)
    issued = sum(step.issued for step in builder.made)
    return WarpSteps(
        tuple(builder.made), builder.tags + 1, builder.charges, tuple(marker.made), issued
    )


def _pieces(stream: WarpStream) -> Iterator[_Piece]:
    """Yield a stream's iterations of loops, which are alike, and what lies between."""
    done = 0
    for loop in stream.simulated_loops:
        yield from _between(stream, done, loop.first)
        done = loop.first + loop.simulated * loop.length
        for number in range(loop.simulated if loop.length else 0):
            begin = loop.first + number * loop.length
            yield _Piece(begin, begin + loop.length, True, number > 0)
    yield from _between(stream, done, len(stream))


def _between(stream: WarpStream, begin: int, end: int) -> Iterator[_Piece]:
    """Yield what lies between loops: as one, or from jump back to jump back where these are many.

    Loops are recorded whole where data decide about them, or about what comes of their results.
    """
    jumps = begin + 1 + np.flatnonzero(np.diff(stream.pc[begin:end]) <= 0)
    if len(jumps) < MANY_JUMPS:
        jumps = jumps[:0]
    for first, last in pairwise([begin, *jumps.tolist(), end]):
        if first < last:
            yield _Piece(first, last, may_repeat=len(jumps) > 0)


def _add(
    piece: _Piece,
    stream: WarpStream,
    program: Sequence[Issue],
    missed: _Missed,
    builder: Builder,
) -> Step:
    """Add a piece of a stream, instruction by instruction; return the step that has the first."""
    last, opened = len(stream) - 1, 0
    for place, row in enumerate(_rows(stream, piece, program), piece.begin):
        if place in missed.code:
            builder.fetch(row.pc, missed.code[place])
        builder.late = missed.constants.get(place, 0)
        builder.issue(row, program[row.pc], is_last=place == last)
        if place == piece.begin:
            opened = len(builder.made) - 1
    return builder.made[opened]


def _rows(stream: WarpStream, piece: _Piece, program: Sequence[Issue]) -> Iterator[Row]:
    """Yield each instruction of a piece of a stream.

    A part of what is stored to the sectors of the store right before leaves the SM with that. Of
    local memory it is not known which sectors these are: stores in a row are to words of their own.
    """
    columns = [column.tolist() for column in _columns(stream, piece)]
    sectors_before = 0  # of a store that nothing has left with
    for pc, is_taken, is_on, gaps, earlier, apart, behind, lanes, *asked_for in zip(
        *columns, strict=True
    ):
        cost, fresh, written, lines, *rest = asked_for
        may_join = is_on and program[pc].joins > 0
        is_joined = may_join and not written and cost == sectors_before
        sectors_before = cost if may_join and not is_joined else 0
        alone = 1 - program[pc].joins if is_joined else 1
        what = round(cost * alone), fresh, written, round(lines * alone), *rest
        yield Row(pc, is_taken, is_on, gaps, earlier, apart, behind, lanes, what)


def _content(stream: WarpStream, piece: _Piece) -> bytes:
    """Return a digest of what is the same for pieces of streams that do the same."""
    return blake2b(b"".join(column.tobytes() for column in _columns(stream, piece))).digest()


def _columns(stream: WarpStream, piece: _Piece) -> Iterator[Array]:
    """Yield the columns of a piece of a stream that steps are made of, in the order of rows."""
    here = slice(piece.begin, piece.end)
    for name in ("pc", "is_taken", "is_on", "gaps", "earlier", "apart", "behind"):
        yield getattr(stream, name)[here]
    yield np.bitwise_count(stream.lanes[here])
    for name in ("cost", "fresh", "written", "lines", "wavefronts", "joins"):
        yield getattr(stream, name)[here]
