"""Global-memory accesses of a whole grid from a few executed blocks, as functions of the place.

Blocks of a class make the same accesses, mostly at addresses linear in the block index. Linearity
is verified on executed blocks. Other addresses are known of these blocks alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from gpusim.isa.ops import OPS, Instruction
from gpusim.launch.grid import Launch, places_of
from gpusim.launch.prepared import Prepared
from gpusim.prediction.arithmetic.grouping import distinct, groups
from gpusim.prediction.locality.pieces import Pieces, pieces_of
from gpusim.prediction.locality.table import Table, joined
from gpusim.prediction.streams import BlockClass, Classes, touched_by
from gpusim.prediction.streams.same_launch import SameLaunch
from gpusim.prediction.streams.stretches import COLUMNS, Stretches
from gpusim.typing import Array

MANY_CLASSES = 12  # with more, as at edges along three axes, equal accesses are merged
MOST_CLASSES = 32  # with more, only sampled blocks are distinguished
KEPT_LAUNCHES = 8  # with their patterns, for other GPUs
# Blocks executed for addresses that are not linear: neighbours, and others far apart.
NEIGHBOURS, APART = 24, 40
# Additional blocks of one wave, for kernels with atomics on global memory.
TOGETHER = 16
NEIGHBOURS_AT = 0.618  # fraction of the grid: at no power-of-two subdivision
# Limits on steps of a block and on instructions of all, above which fewer blocks are executed.
MOST_STEPS, MOST_INSTRUCTIONS = 40_000, 10_000_000
FEW = 6
FIRST_FITTED = 8  # stretches of a block, tested before all of them
LEAST_OF_A_HALF = 8  # executed blocks that verify a pattern by one bit of the block number
LEAST_WITH_EDGES = 8  # blocks along a dimension, with few of them at its ends
AT_ONE_TIME = 0.1  # of the longest block's steps
ALL = slice(None)
MOST_ALIKE = 0.75  # of executed blocks must agree on an instruction, for a pattern of all


@dataclass(frozen=True, eq=False)
class Pattern:
    """Equal stretches of several blocks, given for the block at the grid's origin.

    In the block at (x, y, z) they begin x, y and z times the `moves` (bytes) further. `ranges` are
    the first and last numbers of the blocks.
    """

    stretches: Stretches
    moves: tuple[int, int, int]
    ranges: tuple[tuple[int, int], ...]

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return sum(last - first + 1 for first, last in self.ranges)


@dataclass(frozen=True)
class Patterns:
    """The accesses of a grid: patterns for all its blocks, and stretches of executed blocks.

    `linear` holds for all blocks; `single` holds data-dependent accesses of executed blocks:
    `spread` over the grid, adjacent `neighbours`, and some `together` in one wave. `timed` are
    the patterns of `linear` at about the same time within each block.
    """

    launch: Launch
    linear: tuple[Pattern, ...]
    single: Mapping[int, Stretches]
    spread: tuple[int, ...]
    neighbours: tuple[int, ...]
    together: tuple[int, ...] = ()
    timed: tuple[Pattern, ...] = ()

    @property
    def steps(self) -> int:
        """Steps of the longest executed block."""
        run = (*(one.stretches for one in self.linear), *self.single.values())
        return max((one.steps for one in run), default=0)

    @cached_property
    def pieces(self) -> Pieces:
        """The sectors at data-dependent addresses touched by the `spread` blocks."""
        return pieces_of(self.single, self.spread)

    @cached_property
    def ends(self) -> tuple[Array, Array]:
        """The first and the last data-dependent address of each instruction, in executed blocks."""
        rows = joined(list(self.single.values()))
        first = np.full(1 + int(rows.pc.max(initial=0)), np.iinfo(np.int64).max)
        last = np.zeros_like(first)
        for places in (rows.begin, rows.begin + rows.times * rows.stride):
            np.minimum.at(first, rows.pc, places)
            np.maximum.at(last, rows.pc, places)
        return first, last

    @cached_property
    def pieces_of_neighbours(self) -> Pieces:
        """The same of the `neighbours`."""
        return pieces_of(self.single, self.neighbours)


def patterns_of(prepared: Prepared, classes: Classes, at_once: int) -> Patterns:
    """Return the global-memory accesses of a grid, with `at_once` resident blocks.

    Blocks are executed for it, unless their touches are recorded in `classes`.
    """
    launch, touched = prepared.launch, classes.touched
    if touched is not None:
        run = np.array(sorted(touched))
        together = _in_wave(run, _running(launch, at_once))
        spread, neighbours = _spread(run, launch.blocks), _side_by_side(run)
        return _of_some(launch, dict(touched), spread, neighbours, together)
    same = SameLaunch.of(prepared)
    linear = _linear(prepared, classes) if same is None else _kept_linear(same, classes)
    if linear is None:
        return _run_some(prepared, classes, at_once)
    return Patterns(launch, linear, {}, (), ())


@lru_cache(maxsize=KEPT_LAUNCHES)
def _kept_linear(same: SameLaunch, classes: Classes) -> tuple[Pattern, ...] | None:
    return _linear(same.prepared, classes)


def _linear(prepared: Prepared, classes: Classes) -> tuple[Pattern, ...] | None:
    """Return the patterns of all classes, None for addresses that are not linear."""
    if _are_many(classes):
        return None
    launch = prepared.launch
    chosen = sorted({b for one in classes.classes for b in _places(one, launch)})
    found = touched_by(prepared, chosen)
    fits = [
        _fitted(Table.of({b: found[b] for b in _places(one, launch)}), ALL, one.ranges, launch)
        for one in classes.classes
    ]
    if any(one is None for one in fits):
        return None
    linear = _in_step([pattern for one in fits if one is not None for pattern in one])
    is_many = len(classes.classes) > MANY_CLASSES
    is_many &= any(one.blocks > 1 for one in classes.classes)  # else none have common moves
    return merged(linear, launch) if is_many else linear


def _are_many(classes: Classes) -> bool:
    return classes.is_sampled or len(classes.classes) > MOST_CLASSES


def coordinates(numbers: Array, launch: Launch) -> Array:
    """Return the coordinates of blocks in the grid, shaped (blocks, 3)."""
    return np.stack(places_of(numbers, launch.grid), axis=1)


def _places(one: BlockClass, launch: Launch) -> list[int]:
    """Return sampled blocks of a class: the first with its neighbours, and some far apart."""
    ranges = np.array(one.ranges)
    first, last = int(ranges[0, 0]), int(ranges[-1, 1])
    x, y, _ = launch.grid
    middle = int(ranges[len(ranges) // 2].mean())
    near = (first, first + 1, first + x, first + x + 1, first + x * y)
    wanted = np.array([*near, middle, middle + 1, middle + x, last])
    at = np.searchsorted(ranges[:, 0], wanted, side="right") - 1
    inside = (at >= 0) & (wanted <= ranges[at, 1])
    return sorted({first, last, *wanted[inside].tolist()})


def _fitted(
    table: Table, blocks: Array | slice, ranges: Sequence[tuple[int, int]], launch: Launch
) -> list[Pattern] | None:
    """Return the patterns of some blocks of a table, None for addresses that are not linear."""
    positions = np.arange(len(table.numbers))[blocks]
    shapes = table.shapes[positions]
    if (shapes != shapes[0]).any():
        return None
    places = coordinates(table.numbers[positions], launch)
    apart = places - places[0]
    few = table.column("begin", positions, FIRST_FITTED)
    if _moves(apart, few - few[0]) is None:  # rejects most addresses that are not linear
        return None
    begins = table.column("begin", positions)
    moves = _moves(apart, begins - begins[0])
    if moves is None:
        return None
    first = table.of_block(positions[0])
    origin = begins[0] - places[0] @ moves
    rows = replace(first, begin=origin, end=origin + first.end - first.begin)
    made = []
    different, number = groups(*moves)
    for group, one in enumerate(different.tolist()):
        x, y, z = moves[:, one].tolist()
        mine = rows if len(different) == 1 else rows.at(number == group)
        made.append(Pattern(mine, (x, y, z), tuple(ranges)))
    return made


def _moves(apart: Array, moved: Array) -> Array | None:
    """Return moves of stretches along each dimension, from blocks `apart` in coordinates.

    None if the addresses are not linear in these.
    """
    along = np.flatnonzero(apart.any(axis=0))
    if len(along) == 1:  # in a tenth of the time of a system of equations
        moves = np.zeros((apart.shape[1], moved.shape[1]), dtype=np.int64)
        farthest = np.abs(apart[:, along[0]]).argmax()
        moves[along] = moved[farthest] // apart[farthest, along[0]]
    else:
        solved = np.linalg.lstsq(apart.astype(float), moved.astype(float), rcond=None)
        moves = np.rint(solved[0]).astype(np.int64)
    return moves if (apart @ moves == moved).all() else None


def merged(linear: Sequence[Pattern], launch: Launch) -> tuple[Pattern, ...]:
    """Return patterns with equal accesses of several classes merged.

    The times are those of the first class.
    """
    stand = [_stand(pattern, launch) for pattern in linear]
    known = {one.moves for one, (apart, _) in zip(linear, stand, strict=True) if apart.all()}
    patterns = [_moved_as(*both, sorted(known)) for both in zip(linear, stand, strict=True)]
    owners: dict[tuple[int, ...], list[int]] = {}
    places: dict[tuple[int, ...], int] = {}
    for number, pattern in enumerate(patterns):
        seen: Counter[tuple[int, ...]] = Counter()
        for place, row in enumerate(_addresses(pattern).tolist()):
            seen[tuple(row)] += 1
            key = (*row, seen[tuple(row)])
            places.setdefault(key, place)
            owners.setdefault(key, []).append(number)
    together: dict[tuple[int, ...], list[int]] = {}
    for key, who in owners.items():
        together.setdefault(tuple(who), []).append(places[key])
    return tuple(_of_all([patterns[n] for n in who], rows) for who, rows in together.items())


def united(patterns: Sequence[Pattern]) -> list[Pattern]:
    """Return patterns with the stretches of all that have equal moves and blocks in one."""
    alike: dict[tuple[Any, ...], list[Pattern]] = {}
    for pattern in patterns:
        alike.setdefault((pattern.moves, pattern.ranges), []).append(pattern)
    return [
        replace(some[0], stretches=joined([one.stretches for one in some]))
        for some in alike.values()
    ]


def _stand(pattern: Pattern, launch: Launch) -> tuple[Array, Array]:
    """Return the dimensions along which a pattern's blocks vary, and the first coordinates."""
    places = coordinates(distinct(np.array(pattern.ranges)), launch)
    extents = np.array(launch.grid)
    return np.asarray((places != places[0]).any(axis=0) | (extents == 1)), places[0]


