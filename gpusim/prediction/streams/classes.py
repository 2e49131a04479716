"""Which blocks of a grid do the same, found by running a few of them.

Where two of these differ, more between them are run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

from gpusim import machine
from gpusim.arguments import ArraySpec
from gpusim.errors import InputError
from gpusim.isa import ANY_ARRAY, OPS, Program
from gpusim.prediction.streams.recorder import Recorder
from gpusim.prediction.streams.stream import BlockStream
from gpusim.prepared import Prepared

FIRST_PROBES = 9
MAX_PROBES = 256
# Blocks that do much and all differ are told apart no further than this many instructions.
MAX_PROBED_INSTRUCTIONS = 1_000_000


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

    @cached_property
    def read_sectors(self) -> int:
        """Sectors that blocks touch first by reading them, each block's own counted."""
        return sum(one.blocks * one.stream.read_sectors for one in self.classes)

    @cached_property
    def written_sectors(self) -> int:
        """Sectors that blocks store to, each block's own counted."""
        return sum(one.blocks * one.stream.written_sectors for one in self.classes)


def data_lines(prepared: Prepared) -> list[int]:
    """Return the lines whose control flow or addresses depend on arrays without elements."""
    program, arguments = prepared.program, prepared.arguments
    specs = {name for name, value in arguments.items() if isinstance(value, ArraySpec)}
    tainted: set[int] = set()
    spaces: set[str] = set()
    lines: set[int] = set()
    size = -1
    while size != len(tainted) + len(spaces):
        size = len(tainted) + len(spaces)
        for instruction in program.instructions:
            op, found = OPS[instruction.op], instruction.memory
            sources = set(instruction.src)
            if instruction.guard is not None:
                sources.add(instruction.guard)
            reads = op.reads_memory and found is not None
            unknown = bool(sources & tainted)
            if reads and found is not None:
                unknown = unknown or found.may_touch(specs) or found.may_touch(spaces)
            if unknown and op.writes_memory and found is not None:
                spaces.add(found.place)
            if unknown:
                tainted.update(instruction.dst)
    for instruction in program.instructions:
        op = OPS[instruction.op]
        decides = {instruction.guard} if instruction.guard is not None else set()
        if op.access and instruction.src:
            decides.add(instruction.src[0])
        if op.kind == "bank":
            decides.update(instruction.src)
        if decides & tainted and not op.only_describes:
            lines.add(instruction.line)
    return sorted(lines)


def classify(
    prepared: Prepared,
    *,
    step_limit: int = machine.DEFAULT_STEP_LIMIT,
    skips: bool = True,
) -> Classes:
    """Return the classes of a launch's blocks. Arrays that the kernel writes are left alone.

    With `skips`, loops whose iterations are all alike are run in part and kept once. Where arrays
    have no elements, the answer is kept for the next time.

    Raises InputError where control flow or addresses depend on an array that has no elements.
    """
    arguments = prepared.arguments
    given = list(map(id, arguments.values()))
    same = tuple(map(given.index, given))  # an array may be passed twice
    key = _Same(prepared.program), prepared.launch, tuple(arguments.items()), same, prepared.cc
    probe = _Probe(prepared, key, step_limit)
    if any(isinstance(value, np.ndarray) for value in arguments.values()):
        return _classes(probe, skips)
    return _kept_classes(probe, skips)


class _Same:
    """A program as a key: equal to itself alone."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.program is self.program

    def __hash__(self) -> int:
        return id(self.program)


class _UnsoundError(Exception):
    """What was skipped is not like what stands for it."""


@dataclass(frozen=True)
class _Probe:
    """A launch of which blocks can be run. Equal ones have the same classes."""

    prepared: Prepared = field(compare=False)
    key: tuple[Any, ...]
    step_limit: int

    def run(self, blocks: Sequence[int], *, skips: bool) -> dict[int, BlockStream]:
        """Return the streams of some blocks."""
        recorder = Recorder(self.prepared.cc, adds_up=not self.prepared.program.compiler)
        machine.run(
            without_results(self.prepared),
            observers=(recorder,),
            step_limit=self.step_limit,
            blocks=blocks,
            on_skip=recorder.skip if skips else None,
        )
        if not recorder.is_sound:
            raise _UnsoundError
        return recorder.streams


def _classes(probe: _Probe, skips: bool) -> Classes:
    prepared = probe.prepared
    _refuse_missing_elements(prepared)
    if skips:
        try:
            return _found(partial(probe.run, skips=True), prepared.launch.blocks)
        except _UnsoundError:
            pass
    return _found(partial(probe.run, skips=False), prepared.launch.blocks)


_kept_classes = lru_cache(maxsize=64)(_classes)


def _refuse_missing_elements(prepared: Prepared) -> None:
    unknown = data_lines(prepared)
    if unknown:
        where = ", ".join(map(str, unknown[:4]))
        raise InputError(
            f"what {prepared.kernel} does at line {where} depends on the arrays' elements; "
            "give the arrays themselves, not array_spec (on the command line a filling: "
            "NAME=TYPE[SHAPE]=random)"
        )


def _found(run: Callable[[Sequence[int]], dict[int, BlockStream]], blocks: int) -> Classes:
    """Return the classes of so many blocks, some of which are run."""
    last = blocks - 1
    first = {round(k * last / (FIRST_PROBES - 1)) for k in range(FIRST_PROBES)} | {min(1, last)}
    streams = run(sorted(first))
    while True:
        known = sorted(streams)
        between = [
            between
            for a, b in pairwise(known)
            if b - a > 1 and streams[a].key != streams[b].key
            for between in _spaced(a, b)
        ]
        done = sum(stream.kept for stream in streams.values())
        if (
            not between
            or len(streams) + len(between) > MAX_PROBES
            or done > MAX_PROBED_INSTRUCTIONS
        ):
            break
        streams |= run(between)
    return _grouped(streams, blocks, is_sampled=bool(between))


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


def without_results(prepared: Prepared) -> Prepared:
    """Return the same with copies of the arrays that the kernel writes."""
    written = {
        instruction.memory.name
        for instruction in prepared.program.instructions
        if instruction.memory is not None
        and instruction.memory.space == "global"
        and OPS[instruction.op].writes_memory
    }
    own = {
        name: value.copy()
        if isinstance(value, np.ndarray) and (name in written or ANY_ARRAY in written)
        else value
        for name, value in prepared.arguments.items()
    }
    return replace(prepared, arguments=own)
