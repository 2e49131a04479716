"""Recurrences of loops: one iteration followed once more predicts equal iterations after it.

Each register that decides is followed as a pair, its value in this iteration and in the next.
Where the loop moves it by the same step each time (an induction variable), linear instructions
move by the same steps too, and comparisons have the same result until their sides are equal.
Other functions of a moving value, and loaded values, are unknown; a loop with an unknown
condition is not known to repeat.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from gpusim.gpu.memory import LINE_BYTES
from gpusim.isa.ops import AFFINE, ANY_ARRAY, OPS, Instruction, Memory, Op
from gpusim.launch.events import Step
from gpusim.machine import values
from gpusim.machine.context import Context
from gpusim.machine.group import Group
from gpusim.machine.state import Batch
from gpusim.program.decisions import Decisions
from gpusim.typing import Array

ENDLESS = np.int64(2**62)
LONGEST_PERIOD = 32


class DiffersError(Exception):
    """The next iteration is not known to be like this one."""


class Pair(NamedTuple):
    """A register in one iteration and in the next."""

    now: Array
    later: Array
    moves: bool

    @property
    def step(self) -> Array:
        """By how much it moves, as 64-bit numbers."""
        signed = np.dtype(f"i{self.now.dtype.itemsize}")
        return np.asarray((self.later - self.now).astype(signed).astype(np.int64))


def _still(value: Array) -> Pair:
    return Pair(value, value, moves=False)


def _pair(now: Array, later: Array) -> Pair:
    return Pair(now, later, moves=not np.array_equal(now, later))


def of_type(pair: Pair, dtype: np.dtype[Any]) -> Pair | None:
    """Return a pair as another type; None where it holds values of another size.

    A register never set has zeros, of any type.
    """
    if pair.now.dtype == dtype:
        return pair
    if pair.now.dtype.itemsize != dtype.itemsize:
        is_zero = not (pair.now.any() or pair.later.any())
        return _still(np.zeros(pair.now.shape, dtype)) if is_zero else None
    return Pair(pair.now.view(dtype), pair.later.view(dtype), pair.moves)


@dataclass(frozen=True)
class Recurrence:
    """The recurrence of a loop, from its last iteration.

    Each block runs `alike` iterations alike, shaped (copies or 1, rows), the one followed being
    the first. `steps` is by how much registers move in one; `strides` by how many bytes addresses
    in an array do, by where the array begins. `period` iterations take accesses on by whole
    128-byte lines. An iteration issues `issued` instructions.
    """

    alike: Array
    steps: dict[int, Array]
    strides: dict[int, int]
    period: int
    issued: int


def follow(
    context: Context,
    group: Group,
    before: Sequence[Array | None],
    steps: Sequence[Step],
    decisions: Decisions,
) -> Recurrence:
    """Return the recurrence of a loop from the last iteration that a group has run.

    `before` are the registers at the start of that iteration, `steps` its steps. Raises
    DiffersError if nothing is known of the next.
    """
    iteration = _Iteration(context, group, before, decisions)
    for step in steps:
        iteration.run(step)
    return iteration.recurrence()


class _Iteration:
    """An iteration being followed."""

    def __init__(
        self,
        context: Context,
        group: Group,
        before: Sequence[Array | None],
        decisions: Decisions,
    ) -> None:
        self._context = context
        self._group = group
        self._before = before
        self._decisions = decisions
        self._pairs: dict[int, Pair | None] = {}
        self._carried: dict[int, Pair] = {}
        self._alike = np.full((1, len(group.rows)), ENDLESS)
        self._strides: dict[int, int] = {}
        self._period = 1
        self._issued = 0

    def run(self, step: Step) -> None:
        """Follow one step."""
        if not self._is_mine(step):
            return
        instruction, on = step.instruction, step.on
        op = OPS[instruction.op]
        self._issued += op.issued
        decides = not self._decisions.registers.isdisjoint(instruction.dst)
        if instruction.guard is not None and (decides or not op.only_describes):
            self._expect_still(instruction.guard)
        if op.waits_for_lanes:
            self._expect_still(instruction.src[0])
        if op.kind == "barrier" and not self._group.is_of_whole_blocks():
            raise DiffersError
        if op.access and on.any():
            self._access(instruction, on)
        if op.kind == "bank" and on.any():
            for register in instruction.src:
                self._stride(register, on)
        if decides:
            for register, result in zip(
                instruction.dst, self._results(instruction, on), strict=False
            ):
                self._write(register, result, on)

    def _is_mine(self, step: Step) -> bool:
        """Return whether the group ran a step, as a whole or with some of each warp's lanes."""
        rows = self._group.rows
        if step.placement is not self._group.batch.placement:
            raise DiffersError
        if np.array_equal(step.rows, rows) and not (step.active & ~self._group.mask).any():
            return True
        if np.isin(step.rows, rows).any():
            raise DiffersError
        return False

    # -- registers ---------------------------------------------------------------------

    def _read(self, register: int) -> Pair | None:
        if register not in self._pairs:
            self._pairs[register] = self._at_begin(register)
        return self._pairs[register]

    def _at_begin(self, register: int) -> Pair:
        """Return how the loop moves a register that this iteration found."""
        found, left = self._before[register], self._group.batch.registers[register]
        now = self._group.read(register)
        if found is left:
            return _still(now)
        if found is None:
            raise DiffersError
        begin = self._group.of_rows(found)
        if begin.dtype != now.dtype:  # other values have had it in between
            if begin.dtype.itemsize != now.dtype.itemsize:
                raise DiffersError
            begin = begin.view(now.dtype)
        pair = _pair(begin, now if self._group.is_full else np.where(self._group.mask, now, begin))
        self._carried[register] = pair
        if pair.moves:
            if pair.now.dtype.kind not in "iu":
                raise DiffersError
            self._limit(_until_it_wraps(pair), self._group.mask)
        return pair

    def _write(self, register: int, pair: Pair | None, on: Array) -> None:
        if not (on | ~self._group.mask).all():
            old = self._read(register)
            if old is not None and pair is not None:
                old = of_type(old, pair.now.dtype)
            if pair is not None and old is not None:
                pair = _pair(np.where(on, pair.now, old.now), np.where(on, pair.later, old.later))
            else:
                pair = None
        self._pairs[register] = pair

    def _expect_still(self, register: int) -> None:
        pair = self._read(register)
        if pair is None or pair.moves:
            raise DiffersError

    def _limit(self, count: Array, on: Array) -> None:
        """Record that lanes that are on have at most `count` equal iterations."""
        least = np.where(on, count, ENDLESS).min(axis=2)
        self._alike = np.minimum(self._alike, least)

    # -- instructions ------------------------------------------------------------------

    def _results(self, instruction: Instruction, on: Array) -> Iterable[Pair | None]:
        """Return the results of an instruction, one for each destination."""
        kind = OPS[instruction.op].kind
        if kind == "constant":
            return [_still(values.constant_value(self._context, instruction))]
        if kind == "special":
            return repeat(_still(values.special_value(self._group, instruction)))
        if kind == "bank" and not instruction.src:
            found = values.bank_values(self._context, self._group, instruction)
            return [_still(value) for value in found]
        return self._computed(instruction, on) if kind == "compute" else repeat(None)

    def _computed(self, instruction: Instruction, on: Array) -> Iterable[Pair | None]:
        op = OPS[instruction.op]
        sources = [self._read(register) for register in instruction.src]
        known = [source for source in sources if source is not None]
        if op.evaluate is None or len(known) < len(sources):
            return repeat(None)
        now = several(op.evaluate(instruction, *(source.now for source in known)))
        if not any(source.moves for source in known):
            return [_still(value) for value in now]
        operands = operands_of(instruction, known)
        moving = [operand.moves for operand in operands]
        if any(one.now.dtype.kind not in "iu" for one in operands if one.moves):
            return repeat(None)
        if op.affine == "comparison" and not any(moving[2:]):
            self._limit(_until_equal(*operands[:2]), on)
            return [_still(value) for value in now]
        later = several(op.evaluate(instruction, *(source.later for source in known)))
        if op.affine == "high" and not any(moving[1:]):
            # Bits that a shift moves out at the top stay equal, until the bits below it wrap.
            shift = operands[0].now.dtype.type(instruction.detail.numbers[0])
            self._limit(
                _until_it_wraps(_pair(operands[0].now << shift, operands[0].later << shift)), on
            )
            pairs = [_pair(*both) for both in zip(now, later, strict=True)]
            return repeat(None) if any(pair.moves for pair in pairs) else pairs
        if not is_linear(instruction, operands, now[0].dtype):
            return repeat(None)
        return self._moved(op, operands, now, later, on)

    def _moved(
        self, op: Op, operands: list[Pair], now: list[Array], later: list[Array], on: Array
    ) -> list[Pair | None]:
        """Return the results of a linear instruction, valid until one of them wraps."""
        if op.typed is not None:
            for operand in operands:
                if operand.moves:
                    self._limit(_until_it_wraps(operand), on)
        made: list[Pair | None] = []
        for pair in (_pair(*both) for both in zip(now, later, strict=True)):
            if pair.moves and pair.now.dtype.kind not in "iu":
                made.append(None)
                continue
            if pair.moves or op.typed is None:
                self._limit(_until_it_wraps(pair), on)
            made.append(pair)
        return made

    def _access(self, instruction: Instruction, on: Array) -> None:
        memory = instruction.memory
        assert memory is not None
        if OPS[instruction.op].writes_memory and memory.may_touch(self._decisions.memory):
            raise DiffersError
        if not instruction.src:
            return
        stride = self._stride(instruction.src[0], on)
        self._period = math.lcm(self._period, LINE_BYTES // math.gcd(stride, LINE_BYTES))
        for array in self._arrays(memory, instruction.src[0], on):
            if self._strides.setdefault(array, stride) != stride:
                raise DiffersError

    def _arrays(self, memory: Memory, address: int, on: Array) -> list[int]:
        """Return where the arrays begin that an access touches, by an address in a register."""
        allocations = self._context.allocations
        if memory.place != ANY_ARRAY:
            named = allocations.get(memory.place)
            return [] if named is None else [named.address]
        pair = self._read(address)
        assert pair is not None
        touched = memory.offset + np.broadcast_arrays(pair.now, on)[0]
        touched = touched[np.broadcast_to(on, touched.shape)]
        return [
            one.address
            for one in allocations.values()
            if ((touched >= one.extent.start) & (touched < one.extent.stop)).any()
        ]

    def _stride(self, register: int, on: Array) -> int:
        """Return an address register's step per iteration, equal in all lanes."""
        address = self._read(register)
        if address is None:
            raise DiffersError
        steps = np.broadcast_to(address.step, np.broadcast_shapes(address.step.shape, on.shape))
        taking = steps[np.broadcast_to(on, steps.shape)]
        stride = int(taking[0])
        if (taking != stride).any():
            raise DiffersError
        return stride

    # -- the end -----------------------------------------------------------------------

    def recurrence(self) -> Recurrence:
        """Return the loop's recurrence; DiffersError if it does not repeat."""
        mask = self._group.mask
        for register, begin in self._carried.items():
            end = self._pairs[register]
            if end is None or ((end.now != begin.later) & mask).any():
                raise DiffersError
            if (begin.moves or end.moves) and ((end.step != begin.step) & mask).any():
                raise DiffersError
        if self._period > LONGEST_PERIOD:
            raise DiffersError
        return Recurrence(
            alike=_least_of_blocks(self._alike, self._group.batch, self._group.rows),
            steps={r: p.later - p.now for r, p in self._carried.items() if p.moves},
            strides=self._strides,
            period=self._period,
            issued=self._issued,
        )


def several(results: Array | tuple[Array, ...]) -> list[Array]:
    """Return the results of an evaluator, one for each destination."""
    return list(results) if isinstance(results, tuple) else [results]


def operands_of(instruction: Instruction, sources: list[Pair]) -> list[Pair]:
    """Return the operands that the sources are taken for."""
    typed = OPS[instruction.op].typed
    if typed is None:
        return sources
    now = typed(instruction, *(source.now for source in sources))
    later = typed(instruction, *(source.later for source in sources))
    return [_pair(*both) for both in zip(now, later, strict=True)]


def is_linear(instruction: Instruction, sources: list[Pair], result: np.dtype[Any]) -> bool:
    """Return whether the result moves by a constant step, as its sources do."""
    op = OPS[instruction.op]
    moving = [source.moves for source in sources]
    wide = max(source.now.dtype.itemsize for source in sources if source.moves)
    if result.kind not in "iu" or (result.itemsize > wide and not op.widens):
        return False
    return AFFINE[op.affine](instruction, moving)


def _until_it_wraps(pair: Pair) -> Array:
    """Return the number of iterations, with this one, before a register leaves its type's range."""
    info = np.iinfo(pair.now.dtype)
    low, high = max(int(info.min), -int(ENDLESS)), min(int(info.max), int(ENDLESS))
    now, step = pair.now.astype(np.int64), pair.step
    first = step[0, 0, 0]
    if (step == first).all():  # a division by one number takes a fifth of the time
        if not first:
            return np.full(now.shape, ENDLESS)
        room = high - now if first > 0 else now - low
        return np.asarray(room // np.maximum(np.abs(first), 1) + 1)
    room = np.where(step > 0, high - now, now - low)
    return np.asarray(np.where(step == 0, ENDLESS, room // np.maximum(np.abs(step), 1) + 1))


def _until_equal(a: Pair, b: Pair) -> Array:
    """Return the number of iterations, with this one, with the same result of a comparison."""
    difference = a.now.astype(np.int64) - b.now.astype(np.int64)
    is_above, step = a.now > b.now, a.step - b.step
    apart = np.where(is_above, difference, -difference).astype(np.uint64)  # up to 2^64 - 1
    near = np.where(is_above, -step, step)  # by how much they come nearer
    each = np.maximum(near, 1).astype(np.uint64)
    count = np.minimum(apart // each + (apart % each > 0), np.uint64(ENDLESS)).astype(np.int64)
    count = np.where(near > 0, count, ENDLESS)
    return np.asarray(np.where((apart == 0) & (step != 0), 1, count))


def _least_of_blocks(count: Array, batch: Batch, rows: Array) -> Array:
    """Return, for each row, the least count of its block's rows."""
    if batch.placement.folded:
        return np.broadcast_to(count.min(axis=1, keepdims=True), count.shape)
    block = rows // batch.placement.warps_per_block
    least = np.full(len(batch.placement.blocks), ENDLESS)
    np.minimum.at(least, block, np.broadcast_to(count[0], block.shape))
    return np.asarray(least[block].reshape(1, -1))
