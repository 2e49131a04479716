"""Steps of warps in the memory of a module: columns, brought there without objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from gpusim.prediction.clock.step_table import COLUMNS, References, StepTable
from gpusim.prediction.clock.steps import READS, Action, Step
from gpusim.prediction.compiled.image import Image
from gpusim.prediction.compiled.value_types import INT, ListOf, Reference
from gpusim.prediction.memory import Access

Array = np.ndarray[Any, Any]


def add_steps(image: Image, tables: Iterable[StepTable]) -> None:
    """Place the steps of warps in an image, after the values to which they refer."""
    known: dict[int, tuple[Array, Array]] = {}
    for table in tables:
        references = table.references
        if id(references) not in known:
            known[id(references)] = _placed(image, references)
        accesses, needs = known[id(references)]
        image.add_columns(Step, table, lambda at: _columns(table, accesses, needs, at))  # noqa: B023


def _placed(image: Image, references: References) -> tuple[Array, Array]:
    """Place accesses and awaited results; return the addresses of each by number."""
    accesses, needs = tuple(references.accesses.values), tuple(references.needs.values)
    image.add_list(Reference(Access), accesses)
    image.add_list(ListOf(INT), needs)
    addresses = [
        np.array([image.address(one) for one in values], dtype=np.int64)
        for values in (accesses, needs)
    ]
    return addresses[0], addresses[1]


def _columns(table: StepTable, accesses: Array, needs: Array, at: Array) -> Mapping[str, Array]:
    """Return the fields of steps at some addresses, as slots."""
    columns = {name: table.column(name) for name in COLUMNS}
    action = columns["action"]
    return {
        **columns,
        "place": np.arange(len(table)),
        "access": accesses[columns["access"]],
        "needs": needs[columns["needs"]],
        "is_shared": action > Action.SPECIAL,
        "is_in_order": ~np.isin(action, READS),
        "next": np.append(at[1:], at[-1:]),
    }
