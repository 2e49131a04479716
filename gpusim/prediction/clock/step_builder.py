"""Steps of a warp stream, built once for each distinct stream.

Equal pieces of streams are copied: an iteration, or a section between loops, that begins in the
state of an earlier one adds the same steps. The same holds for fully recorded loops, such as
data-dependent ones. Pieces are equal if they have the same instructions; their requests to units
are numbered afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from gpusim.prediction.clock.builder import Added, Builder, Row, State, moved
from gpusim.prediction.clock.issue import Issue
from gpusim.prediction.clock.loop_marks import Marker
from gpusim.prediction.clock.requests import Requests
from gpusim.prediction.clock.step_table import AT, NO_REQUEST, References, StepTable
from gpusim.prediction.clock.warp_steps import WarpSteps
from gpusim.prediction.memory import NO_ACCESS
from gpusim.prediction.streams import WarpStream

Array = np.ndarray[Any, Any]
FEWEST = 16  # instructions of a piece that ends at a jump forward
_CACHED: Mapping[int, int] = MappingProxyType({})  # all code and constants hit


class _Piece(NamedTuple):
    """A section of a stream: between loops, or one iteration, repeated if `is_again`."""

    begin: int
    end: int
    is_again: bool = False


class _Missed(NamedTuple):
    """Misses of code lines and constants: their ticks, by position."""

    code: Mapping[int, int]
    constants: Mapping[int, int]

    def within(self, piece: _Piece) -> tuple[tuple[int, int, int], ...]:
        """Return the misses of a piece of a stream: kind, position from its begin, and ticks."""
        return tuple(
            (kind, place - piece.begin, those[place])
            for kind, those in enumerate(self)
            if those
            for place in range(piece.begin, piece.end)
            if place in those
        )


class Seen:
    """Additions of a program's pieces of streams, by initial state, content, misses, and end.

    Their rows refer to `references`; `requests` are those of the program.
    """

    def __init__(self, program: Sequence[Issue]) -> None:
        self.references = References()
        self.requests = Requests(program, self.references.accesses)
        self._added: dict[tuple[Any, ...], Added] = {}

    def find(self, key: tuple[Any, ...]) -> Added | None:
        """Return the additions of an equal piece, None if there was none."""
        return self._added.get(key)

    def add(self, key: tuple[Any, ...], added: Added) -> None:
        """Keep the additions of a piece."""
        self._added[key] = added


class _Begun:
    """The state of a builder at the beginning of a piece of a stream."""

    def __init__(self, builder: Builder, state: State | None, place: int) -> None:
        self._state, self._place = state, place
        self._steps = builder.count
        self._issued = builder.made[-1].issued if builder.made else 0
        self._cursor = builder.cursor
        self._charges = dict(builder.charges)
        self._line_begun = builder.line_begun

    def added(self, builder: Builder, opened: int) -> Added | None:
        """Settle the piece; return its additions, None without an initial state or new steps.

        Its first instruction is part of the step at place `opened`.
        """
        settled, first = builder.settle(), self._steps
        if self._state is None or builder.count == first:
            return None
        ended, rows, last = settled[0], settled[1:], builder.made[-1]
        spent = {pc: now - self._charges.get(pc, 0) for pc, now in builder.charges.items()}
        return Added(
            begun=self._state,
            ended=ended,
            issued=int(ended[AT["issued"]]) - self._issued,
            rows=moved(rows.copy(), -self._place),
            last=last.moved(-self._place),
            tags=1 + max(last.tag, int(rows[:, AT["tag"]].max(initial=-1))),
            opened=opened - first + 1,
            ticks=builder.cursor - self._cursor,
            charges={pc: ticks for pc, ticks in spent.items() if ticks},
            line_begun=builder.line_begun - builder.cursor
            if builder.line_begun != self._line_begun
            else None,
            left=builder.left(),
        )


def steps_of(
    stream: WarpStream,
    program: Sequence[Issue],
    fetched: Mapping[int, int] = _CACHED,
    late: Mapping[int, int] = _CACHED,
    seen: Seen | None = None,
) -> WarpSteps:
    """Return the steps of a warp with a stream of a program's instructions.

    `fetched` holds the ticks of missed code lines and `late` those of missed constants, by position
    in the stream. Iterations `seen` in other streams of the program are copied.
    """
    seen = Seen(program) if seen is None else seen
    builder, marker, missed = Builder(seen.references), Marker(), _Missed(fetched, late)
    codes, begins = _codes(stream), []
    for loop in stream.simulated_loops:
        if loop.extrapolated and loop.simulated and loop.length:
            marker.add(loop)
    known: Added | None = None
    for piece in _pieces(stream):
        begins.append(piece.begin)
        is_last, misses = piece.end == len(stream), missed.within(piece)
        charges = dict(builder.charges) if piece.begin in marker.at else {}
        if not (known and known.is_again and piece.is_again and not (is_last or misses)):
            state = known.left.state if known else builder.state()
            line = builder.cursor - builder.line_begun if misses else 0
            content = blake2b(codes[piece.begin : piece.end].data).digest() if state else b""
            key = state, content, misses, line, is_last
            known = seen.find(key)
        if known:
            opened = builder.repeat(known, piece.begin)
        else:
            begun = _Begun(builder, state, piece.begin)
            opened = _add(piece, codes, program, missed, builder)
            known = begun.added(builder, opened)
            if known:
                seen.add(key, known)
        marker.note(piece.begin, opened, charges)
    builder.finish(int(stream.pc[-1]) if len(stream) else 0)
    rows = builder.rows()
    _set_requests(rows, stream, begins, late, seen)
    _set_marks(rows, marker.marks, builder.tags, seen.references)
    steps = StepTable(rows, seen.references)
    issued = int(steps.column("issued").sum())
    return WarpSteps(steps, builder.tags + 1, builder.charges, tuple(marker.made), issued)


def _set_requests(
    rows: Array, stream: WarpStream, begins: Sequence[int], late: Mapping[int, int], seen: Seen
) -> None:
    """Put numbers of requests in the place of their positions in the stream."""
    column = rows[:, AT["access"]]
    asks = column != NO_REQUEST
    places, under_way = column[asks], rows[asks, AT["under_way"]]
    column[~asks] = seen.references.accesses.number(NO_ACCESS)
    column[asks] = seen.requests.numbers(stream, places, under_way, begins, late)


def _set_marks(rows: Array, marks: Mapping[int, int], tags: int, references: References) -> None:
    """Mark steps by place; one that awaits nothing awaits a result that is there from the start."""
    there = references.needs.number((tags,))
    for place, mark in marks.items():
        row = rows[place]
        row[AT["mark"]] = mark
        if not references.needs.values[row[AT["needs"]]]:
            row[AT["needs"]] = there


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


def _between(stream: WarpStream, begin: int, end: int) -> Iterator[_Piece]:
    """Yield the section between loops, split behind jumps: backward ones, and some forward.

    Loops are fully recorded if data determine them or depend on their results, and warps whose
    lanes part have much in common.
    """
    pc = stream.pc[begin:end]
    is_backward = np.diff(pc) <= 0
    behind = 1 + np.flatnonzero(is_backward | stream.is_taken[begin : end - 1])
    first = 0
    for place in behind.tolist():
        if is_backward[place - 1] or place - first >= FEWEST:
            yield _Piece(begin + first, begin + place)
            first = place
    if begin + first < end:
        yield _Piece(begin + first, end)


def _add(
    piece: _Piece,
    codes: Array,
    program: Sequence[Issue],
    missed: _Missed,
    builder: Builder,
) -> int:
    """Add a piece of a stream, by instruction; return the place of the first one's step."""
    last, opened = len(codes) - 1, 0
    for place, code in enumerate(codes[piece.begin : piece.end].tolist(), piece.begin):
        row = Row(code >> 2, place, code >> 1 & 1, code & 1)
        if place in missed.code:
            builder.fetch(row.pc, missed.code[place])
        builder.late = missed.constants.get(place, 0)
        builder.issue(row, program[row.pc], is_last=place == last)
        if place == piece.begin:
            opened = builder.count - 1
    return opened


def _codes(stream: WarpStream) -> Array:
    """Return a number for each instruction of a stream: all that its step is built from."""
    return stream.pc.astype(np.int64) << 2 | stream.is_taken.astype(np.int64) << 1 | stream.is_on
