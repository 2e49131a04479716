"""Accesses that a barrier orders: of different warps, in the log of one block."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from gpusim.advice.evidence import Evidence
from gpusim.isa.ops import OPS, Instruction
from gpusim.tracing.execution import Execution
from gpusim.typing import Array


class UnknownOrder(Exception):
    """The log does not show which accesses a barrier orders."""


class Ordered(NamedTuple):
    """Accesses of two warps to one element, with no barrier between them but one line's.

    `array` is the array's name, the lines are those of the earlier and the later access.
    """

    array: str
    line: int
    later_line: int


class _Accesses(NamedTuple):
    """Accesses to elements, one a lane and element: arrays of one length, in order of time.

    `interval` counts a warp's barriers before the access, `kept` those of other lines.
    """

    element: Array
    warp: Array
    interval: Array
    kept: Array
    line: Array
    reads: Array
    writes: Array

    def where(self, chosen: Array) -> _Accesses:
        """Return some of the accesses."""
        return _Accesses(*(column[chosen] for column in self))


def ordered_by(evidence: Evidence, line: int) -> Ordered | None:
    """Return two accesses of the logged block that would race without the barriers of a line.

    They are accesses of different warps to one element, at least one stores, they are not both
    atomic, and no barrier of another line stands between them. None where there are none: then
    `__syncwarp()` or nothing could stand in the barriers' place, in that block. Raises
    UnknownOrder where the log is incomplete, an access has no array, or a barrier has a number.
    """
    rows = evidence.instructions
    if not evidence.trace.is_complete or any(OPS[row.op].has_number for row in rows):
        raise UnknownOrder
    for array, runs in _by_array(evidence.trace.executions, rows, line).items():
        accesses = _accesses(runs, rows)
        only_reads, only_writes = ~accesses.writes, ~accesses.reads
        for first, second in (
            (accesses.where(only_writes), accesses),
            (accesses.where(accesses.writes), accesses.where(only_reads)),
        ):
            pair = _unordered(first, second)
            if pair is not None:
                return Ordered(array, *pair)
    return None


class _Run(NamedTuple):
    execution: Execution
    interval: int
    kept: int


def _by_array(
    executions: Iterable[Execution], rows: tuple[Instruction, ...], line: int
) -> dict[str, list[_Run]]:
    """Return accesses to shared and global memory by array, with the barriers before them."""
    table: dict[str, list[_Run]] = {}
    passed: dict[int, tuple[int, int]] = {}
    for execution in executions:
        interval, kept = passed.get(execution.warp, (0, 0))
        op = OPS[rows[execution.pc].op]
        if op.is_barrier:
            passed[execution.warp] = interval + 1, kept + (execution.line != line)
        elif op.access and execution.space != "local":
            if execution.array is None or execution.addresses is None:
                raise UnknownOrder
            table.setdefault(execution.array, []).append(_Run(execution, interval, kept))
    return table


def _accesses(runs: list[_Run], rows: tuple[Instruction, ...]) -> _Accesses:
    unit = min(run.execution.element_bytes for run in runs)
    columns = []
    for execution, interval, kept in runs:
        op = OPS[rows[execution.pc].op]
        starts = np.asarray(execution.addresses)[np.asarray(execution.on)]
        touched = (starts[:, None] + np.arange(0, execution.width_bytes, unit)).ravel() // unit
        same = execution.warp, interval, kept, execution.line, op.reads_memory, op.writes_memory
        columns.append((touched, *(np.full(len(touched), value) for value in same)))
    return _Accesses(*map(np.concatenate, zip(*columns, strict=True)))


def _unordered(first: _Accesses, second: _Accesses) -> tuple[int, int] | None:
    """Return the lines of two accesses of different warps with a barrier of the line between.

    An access has such a partner in its group (one element between two kept barriers) unless all
    others of the group are of its warp or its interval: counted by inclusion and exclusion.
    """
    group = ("element", "kept")
    partners = (
        _number_alike(first, second, group)
        - _number_alike(first, second, (*group, "warp"))
        - _number_alike(first, second, (*group, "interval"))
        + _number_alike(first, second, (*group, "warp", "interval"))
    )
    if not partners.any():
        return None
    one = int(np.argmax(partners > 0))
    is_partner = (
        (second.element == first.element[one])
        & (second.kept == first.kept[one])
        & (second.warp != first.warp[one])
        & (second.interval != first.interval[one])
    )
    other = int(np.argmax(is_partner))
    lines = int(first.line[one]), int(second.line[other])
    return lines if first.interval[one] < second.interval[other] else (lines[1], lines[0])


def _number_alike(first: _Accesses, second: _Accesses, columns: tuple[str, ...]) -> Array:
    """Return how many accesses of `second` equal each of `first` in some columns."""
    both = [np.concatenate((getattr(first, name), getattr(second, name))) for name in columns]
    _, numbers = np.unique(np.stack(both), axis=1, return_inverse=True)
    mine, others = np.split(numbers.ravel(), [len(first.element)])
    return np.bincount(others, minlength=len(numbers))[mine]
