"""Numbers of instructions, equal for those with equal columns of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpusim.prediction.arithmetic.grouping import hashed_with
from gpusim.prediction.streams.ordering import stable_order, starts
from gpusim.prediction.streams.stream import COLUMNS, MOST_BEHIND

Array = np.ndarray[Any, Any]

_PLAIN = ("pc", "lanes", "is_on", "is_taken")
# Columns that differ from these values in accesses alone.
_OF_ACCESSES = {name: 0 for name in COLUMNS if name not in _PLAIN} | {
    "behind": MOST_BEHIND,
    "constant": -1,
}
_IS_ACCESS = np.uint64(1 << 63)


def instruction_ids(columns: Mapping[str, Array]) -> Array:
    """Return small numbers, equal for instructions with equal columns.

    Most instructions of a pc are alike: one of them has the pc as its number, and the others that
    are like it.
    """
    pc = columns["pc"]
    content, accesses = _contents(columns)
    usual = np.zeros(int(pc.max(initial=0)) + 1, dtype=np.uint64)
    usual[pc[::-1]] = content[::-1]
    others = np.flatnonzero(content != usual[pc])
    ids = pc.astype(np.int32)
    ids[others] = len(usual) + _numbers(content[others])
    if not _are_alike(columns, ids, accesses):
        return np.arange(len(pc), dtype=np.int32)
    return ids


def _contents(columns: Mapping[str, Array]) -> tuple[Array, Array]:
    """Return numbers for the content of all instructions, and the places of accesses.

    They are exact for instructions without an access, and a hash for the others.
    """
    pc, lanes, is_on, is_taken = (columns[name].astype(np.uint64) for name in _PLAIN)
    content = (((pc << 32) | lanes) << 2) | (is_on << 1) | is_taken
    is_access = np.zeros(len(content), dtype=bool)
    for name, usual in _OF_ACCESSES.items():
        is_access |= columns[name] != usual
    at = np.flatnonzero(is_access)
    hashed = content[at]
    for name in _OF_ACCESSES:
        hashed = hashed_with(hashed, columns[name][at])
    content[at] = hashed | _IS_ACCESS
    return content, at


def _numbers(contents: Array) -> Array:
    """Return numbers from 0 on, equal for equal contents."""
    order = stable_order(contents)
    begins = starts(contents[order])
    numbers = np.empty(len(order), dtype=np.int32)
    numbers[order] = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(order)))
    return numbers


def _are_alike(columns: Mapping[str, Array], ids: Array, accesses: Array) -> bool:
    """Return whether accesses of one number have equal columns: no two contents share a hash."""
    own = ids[accesses]
    like = np.zeros(int(own.max(initial=0)) + 1, dtype=np.int64)
    like[own] = accesses
    other = like[own]
    return all(np.array_equal(columns[name][accesses], columns[name][other]) for name in COLUMNS)
