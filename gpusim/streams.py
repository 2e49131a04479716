"""Warp streams: what each warp of a block runs, in columns, and nothing but what a clock needs.

Blocks with the same stream form a class. Classes are found by running a few blocks of the
grid and, where two of them differ, more between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from gpusim import machine, memory
from gpusim.arguments import ArraySpec
from gpusim.errors import InputError
from gpusim.events import Placement, Step
from gpusim.isa import OPS, Program
from gpusim.launch import ComputeCapability, Launch

Array = np.ndarray[Any, Any]

LINE_BYTES = 128
FIRST_PROBES = 9
MAX_PROBES = 256
# Blocks that do much and all differ are told apart no further than this many instructions.
MAX_PROBED_INSTRUCTIONS = 1_000_000


@dataclass(frozen=True, eq=False)
class WarpStream:
    """What one warp runs, in order: columns of one length.

    `pc` is the instruction, `is_on` whether a lane takes part (a guarded-off access touches
    nothing), `is_taken` whether a branch is taken. `cost` is wavefronts for shared memory,
    sectors for global memory, and the most lanes with one address for atomics; `lines` the
    128-byte lines that a global access touches, `fresh` those of its sectors that the block
    has not touched before; `joins` says that another warp touches one of its sectors for the
    first time in the same step, so that it waits for the same fetch. `lanes` are the lanes that
    run the instruction, a bit each.
    """

    pc: Array
    is_on: Array
    is_taken: Array
    cost: Array
    lines: Array
    fresh: Array
    joins: Array
    lanes: Array

    def __len__(self) -> int:
        return len(self.pc)

    @cached_property
    def key(self) -> bytes:
        """Equal for warps that do the same."""
        columns = [getattr(self, column.name) for column in fields(self)]
        return b"".join(np.ascontiguousarray(c).tobytes() for c in columns)

    def of_longest_lane(self) -> WarpStream:
        """Return what the lane that runs the most does: the warp, if divergence were free."""
        bits = self.lanes[:, None] >> np.arange(32, dtype=np.uint32) & np.uint32(1)
        mine = bits[:, int(bits.sum(axis=0).argmax())] != 0
        return WarpStream(*(getattr(self, column.name)[mine] for column in fields(self)))


@dataclass(frozen=True, eq=False)
class BlockStream:
    """The streams of a block's warps."""

    warps: tuple[WarpStream, ...]

    @cached_property
    def key(self) -> bytes:
        """Equal for blocks that do the same."""
        return b"|".join(warp.key for warp in self.warps)

    @property
    def instructions(self) -> int:
        """Instructions that the block's warps issue."""
        return sum(map(len, self.warps))


@dataclass(frozen=True)
class BlockClass:
    """Blocks that do the same: their stream, and ranges (first, last) of block numbers.

    `name` tells them apart in reports.
    """

    name: str
    stream: BlockStream
    ranges: tuple[tuple[int, int], ...]

    @property
    def blocks(self) -> int:
        """Number of blocks in the class."""
        return sum(last - first + 1 for first, last in self.ranges)


@dataclass(frozen=True)
class Classes:
    """A grid's classes. `probed` blocks were run; the others lie between two that are alike.

    `is_sampled` where too many blocks differ to tell them all apart: each block not run then
    counts as the nearest that was.
    """

    classes: tuple[BlockClass, ...]
    probed: int
    is_sampled: bool


@dataclass(frozen=True)
class _Row:
    """One step: its warps, columns shaped (copies or 1, warps or 1), and sectors touched."""

    pc: int
    rows: Array
    columns: tuple[Array, ...]
    touched: Array | None


def _joined(parts: Sequence[Array], steps: Sequence[_Row], copies: int) -> Array:
    """Return one column over all steps, shaped (copies, warps of all steps)."""
    full = []
    for part, step in zip(parts, steps, strict=True):
        shape = (copies, len(step.rows))
        full.append(part if part.shape == shape else np.broadcast_to(part, shape))
    return np.concatenate(full, axis=1)


def _first_touches(
    steps: Sequence[_Row], copy: int, rows: Array, count: int
) -> tuple[Array, Array]:
    """Return, per warp and step, how many sectors no earlier access of the block touched.

    Where several warps touch a sector first in one step, it is counted for one of them; the
    second array says for which of the others.
    """
    fresh, joins = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=bool)
    places, numbers, found = [], [], []
    start = 0
    for number, step in enumerate(steps):
        if step.touched is not None:
            sectors = step.touched[copy if len(step.touched) > 1 else 0]
            mine = (step.rows >= rows[0]) & (step.rows <= rows[-1])
            which = (sectors >= 0) & mine[:, None]
            row, _ = np.nonzero(which)
            places.append(row + start)
            numbers.append(np.full(len(row), number))
            found.append(sectors[which])
        start += len(step.rows)
    if places:
        place, number_of = np.concatenate(places), np.concatenate(numbers)
        _, first, same = np.unique(np.concatenate(found), return_index=True, return_inverse=True)
        fresh += np.bincount(place[first], minlength=count)
        joins[place[number_of[first][same] == number_of]] = True
    return fresh, joins & (fresh == 0)


