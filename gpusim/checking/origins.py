"""Values from uninitialised memory, tracked through the registers.

A compiler may load several words to use some of them: an uninitialised load alone is no finding,
its use is. As in MemorySanitizer, each register keeps for each lane the origin of its value,
results inherit it from their operands, also through shared and local memory, and a finding is
reported where an address, a branch or global memory depends on it. A result that is equal for all
tried values of such operands does not depend on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from gpusim.checking.access import Access
from gpusim.checking.element_access import ElementAccess
from gpusim.checking.findings import Finding
from gpusim.checking.races import Name
from gpusim.checking.single_access import never_written
from gpusim.isa.ops import OPS
from gpusim.launch.events import Placement, Step
from gpusim.typing import Array

Lanes = tuple[Array, Array, Array]  # copies, rows of the batch, lanes
# Bits of 64: none and all, the largest and least signed numbers of 32, infinities, alternating.
PROBES = (
    0x0000000000000000,
    0xFFFFFFFFFFFFFFFF,
    0x7FFFFFFF7FFFFFFF,
    0x8000000080000000,
    0x7FF000007F800000,
    0xFFF00000FF800000,
    0x5555555555555555,
    0xAAAAAAAAAAAAAAAA,
)
MOST_READINGS = 64  # readings kept before the ones no longer held by any register are dropped


@dataclass
class Reading:
    """A step's read of elements, some of them `never` written, numbered from `first` on."""

    touch: ElementAccess
    access: Access
    name: Name
    never: Array
    first: int = 1

    def is_among(self, numbers: Array) -> bool:
        """Return whether some of the elements are."""
        first, last = np.searchsorted(numbers, (self.first, self.first + len(self.never)))
        return bool(first < last)

    def tell(self, numbers: Array) -> Finding | None:
        """Return the finding for some of the elements; each is reported once."""
        which = numbers - self.first
        told = np.zeros_like(self.never)
        told[which[(which >= 0) & (which < len(told))]] = True
        told &= self.never
        self.never &= ~told
        return never_written(told, self.touch.thread, self.access, self.name, self.touch.blocks)


