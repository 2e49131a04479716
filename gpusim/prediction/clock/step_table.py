"""Steps of warps by number: each distinct step is kept once, whatever warps have it and how often.

Requests to units and awaited results are kept once as well, and referred to by number. A draft
becomes a row when nothing changes it any more; a row with its request is a step.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar, overload

import numpy as np

from gpusim.prediction.arithmetic.grouping import groups, numbers
from gpusim.prediction.clock.costs import NO_PIPE
from gpusim.prediction.clock.steps import Action, Step
from gpusim.prediction.memory import NO_ACCESS, Access
from gpusim.typing import Array

T = TypeVar("T", bound=Hashable)

_ACTIONS = tuple(Action)
_REQUEST_BITS = 32  # of a row and a request as one number


class Numbered(Generic[T]):
    """Distinct values, numbered in the order of their first use."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._numbers: dict[T, int] = {}

    def __len__(self) -> int:
        return len(self.values)

    def number(self, value: T) -> int:
        """Return the number of a value, a new one for one not seen before."""
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self.values)
            self.values.append(value)
        return found


class Row(NamedTuple):
    """Fields of a `Step` but its access; `needs` is a number of awaited results."""

    action: int
    pc: int
    slot: int
    gap: int
    pipe: int
    busy: int
    tag: int
    needs: int
    waits_long: int
    issued: int
    port: int
    mark: int = -1


class Ended(NamedTuple):
    """What a step that was left open may still change, with `issued` more instructions."""

    slot: int
    gap: int
    needs: int
    waits_long: int
    issued: int


@dataclass(slots=True)
class Draft:
    """A step as it is built: see `Step`."""

    action: Action
    pc: int
    slot: int
    gap: int
    pipe: int = NO_PIPE
    busy: int = 0
    tag: int = -1
    needs: tuple[int, ...] = ()
    waits_long: bool = False
    issued: int = 1
    port: int = 0


class DistinctSteps:
    """The distinct steps of a program's warps by number, and what they refer to by number."""

    def __init__(self) -> None:
        self.accesses: Numbered[Access] = Numbered()
        self.needs: Numbered[tuple[int, ...]] = Numbered()
        self.rows: Numbered[Row] = Numbered()
        self._steps: Numbered[tuple[int, int]] = Numbered()  # a row and an access
        self._ended: dict[tuple[int, Ended], int] = {}
        self._columns: dict[str, Array] = {}
        self._objects: list[Step] = []

    def __len__(self) -> int:
        return len(self._steps)

    def row(self, draft: Draft) -> int:
        """Return the number of a draft's row, without a mark."""
        d = draft
        return self.rows.number(
            Row(
                int(d.action), d.pc, d.slot, d.gap, d.pipe, d.busy, d.tag,
                self.needs.number(d.needs), int(d.waits_long), d.issued, d.port,
            )
        )  # fmt: skip

    def ended(self, row: int, by: Ended) -> int:
        """Return the number of the row of a step that was left open, as it has ended."""
        found = self._ended.get((row, by))
        if found is None:
            left = self.rows.values[row]
            issued = left.issued + by.issued
            changed = left._replace(**{**by._asdict(), "issued": issued})
            found = self._ended[row, by] = self.rows.number(changed)
        return found

    def marked(self, row: int, mark: int, there: tuple[int, ...]) -> int:
        """Return the number of a row with a mark: a step that awaits nothing awaits `there`."""
        plain = self.rows.values[row]
        needs = plain.needs if self.needs.values[plain.needs] else self.needs.number(there)
        return self.rows.number(plain._replace(mark=mark, needs=needs))

    def numbers(self, rows: Array, asked: Array, requests: Array) -> Array:
        """Return the numbers of the steps of some rows, with `requests` at the `asked` indices."""
        found = np.empty(len(rows), dtype=np.int32)
        is_plain = np.ones(len(rows), dtype=bool)
        is_plain[asked] = False
        plain, without = rows[is_plain], self.accesses.number(NO_ACCESS)
        distinct = numbers(plain)
        table = np.zeros(distinct[-1] + 1 if distinct else 0, dtype=np.int32)
        table[distinct] = [self._steps.number((row, without)) for row in distinct]
        found[is_plain] = table[plain]
        pairs = rows[asked].astype(np.int64) << _REQUEST_BITS | requests
        firsts, which = groups(pairs)
        here = zip(rows[asked][firsts].tolist(), requests[firsts].tolist(), strict=True)
        table = np.array([self._steps.number(pair) for pair in here], dtype=np.int32)
        found[asked] = table[which]
        return found

    @property
    def columns(self) -> Mapping[str, Array]:
        """The fields of the steps by name, shaped (steps,): accesses and results by number."""
        done = len(self._columns["access"]) if self._columns else 0
        if done < len(self) or not self._columns:
            pairs, rows = self._steps.values[done:], self.rows.values
            found = np.array([(*rows[row], access) for row, access in pairs], dtype=np.int64)
            found = found.reshape(-1, len(Row._fields) + 1)
            for name, column in zip((*Row._fields, "access"), found.T, strict=True):
                before = self._columns.get(name)
                self._columns[name] = column.copy() if before is None else np.append(before, column)
        return self._columns

    def step(self, number: int) -> Step:
        """Return the step with a number, one object for all warps that have it."""
        for row, access in self._steps.values[len(self._objects) :]:
            self._objects.append(self._step(self.rows.values[row], self.accesses.values[access]))
        return self._objects[number]

    def _step(self, row: Row, access: Access) -> Step:
        changed = {
            "action": _ACTIONS[row.action],
            "access": access,
            "needs": self.needs.values[row.needs],
            "waits_long": bool(row.waits_long),
        }
        return Step(**{**row._asdict(), **changed})


class StepTable(Sequence[Step]):
    """The steps of a warp in order, `numbers` of `distinct` ones.

    `Step` objects are made of them where they are requested, as by SimPy's clock.
    """

    def __init__(self, numbers: Array, distinct: DistinctSteps) -> None:
        self.numbers = numbers
        self.distinct = distinct

    def __len__(self) -> int:
        return len(self.numbers)

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
        return self.distinct.columns[name][self.numbers]

    @cached_property
    def _objects(self) -> tuple[Step, ...]:
        return tuple(self.distinct.step(number) for number in self.numbers.tolist())
