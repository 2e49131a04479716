"""Classification of a grid's blocks by a few executed ones.

Classes are ranges of coordinates where possible, else a stratified sample represents all blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from gpusim import machine
from gpusim.launch.grid import Dim3, places_of, whole_number
from gpusim.launch.prepared import Prepared
from gpusim.prediction.streams.array_specs import refuse_missing_elements
from gpusim.prediction.streams.cells import Cells, Strata, is_line, strata
from gpusim.prediction.streams.classes import Classes, classes_from
from gpusim.prediction.streams.folding import is_worth_folding, unfolded
from gpusim.prediction.streams.last_block import (
    MOST_WORDS,
    left_by_last,
    wanted_of_atomics,
    with_last_block,
)
from gpusim.prediction.streams.probe import Probe
from gpusim.prediction.streams.same_launch import SameLaunch
from gpusim.program.taint import data_dependent_lines
from gpusim.typing import Array

# Blocks may communicate by atomics, as in trees built bottom-up and hash tables: a block executed
# alone finds no marks of others and takes another path.
# Limit on the instructions of a grid, up to which all blocks are executed: a second or two.
MOST_MEETING = 8_000_000


def blocks_meet(prepared: Prepared, classes: Classes, step_limit: int) -> bool:
    """Return whether blocks depend on many words of others, and the whole grid may be executed.

    `classes` are those of blocks executed alone. A few words are counters of blocks or indices,
    handled by `last_block`.
    """
    names = wanted_of_atomics(prepared.program)
    if not (names and data_dependent_lines(prepared.program, names)):
        return False
    work = sum(one.blocks * one.stream.instructions for one in classes.classes)
    if work > MOST_MEETING:
        return False
    return _words(prepared, names, step_limit) > MOST_WORDS


def _words(prepared: Prepared, names: frozenset[str], step_limit: int) -> int:
    """Return the number of words of some arrays changed by the last block."""
    found = left_by_last(prepared, names, step_limit)
    return sum(int(np.count_nonzero(left != array)) for _, array, left in found)


FIRST_PROBES = 10  # along a single axis
MAX_PROBES = 256
# Limit on executed instructions, if all of many blocks differ.
MAX_PROBED_INSTRUCTIONS = 1_000_000
# Limits on sampled blocks and on their instructions, up to the accuracy of SAMPLING_ERRORS.
FEWEST_SAMPLED, MOST_SAMPLED, MOST_INSTRUCTIONS = 24, 400, 2_000_000
# Loops of blocks with more than that many times the instructions of others are simulated whole, if
# all streams together have no more instructions: shortened by one fraction, they would not overlap
# alike (`causal_attention` at 2048: -36 % shortened, -7 % whole).
MOST_UNLIKE, MOST_WHOLE = 2, 10_000_000
# The same with all iterations, each instruction 0.1 us: of a sample,
# and of all blocks of a small grid that differ, among which the longest may end the launch.
MOST_RECORDED, MOST_RECORDED_OF_ALL = 4_000_000, 64_000_000
SAMPLED_IN_ORDER, NEIGHBOURS = 96, 24
SAMPLING_ERRORS = 0.01, 0.02  # relative standard errors of instructions, and of passes of accesses


def classify(
    prepared: Prepared, *, step_limit: int = machine.DEFAULT_STEP_LIMIT, folds: bool = True
) -> Classes:
    """Return the classes of a launch's blocks. The kernel's output arrays are not changed.

    With `folds`, iterations of a loop with equal columns are stored once. Without array contents
    the result is cached.

    Raises InputError if control flow or addresses depend on an array without elements.
    """
    step_limit = whole_number(step_limit, "the step limit", least=1)
    launch = SameLaunch.of(prepared)
    if launch is None:
        return _classes(prepared, step_limit, folds=folds)
    return _kept_classes(launch, step_limit, folds)


@lru_cache(maxsize=64)
def _kept_classes(launch: SameLaunch, step_limit: int, folds: bool) -> Classes:
    return _classes(launch.prepared, step_limit, folds=folds)


def _classes(prepared: Prepared, step_limit: int, *, folds: bool) -> Classes:
    refuse_missing_elements(prepared)
    found = _folded_alike(_found(Probe(prepared, step_limit, folds=folds)))
    if blocks_meet(prepared, found, step_limit):
        return _in_order(prepared, step_limit)
    return with_last_block(found, prepared, step_limit, folds=folds)


def _folded_alike(found: Classes) -> Classes:
    """Return the classes of blocks, all of them folded, or none."""
    counts = [one.stream.instructions for one in found.classes]
    is_alike = max(counts) <= MOST_UNLIKE * min(counts) or sum(counts) > MOST_WHOLE
    if is_alike and is_worth_folding(one.stream for one in found.classes):
        return found
    return replace(
        found, classes=tuple(replace(c, stream=unfolded(c.stream)) for c in found.classes)
    )


def _in_order(prepared: Prepared, step_limit: int) -> Classes:
    """Return the classes of sampled blocks, each executed after its predecessors.

    Their touches are recorded too, with those of some neighbours. The last block is a class of its
    own: it may complete the work of all others.
    """
    parts = strata(prepared.launch.grid)
    while not parts.are_whole and len(parts) < SAMPLED_IN_ORDER:
        finer = parts.halved()
        if len(finer) == len(parts):
            break
        parts = finer
    probe = Probe(prepared, step_limit, folds=False, in_order=True)
    middle = max(0, parts.blocks - NEIGHBOURS) // 2
    neighbours = np.arange(middle, min(middle + NEIGHBOURS, parts.blocks))
    last = np.array([parts.blocks - 1])
    probe.run(parts.chosen, neighbours, last)
    found = replace(_sample(probe, parts), touched=probe.touched)
    return found.with_last(probe.streams[int(probe.kinds(last)[0])])


def _found(probe: Probe) -> Classes:
    few = strata(probe.prepared.launch.grid)
    return _by_place(probe, few) or _sampled(probe, few)


def _by_place(probe: Probe, few: Strata) -> Classes | None:
    """Return the classes as ranges along the axes; None if too many blocks differ.

    They are checked at a few scattered blocks: at a mismatch, the partition is refined at these
    coordinates and checked at more.
    """
    cells, scattered = _first_cells(few), few
    while _may_run(probe, cells, scattered):
        probe.run(cells.first, scattered.chosen)
        if few.blocks > MAX_PROBES and len(set(probe.kinds(few.chosen).ravel().tolist())) == len(
            few
        ):
            return None
        kinds = probe.kinds(cells.first)
        more = between(cells, kinds)
        if not any(more):
            others = scattered.chosen.ravel()
            more = exceptions(cells, kinds, others, probe.kinds(others))
            if not any(more):
                made = classes_from(cells, kinds, probe.streams)
                return None if made is None else Classes(made, len(probe), is_sampled=False)
            if scattered is not few:
                return None
        cells, scattered = cells.divided(more), few.halved()
    return None


def _may_run(probe: Probe, cells: Cells, scattered: Strata) -> bool:
    """Return whether executing the first blocks of cells and the scattered ones is affordable."""
    blocks = len(probe) + len(probe.missing(cells.first, scattered.chosen))
    each, whole = (count / max(1, len(probe)) for count in (probe.kept, probe.recorded))
    is_much = probe.kept > MAX_PROBED_INSTRUCTIONS or blocks * each > MOST_INSTRUCTIONS
    is_much |= blocks * whole > _most_recorded(scattered, is_accurate=False)
    return blocks <= MAX_PROBES and not is_much


def _first_cells(few: Strata) -> Cells:
    """Return cells that begin at a grid's corners; along a single axis at more places."""
    grid = few.cells.grid
    cells = corners(grid)
    if not is_line(grid):
        return cells
    beside: Sequence[int] = range(few.blocks)
    if few.blocks > FIRST_PROBES:
        beside = [1, few.blocks - 2, *few.chosen.ravel().tolist()]
    return cells.divided([beside if extent == few.blocks else () for extent in grid])