def _moved_as(
    pattern: Pattern, stand: tuple[Array, Array], known: Sequence[tuple[int, int, int]]
) -> Pattern:
    """Return a pattern with the moves of another, along dimensions its blocks do not vary in."""
    apart, place = stand
    mine = np.array(pattern.moves)
    for moves in known:
        if (mine == moves)[apart].all():
            rows = pattern.stretches
            shift = int(place @ (mine - np.array(moves)))
            rows = replace(rows, begin=rows.begin + shift, end=rows.end + shift)
            return Pattern(rows, moves, pattern.ranges)
    return pattern


def _addresses(pattern: Pattern) -> Array:
    """Return the columns that determine a pattern's addresses, a row for each stretch."""
    rows = pattern.stretches
    columns = (getattr(rows, name) for name in COLUMNS if name not in ("time", "period"))
    return np.stack([*columns, *(np.full(len(rows), move) for move in pattern.moves)], axis=1)


def _of_all(patterns: Sequence[Pattern], rows: Sequence[int]) -> Pattern:
    """Return rows of the first pattern, with the blocks of all of them."""
    ranges = tuple(sorted({one for pattern in patterns for one in pattern.ranges}))
    first = patterns[0]
    return Pattern(first.stretches.at(np.array(rows)), first.moves, ranges)


