"""Additional work of the last block, in kernels with a block counter.

A block executed alone finds the counter in its state before the launch; the last one of a grid
finds the contributions of all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gpusim import machine
from gpusim.errors import GpusimError
from gpusim.isa.ops import ANY_ARRAY, OPS, Program
from gpusim.launch.prepared import Prepared
from gpusim.prediction.streams.classes import Classes
from gpusim.prediction.streams.probe import Probe, with_own_results
from gpusim.typing import Array

MOST_WORDS = 8  # counters that one block adds to
COUNTING = ("add", "inc")


def with_last_block(
    classes: Classes, prepared: Prepared, step_limit: int, *, folds: bool
) -> Classes:
    """Return classes with the grid's last block separate, if it does more when it ends last."""
    last = prepared.launch.blocks - 1
    names = wanted_of_atomics(prepared.program, COUNTING)
    if not (last and names):
        return classes
    try:
        counted = _after_all_others(prepared, names, step_limit)
        if counted is None:
            return classes
        probe = Probe(counted, step_limit, folds=folds)
        probe.run(np.array([last]))
    except GpusimError:  # the counter was something else, such as an index into an array
        return classes
    stream = probe.streams[0]
    if stream.instructions <= classes.of(last).instructions:
        return classes
    return classes.with_last(stream)


def wanted_of_atomics(program: Program, details: tuple[str, ...] = ()) -> frozenset[str]:
    """Return the arrays with atomics whose old value is used; of some operations if given."""
    return frozenset(
        row.memory.name
        for row in program.instructions
        if OPS[row.op].kind == "atomic"
        and row.dst
        and (not details or row.detail in details)
        and row.memory is not None
        and row.memory.space in ("global", "generic")
        and row.memory.dtype.kind in "iu"
    )


def _after_all_others(
    prepared: Prepared, names: frozenset[str], step_limit: int
) -> Prepared | None:
    """Return a launch with the counters after all blocks but one; None without counters."""
    last, after, counts = prepared.launch.blocks - 1, dict(prepared.arguments), 0
    for name, array, left in left_by_last(prepared, names, step_limit):
        # Counters are only recognised in arrays with elements as large as the atomics' words.
        if array.dtype.kind in "iu" and last <= np.iinfo(array.dtype).max:
            added = left - array
            if np.count_nonzero(added) <= MOST_WORDS:
                counts += int(np.count_nonzero(added))
                after[name] = array + added * array.dtype.type(last)
    return replace(prepared, arguments=after) if counts else None


def left_by_last(
    prepared: Prepared, names: frozenset[str], step_limit: int
) -> Iterator[tuple[str, Array, Array]]:
    """Yield name, initial contents and contents after the last block alone, for some arrays."""
    once = with_own_results(prepared)
    machine.run(once, step_limit=step_limit, blocks=[prepared.launch.blocks - 1])
    for name, array in prepared.arguments.items():
        if isinstance(array, np.ndarray) and (name in names or ANY_ARRAY in names):
            yield name, array, _whole(once, name)


def _whole(prepared: Prepared, name: str) -> Array:
    """Return an array of a launch, all of its elements filled if it is a copy."""
    array: Array = prepared.arguments[name]
    for copy in prepared.copies:
        if np.may_share_memory(copy.bytes, array):
            copy.fill_all()
    return array