def _sampled(probe: Probe, parts: Strata) -> Classes:
    """Return the classes of a stratified sample: each executed block represents its cell.

    The sample grows until its standard errors are below SAMPLING_ERRORS.
    """
    probe.run(parts.chosen)
    while not parts.are_whole:
        finer = _finer(probe, parts)
        if len(finer) == len(parts):
            break
        parts = finer
        probe.run(parts.chosen)
    return _sample(probe, parts)


def _sample(probe: Probe, parts: Strata) -> Classes:
    """Return the classes of executed blocks, each the representative of its cell."""
    made = classes_from(parts.cells, probe.kinds(parts.chosen), probe.streams)
    assert made is not None
    instructions, _ = _errors(probe, parts)
    return Classes(made, len(probe), not parts.are_whole, sampling_error=instructions)


def _finer(probe: Probe, parts: Strata) -> Strata:
    """Return as many cells as the standard errors need, within the limits on execution."""
    wrong = max(np.array(_errors(probe, parts)) / SAMPLING_ERRORS)
    needed = len(parts) * wrong**2
    if parts.blocks <= MAX_PROBES:
        needed = parts.blocks
    elif len(parts) < FEWEST_SAMPLED:
        needed = max(needed, FEWEST_SAMPLED)
    most = MAX_PROBED_INSTRUCTIONS if wrong <= 1 else MOST_INSTRUCTIONS
    most_recorded = _most_recorded(parts, is_accurate=wrong <= 1)
    each, whole = probe.kept / len(probe), probe.recorded / len(probe)
    while len(parts) < min(needed, parts.blocks):
        finer = parts.halved()
        if len(finer) * each > most or len(finer) > max(MAX_PROBES, MOST_SAMPLED):
            break
        if len(finer) * whole > most_recorded:
            break
        parts = finer
    return parts