def _by_bit(table: Table, launch: Launch) -> list[Pattern] | None:
    """Return patterns by one bit of the block number, None if no bit gives linear addresses.

    Partners by exclusive or lie ahead of one half of the blocks and behind the other.
    """
    if launch.grid[0] != launch.blocks:
        return None
    for size in (1 << bit for bit in range((launch.blocks - 1).bit_length())):
        bits = table.numbers & size
        halves = [np.flatnonzero(bits == half) for half in (0, size)]
        if min(map(len, halves)) < LEAST_OF_A_HALF:
            continue
        first = _fitted(table, halves[0], (), launch)
        second = None if first is None else _fitted(table, halves[1], (), launch)
        if first is not None and second is not None:
            return [
                replace(one, ranges=_with_bit(size, half, launch.blocks))
                for half, made in ((0, first), (size, second))
                for one in made
            ]
    return None


def _with_bit(size: int, half: int, blocks: int) -> tuple[tuple[int, int], ...]:
    """Return the ranges of block numbers with a bit equal to that of `half`."""
    starts = range(half, blocks, 2 * size)
    return tuple((start, min(start + size, blocks) - 1) for start in starts)


def _within_edges(table: Table, launch: Launch) -> Array | slice:
    """Return the blocks away from the grid's edges, if these are most blocks, else all.

    Addresses that wrap around at an edge, as on a torus, are linear inside.
    """
    extents = np.array(launch.grid)
    places = coordinates(table.numbers, launch)
    inside = ((places > 0) & (places < extents - 1)) | (extents < LEAST_WITH_EDGES)
    within = np.flatnonzero(inside.all(axis=1))
    return within if len(within) >= MOST_ALIKE * len(table.numbers) else ALL


