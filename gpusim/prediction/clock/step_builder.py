"""From a warp stream to steps, once for each different stream.

Iterations of a loop are alike: where one leaves all as it found it, those behind it are copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from gpusim.prediction.clock.builder import Builder, Iteration, Row
from gpusim.prediction.clock.issue import Issue
from gpusim.prediction.clock.loop_marks import Marker
from gpusim.prediction.clock.steps import Action, Step, WarpSteps
from gpusim.prediction.measured import STORE_JOINED
from gpusim.prediction.streams import WarpStream

Array = np.ndarray[Any, Any]
# Iterations that leave a builder as they found it: by that, and by what they do.
Seen = dict[tuple[tuple[Any, ...] | None, bytes], Iteration]

_CACHED: Mapping[int, int] = MappingProxyType({})  # code and constants are where they are used


class _Piece(NamedTuple):
    """A stretch of a stream: what lies between loops, or an iteration; it may be one `again`."""

    begin: int
    end: int
    is_iteration: bool = False
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
    """A builder where an iteration of a loop begins."""

    def __init__(self, builder: Builder, state: tuple[Any, ...] | None) -> None:
        self._state = state
        self._steps = len(builder.made)
        self._issued = builder.made[-1].issued if builder.made else 0
        self._cursor = builder.cursor
        self._charges = dict(builder.charges)

    def iteration(self, builder: Builder, opened: Step) -> Iteration | None:
        """Return what the iteration added, None where it has not left all as it found it.

        Its first instruction is part of the step that it `opened`.
        """
        made, first = builder.made, self._steps
        if self._state is None or len(made) == first or builder.state() != self._state:
            return None
        ended = made[first - 1].again(first - 1)
        spent = {pc: now - self._charges.get(pc, 0) for pc, now in builder.charges.items()}
        steps = tuple(step.again(place) for place, step in enumerate(made[first:], first))
        return Iteration(
            ended=ended,
            issued=ended.issued - self._issued,
            steps=steps,
            tags=1 + max(step.tag for step in steps),
            opened=opened.place - first + 1,
            ticks=builder.cursor - self._cursor,
            charges={pc: ticks for pc, ticks in spent.items() if ticks},
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
    known: Iteration | None = None
    for piece in _pieces(stream):
        is_last = piece.end == len(stream)
        is_whole = piece.is_iteration and not is_last and not missed.is_within(piece)
        charges = dict(builder.charges) if piece.begin in marker.at else {}
        if not (known and piece.is_again and is_whole):
            state = builder.state() if is_whole else None
            key = state, _content(stream, piece) if state else b""
            known = seen.get(key)
        if known:
            opened = builder.repeat(known)
        else:
            before = _Begun(builder, state)
            opened = _add(piece, stream, program, missed, builder)
            known = before.iteration(builder, opened)
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
        if done < loop.first:
            yield _Piece(done, loop.first)
        done = loop.first + loop.simulated * loop.length
        for number in range(loop.simulated if loop.length else 0):
            begin = loop.first + number * loop.length
            yield _Piece(begin, begin + loop.length, True, number > 0)
    if done < len(stream):
        yield _Piece(done, len(stream))


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
        is_store = is_on and program[pc].action is Action.GLOBAL_STORE
        may_join = is_store and program[pc].is_global
        is_joined = may_join and not written and cost == sectors_before
        sectors_before = cost if may_join and not is_joined else 0
        alone = 1 - STORE_JOINED if is_joined else 1
        what = round(cost * alone), fresh, written, round(lines * alone), *rest
        yield Row(pc, is_taken, is_on, gaps, earlier, apart, behind, lanes, what)


def _content(stream: WarpStream, piece: _Piece) -> bytes:
    """Return what is the same for pieces of streams that do the same."""
    return b"".join(column.tobytes() for column in _columns(stream, piece))


def _columns(stream: WarpStream, piece: _Piece) -> Iterator[Array]:
    """Yield the columns of a piece of a stream that steps are made of, in the order of rows."""
    here = slice(piece.begin, piece.end)
    for name in ("pc", "is_taken", "is_on", "gaps", "earlier", "apart", "behind"):
        yield getattr(stream, name)[here]
    yield np.bitwise_count(stream.lanes[here])
    for name in ("cost", "fresh", "written", "lines", "wavefronts", "joins"):
        yield getattr(stream, name)[here]
