"""The memory of a GPU over a whole program: initialised bytes, and the last access to each.

Unordered kernels, copies and memsets on different streams race if one of them writes; so do they
with the host, in shared memory. Atomics and volatile accesses race only with plain stores, as they
may be flags.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from gpusim.checking.accessed_elements import Values
from gpusim.checking.findings import Finding, Place
from gpusim.checking.touched_memory import READ, UPDATED, WORD, WRITTEN, Touched
from gpusim.typing import Array

Lines = Mapping[int, tuple[int, ...]]  # of a kernel's accesses, by mark

MOST_FINDINGS = 100  # of a program
_PAGE = 4096


class Stamp(Protocol):
    """The place of work in the order of a program."""

    @property
    def stream(self) -> int:
        """The number of its stream."""

    @property
    def clock(self) -> Mapping[int, int]:
        """The work that has ended before it, and itself."""

    def is_before(self, clock: Mapping[int, int]) -> bool:
        """Return whether the work has ended, by this clock."""


class Work(NamedTuple):
    """Work on a stream by its text, as "launch 3 of saxpy", and its place in the order."""

    text: str
    stamp: Stamp
    verb: str = ""  # in place of that for a store


@dataclass
class _Region:
    """An allocation. Elements are words, or bytes once something else was touched."""

    address: int
    size: int
    is_shared: bool  # with the host
    has_values: Array | None  # None: everywhere
    each: int = WORD
    writer: Array | None = None  # numbers of work, 0 for none
    readers: dict[int, Array] = field(default_factory=dict)  # by stream
    lines: dict[int, Lines] = field(default_factory=dict)  # of work by number

    @property
    def elements(self) -> int:
        return -(-self.size // self.each)

    def refine(self) -> None:
        """Change the elements from words to bytes."""

        def fine(array: Array) -> Array:
            return np.repeat(array, WORD)[: self.size]

        self.each = 1
        self.has_values = None if self.has_values is None else fine(self.has_values)
        self.writer = None if self.writer is None else fine(self.writer)
        self.readers = {stream: fine(array) for stream, array in self.readers.items()}

    def part(self, begin: int, size: int) -> slice:
        """Return the elements of some bytes; the end of the allocation ends a word as well."""
        end = begin + size
        if self.each > 1 and (begin % WORD or (end % WORD and end != self.size)):
            self.refine()
        return slice(begin // self.each, -(-end // self.each))


class DeviceMemory:
    """The allocations of a process; `found` are the errors so far, each once."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._regions: dict[int, _Region] = {}
        self._works: list[Work] = []
        self._known: set[tuple[str, str]] = set()
        self.has_streams = False

    # -- allocations

    def add(self, address: int, size: int, *, has_values: bool, is_shared: bool) -> None:
        """Record an allocation."""
        insort(self._starts, address)
        flags = None if has_values else np.zeros(-(-size // WORD), bool)
        self._regions[address] = _Region(address, size, is_shared, flags)

    def knows(self, address: int) -> bool:
        """Return whether an allocation begins at an address."""
        return address in self._regions

    def remove(self, address: int) -> None:
        """Record the end of an allocation."""
        if self._regions.pop(address, None) is not None:
            del self._starts[bisect_right(self._starts, address) - 1]

    def _at(self, address: int) -> _Region | None:
        place = bisect_right(self._starts, address) - 1
        found = self._regions[self._starts[place]] if place >= 0 else None
        return found if found is not None and address < found.address + found.size else None

    def set_values(self, address: int, size: int) -> None:
        """Mark bytes as initialised."""
        one = self._at(address)
        if one is not None and one.has_values is not None:
            one.has_values[one.part(address - one.address, size)] = True

    def values(self, address: int) -> Values | None:
        """Return which elements of an allocation have values; None where all have."""
        one = self._regions.get(address)
        if one is None or one.has_values is None:
            return None
        if one.has_values.all():
            one.has_values = None
            return None
        return Values(one.has_values, one.each)

    @property
    def _all(self) -> Iterable[_Region]:
        return self._regions.values()

    def _is_ordered(self, one: _Region) -> bool:
        return self.has_streams or one.is_shared

    # -- work on streams

    def write(self, rows: Iterable[tuple[int, int]], work: Work) -> Iterator[Finding]:
        """Enter the writes of a copy or memset, as addresses with sizes; yield races."""
        for address, size in rows:
            one = self._at(address)
            if one is None:
                continue
            part = one.part(address - one.address, size)
            yield from self._enter(one, part, None, WRITTEN, work)
            if one.has_values is not None:
                one.has_values[part] = True

    def read(self, rows: Iterable[tuple[int, int]], work: Work) -> Iterator[Finding]:
        """Enter the reads of a copy; yield races."""
        for address, size in rows:
            one = self._at(address)
            if one is not None:
                part = one.part(address - one.address, size)
                yield from self._enter(one, part, None, READ, work)

    def copy_back(self, rows: Iterable[tuple[int, int]], work: Work) -> Iterator[Finding]:
        """Yield findings of a copy to the host from memory without values."""
        missing, first, size_of = 0, None, 0
        for address, size in rows:
            one = self._at(address)
            if one is None or one.has_values is None:
                continue
            flags = one.has_values[one.part(address - one.address, size)]
            empty = len(flags) - int(np.count_nonzero(flags))
            if empty and first is None:
                begin = int(np.argmin(flags)) * one.each
                first, size_of = address - one.address + begin, one.size
            missing += empty * one.each
        if first is not None:
            yield from self._said(
                "uninitialised-copy",
                f"{work.text} reads {missing:,} uninitialised bytes, from byte "
                f"{first:,} of an allocation of {size_of:,} bytes on",
            )

    def move_values(
        self, rows: Iterable[tuple[int, int]], sources: Iterable[tuple[int, int]]
    ) -> None:
        """Mark the destination of a copy as initialised where its source is."""
        for (to, size), (source, _) in zip(rows, sources, strict=True):
            target, origin = self._at(to), self._at(source)
            if target is None or target.has_values is None or origin is None:
                continue
            if origin.has_values is None:
                continue
            part, taken = target.part(to - target.address, size), None
            taken = origin.part(source - origin.address, size)
            if target.each != origin.each:
                (target if target.each > 1 else origin).refine()
                part = target.part(to - target.address, size)
                taken = origin.part(source - origin.address, size)
            target.has_values[part] = origin.has_values[taken]

    def launched(self, work: Work, touched: Iterable[tuple[int, Touched]]) -> Iterator[Finding]:
        """Enter the accesses of a kernel, by the addresses of allocations; yield races."""
        for address, marks in touched:
            one = self._regions.get(address)
            if one is None:
                continue
            if marks.each < one.each:
                one.refine()
            found = marks.marks
            if marks.each > one.each:
                found = np.repeat(found, marks.each)
            begin = marks.begin // one.each
            found = found[: one.elements - begin]
            part = slice(begin, begin + len(found))
            for mark in (READ, UPDATED, WRITTEN):
                on = (found & mark) != 0
                if on.any():
                    yield from self._enter(one, part, on, mark, work, marks.lines)
            if one.has_values is not None:
                one.has_values[part] |= (found & (WRITTEN | UPDATED)) != 0

    def launched_unseen(self) -> None:
        """Enter a launch with unknown stores: any memory may have values now."""
        for one in self._all:
            one.has_values = None

    def host_touched(
        self, address: int, *, writes: bool, clock: Mapping[int, int]
    ) -> Iterator[Finding]:
        """Yield the races of an access by the host at this clock."""
        one = self._at(address)
        if one is None or one.writer is None:
            return
        place = (address - one.address) // one.each
        found = [int(one.writer[place])]
        found += [int(array[place]) for array in one.readers.values()] if writes else []
        for number in found:
            work = self._works[number - 1] if number else None
            if work is None or work.stamp.is_before(clock):
                continue
            does, lines = _does(work, WRITTEN if number == found[0] else READ, one.lines[number])
            yield from self._said(
                "host-race",
                f"the host {'writes' if writes else 'reads'} byte {address - one.address:,} of "
                f"an allocation of {one.size:,} bytes, while {does}",
                lines,
            )
            return

    def guarded(self, clock: Mapping[int, int]) -> Iterator[tuple[int, int, bool]]:
        """Yield pages shared with the host that work still touches: address, size, if only read.

        The host may read them where the work only reads.
        """
        for one in self._all:
            if not one.is_shared or one.writer is None:
                continue
            written = self._pending(one.writer, clock)
            read = np.zeros(len(written), bool)
            for array in one.readers.values():
                read |= self._pending(array, clock)
            for on, is_read_alone in ((written, False), (read & ~written, True)):
                places = np.flatnonzero(on)
                if len(places):
                    first = (one.address + int(places[0]) * one.each) // _PAGE * _PAGE
                    last = one.address + (int(places[-1]) + 1) * one.each
                    size = -(-(last - first) // _PAGE) * _PAGE
                    yield first, size, is_read_alone

    # -- races

    def _pending(self, numbers: Array, clock: Mapping[int, int]) -> Array:
        """Return a mask of the elements with unfinished work."""
        pending = np.zeros(len(numbers), bool)
        for number in _distinct(numbers):
            if not self._works[number - 1].stamp.is_before(clock):
                pending |= numbers == number
        return pending

    def _enter(
        self,
        one: _Region,
        part: slice,
        on: Array | None,
        mark: int,
        work: Work,
        lines: Lines | None = None,
    ) -> Iterator[Finding]:
        """Enter accesses of one kind to elements of a part, those that are `on`; yield races."""
        if not self._is_ordered(one):
            return
        if one.writer is None:
            one.writer = np.zeros(one.elements, np.int32)
        number = self._number(work)
        one.lines[number] = lines or {}
        others = [(WRITTEN, one.writer)]
        if mark == WRITTEN:
            others += [(READ, array) for array in one.readers.values()]
        for other, numbers in others:
            held = numbers[part] if on is None else np.where(on, numbers[part], 0)
            for earlier in _distinct(held):
                if not self._works[earlier - 1].stamp.is_before(work.stamp.clock):
                    byte = (part.start + int(np.argmax(held == earlier))) * one.each
                    yield from self._race(one, byte, (earlier, other), (number, mark))
        own = one.writer
        if mark != WRITTEN:
            stream = work.stamp.stream
            if stream not in one.readers:
                one.readers[stream] = np.zeros(one.elements, np.int32)
            own = one.readers[stream]
        own[part] = number if on is None else np.where(on, number, own[part])

    def _race(self, one: _Region, byte: int, *accesses: tuple[int, int]) -> Iterator[Finding]:
        """Yield the race of two accesses, each by its work's number and its mark."""
        said = [_does(self._works[n - 1], mark, one.lines[n]) for n, mark in accesses]
        yield from self._said(
            "stream-race",
            f"{said[0][0]} and {said[1][0]}, unordered: byte {byte:,} of an allocation of "
            f"{one.size:,} bytes",
            [line for _, lines in said for line in lines],
        )

    def _number(self, work: Work) -> int:
        if not self._works or self._works[-1] is not work:
            self._works.append(work)
        return len(self._works)

    def _said(self, rule: str, text: str, lines: Iterable[int] = ()) -> Iterator[Finding]:
        """Yield a finding, if it is new."""
        if (rule, text) in self._known or len(self._known) >= MOST_FINDINGS:
            return
        self._known.add((rule, text))
        yield Finding(rule, text, tuple(Place(line, "touches it") for line in lines if line))


def _does(work: Work, mark: int, lines: Lines) -> tuple[str, tuple[int, ...]]:
    """Return the access of some work to an element, in words, and the lines of a kernel."""
    if mark == READ and READ not in lines and UPDATED in lines:
        mark = UPDATED
    verb = {READ: "reads", WRITTEN: work.verb or "writes", UPDATED: "updates"}[mark]
    known = tuple(line for line in lines.get(mark, ()) if line)
    where = f" (line {', '.join(map(str, known))})" if known else ""
    return f"{work.text}{where} {verb} it", known


def _distinct(numbers: Array) -> list[int]:
    """Return the distinct numbers of an array, without 0; few, most often."""
    found: list[int] = []
    left = numbers
    while len(left):
        first = int(left[0])
        if first:
            found.append(first)
        left = left[left != first]
        if len(found) == 16:
            return [*found, *(int(n) for n in np.unique(left) if n)]
    return found
