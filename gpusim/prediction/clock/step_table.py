"""Steps of a warp as columns of integers, so that pieces of streams are copied without objects.

Requests to units and awaited results are kept once, and referred to by number. A draft becomes a
row when nothing changes it any more.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Generic, TypeVar, overload

import numpy as np

from gpusim.prediction.clock.costs import NO_PIPE
from gpusim.prediction.clock.steps import Action, Step
from gpusim.prediction.memory import Access

Array = np.ndarray[Any, Any]
T = TypeVar("T", bound=Hashable)

# The columns of a row: fields of `Step`, of which `access` and `needs` are numbers of references.
COLUMNS = (
    "action", "pc", "slot", "gap", "pipe", "busy", "access", "tag", "needs", "waits_long",
    "issued", "port", "mark", "under_way",
)  # fmt: skip
NO_REQUEST = -1  # in place of the position of a draft that asks no unit for anything
AT = {name: number for number, name in enumerate(COLUMNS)}
# What a step that was left open may still change, beside the number of issued instructions.
ENDED = [AT[name] for name in ("slot", "gap", "needs", "waits_long")]
_ACTIONS = tuple(Action)


class Numbered(Generic[T]):
    """Distinct values, numbered in the order of their first use."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._numbers: dict[T, int] = {}

    def number(self, value: T) -> int:
        """Return the number of a value, a new one for one not seen before."""
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self.values)
            self.values.append(value)
        return found


@dataclass(slots=True)
class Draft:
    """A step as it is built: see `Step`.

    `asked` is the position in the stream of the instruction with its request, and `under_way` the
    number of loads in flight before that.
    """

    action: Action
    pc: int
    slot: int
    gap: int
    pipe: int = NO_PIPE
    busy: int = 0
    asked: int = NO_REQUEST
    under_way: int = 0
    tag: int = -1
    needs: tuple[int, ...] = ()
    waits_long: bool = False
    issued: int = 1
    port: int = 0

    def moved(self, far: int) -> Draft:
        """Return a copy with its request so far behind in the stream."""
        asked = self.asked + far if self.asked != NO_REQUEST else NO_REQUEST
        return Draft(  # by itself: a third of the time of `dataclasses.replace`
            self.action, self.pc, self.slot, self.gap, self.pipe, self.busy, asked, self.under_way,
            self.tag, self.needs, self.waits_long, self.issued, self.port,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class References:
    """The requests and awaited results of the steps of a program's warps, by number."""

    accesses: Numbered[Access] = field(default_factory=Numbered)
    needs: Numbered[tuple[int, ...]] = field(default_factory=Numbered)

    def rows(self, drafts: Iterable[Draft]) -> Array:
        """Return drafts as rows, shaped (steps, columns), without marks.

        In the place of an access stands the position in the stream of what asks for it.
        """
        needs = self.needs.number
        rows = [
            (
                d.action, d.pc, d.slot, d.gap, d.pipe, d.busy, d.asked, d.tag, needs(d.needs),
                d.waits_long, d.issued, d.port, -1, d.under_way,
            )
            for d in drafts
        ]  # fmt: skip
        return np.array(rows, dtype=np.int64).reshape(-1, len(COLUMNS))


class StepTable(Sequence[Step]):
    """The steps of a warp in order: `rows` with the COLUMNS, and their `references`.

    `Step` objects are made of them where they are asked for, as by SimPy's clock.
    """

    def __init__(self, rows: Array, references: References) -> None:
        self.rows = rows
        self.references = references

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> Step: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Step, ...]: ...
    def __getitem__(self, place: int | slice) -> Step | tuple[Step, ...]:
        return self._objects[place]

    def __iter__(self) -> Iterator[Step]:
        return iter(self._objects)

    def column(self, name: str) -> Array:
        """Return a column, shaped (steps,)."""
        return self.rows[:, AT[name]]

    @cached_property
    def _objects(self) -> tuple[Step, ...]:
        made = tuple(self._step(place, row) for place, row in enumerate(self.rows.tolist()))
        for step, following in pairwise(made):
            step.next = following
        return made

    def _step(self, place: int, row: Sequence[int]) -> Step:
        values: dict[str, int] = dict(zip(COLUMNS, row, strict=True))
        del values["under_way"]
        changed: dict[str, Any] = {
            "action": _ACTIONS[values["action"]],
            "access": self.references.accesses.values[values["access"]],
            "needs": self.references.needs.values[values["needs"]],
            "waits_long": bool(values["waits_long"]),
        }
        return Step(**{**values, **changed}, place=place)
