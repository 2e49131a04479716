"""Values from uninitialised memory, tracked through the registers.

A compiler may load several words to use some of them: an uninitialised load alone is no finding,
its use is. As in MemorySanitizer, each register keeps for each lane the origin of its value,
results inherit it from their operands, and a finding is reported where an address, a branch or
memory depends on it. A result is assumed to depend on all its operands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from gpusim.checking.access import Access
from gpusim.checking.element_access import Array, ElementAccess
from gpusim.checking.findings import Finding
from gpusim.checking.races import Name
from gpusim.checking.single_access import never_written
from gpusim.isa.ops import OPS
from gpusim.launch.events import Placement, Step

Lanes = tuple[Array, Array, Array]  # copies, rows of the batch, lanes
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
    _readings: list[Reading] = field(default_factory=list)
    _next: int = 1
    _most: int = MOST_READINGS

    def unfold(self, placement: Placement) -> None:
        """Give every warp of every block a row of its own."""
        self.placement = placement
        for register, known in self._registers.items():
            self._registers[register] = known.reshape(1, -1, 32)

    def read(self, step: Step, reading: Reading) -> None:
        """Record the origin in the destination registers of a load with elements never written."""
        reading.first, count = self._next, len(reading.never)
        self._next += count
        self._forget()
        self._readings.append(reading)
        numbers = np.where(reading.never, reading.first + np.arange(count), 0)
        alike = reading.touch.blocks
        on = np.broadcast_to(step.on, (self.placement.copies // alike, len(step.rows), 32))
        registers, lanes = step.instruction.dst, self._lanes(step, step.on)
        by_lane = numbers.reshape(np.count_nonzero(on), -1)
        for register, mine in zip(registers, _by_register(by_lane, len(registers)), strict=True):
            held = np.zeros(on.shape, np.int64)
            held[on] = mine
            self._set(register, lanes, self._of_lanes(step, held, step.on))

    def _forget(self) -> None:
        """Drop, now and then, readings that no register holds any more."""
        if len(self._readings) < self._most:
            return
        held = np.unique(
            [number for known in self._registers.values() for number in np.unique(known)]
        )
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
            yield from self._told(np.union1d(by_guard, by_source))
            by_source = np.zeros_like(by_source)
        if is_traced:
            yield from self._told(self._first_of(row.src[1:], on))
            by_source = self._shuffled(step)
        for register in row.dst:
            self._set(register, on, by_source)
            if gives_value and by_guard.any():
                self._set(register, active, _earlier(self._first_of((register,), active), by_guard))

    def _shuffled(self, step: Step) -> Array:
        """Return the origins that active lanes receive from their source lanes."""
        held = self._registers.get(step.instruction.src[0])
        if held is None or step.sources is None:
            return np.zeros(len(self._lanes(step, step.on)[0]), np.int64)
        mine = np.where(step.on, held[:, step.rows], 0)
        sources = np.broadcast_to(step.sources, mine.shape)
        return self._of_lanes(step, np.take_along_axis(mine, sources, axis=2), step.on)

    def _told(self, numbers: Array) -> Iterator[Finding | None]:
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


def _earlier(one: Array, other: Array) -> Array:
    """Return the lower of two numbers that is not 0, lane by lane."""
    return np.where((one == 0) | ((other != 0) & (other < one)), other, one)


def _by_register(numbers: Array, registers: int) -> Iterator[Array]:
    """Yield, for each register of a load, one number of the elements that it holds, by lane."""
    lanes, elements = numbers.shape
    if elements < registers:
        numbers = np.repeat(numbers, registers // elements, axis=1)
    yield from numbers.reshape(lanes, registers, -1).max(axis=2).T
