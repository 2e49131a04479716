"""A block's run as a function of the launch's parameters: one run serves blocks of many launches.

While a block runs, each register that decides is followed together with its values for a change of
one parameter alone: block index, grid size, number of elements, addresses. Linear instructions keep
such changes, and everything else gives guards, as in a trace of a tracing compiler: bounds on
sums of changes within which each comparison has the same result and no register wraps. A block of
any launch of the program whose parameters fulfil the guards executes the same instructions with
the same lanes, at addresses that are moved on.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from gpusim import machine
from gpusim.errors import GpusimError
from gpusim.gpu.memory import LINE_BYTES, SECTOR_BYTES
from gpusim.isa.ops import OPS, Instruction, Op, Program
from gpusim.launch.events import Observer, Skip, Step
from gpusim.launch.grid import places_of
from gpusim.launch.prepared import Prepared
from gpusim.machine import values
from gpusim.machine.banks import allocated
from gpusim.machine.context import Context
from gpusim.machine.group import Group, is_range
from gpusim.machine.iteration import Pair, is_linear, of_type, operands_of, several
from gpusim.machine.state import Batch
from gpusim.prediction.streams.recorder import Recorder
from gpusim.prediction.streams.stream import BlockStream
from gpusim.prediction.streams.stretches import Stretches, TouchRecorder
from gpusim.program.decisions import decisions
from gpusim.program.liveness import Liveness
from gpusim.program.memoisation import Same, once
from gpusim.typing import Array

Key = tuple[Hashable, ...]

MOST_STEPS = 4_000  # of a followed block: longer ones may go over to compiled code
MOST_RUNS = 8  # kept of a program
FAR = np.int64(2**62)
_READING = {"constant", "special"}  # kinds of instructions that read the launch's parameters
_FOLLOWED = {
    *_READING, "compute", "bank", "load", "store", "atomic", "fence", "branch", "branch_if_apart",
    "exit", "barrier", "bssy", "bsync", "shuffle", "vote", "match", "warpsync", "collect",
    "differs", "source_branch",
}  # fmt: skip


class UnknownError(Exception):
    """A run does not follow from the launch's parameters in a way that is known."""


class Parameters:
    """The values of a launch that decide what its blocks do, by where its code reads them.

    The `changing` ones are integers, equal in all lanes; others are `fixed`.
    """

    def __init__(self, prepared: Prepared) -> None:
        program, launch = prepared.program, prepared.launch
        self._grid = launch.grid
        self.allocations = allocated(prepared)
        batch = Batch(program, launch, np.zeros(1, np.int64), Liveness(program))
        context = Context(batch, prepared.arguments, self.allocations)
        group = Group(batch, np.arange(launch.warps_per_block))
        self.found: dict[Key, Array] = {}
        for row in _readers(program):
            for key, value in zip(_keys(row), _values(context, group, row), strict=False):
                self.found[key] = value
        for register, key in _words(program).items():
            word = batch.registers[register]
            assert word is not None
            self.found[key] = word
        of_block = {key: "xyz".index(axis) for key in self.found if (axis := _block_axis(key))}
        varying = _varying(program)
        self.changing = [
            key
            for key, value in self.found.items()
            if key in of_block
            or (value.size == 1 and value.dtype.kind in "iu" and _may_change(key, varying))
        ]
        self.fixed = [key for key in self.found if key not in set(self.changing)]
        self._axes = [(self.changing.index(key), axis) for key, axis in of_block.items()]
        self._values = np.array([int(self.found[key].flat[0]) for key in self.changing], np.int64)

    def of(self, blocks: Sequence[int]) -> Array:
        """Return the values of the changing parameters in some blocks, (blocks, parameters)."""
        made = np.tile(self._values, (len(blocks), 1))
        places = places_of(np.asarray(blocks, np.int64), self._grid)
        for column, axis in self._axes:
            made[:, column] = places[axis]
        return made

    def are_fixed_as(self, others: Mapping[Key, Array]) -> bool:
        """Return whether the fixed parameters are those of another launch."""
        return all(np.array_equal(self.found[key], others[key]) for key in self.fixed)


