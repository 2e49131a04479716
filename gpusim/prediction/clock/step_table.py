"""Steps of a warp as columns of integers, so that pieces of streams are copied without objects.

Requests to units and awaited results are kept once, and referred to by number.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Generic, TypeVar, overload

import numpy as np

from gpusim.prediction.clock.steps import Action, Step
from gpusim.prediction.memory import Access

Array = np.ndarray[Any, Any]
T = TypeVar("T", bound=Hashable)

# The columns of a row: fields of `Step`, of which `access` and `needs` are numbers of references.
COLUMNS = (
    "action", "pc", "slot", "gap", "pipe", "busy", "access", "tag", "needs", "waits_long",
    "issued", "port", "mark",
)  # fmt: skip
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


@dataclass(frozen=True, eq=False)
class References:
    """The requests and awaited results of the steps of a program's warps, by number."""

    accesses: Numbered[Access] = field(default_factory=Numbered)
    needs: Numbered[tuple[int, ...]] = field(default_factory=Numbered)

    def rows(self, steps: Iterable[Step]) -> Array:
        """Return steps as rows, shaped (steps, columns), without marks."""
        access, needs = self.accesses.number, self.needs.number
        rows = [
            (
                s.action, s.pc, s.slot, s.gap, s.pipe, s.busy, access(s.access), s.tag,
                needs(s.needs), s.waits_long, s.issued, s.port, -1,
            )
            for s in steps
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
        values: Mapping[str, int] = dict(zip(COLUMNS, row, strict=True))
        changed: dict[str, Any] = {
            "action": _ACTIONS[values["action"]],
            "access": self.references.accesses.values[values["access"]],
            "needs": self.references.needs.values[values["needs"]],
            "waits_long": bool(values["waits_long"]),
        }
        return Step(**{**values, **changed}, place=place)