def _most_recorded(parts: Strata, *, is_accurate: bool) -> int:
    is_small = parts.blocks <= MAX_PROBES
    return MOST_RECORDED_OF_ALL if is_small and not is_accurate else MOST_RECORDED


def _errors(probe: Probe, parts: Strata) -> list[float]:
    """Return the relative standard errors of instructions and of passes of accesses."""
    kinds = probe.kinds(parts.chosen)
    counts = np.array([(s.instructions, s.passes) for s in probe.streams], dtype=float)
    return [parts.standard_error(column[kinds]) for column in counts.T]


# Parts into which the gap between two coordinates is divided: on a grid of one axis, and on others,
# where each coordinate is combined with all of the other axes.
LINE_PARTS, PARTS = 16, 4


def corners(grid: Dim3) -> Cells:
    """Return cells that begin at the first and at the last coordinate of each axis."""
    x, y, z = (tuple(sorted({0, extent - 1})) for extent in grid)
    return Cells(grid, (x, y, z))


def between(cells: Cells, kinds: Array) -> list[list[int]]:
    """Return, for each axis, coordinates between neighbouring first blocks that differ.

    `kinds` numbers the streams of the first block of each cell.
    """
    return [list(_between(cells, axis, np.moveaxis(kinds, 2 - axis, 0))) for axis in range(3)]


def _between(cells: Cells, axis: int, kinds: Array) -> Iterator[int]:
    differ = (kinds[1:] != kinds[:-1]).any(axis=(1, 2)).tolist()
    for (a, b), is_gap in zip(pairwise(cells.begins[axis]), differ, strict=True):
        if is_gap and b - a > 1:
            yield from _spaced(a, b, axis, cells.grid)


def _spaced(first: int, last: int, axis: int, grid: Dim3) -> Sequence[int]:
    if (first, last) == (0, grid[axis] - 1):
        return 1, last - 1  # the difference is mostly an edge
    parts = min(LINE_PARTS if is_line(grid) else PARTS, last - first)
    return [first + (last - first) * k // parts for k in range(1, parts)]


def exceptions(cells: Cells, kinds: Array, others: Array, of_others: Array) -> list[list[int]]:
    """Return, for each axis, coordinates of blocks unlike the first of their cell."""
    wrong = others[of_others != kinds[cells.of(others)]]
    return [places.tolist() for places in places_of(wrong, cells.grid)]