@dataclass
class Origins:
    """The numbers of elements never written that registers of a batch depend on, 0 for none."""

    placement: Placement
    _registers: dict[int, Array] = field(default_factory=dict)  # (copies, rows, 32)
    _memory: dict[str, Array] = field(default_factory=dict)  # by element
    _readings: list[Reading] = field(default_factory=list)
    _next: int = 1
    _most: int = MOST_READINGS

    def unfold(self, placement: Placement) -> None:
        """Give every warp of every block a row of its own."""
        self.placement = placement
        for register, known in self._registers.items():
            self._registers[register] = known.reshape(1, -1, 32)

    def read(self, step: Step, reading: Reading, carried: Array) -> None:
        """Record the origins in the destination registers of a load.

        Of elements never written they begin here, of others they are `carried` by memory.
        """
        numbers = carried
        if reading.never.any():
            reading.first, count = self._next, len(reading.never)
            self._next += count
            self._forget()
            self._readings.append(reading)
            numbers = np.where(reading.never, reading.first + np.arange(count), carried)
        alike = reading.touch.blocks
        on = np.broadcast_to(step.on, (self.placement.copies // alike, len(step.rows), 32))
        registers, lanes = step.instruction.dst, self._lanes(step, step.on)
        by_lane = numbers.reshape(np.count_nonzero(on), -1)
        for register, mine in zip(registers, _by_register(by_lane, len(registers)), strict=True):
            held = np.zeros(on.shape, np.int64)
            held[on] = mine
            self._set(register, lanes, self._of_lanes(step, held, step.on))

    def carried(self, space: str, touch: ElementAccess, elements: int) -> Array:
        """Return the origins of the values in elements of a memory."""
        known = self._known(space, elements)
        return np.zeros(len(touch.element), np.int64) if known is None else known[touch.element]

    def store(self, step: Step, space: str, touch: ElementAccess, elements: int) -> None:
        """Record the origins of the values stored by a step to a memory."""
        known, values = self._known(space, elements), _values(step)
        held = [self._registers[one] for one in values if one in self._registers]
        if known is None and not held:
            return
        if known is None:
            known = self._memory[space] = np.zeros(elements, np.int64)
        on = np.broadcast_to(step.on, (self.placement.copies // touch.blocks, len(step.rows), 32))
        lanes = np.count_nonzero(on)
        columns = [
            np.zeros(lanes, np.int64)
            if one not in self._registers
            else self._registers[one][: len(on), step.rows][on]
            for one in values
        ] or [np.zeros(lanes, np.int64)]
        each, registers = len(touch.element) // lanes, len(columns)
        numbers = np.stack(columns, axis=1)
        if each > registers:
            numbers = np.repeat(numbers, each // registers, axis=1)
        known[touch.element] = numbers.reshape(lanes, each, -1).max(axis=2).reshape(-1)

    def stored_outside(self, step: Step) -> Iterator[Finding | None]:
        """Yield the findings of values that a step stores to global memory."""
        if self._registers:
            yield from self.used(self._first_of(_values(step), self._lanes(step, step.on)))

    def _known(self, space: str, elements: int) -> Array | None:
        """Return the origins in a memory: copied, where blocks have memories of their own now."""
        known = self._memory.get(space)
        if known is not None and len(known) != elements:
            known = self._memory[space] = np.tile(known, elements // len(known))
        return known

    def _forget(self) -> None:
        """Drop, now and then, readings that no register holds any more."""
        if len(self._readings) < self._most:
            return
        every = (*self._registers.values(), *self._memory.values())
        held = np.unique([number for known in every for number in np.unique(known)])
        self._readings = [reading for reading in self._readings if reading.is_among(held)]
        self._most = 2 * len(self._readings) + MOST_READINGS

    def follow(self, step: Step) -> Iterator[Finding | None]:
        """Propagate origins from operands to results, or yield a finding where they are used."""
        row = step.instruction
        guards = () if row.guard is None else (row.guard,)
        if not self._registers or self._registers.keys().isdisjoint((*row.src, *row.dst, *guards)):
            return
        on, active = self._lanes(step, step.on), self._lanes(step, step.active)
        by_guard, by_source = self._first_of(guards, active), self._first_of(row.src, on)
        is_traced = step.sources is not None and step.mask is None
        gives_value = OPS[row.op].gives_value or is_traced
        if not gives_value:
            if OPS[row.op].kind == "store":
                by_source = self._first_of(row.src[: len(row.src) - len(step.values)], on)
            yield from self.used(np.union1d(by_guard, by_source))
            by_source = np.zeros_like(by_source)
        elif by_source.any() and not is_traced:
            by_source = np.where(self._decides(step), by_source, 0)
        if is_traced:
            yield from self.used(self._first_of(row.src[1:], on))
            by_source = self._shuffled(step)
        for register in row.dst:
            self._set(register, on, by_source)
            if gives_value and by_guard.any():
                self._set(register, active, _earlier(self._first_of((register,), active), by_guard))

    def _decides(self, step: Step) -> Array:
        """Return a mask of the lanes whose result depends on values without an origin of its own.

        The instruction is evaluated with other bits in their place; it depends on them where the
        results differ. One whose operands it has overwritten is assumed to depend.
        """
        row, shape = step.instruction, self._shape(step)
        evaluate, read = OPS[row.op].evaluate, step.registers
        unknown = {
            register: self._registers[register][:, step.rows] != 0
            for register in row.src
            if register in self._registers
        }
        kept = [register for register in row.src if register not in unknown]
        lanes = np.count_nonzero(np.broadcast_to(step.on, shape))
        if evaluate is None or read is None or not set(row.dst).isdisjoint(kept):
            return np.ones(lanes, dtype=bool)
        values = [read(register) for register in row.src]
        differs = np.zeros(shape, dtype=bool)
        first: list[Array] = []
        with np.errstate(all="ignore"):
            for turn in range(len(PROBES) + len(values)):
                tried = [
                    np.where(unknown[register], _probe(values, place, turn), value)
                    if register in unknown
                    else value
                    for place, (register, value) in enumerate(zip(row.src, values, strict=True))
                ]
                made = evaluate(row, *tried)
                results = [_bits(one) for one in (made if isinstance(made, tuple) else (made,))]
                first = first or results
                for one, other in zip(first, results, strict=True):
                    differs |= one != other
        return self._of_lanes(step, differs, step.on)

    def _shuffled(self, step: Step) -> Array:
        """Return the origins that active lanes receive from their source lanes."""
        held = self._registers.get(step.instruction.src[0])
        if held is None or step.sources is None:
            return np.zeros(len(self._lanes(step, step.on)[0]), np.int64)
        mine = np.where(step.on, held[:, step.rows], 0)
        sources = np.broadcast_to(step.sources, mine.shape)
        return self._of_lanes(step, np.take_along_axis(mine, sources, axis=2), step.on)

    def used(self, numbers: Array) -> Iterator[Finding | None]:
        """Yield the findings of values that something depends on."""
        if numbers.any():
            yield from (reading.tell(numbers) for reading in self._readings)
            self._readings = [reading for reading in self._readings if reading.never.any()]

    def _shape(self, step: Step) -> tuple[int, int, int]:
        return self.placement.copies, len(step.rows), 32

    def _lanes(self, step: Step, mask: Array) -> Lanes:
        """Return the indices of a mask's lanes in the arrays of registers."""
        copy, row, lane = np.nonzero(np.broadcast_to(mask, self._shape(step)))
        return copy, step.rows[row], lane

    def _of_lanes(self, step: Step, values: Array, mask: Array) -> Array:
        """Return the values of the lanes of a mask, in the order of `_lanes`."""
        shape = self._shape(step)
        found: Array = np.broadcast_to(values, shape)[np.broadcast_to(mask, shape)]
        return found

    def _first_of(self, registers: tuple[int, ...], lanes: Lanes) -> Array:
        """Return, for each lane, the earliest origin among some registers."""
        found = np.zeros(len(lanes[0]), np.int64)
        for register in registers:
            if register in self._registers:
                found = _earlier(found, self._registers[register][lanes])
        return found

    def _set(self, register: int, lanes: Lanes, numbers: Array) -> None:
        held = self._registers.get(register)
        if held is None:
            if not numbers.any():
                return
            held = np.zeros((self.placement.copies, self.placement.rows, 32), np.int64)
            self._registers[register] = held
        held[lanes] = numbers
        if not held.any():
            del self._registers[register]


def _values(step: Step) -> tuple[int, ...]:
    """Return the registers that a step stores."""
    return step.instruction.src[len(step.instruction.src) - len(step.values) :]


def _probe(values: list[Array], place: int, turn: int) -> Array:
    """Return trial values for an operand: patterns of bits, and the other operands' values."""
    mine = values[place]
    which = (turn + place) % (len(PROBES) + len(values))
    if which >= len(PROBES):
        other = values[which - len(PROBES)]
        return other if other.dtype == mine.dtype else mine
    if mine.dtype.kind == "b":
        return np.array(which % 2 == 1)
    bits = np.array(PROBES[which], np.uint64).astype(f"u{mine.dtype.itemsize}")
    return bits.view(mine.dtype)


def _bits(values: Array) -> Array:
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")


def _earlier(one: Array, other: Array) -> Array:
    """Return the lower of two numbers that is not 0, lane by lane."""
    return np.where((one == 0) | ((other != 0) & (other < one)), other, one)


def _by_register(numbers: Array, registers: int) -> Iterator[Array]:
    """Yield, for each register of a load, one number of the elements that it holds, by lane."""
    lanes, elements = numbers.shape
    if elements < registers:
        numbers = np.repeat(numbers, registers // elements, axis=1)
    yield from numbers.reshape(lanes, registers, -1).max(axis=2).T