def _block_axis(key: Key) -> str:
    """Return the axis of a parameter that is the block's index, else ""."""
    name, _, axis = str(key[1]).partition(".")
    return axis if name == "ctaid" else ""


@once
def _varying(program: Program) -> frozenset[int]:
    """Return the bytes of bank 0 with arguments and the grid's size: the block's size is fixed."""
    layout = program.layout
    if layout is None:
        return frozenset()
    spans = [(offset, size) for _, offset, size in layout.parameters]
    words = layout.words.items()
    spans += [(offset, 12) for offset, meaning in words if meaning in ("grid size", "clusters")]
    return frozenset(byte for offset, size in spans for byte in range(offset, offset + size))


def _may_change(key: Key, varying: Container[int]) -> bool:
    """Return whether a parameter may have other values in launches with blocks of the same size."""
    if key[0] == "word":
        return key[1] == 0 and key[2] in varying
    kind, what = key[1] if isinstance(key[1], tuple) else ("", None)
    if kind == "bank":
        number, offset, *_ = what
        return number == 0 and offset in varying
    return bool(kind) and not str(what).startswith("ntid")


@once
def _readers(program: Program) -> tuple[Instruction, ...]:
    """Return the instructions that read a parameter that decides, one for each."""
    deciding = decisions(program).registers
    found: dict[tuple[Key, ...], Instruction] = {}
    for row in program.instructions:
        kind = OPS[row.op].kind
        reads = kind in _READING or (kind == "bank" and not row.src)
        if reads and not deciding.isdisjoint(row.dst):
            found.setdefault(_keys(row), row)
    return tuple(found.values())


def _keys(row: Instruction) -> tuple[Key, ...]:
    return tuple((row.op, row.detail, str(row.dtype), place) for place in range(len(row.dst)))


def _values(context: Context, group: Group, row: Instruction) -> list[Array]:
    """Return the values that an instruction reads, one for each destination."""
    kind = OPS[row.op].kind
    if kind == "constant":
        return [values.constant_value(context, row)]
    if kind == "special":
        return [values.special_value(group, row)] * len(row.dst)
    return values.bank_values(context, group, row)


@once
def _words(program: Program) -> dict[int, Key]:
    """Return the deciding registers that hold words of constant banks."""
    deciding = decisions(program).registers
    given = program.constants.items()
    return {register: ("word", *where) for register, where in given if register in deciding}


class _Access(NamedTuple):
    """The accesses of an instruction: how they move with each parameter, and their bytes."""

    moves: Array
    begin: int
    end: int
    is_load: bool


class _Accesses(NamedTuple):
    """Accesses as columns; `moves` are shaped (accesses, parameters)."""

    moves: Array
    begin: Array
    end: Array
    is_load: Array


class _Guard(NamedTuple):
    """Bounds on a sum of changes: from -`below` to `above`, for moves from `least` to `most`."""

    below: int
    above: int
    least: Array
    most: Array


class _Guards(NamedTuple):
    """Guards as columns; `least` and `most` are shaped (guards, parameters)."""

    below: Array
    above: Array
    least: Array
    most: Array