def _alike(table: Table) -> Array | slice:
    """Return the blocks of the most common shape if these are most blocks, else all of them."""
    counts = np.bincount(table.shapes)
    is_most = counts.max() >= MOST_ALIKE * len(table.numbers)
    return np.flatnonzero(table.shapes == counts.argmax()) if is_most else ALL


def _is_global_atomic(instruction: Instruction) -> bool:
    found = instruction.memory
    return OPS[instruction.op].access == "atomic" and found is not None and found.space == "global"


def _running(launch: Launch, at_once: int) -> range:
    """Return a wave of resident blocks, about at the place of the executed neighbours."""
    middle = int(NEIGHBOURS_AT * (launch.blocks - 1))
    begin = max(0, min(middle - at_once // 2, launch.blocks - at_once))
    return range(begin, min(begin + at_once, launch.blocks))


def _run_some(prepared: Prepared, classes: Classes, at_once: int) -> Patterns:
    """Return accesses of a grid from a sample of blocks that may differ from each other."""
    last = prepared.launch.blocks - 1
    longest = max(len(warp) for one in classes.classes for warp in one.stream.warps)
    each = sum(one.blocks * one.stream.kept for one in classes.classes) / (last + 1)
    is_much = longest > MOST_STEPS or each * min(last + 1, NEIGHBOURS + APART) > MOST_INSTRUCTIONS
    near, apart = (2, FEW - 2) if is_much else (NEIGHBOURS, APART)
    spread = tuple(sorted({round(k * last / max(1, apart - 1)) for k in range(apart)}))
    neighbours = _around(int(NEIGHBOURS_AT * last), near, last)
    together: tuple[int, ...] = ()
    if any(_is_global_atomic(one) for one in prepared.program.instructions):
        during = _running(prepared.launch, at_once)
        count = min(TOGETHER if near == NEIGHBOURS else FEW, len(during))
        together = tuple(during[(2 * k + 1) * len(during) // (2 * count)] for k in range(count))
        if neighbours[-1] + 1 in during:  # of many blocks, two samples seldom coincide
            together = tuple(neighbours[-1] + 1 if b in neighbours else b for b in together)
    found = touched_by(prepared, sorted({*neighbours, *spread, *together}))
    busy = [b for b, one in found.items() if len(one)]
    if busy and not any(b in busy for b in neighbours):  # others make the accesses
        idle = neighbours[len(neighbours) // 2]
        neighbours = _around(min(busy, key=lambda b: abs(b - idle)), near, last)
        found |= touched_by(prepared, [b for b in neighbours if b not in found])
    return _of_some(prepared.launch, found, spread, neighbours, together)


def _around(block: int, count: int, last: int) -> tuple[int, ...]:
    """Return the numbers of adjacent blocks about one, of blocks up to a last one."""
    begin = max(0, block - count // 2)
    return tuple(range(begin, min(last, begin + count - 1) + 1))


def _in_wave(run: Array, during: range) -> tuple[int, ...]:
    """Return the sampled blocks in a wave, or the one nearest to its middle."""
    inside = run[(run >= during.start) & (run < during.stop)]
    if not len(inside):
        middle = during[len(during) // 2]
        inside = run[np.abs(run - middle).argmin(keepdims=True)]
    return tuple(inside.tolist())


def _spread(run: Array, blocks: int) -> tuple[int, ...]:
    """Return the sampled blocks nearest to evenly spaced places in the grid."""
    places = np.linspace(0, blocks - 1, APART)
    return tuple(sorted({int(run[np.abs(run - place).argmin()]) for place in places}))


def _side_by_side(run: Array) -> tuple[int, ...]:
    """Return adjacent sampled blocks: up to NEIGHBOURS in the middle of the longest row."""
    rows = np.split(run, np.flatnonzero(np.diff(run) > 1) + 1)
    longest = max(rows, key=len)
    begin = max(0, len(longest) - NEIGHBOURS) // 2
    return tuple(longest[begin : begin + NEIGHBOURS].tolist())


def _of_some(
    launch: Launch,
    found: dict[int, Stretches],
    spread: tuple[int, ...],
    neighbours: tuple[int, ...],
    together: tuple[int, ...],
) -> Patterns:
    """Return accesses of sampled blocks, with a pattern of all blocks for each linear pc.

    What is `found` of a block is given up once it is divided: it may be much.
    """
    longest = max(one.steps for one in found.values())
    linear, timed, is_left = _with_patterns(launch, found, longest)
    single: dict[int, Stretches] = {}
    if is_left.any():
        for block in list(found):
            single[block] = replace(_of_pcs(found.pop(block), is_left), steps=longest)
    in_step, timed_in_step = (_in_step(some, longest) for some in (linear, timed))
    return Patterns(launch, in_step, single, spread, neighbours, together, timed_in_step)


def _with_patterns(
    launch: Launch, found: Mapping[int, Stretches], longest: int
) -> tuple[list[Pattern], list[Pattern], Array]:
    """Return patterns of all blocks, those at one time, and the instructions left without one."""
    linear: list[Pattern] = []
    timed: list[Pattern] = []
    ranges = ((0, launch.blocks - 1),)
    counts = _counts(found)
    is_left = counts.max(axis=0) > 0
    are_alike = _are_alike(counts)
    regular = Table.of({b: _of_pcs(one, are_alike) for b, one in found.items()})
    for pc, table in regular.by_pc():
        made = _fitted(table, _alike(table), ranges, launch) or _by_bit(table, launch)
        made = made or _fitted(table, _within_edges(table, launch), ranges, launch)
        if made is not None:
            is_left[pc] = False
            linear += made
            timed += made if _is_at_one_time(table, longest) else []
    return linear, timed, is_left


def _counts(found: Mapping[int, Stretches]) -> Array:
    """Return the number of stretches, shaped (blocks, instructions)."""
    last = max(int(one.pc.max(initial=0)) for one in found.values())
    return np.array([np.bincount(one.pc, minlength=last + 1) for one in found.values()])


def _are_alike(counts: Array) -> Array:
    """Return the instructions with equally many stretches in at least half of the blocks.

    Only these may have a pattern of all blocks, or of each half of them.
    """
    middle = np.sort(counts, axis=0)[len(counts) // 2]
    return np.asarray(2 * (counts == middle).sum(axis=0) >= len(counts))


def _of_pcs(rows: Stretches, are_wanted: Array) -> Stretches:
    """Return the stretches of some instructions."""
    mine = are_wanted[rows.pc]
    return rows if mine.all() else rows.at(mine)


def _is_at_one_time(table: Table, longest: int) -> bool:
    """Return whether blocks make their accesses after about equally many steps."""
    positions = np.arange(len(table.numbers))[_alike(table)]
    if np.ptp(np.diff(table.ends)[positions]):
        return False
    times = table.column("time", positions)
    return float(np.ptp(times, axis=0).max(initial=0)) <= AT_ONE_TIME * longest


def _in_step(patterns: Sequence[Pattern], longest: int = 1) -> tuple[Pattern, ...]:
    """Return patterns with one unit of time: the steps of the longest block."""
    longest = max(longest, *(one.stretches.steps for one in patterns)) if patterns else longest
    return tuple(replace(one, stretches=replace(one.stretches, steps=longest)) for one in patterns)