class Recorder:
    """Turns steps into streams of the blocks of a run."""

    def __init__(self, cc: ComputeCapability) -> None:
        self._cc_major = cc.major
        self._steps: dict[int, list[_Row]] = {}
        self._placements: dict[int, Placement] = {}
        self.streams: dict[int, BlockStream] = {}

    def begin(self, program: Program, launch: Launch) -> None:
        """Prepare for a launch."""
        self._warps = launch.warps_per_block

    def step(self, step: Step) -> None:
        """Keep what the clock needs of a step."""
        instruction = step.instruction
        if not OPS[instruction.op].issued:
            return
        start = int(step.placement.blocks[0])
        known = self._placements.get(start)
        if known is not None and known is not step.placement:
            self._unfold(start, step.placement)
        self._placements[start] = step.placement
        is_on = np.asarray(step.on.any(axis=2))
        is_taken: Array = np.zeros((1, 1), dtype=bool)
        cost = lines = np.zeros((1, 1), dtype=np.int64)
        touched = None
        if step.taken is not None:
            is_taken = np.asarray(step.taken.any(axis=2))
        if step.addresses is not None and instruction.memory is not None:
            cost, lines, touched = self._cost(step)
        lanes = np.packbits(step.active, axis=2, bitorder="little").view(np.uint32)[..., 0]
        row = _Row(step.pc, step.rows, (is_on, is_taken, cost, lines, lanes), touched)
        self._steps.setdefault(start, []).append(row)

    def _cost(self, step: Step) -> tuple[Array, Array, Array | None]:
        found, addresses = step.instruction.memory, step.addresses
        assert found is not None
        assert addresses is not None
        nothing = np.zeros((1, 1), dtype=np.int64)
        if OPS[step.instruction.op].kind == "atomic":
            return memory.same_address_passes(addresses, step.on), nothing, None
        if found.space == "shared":
            passes = memory.wavefronts(addresses, step.on, found.width_bytes, self._cc_major)
            return passes[0], nothing, None
        if found.space == "global":
            lines = memory.distinct(addresses // LINE_BYTES, step.on)
            touched = memory.distinct_values(addresses // memory.SECTOR_BYTES, step.on)
            return np.count_nonzero(touched >= 0, axis=2), lines, touched
        return nothing, nothing, None

    def _unfold(self, start: int, placement: Placement) -> None:
        """Spread what was kept for a folded batch over the rows of an unfolded one."""
        copies, warps = len(placement.blocks), placement.warps_per_block
        spread = []
        for row in self._steps.get(start, []):
            count = len(row.rows)
            every = (row.rows + np.arange(copies)[:, None] * warps).reshape(-1)
            full = [np.broadcast_to(c, (copies, count)).reshape(1, -1) for c in row.columns]
            touched = row.touched
            if touched is not None:
                touched = np.broadcast_to(touched, (copies, count, 32)).reshape(1, -1, 32)
            spread.append(_Row(row.pc, every, tuple(full), touched))
        self._steps[start] = spread

    def batch_end(self, blocks: Array) -> None:
        """Make the streams of these blocks."""
        start = int(blocks[0])
        steps = self._steps.pop(start, [])
        placement = self._placements.pop(start, None)
        if placement is None:
            return
        copies = placement.copies
        pcs = np.concatenate([np.full(len(s.rows), s.pc, dtype=np.int32) for s in steps])
        rows = np.concatenate([s.rows for s in steps])
        whole = [_joined([s.columns[k] for s in steps], steps, copies) for k in range(5)]
        seen: dict[bytes, BlockStream] = {}
        for position, block in enumerate(blocks):
            copy = position if placement.folded else 0
            first = 0 if placement.folded else position * self._warps
            mine = np.arange(first, first + self._warps)
            fresh, joins = _first_touches(steps, copy, mine, len(rows))
            is_on, is_taken, cost, lines, lanes = (c[copy] for c in whole)
            counts = [c.astype(np.int32) for c in (cost, lines, fresh)]
            warps = []
            for warp in mine:
                which = np.flatnonzero(rows == warp)
                columns = (pcs, is_on, is_taken, *counts, joins, lanes)
                warps.append(WarpStream(*(c[which] for c in columns)))
            stream = BlockStream(tuple(warps))
            self.streams[int(block)] = seen.setdefault(stream.key, stream)

    def end(self) -> None:
        """The launch is over."""


def data_lines(program: Program, arguments: Mapping[str, Any]) -> list[int]:
    """Return the lines whose control flow or addresses depend on arrays without elements."""
    specs = {name for name, value in arguments.items() if isinstance(value, ArraySpec)}
    tainted: set[int] = set()
    spaces: set[str] = set()
    lines: set[int] = set()
    size = -1
    while size != len(tainted) + len(spaces):
        size = len(tainted) + len(spaces)
        for instruction in program.instructions:
            kind, found = OPS[instruction.op].kind, instruction.memory
            sources = set(instruction.src)
            if instruction.guard is not None:
                sources.add(instruction.guard)
            reads = kind in ("load", "atomic") and found is not None
            unknown = bool(sources & tainted)
            if reads and found is not None:
                place = found.name if found.space == "global" else found.space
                unknown = unknown or place in specs or place in spaces
            if unknown and kind in ("store", "atomic") and found is not None:
                spaces.add(found.name if found.space == "global" else found.space)
            if unknown:
                tainted.update(instruction.dst)
    for instruction in program.instructions:
        kind = OPS[instruction.op].kind
        decides = {instruction.guard} if instruction.guard is not None else set()
        if kind in ("load", "store", "atomic") and instruction.src:
            decides.add(instruction.src[0])
        if decides & tainted and kind not in ("compute", "source_branch"):
            lines.add(instruction.line)
    return sorted(lines)


def classify(
    program: Program,
    launch: Launch,
    arguments: Mapping[str, Any],
    cc: ComputeCapability,
    *,
    step_limit: int = machine.DEFAULT_STEP_LIMIT,
) -> Classes:
    """Return the classes of a launch's blocks. Arrays that the kernel writes are left alone.

    Raises InputError where control flow or addresses depend on an array that has no elements.
    """
    unknown = data_lines(program, arguments)
    if unknown:
        where = ", ".join(map(str, unknown[:4]))
        raise InputError(
            f"what {program.name} does at line {where} depends on the arrays' elements; "
            "give the arrays themselves, not array_spec (on the command line a filling: "
            "NAME=TYPE[SHAPE]=random)"
        )
    private = _private(program, arguments)
    streams: dict[int, BlockStream] = {}

    def probe(blocks: Sequence[int]) -> None:
        wanted = sorted(set(blocks) - set(streams))
        if wanted:
            recorder = Recorder(cc)
            machine.run(
                program,
                launch,
                private,
                cc=cc,
                observers=(recorder,),
                step_limit=step_limit,
                blocks=wanted,
            )
            streams.update(recorder.streams)

    last = launch.blocks - 1
    probe([round(k * last / (FIRST_PROBES - 1)) for k in range(FIRST_PROBES)] + [min(1, last)])
    while True:
        known = sorted(streams)
        between = [
            between
            for a, b in pairwise(known)
            if b - a > 1 and streams[a].key != streams[b].key
            for between in _spaced(a, b)
        ]
        done = sum(stream.instructions for stream in streams.values())
        if (
            not between
            or len(streams) + len(between) > MAX_PROBES
            or done > MAX_PROBED_INSTRUCTIONS
        ):
            break
        probe(between)
    return _grouped(streams, launch.blocks, is_sampled=bool(between))


def _spaced(first: int, last: int) -> list[int]:
    """Return up to seven numbers between two, evenly spaced."""
    parts = min(8, last - first)
    return [first + (last - first) * k // parts for k in range(1, parts)]


def _grouped(streams: Mapping[int, BlockStream], blocks: int, *, is_sampled: bool) -> Classes:
    known = sorted(streams)
    ranges: dict[bytes, list[tuple[int, int]]] = {}
    by_key: dict[bytes, BlockStream] = {}
    ends = [(a + b) // 2 + 1 if is_sampled else b for a, b in pairwise(known)]
    for block, first, following in zip(known, [0, *ends], [*ends, blocks], strict=True):
        stream = streams[block]
        by_key.setdefault(stream.key, stream)
        mine = ranges.setdefault(stream.key, [])
        if mine and mine[-1][1] == first - 1:
            mine[-1] = (mine[-1][0], following - 1)
        else:
            mine.append((first, following - 1))
    made = [
        BlockClass(f"class {number}", by_key[key], tuple(mine))
        for number, (key, mine) in enumerate(ranges.items())
    ]
    return Classes(tuple(made), len(known), is_sampled)


def _private(program: Program, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with copies of the arrays that the kernel writes."""
    written = {
        instruction.memory.name
        for instruction in program.instructions
        if instruction.memory is not None
        and instruction.memory.space == "global"
        and OPS[instruction.op].kind in ("store", "atomic")
    }
    return {
        name: value.copy() if name in written and isinstance(value, np.ndarray) else value
        for name, value in arguments.items()
    }