class Follower(Observer):
    """Follows the run of a single block; UnknownError ends what cannot be followed."""

    def __init__(self, prepared: Prepared, parameters: Parameters, block: int) -> None:
        program = prepared.program
        self._decisions = decisions(program)
        batch = Batch(program, prepared.launch, np.zeros(1, np.int64), Liveness(program))
        self._mask = batch.splits.mask
        self._live = self._mask.copy()
        changing = parameters.of([block])[0]
        self._leaves = {key: _still(value) for key, value in parameters.found.items()}
        for place, key in enumerate(parameters.changing):
            dtype = parameters.found[key].dtype
            self._leaves[key] = _leaf(int(changing[place]), dtype, place, len(changing))
        self._pairs: dict[int, Pair | None] = {
            register: _still(np.asarray(value).reshape(1, 1, 1))
            for register, value in (*program.immediates.items(), *program.initial.items())
        }
        self._pairs |= {register: self._leaves[key] for register, key in _words(program).items()}
        self._count = len(changing)
        self._steps = 0
        self.guards: list[_Guard] = []
        self.accesses: dict[int, _Access] = {}

    def step(self, step: Step) -> None:
        """Follow a step."""
        instruction, rows, on = step.instruction, step.rows, step.on
        op = OPS[instruction.op]
        self._steps += 1
        if op.kind not in _FOLLOWED or op.asynchronous or self._steps > MOST_STEPS:
            raise UnknownError
        decides = not self._decisions.registers.isdisjoint(instruction.dst)
        if instruction.guard is not None and (decides or not op.only_describes):
            self._expect_still(instruction.guard, rows)
        if op.waits_for_lanes:
            self._expect_still(instruction.src[0], rows)
        if op.kind == "bank":
            for register in instruction.src:
                self._expect_still(register, rows)
        if op.access and on.any():
            self._access(step)
        if op.kind == "exit":
            np.logical_and.at(self._live[0], rows, ~on[0])  # a row may be met twice
        if decides:
            results = self._results(instruction, rows, on)
            for register, result in zip(instruction.dst, results, strict=False):
                self._write(register, result, rows, on)

    # -- registers -----------------------------------------------------------------------------

    def _read(self, register: int, rows: Array) -> Pair | None:
        found = self._pairs.get(register, _still(np.zeros((1, 1, 1), np.int32)))
        if found is None or self._are_all(rows):
            return found
        return Pair(_of_rows(found.now, rows), _of_rows(found.later, rows), found.moves)

    def _are_all(self, rows: Array) -> bool:
        return len(rows) == self._mask.shape[1] and is_range(rows)

    def _write(self, register: int, pair: Pair | None, rows: Array, on: Array) -> None:
        is_whole = self._are_all(rows) and np.array_equal(on, self._live)
        if pair is not None and not is_whole:
            whole = self._pairs.get(register, _still(np.zeros((1, 1, 1), pair.now.dtype)))
            whole = None if whole is None else of_type(whole, pair.now.dtype)
            if whole is not None:
                parts = (
                    _with_rows(old, new, rows, on, self._mask.shape[1])
                    for old, new in ((whole.now, pair.now), (whole.later, pair.later))
                )
                pair = _pair(*parts)
            else:
                pair = None
        self._pairs[register] = pair

    def _expect_still(self, register: int, rows: Array) -> None:
        pair = self._read(register, rows)
        if pair is None or pair.moves:
            raise UnknownError

    # -- instructions --------------------------------------------------------------------------

    def _results(self, row: Instruction, rows: Array, on: Array) -> Iterable[Pair | None]:
        """Return the results of an instruction, one for each destination."""
        kind = OPS[row.op].kind
        if kind in _READING or (kind == "bank" and not row.src):
            found = [self._leaves[key] for key in _keys(row)]
            return [Pair(_of_rows(p.now, rows), _of_rows(p.later, rows), p.moves) for p in found]
        if kind == "compute":
            return self._computed(row, rows, on)
        return [None] * len(row.dst)

    def _computed(self, row: Instruction, rows: Array, on: Array) -> Sequence[Pair | None]:
        op, unknown = OPS[row.op], [None] * len(row.dst)
        sources = [self._read(register, rows) for register in row.src]
        known = [source for source in sources if source is not None]
        if op.evaluate is None or len(known) < len(sources):
            return unknown
        now = several(op.evaluate(row, *(source.now for source in known)))
        if not any(source.moves for source in known):
            return [_still(value) for value in now]
        operands = operands_of(row, known)
        moving = [operand.moves for operand in operands]
        if any(one.now.dtype.kind not in "iu" for one in operands if one.moves):
            return unknown
        if op.affine == "comparison" and not any(moving[2:]):
            a, b = operands[:2]
            self._stays_in_range(a, on)
            self._stays_in_range(b, on)
            self._keeps_order(a, b, on)
            return [_still(value) for value in now]
        later = several(op.evaluate(row, *(source.later for source in known)))
        pairs = [_pair(*both) for both in zip(now, later, strict=True)]
        if op.affine == "high" and not any(moving[1:]):
            shift = operands[0].now.dtype.type(row.detail.numbers[0])
            self._stays_in_range(_pair(*(one << shift for one in operands[0][:2])), on)
            return unknown if any(pair.moves for pair in pairs) else pairs
        if not is_linear(row, operands, now[0].dtype):
            return unknown
        return self._moved(op, operands, pairs, on)

    def _moved(
        self, op: Op, operands: Sequence[Pair], pairs: Sequence[Pair], on: Array
    ) -> list[Pair | None]:
        """Return the results of a linear instruction, as long as none of them wraps."""
        if op.typed is not None:
            for operand in operands:
                self._stays_in_range(operand, on)
        made: list[Pair | None] = []
        for pair in pairs:
            is_known = not pair.moves or pair.now.dtype.kind in "iu"
            if is_known and pair.moves:
                self._stays_in_range(pair, on)
            made.append(pair if is_known else None)
        return made

    def _access(self, step: Step) -> None:
        row = step.instruction
        assert row.memory is not None
        if row.memory.space not in ("global", "shared") or not row.src or step.addresses is None:
            raise UnknownError
        address = self._read(row.src[0], step.rows)
        if address is None:
            raise UnknownError
        if row.memory.space == "shared":
            if address.moves:
                raise UnknownError
            return
        least, most = self._moves(address, step.on)
        if (least != most).any():
            raise UnknownError
        shape = np.broadcast_shapes(step.addresses.shape, step.on.shape)
        on = np.broadcast_to(step.on, shape)
        touched = np.broadcast_to(step.addresses, shape)[on]
        begin, end = int(touched.min()), int(touched.max()) + row.memory.width_bytes
        known = self.accesses.get(step.pc)
        if known is not None:
            if (known.moves != least).any():
                raise UnknownError
            begin, end = min(begin, known.begin), max(end, known.end)
        self.accesses[step.pc] = _Access(least, begin, end, OPS[row.op].kind == "load")

    # -- guards --------------------------------------------------------------------------------

    def _moves(self, pair: Pair, on: Array) -> tuple[Array, Array]:
        """Return the least and the most that a register moves with each parameter."""
        step = pair.step
        if step.shape[0] == 1:
            return np.zeros(self._count, np.int64), np.zeros(self._count, np.int64)
        if step.shape[1:] == (1, 1):
            return step[:, 0, 0], step[:, 0, 0]
        return _extremes(step, on)

    def _stays_in_range(self, pair: Pair, on: Array) -> None:
        """Guard a register against leaving its type's range."""
        if not pair.moves or not on.any():
            return
        info = np.iinfo(pair.now.dtype)
        low, high = max(int(info.min), -int(FAR)), min(int(info.max), int(FAR))
        now, step = pair.now.astype(np.int64), pair.step
        if ((now + step < low) | (now + step > high)).any():
            raise UnknownError
        least, most = _extremes(now, on)
        self.guards.append(_Guard(int(least[0]) - low, high - int(most[0]), *self._moves(pair, on)))

    def _keeps_order(self, a: Pair, b: Pair, on: Array) -> None:
        """Guard a comparison: lanes with a below, at or above b stay so."""
        if not on.any():
            return
        if any((np.abs(one.now.astype(float)) > FAR // 2).any() for one in (a, b)):
            raise UnknownError  # distances might overflow
        apart = a.now.astype(np.int64) - b.now.astype(np.int64)
        moves = a.step - b.step
        both = Pair(apart, apart + moves, moves=True)
        shape = np.broadcast_shapes(apart.shape, on.shape)
        apart, on = np.broadcast_to(apart, shape), np.broadcast_to(on, shape)
        for lanes, sign in ((on & (apart > 0), 1), (on & (apart < 0), -1), (on & (apart == 0), 0)):
            if lanes.any():
                nearest = int(np.abs(apart[lanes]).min())
                below = nearest - 1 if sign > 0 else int(FAR) * -sign
                above = nearest - 1 if sign < 0 else int(FAR) * sign
                self.guards.append(_Guard(below, above, *self._moves(both, lanes)))


def _still(value: Array) -> Pair:
    return Pair(value, value, moves=False)


def _pair(now: Array, later: Array) -> Pair:
    return Pair(now, later, moves=True) if (now != later).any() else _still(now)


def _leaf(value: int, dtype: np.dtype[Any], place: int, count: int) -> Pair:
    """Return a parameter, with its value where it is changed by one itself."""
    now = np.full((1, 1, 1), value, dtype)
    later = np.full((count, 1, 1), value, dtype)
    later[place] += dtype.type(1) if value < np.iinfo(dtype).max else dtype.type(-1)
    return Pair(now, later, moves=True)


def _of_rows(value: Array, rows: Array) -> Array:
    return value if value.shape[1] == 1 else value[:, rows]


def _with_rows(old: Array, new: Array, rows: Array, on: Array, warps: int) -> Array:
    """Return a register with new values of some rows, where their lanes are on.

    A warp with parted lanes may have several rows.
    """
    shape = max(len(old), len(new)), len(rows), 32
    made = np.array(np.broadcast_to(old, (shape[0], warps, 32)))
    copy, row, lane = np.nonzero(np.broadcast_to(on, shape))
    made[copy, rows[row], lane] = np.broadcast_to(new, shape)[copy, row, lane]
    return made


def _extremes(found: Array, on: Array) -> tuple[Array, Array]:
    """Return the least and most of some lanes, for each copy."""
    shape = np.broadcast_shapes(found.shape, on.shape)
    picked = np.broadcast_to(found, shape)[:, np.broadcast_to(on, (1, *shape[1:]))[0]]
    return picked.min(axis=1), picked.max(axis=1)


@dataclass(frozen=True)
class BlockRun:
    """The run of a block, with the `guards` within which blocks of any launch run alike.

    `known` are the launch's parameters, `values` the changing ones. `stream` and `stretches` are
    those of the block. Accesses are in columns, `arrays` the names of what they touch.
    """

    known: Mapping[Key, Array]
    values: Array
    guards: _Guards
    pcs: tuple[int, ...]
    accesses: _Accesses
    arrays: tuple[str, ...]
    stream: BlockStream
    stretches: Stretches

    def moved(self, parameters: Parameters, blocks: Sequence[int]) -> dict[int, Array]:
        """Return, for each of some blocks that run alike, how far its accesses are moved."""
        if not blocks or not parameters.are_fixed_as(self.known):
            return {}
        changes = parameters.of(blocks) - self.values
        up, down, guards = np.maximum(changes, 0), np.minimum(changes, 0), self.guards
        least = up @ guards.least.T + down @ guards.most.T
        most = up @ guards.most.T + down @ guards.least.T
        alike = (least >= -guards.below).all(axis=1) & (most <= guards.above).all(axis=1)
        far = changes @ self.accesses.moves.T
        alike &= self._is_whole(far, parameters)
        return {blocks[place]: far[place] for place in np.flatnonzero(alike).tolist()}

    def _is_whole(self, far: Array, parameters: Parameters) -> Array:
        """Return whether blocks touch moved arrays alike: within them, in the same parts of lines.

        Loads are moved by the same distance, and so are all accesses of an array: by whole lines,
        if they do not lie in one sector before and after.
        """
        found = [parameters.allocations[name] for name in self.arrays]
        starts, stops = (np.array([getattr(a, end) for a in found]) for end in ("start", "stop"))
        begins, ends = self.accesses.begin + far, self.accesses.end + far
        alike = ((begins >= starts) & (ends <= stops)).all(axis=1)
        names = np.array(self.arrays)
        for name in dict.fromkeys(self.arrays):
            mine = names == name
            is_one = _is_one_sector(self.accesses.begin[mine], self.accesses.end[mine])
            is_one = is_one & _is_one_sector(begins[:, mine], ends[:, mine])
            alike &= is_one | (far[:, mine] % LINE_BYTES == 0).all(axis=1)
        together = [self.accesses.is_load, *(names == name for name in dict.fromkeys(self.arrays))]
        for some in together:
            mine = far[:, some]
            alike &= (mine == mine[:, :1]).all(axis=1)
        return np.asarray(alike)

    def stretches_moved(self, far: Array) -> Stretches:
        """Return the stretches of a block whose accesses are moved."""
        moves = np.zeros(1 + max(self.stretches.pc.max(initial=0), *self.pcs, 0), np.int64)
        moves[list(self.pcs)] = far
        shift = moves[self.stretches.pc]
        rows = self.stretches
        return replace(rows, begin=rows.begin + shift, end=rows.end + shift)


def _is_one_sector(begins: Array, ends: Array) -> Array:
    """Return whether accesses lie in one sector together, along the last axis."""
    first, last = begins.min(axis=-1), ends.max(axis=-1) - 1
    return np.asarray(first // SECTOR_BYTES == last // SECTOR_BYTES)


class BlockRuns:
    """The runs of single blocks of a program that are kept."""

    def __init__(self) -> None:
        self._runs: list[BlockRun] = []
        self._was_refused = False

    def find(
        self, parameters: Parameters, blocks: Sequence[int]
    ) -> dict[int, tuple[BlockRun, Array]]:
        """Return the runs that some of the blocks are like, with how far accesses are moved."""
        found: dict[int, tuple[BlockRun, Array]] = {}
        for run in self._runs:
            left = [block for block in blocks if block not in found]
            found |= {b: (run, far) for b, far in run.moved(parameters, left).items()}
        return found

    def follow(
        self, prepared: Prepared, parameters: Parameters, block: int, step_limit: int
    ) -> bool:
        """Run a block and keep its run; return whether it could be followed.

        It is not tried again where the first one could not.
        """
        if self._was_refused:
            return False
        streams, touches = Recorder(prepared), TouchRecorder(prepared)
        follower = Follower(prepared, parameters, block)
        try:
            machine.run(
                prepared,
                observers=(streams, touches, follower),
                step_limit=step_limit,
                blocks=[block],
                on_skip=_refuse,
            )
            run = _run_of(follower, parameters, block, streams, touches)
        except (UnknownError, GpusimError):  # a fault is told where all blocks are run
            self._was_refused = not self._runs
            return False
        self._runs = [*self._runs[1 - MOST_RUNS :], run]
        return True


def _refuse(_: Skip) -> None:
    raise UnknownError


def _run_of(
    follower: Follower,
    parameters: Parameters,
    block: int,
    streams: Recorder,
    touches: TouchRecorder,
) -> BlockRun:
    pcs = tuple(sorted(follower.accesses))
    accesses = [follower.accesses[pc] for pc in pcs]
    count = len(parameters.changing)
    wide, narrow = np.zeros((0, count), np.int64), np.zeros(0, np.int64)
    guards = _Guards(narrow, narrow, wide, wide)
    columns = _Accesses(wide, narrow, narrow, narrow.astype(bool))
    if follower.guards:
        guards = _Guards(*map(np.array, zip(*follower.guards, strict=True)))
    if accesses:
        columns = _Accesses(*map(np.array, zip(*accesses, strict=True)))
    arrays = tuple(_array_of(one, parameters) for one in accesses)
    known = {key: parameters.found[key] for key in parameters.fixed}
    return BlockRun(
        known,
        parameters.of([block])[0],
        guards,
        pcs,
        columns,
        arrays,
        streams.streams[block],
        touches.stretches[block],
    )


def _array_of(access: _Access, parameters: Parameters) -> str:
    """Return the array that an instruction's accesses lie in."""
    for name, one in parameters.allocations.items():
        if one.start <= access.begin and access.end <= one.stop:
            return name
    raise UnknownError


@lru_cache(maxsize=4)
def _kept(_: Same[Program], *of_launch: Hashable) -> BlockRuns:  # noqa: ARG001
    return BlockRuns()


def runs_of(prepared: Prepared) -> BlockRuns | None:
    """Return the kept runs of a launch's program; None where data may decide what blocks do."""
    if decisions(prepared.program).memory:
        return None
    launch = prepared.launch
    same = Same(prepared.program), launch.block, launch.dynamic_shared_bytes, prepared.cc
    return _kept(*same)
