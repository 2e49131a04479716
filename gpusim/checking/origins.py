"""Values from uninitialised memory, tracked through the registers.

A compiler may load several words to use some of them: an uninitialised load alone is no finding,
its use is. As in MemorySanitizer, each register keeps for each lane the origin of its value and
the bits that are unknown, results inherit both from their operands, also through shared and local
memory, and a finding is reported where an address, a branch or global memory depends on them. Bits
of a result that are equal for all tried values of the unknown bits are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
ALL_BITS: Any = np.uint64(0xFFFFFFFFFFFFFFFF)
BYTE_BITS: Any = np.uint64(8)
REGISTER_BYTES = 4
SWAPS = ("cas", "exch")  # atomics that compute nothing
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


class Unknown(NamedTuple):
    """The origins of values, as numbers of elements (0 for none), and their unknown bits."""

    numbers: Array
    bits: Array

    @classmethod
    def none(cls, shape: int | tuple[int, ...]) -> Unknown:
        """Return the origins of known values."""
        return cls(np.zeros(shape, np.int64), np.zeros(shape, np.uint64))

    @property
    def flat(self) -> Unknown:
        """The origins of the values in a row."""
        return Unknown(self.numbers.reshape(-1), self.bits.reshape(-1))

    def at(self, which: Any) -> Unknown:
        """Return the origins of some of the values."""
        return Unknown(self.numbers[which], self.bits[which])

    def put(self, which: Any, values: Unknown) -> None:
        """Replace the origins of some of the values."""
        self.numbers[which] = np.where(values.bits, values.numbers, 0)
        self.bits[which] = values.bits

    def in_parts(self, bytes_each: int, parts: int) -> Unknown:
        """Return values of that many bytes, (lanes, n), as that many parts: halves, or joined."""
        numbers, bits = self.numbers, self.bits
        have = bits.shape[1]
        if parts > have:
            each, width = parts // have, np.uint64(bytes_each * have // parts)
            places = np.tile(np.arange(each, dtype=np.uint64), have) * width * BYTE_BITS
            bits = np.repeat(bits, each, axis=1) >> places & _low_bits(int(width))
            return Unknown(np.repeat(numbers, each, axis=1), bits)
        each = have // parts
        places = np.arange(each, dtype=np.uint64) * np.uint64(bytes_each) * BYTE_BITS
        bits = (bits & _low_bits(bytes_each)).reshape(len(bits), parts, each) << places
        numbers = numbers.reshape(len(numbers), parts, each).max(axis=2)
        return Unknown(numbers, np.bitwise_or.reduce(bits, axis=2))


@dataclass
class Origins:
    """The numbers of elements never written that registers of a batch depend on, 0 for none."""

    placement: Placement
    _registers: dict[int, Unknown] = field(default_factory=dict)  # (copies, rows, 32)
    _memory: dict[str, Unknown] = field(default_factory=dict)  # by element
    _readings: list[Reading] = field(default_factory=list)
    _next: int = 1
    _most: int = MOST_READINGS

    @property
    def has_any(self) -> bool:
        """Whether registers hold unknown bits."""
        return bool(self._registers)

    def unfold(self, placement: Placement) -> None:
        """Give every warp of every block a row of its own."""
        self.placement = placement
        for register, known in self._registers.items():
            self._registers[register] = Unknown(*(one.reshape(1, -1, 32) for one in known))

    def read(self, step: Step, reading: Reading, carried: Unknown) -> None:
        """Record the origins in the destination registers of a load.

        Of elements never written they begin here, of others they are `carried` by memory.
        """
        self._load(step, reading.touch, self._begun(step, reading, carried))

    def swap(self, step: Step, reading: Reading, carried: Unknown, elements: int) -> None:
        """Record the origins of a swap's old values and of those that it stores.

        A lane that compares unknown bits with the same ones finds them equal.
        """
        row, touch = step.instruction, reading.touch
        held = self._begun(step, reading, carried)
        known = self._every(reading.access.space, elements)
        known.put(touch.element, held.flat)
        self._load(step, touch, held)
        values, on = row.src[1:], self._on(step, touch)
        done = np.ones(np.count_nonzero(on), dtype=bool)
        if row.detail == "cas":
            expected, values = values[: len(values) // 2], values[len(values) // 2 :]
            done = self._succeeded(step, expected)[: len(on)][on]
            self._take_numbers(step, expected)
        stored = self._stored(step, touch, values)
        places = touch.element.reshape(len(done), -1)[done]
        known.put(places.reshape(-1), stored.at(done).flat)

    def _succeeded(self, step: Step, expected: tuple[int, ...]) -> Array:
        """Return a mask of the lanes with a successful compare-and-swap."""
        old, read = step.instruction.dst, step.registers
        if read is None or not set(old).isdisjoint(expected):
            return np.zeros(self._shape(step), dtype=bool)
        equal = [read(one) == read(other) for one, other in zip(old, expected, strict=False)]
        return np.broadcast_to(np.logical_and.reduce(equal), self._shape(step))

    def _take_numbers(self, step: Step, expected: tuple[int, ...]) -> None:
        """Give unknown bits of old values the numbers of the expected ones'."""
        lanes = self._lanes(step, step.on)
        for one, other in zip(step.instruction.dst, expected, strict=False):
            if one in self._registers and other in self._registers:
                old, mine = self._registers[one].at(lanes), self._registers[other].at(lanes)
                both = (old.bits & mine.bits) != 0
                self._registers[one].numbers[lanes] = np.where(both, mine.numbers, old.numbers)

    def _begun(self, step: Step, reading: Reading, carried: Unknown) -> Unknown:
        """Return the origins of the elements that a step reads, (lanes, elements)."""
        numbers, bits = carried
        if reading.never.any():
            reading.first, count = self._next, len(reading.never)
            self._next += count
            self._forget()
            self._readings.append(reading)
            numbers = np.where(reading.never, reading.first + np.arange(count), numbers)
            every = _low_bits(self._element_bytes(step, reading.touch))
            bits = np.where(reading.never, every, bits)
        lanes = np.count_nonzero(self._on(step, reading.touch))
        return Unknown(numbers.reshape(lanes, -1), bits.reshape(lanes, -1))

    def _load(self, step: Step, touch: ElementAccess, held: Unknown) -> None:
        """Set the destination registers of a step to the origins of elements."""
        registers, memory = step.instruction.dst, step.instruction.memory
        if not registers:
            return
        held = held.in_parts(self._element_bytes(step, touch), len(registers))
        if memory is not None and memory.dtype.kind == "i" and memory.width_bytes < REGISTER_BYTES:
            held = Unknown(held.numbers, np.where(held.bits, ALL_BITS, held.bits))
        on, lanes = self._on(step, touch), self._lanes(step, step.on)
        for place, register in enumerate(registers):
            mine = Unknown.none(on.shape)
            mine.put(on, held.at((slice(None), place)))
            self._set(register, lanes, Unknown(*(self._of_lanes(step, m, step.on) for m in mine)))

    def carried(self, space: str, touch: ElementAccess, elements: int) -> Unknown:
        """Return the origins of the values in elements of a memory."""
        known = self._known(space, elements)
        return Unknown.none(len(touch.element)) if known is None else known.at(touch.element)

    def store(self, step: Step, space: str, touch: ElementAccess, elements: int) -> None:
        """Record the origins of the values stored by a step to a memory."""
        known, values = self._known(space, elements), _values(step)
        if known is not None or not self._registers.keys().isdisjoint(values):
            self._every(space, elements).put(touch.element, self._stored(step, touch, values).flat)

    def _stored(self, step: Step, touch: ElementAccess, values: tuple[int, ...]) -> Unknown:
        """Return the origins of the elements that a step stores, (lanes, elements)."""
        on = self._on(step, touch)
        lanes = int(np.count_nonzero(on))
        columns = [
            Unknown(*(one[: len(on), step.rows][on] for one in self._registers[value]))
            if value in self._registers
            else Unknown.none(lanes)
            for value in values
        ] or [Unknown.none(lanes)]
        held = Unknown(*(np.stack(each, axis=1) for each in zip(*columns, strict=True)))
        return held.in_parts(_width(step) // len(columns), len(touch.element) // lanes)

    def stored_outside(self, step: Step) -> Iterator[Finding | None]:
        """Yield the findings of values that a step stores to global memory."""
        values, stored = _values(step), ALL_BITS
        if swaps(step):
            values = step.instruction.src[1:]
        elif values:
            stored = _low_bits(_width(step) // len(values))
        if self._registers:
            yield from self.used(self._first_of(values, self._lanes(step, step.on), stored))

    def _known(self, space: str, elements: int) -> Unknown | None:
        """Return the origins in a memory: copied, where blocks have memories of their own now."""
        known = self._memory.get(space)
        if known is not None and len(known.bits) != elements:
            times = elements // len(known.bits)
            known = self._memory[space] = Unknown(*(np.tile(one, times) for one in known))
        return known

    def _every(self, space: str, elements: int) -> Unknown:
        """Return the origins in a memory, to be changed."""
        known = self._known(space, elements)
        if known is None:
            known = self._memory[space] = Unknown.none(elements)
        return known

    def _forget(self) -> None:
        """Drop, now and then, readings that no register holds any more."""
        if len(self._readings) < self._most:
            return
        every = (*self._registers.values(), *self._memory.values())
        held = np.unique([number for known in every for number in np.unique(known.numbers)])
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
        results = [Unknown.none(len(by_source))] * len(row.dst)
        if is_traced:
            yield from self.used(self._first_of(row.src[1:], on))
            results = [self._shuffled(step)] * len(row.dst)
        elif gives_value and by_source.any():
            results = [Unknown(by_source, bits) for bits in self._decided(step)]
        elif not gives_value:
            if OPS[row.op].kind == "store":
                by_source = self._first_of(row.src[: len(row.src) - len(step.values)], on)
            elif swaps(step):
                by_source = self._first_of(row.src[:1], on)
            yield from self.used(np.union1d(by_guard, by_source))
        for register, result in zip(row.dst, results, strict=True):
            self._set(register, on, result)
            if gives_value and by_guard.any():
                held = self._registers.get(register)
                mine = Unknown.none(len(by_guard)) if held is None else held.at(active)
                bits = mine.bits | np.where(by_guard, ALL_BITS, np.uint64(0))
                self._set(register, active, Unknown(_earlier(mine.numbers, by_guard), bits))

    def _decided(self, step: Step) -> list[Array]:
        """Return, of each result, the bits by lane that depend on unknown bits of operands.

        The instruction is evaluated with other bits in their place; those of the result that differ
        depend on them. If it has overwritten its operands, its results are assumed to depend.
        Comparisons have the same bits in the place of those of one origin.
        """
        row, shape = step.instruction, self._shape(step)
        evaluate, read = OPS[row.op].evaluate, step.registers
        unknown = {
            register: self._registers[register].at((slice(None), step.rows))
            for register in row.src
            if register in self._registers
        }
        kept = [register for register in row.src if register not in unknown]
        lanes = np.count_nonzero(np.broadcast_to(step.on, shape))
        if evaluate is None or read is None or not set(row.dst).isdisjoint(kept):
            return [np.full(lanes, ALL_BITS)] * len(row.dst)
        values = [read(register) for register in row.src]
        differs = [np.zeros(shape, dtype=np.uint64) for _ in row.dst]
        with np.errstate(all="ignore"):
            first = _results(evaluate(row, *values))
            compares = all(one.dtype.kind == "b" for one in first)
            for turn in range(len(PROBES) + len(values)):
                tried: dict[int, Array] = {}
                for place, register in enumerate(row.src):
                    if register in unknown:
                        probe = _probe(values, place, turn)
                        for other in tried if compares else ():
                            same = unknown[register].numbers == unknown[row.src[other]].numbers
                            probe = np.where(same, tried[other], probe)
                        tried[place] = probe
                operands = [
                    _replaced(value, tried[place], unknown[register].bits)
                    if place in tried
                    else value
                    for place, (register, value) in enumerate(zip(row.src, values, strict=True))
                ]
                made = _results(evaluate(row, *operands))
                for bits, one, result in zip(differs, first, made, strict=True):
                    bits |= _bits(one) ^ _bits(result)
        return [self._of_lanes(step, one, step.on) for one in differs]

    def _shuffled(self, step: Step) -> Unknown:
        """Return the origins that active lanes receive from their source lanes."""
        held = self._registers.get(step.instruction.src[0])
        if held is None or step.sources is None:
            return Unknown.none(len(self._lanes(step, step.on)[0]))
        mine = [np.where(step.on, one[:, step.rows], one.dtype.type(0)) for one in held]
        sources = np.broadcast_to(step.sources, mine[0].shape)
        taken = [np.take_along_axis(one, sources, axis=2) for one in mine]
        return Unknown(*(self._of_lanes(step, one, step.on) for one in taken))

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

    def _on(self, step: Step, touch: ElementAccess) -> Array:
        """Return the lanes that are on, of the blocks that a touch distinguishes."""
        shape = self.placement.copies // touch.blocks, len(step.rows), 32
        return np.broadcast_to(step.on, shape)

    def _element_bytes(self, step: Step, touch: ElementAccess) -> int:
        """Return the bytes of each element of a touch."""
        each = len(touch.element) // np.count_nonzero(self._on(step, touch))
        return int(_width(step) // each)

    def _first_of(self, registers: tuple[int, ...], lanes: Lanes, among: Any = ALL_BITS) -> Array:
        """Return, for each lane, the earliest origin of some bits of some registers."""
        found = np.zeros(len(lanes[0]), np.int64)
        for register in registers:
            if register in self._registers:
                held = self._registers[register].at(lanes)
                found = _earlier(found, np.where(held.bits & among, held.numbers, 0))
        return found

    def _set(self, register: int, lanes: Lanes, values: Unknown) -> None:
        held = self._registers.get(register)
        if held is None:
            if not values.bits.any():
                return
            shape = self.placement.copies, self.placement.rows, 32
            held = self._registers[register] = Unknown.none(shape)
        held.put(lanes, values)
        if not held.bits.any():
            del self._registers[register]


def swaps(step: Step) -> bool:
    """Return whether a step exchanges values with memory and computes nothing of them."""
    return OPS[step.instruction.op].kind == "atomic" and step.instruction.detail in SWAPS


def discards(step: Step) -> bool:
    """Return whether a step exchanges values and keeps none of memory's: it only stores."""
    return swaps(step) and step.instruction.detail == "exch" and not step.instruction.dst


def _values(step: Step) -> tuple[int, ...]:
    """Return the registers that a step stores."""
    return step.instruction.src[len(step.instruction.src) - len(step.values) :]


def _width(step: Step) -> int:
    """Return the bytes that a lane of a step touches."""
    assert step.instruction.memory is not None
    return step.instruction.memory.width_bytes


def _low_bits(count: int) -> Any:
    """Return a mask of the lowest bytes of a number."""
    return ALL_BITS >> np.uint64(64 - 8 * count)


def _probe(values: list[Array], place: int, turn: int) -> Array:
    """Return trial values for an operand: patterns of bits, and the other operands' values."""
    mine = values[place]
    which = (turn + place) % (len(PROBES) + len(values))
    if which >= len(PROBES):
        other = values[which - len(PROBES)]
        return _bits(other if other.dtype == mine.dtype else mine)
    if mine.dtype.kind == "b":
        return np.array(which % 2, np.uint64)
    return np.array(PROBES[which], np.uint64)


def _replaced(values: Array, bits: Array, where: Array) -> Array:
    """Return values with other bits in some places."""
    made = _bits(values) & ~where | bits & where
    if values.dtype.kind == "b":
        return np.asarray(made != 0)
    return made.astype(f"u{values.dtype.itemsize}").view(values.dtype)


def _results(made: Array | tuple[Array, ...]) -> tuple[Array, ...]:
    return made if isinstance(made, tuple) else (made,)


def _bits(values: Array) -> Array:
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}").astype(np.uint64)


def _earlier(one: Array, other: Array) -> Array:
    """Return the lower of two numbers that is not 0, lane by lane."""
    return np.where((one == 0) | ((other != 0) & (other < one)), other, one)
