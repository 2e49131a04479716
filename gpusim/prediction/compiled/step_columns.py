"""Steps of warps in the memory of a module: distinct ones, and lists of references to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpusim.prediction.arithmetic.grouping import numbers
from gpusim.prediction.clock.step_table import DistinctSteps, StepTable
from gpusim.prediction.clock.steps import READS, Action, Step
from gpusim.prediction.memory import Access
from gpusim.typing import Array
from gpusim.wasm.image import Image
from gpusim.wasm.value_types import INT, Kind, ListOf, Reference


def add_steps(image: Image, tables: Sequence[StepTable]) -> None:
    """Place the steps of warps in an image: each distinct one once, after what it refers to."""
    of_program: dict[int, list[StepTable]] = {}
    for table in tables:
        of_program.setdefault(id(table.distinct), []).append(table)
    for those in of_program.values():
        distinct = those[0].distinct
        is_used = np.zeros(len(distinct), dtype=bool)
        for table in those:
            is_used[table.numbers] = True
        used = np.flatnonzero(is_used)
        addresses = np.zeros(len(distinct), dtype=np.int64)
        addresses[used] = image.add_columns(Step, _columns(image, distinct, used))
        for table in those:
            image.add_slots(table, addresses[table.numbers])


def _columns(image: Image, distinct: DistinctSteps, used: Array) -> Mapping[str, Array]:
    """Return the fields of some distinct steps as slots, after placing what they refer to."""
    columns = {name: column[used] for name, column in distinct.columns.items()}
    action = columns["action"]
    accesses = _addresses(image, Reference(Access), distinct.accesses.values, columns["access"])
    needs = _addresses(image, ListOf(INT), distinct.needs.values, columns["needs"])
    return {
        **columns,
        "access": accesses,
        "needs": needs,
        "is_shared": action > Action.SPECIAL,
        "is_in_order": ~np.isin(action, READS),
    }


def _addresses(image: Image, kind: Kind, values: Sequence[Any], which: Array) -> Array:
    """Place some of the values, given by number; return the address of each."""
    here = numbers(which)
    placed = [values[number] for number in here]
    image.add_list(kind, placed)
    table = np.zeros(len(values), dtype=np.int64)
    table[here] = [image.address(one) for one in placed]
    return table[which]
