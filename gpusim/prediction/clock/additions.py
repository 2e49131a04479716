"""Additions of pieces of streams to the steps of a warp, built once for each state and content.

A piece that begins in the state of an earlier one, with the same instructions, adds the same rows
and leaves the same state: pieces are the transitions of an automaton, found by their content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gpusim.prediction.clock.builder import Builder, Left, State, Told
from gpusim.prediction.clock.issue import Issue
from gpusim.prediction.clock.requests import Requests
from gpusim.prediction.clock.step_table import DistinctSteps, Ended
from gpusim.typing import Array

# Codes of instructions: all that their steps are built from.
CODE_BYTES = 4
MOST_AT_ONCE = 16  # instructions processed without a look for known parts


class Content(NamedTuple):
    """The additions of a piece, except the state that it begins in.

    The `codes` of its instructions; the `misses` of code lines and constants, as kind, position and
    ticks, with the ticks since the `line` of code began if there are some; whether the stream ends.
    """

    codes: bytes
    misses: tuple[tuple[int, int, int], ...]
    line: int
    is_last: bool

    def until(self, end: int) -> Content:
        """Return the part before a position of a piece without misses."""
        return self._replace(codes=self.codes[: CODE_BYTES * end], is_last=False)

    def behind(self, begin: int) -> Content:
        """Return the part from a position on of a piece without misses."""
        return self._replace(codes=self.codes[CODE_BYTES * begin :])


@dataclass(eq=False)
class Reached:
    """A state of the builder, None before the first step, with the pieces that began in it."""

    left: Left | None
    added: dict[Content, Added] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Added:
    """Additions of a piece of a stream.

    `ended` is the final form of the step left open before it, None without one. `rows` are the
    numbers of the rows of its `count` steps, the last of them left open; None if it adds none.
    Requests stand at positions `places` of the piece and belong to some of these `steps`, with
    `under_way` loads in flight. Its first instruction is part of the `opened`-th step, -1 for the
    open one before. Further: the number of tags, the instructions issued, the ticks in all and by
    pc, those since the last line of code began, None without one, and the state it `left`.
    """

    ended: Ended | None
    rows: Array
    open: int | None
    count: int
    places: Array
    under_way: Array
    steps: Array
    opened: int
    tags: int
    issued: int
    ticks: int
    charges: Mapping[int, int]
    line: int | None
    left: Reached


class Seen:
    """The states that pieces of a program's streams have left, from the `first` on.

    Their rows are those of `distinct` steps; `requests` are those of the program. Pieces of more
    than `most_at_once` instructions are halved, in search of known parts.
    """

    def __init__(self, program: Sequence[Issue], most_at_once: int = MOST_AT_ONCE) -> None:
        self._most_at_once = most_at_once
        self.distinct = DistinctSteps()
        self.requests = Requests(program, self.distinct.accesses)
        self.first = Reached(None)
        self._program = program
        self._reached: dict[State, Reached] = {}

    def added(self, begun: Reached, content: Content) -> Added:
        """Return the additions of a piece that begins in a state."""
        found = begun.added.get(content)
        if found is None:
            found = begun.added[content] = self._made(begun, content)
        return found

    def _made(self, begun: Reached, content: Content) -> Added:
        """Return the additions of a piece, of its halves if it is long.

        Pieces that differ in an instruction, or in the results that they wait for, have parts in
        common; those with misses have hardly any.
        """
        count = len(content.codes) // CODE_BYTES
        most = self._most_at_once
        if count <= most or content.misses:
            return self.build(begun, content)
        middle = (count // 2 + most - 1) // most * most
        first = self.added(begun, content.until(middle))
        return self._joined(first, self.added(first.left, content.behind(middle)), middle)

    def _joined(self, first: Added, second: Added, length: int) -> Added:
        """Return the additions of a piece of some length and the one after it, as of one."""
        assert second.ended is not None
        ended, rows, last = first.ended, first.rows, second.open
        if first.open is not None:
            row = self.distinct.ended(first.open, second.ended)
            rows = np.append(rows[:-1], np.int32(row))
            last = row if last is None else last
        elif ended is not None:
            ended = second.ended._replace(issued=ended.issued + second.ended.issued)
        charges = dict(first.charges)
        for pc, spent in second.charges.items():
            charges[pc] = charges.get(pc, 0) + spent
        return Added(
            ended=ended,
            rows=np.concatenate([rows, second.rows]),
            open=last,
            count=first.count + second.count,
            places=np.append(first.places, second.places + length),
            under_way=np.append(first.under_way, second.under_way),
            steps=np.append(first.steps, second.steps + first.count),
            opened=first.opened,
            tags=max(first.tags, second.tags),
            issued=first.issued + second.issued,
            ticks=first.ticks + second.ticks,
            charges=charges,
            line=None,
            left=second.left,
        )

    def build(self, begun: Reached, content: Content) -> Added:
        """Go through the instructions of a piece that begins in a state."""
        left, row = begun.left, self.distinct.row
        builder = Builder() if left is None else Builder.after(left, content.line)
        first = len(builder.made)
        opened = self._issue(builder, content) - first
        made, has_fetched = builder.made, any(kind == 0 for kind, _, _ in content.misses)
        rows = [row(draft) for draft in made[first:]]
        asked = np.array(builder.asked, dtype=np.int64).reshape(-1, 3).T
        return Added(
            ended=self._ended(builder) if first else None,
            rows=np.array(rows, dtype=np.int32),
            open=rows[-1] if rows else None,
            count=len(rows),
            places=asked[0],
            under_way=asked[1],
            steps=asked[2] - first,
            opened=opened,
            tags=builder.tags,
            issued=sum(draft.issued for draft in made),
            ticks=builder.cursor,
            charges=builder.charges,
            line=builder.cursor - builder.line_begun if has_fetched else None,
            left=self._state(builder.left()),
        )

    def _issue(self, builder: Builder, content: Content) -> int:
        """Issue the instructions of a piece; return the place of the first one's step."""
        codes = np.frombuffer(content.codes, dtype=np.uint32).tolist()
        fetched, late = (
            {place: ticks for of, place, ticks in content.misses if of == kind} for kind in (0, 1)
        )
        pc, opened, last = 0, 0, len(codes) - 1 if content.is_last else -1
        for place, code in enumerate(codes):
            pc = code >> 2
            if place in fetched:
                builder.fetch(pc, fetched[place])
            builder.late = late.get(place, 0)
            told = Told(pc, place, code >> 1 & 1, code & 1)
            builder.issue(told, self._program[pc], is_last=place == last)
            if not place:
                opened = len(builder.made) - 1
        if content.is_last:
            builder.finish(pc)
        return opened

    def _ended(self, builder: Builder) -> Ended:
        """Return how the step that was open has ended."""
        draft = builder.made[0]
        needs = self.distinct.needs.number(draft.needs)
        return Ended(draft.slot, draft.gap, needs, int(draft.waits_long), draft.issued)

    def _state(self, left: Left) -> Reached:
        """Return the state that a piece has left: one object for equal ones."""
        return self._reached.setdefault(left.state, Reached(left))
