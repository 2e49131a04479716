"""Bulk copies in a check: elements in flight, and fences between stores and the async proxy.

A copy to shared memory follows the earlier accesses of its thread, and is in flight until a thread
sees the end of its mbarrier's phase; other threads are ordered after that thread. A copy to global
memory reads shared memory until its group is awaited; stores to its source need a proxy fence
(fence.proxy.async) before it (PTX ISA, async proxy).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gpusim.checking.access import COPIES, Access, Timeline
from gpusim.checking.clocks import Clocks
from gpusim.checking.element_access import BLOCK_SHIFT, ElementAccess, Heard, thread_of, time_of
from gpusim.checking.findings import Finding, Place
from gpusim.checking.races import HAZARDS, WRITES_TWICE, Name, thread_named
from gpusim.checking.shadow import Shadow
from gpusim.isa.ops import ANY_ARRAY, BULK_STORE, OPS, Instruction, Memory
from gpusim.typing import Array

WORD = np.dtype(np.uint32)
_SHARED = Memory("shared", "shared", WORD, by_address=True)
_GLOBAL = Memory("global", ANY_ARRAY, WORD, by_address=True)
_WAIT = {
    "store": "wait for the phase of its barrier (mbarrier.try_wait) in the thread that accesses it",
    "load": "wait for its group (cp.async.bulk.wait_group.read) in the thread that copies, and put "
    "a barrier after it where others access the element",
}
_WAIT_FOR_PRODUCT = (
    "wait for its group (wgmma.wait_group) in its warps, and put a barrier after it where others "
    "access the element"
)


class Begun(NamedTuple):
    """A copy as the machine reports it: sizes and places in bytes, its group or 0.

    `block` is the block of its shared memory, as numbered in the batch.
    """

    number: int
    row: int
    place: int
    size: int
    barrier: int
    address: int
    group: int
    block: int


def access_of(pc: int, row: Instruction) -> Access | None:
    """Return the access that a bulk copy or its end makes, None for most instructions.

    A copy accesses shared memory; the end of one to global memory stores there. A warpgroup's
    product reads shared memory.
    """
    kind = OPS[row.op].kind
    if kind == "warpgroup_product":
        return Access(pc, replace(row, op=".LDG", memory=_SHARED), False, False)
    if kind == "bulk_copy":
        op = ".LDG" if row.op == BULK_STORE else ".STS"
        return Access(pc, replace(row, op=op, memory=_SHARED), False, False)
    if kind == "await_bulk":
        return Access(pc, replace(row, op="STG", memory=_GLOBAL), False, False)
    return None


@dataclass(frozen=True)
class Flight:
    """A copy in flight: its elements of shared memory, and when it began."""

    begun: Begun
    access: Access
    elements: Array
    thread: int
    time: int

    @property
    def name(self) -> str:
        """Its name in messages."""
        return "matrix product" if self.access.is_product else "bulk copy"

    @property
    def wait(self) -> str:
        """How to wait for it."""
        return _WAIT_FOR_PRODUCT if self.access.is_product else _WAIT[self.access.kind]


class BulkFlights:
    """The bulk copies of a batch in flight, by number and by element of shared memory.

    `copies` are the pcs of such instructions.
    """

    def __init__(self, elements: int, rows: int, copies: Sequence[int]) -> None:
        self._copies = copies
        self._of_element = np.zeros(elements, dtype=np.int64)
        self._flights: dict[int, Flight] = {}
        self.fenced = np.zeros(rows, dtype=np.int64)  # the last fence between the proxies

    def begin(self, flight: Flight) -> None:
        """Record a copy that begins."""
        self._flights[flight.begun.number] = flight
        self._of_element[flight.elements] = flight.begun.number

    def end(self, numbers: Iterable[int]) -> list[Flight]:
        """Return the copies of some numbers, and forget them."""
        found = [self._flights.pop(one) for one in numbers if one in self._flights]
        for one in found:
            mine = self._of_element[one.elements] == one.begun.number
            self._of_element[one.elements[mine]] = 0
        return found

    def left(self) -> Iterator[Finding]:
        """Yield the copies to global memory that no thread has waited for."""
        for flight in self._flights.values():
            if flight.begun.group:
                who, line = thread_named(flight.thread), flight.access.line
                message = (
                    f"{who} copies from shared memory in line {line}, and the block ends without a "
                    "wait for the copy: it may be incomplete"
                )
                place = Place(line, COPIES["load"], who)
                yield Finding("bulk-group", message, (place,), "shared", None)

    def are_on_their_way(self, elements: Array) -> Array:
        """Return a mask of the elements that a copy in flight writes or reads."""
        return np.asarray(self._of_element[elements] != 0)

    def meanwhile(self, touch: ElementAccess, now: Access, name: Name) -> Finding | None:
        """Return the race of an access with a copy in flight, if one of them writes."""
        numbers = self._of_element[touch.element]
        for number in np.unique(numbers[numbers != 0]).tolist():
            flight = self._flights[number]
            before = flight.access.kind
            if (before, now.kind) == ("load", "load"):
                continue
            which = np.flatnonzero(numbers == number)
            at = int(which[0])
            array, index = name(at)
            first = Place(flight.access.line, flight.access.does, thread_named(flight.thread))
            second = Place(now.line, now.does, thread_named(touch.thread[at]))
            hazard = HAZARDS.get((before, now.kind), WRITES_TWICE)
            message = (
                f"{second.thread} {now.does} {array}[{index}] in line {second.line}, which a "
                f"{flight.name} of {first.thread} {first.does} in line {first.line}: {hazard} "
                f"hazard, nothing waits for the {flight.name.split()[-1]} between the two"
            )
            count, fix = len(which), flight.wait
            places = first, second
            return Finding("copy-race", message, places, array, index, hazard, count, fix_text=fix)
        return None

    def unfenced(
        self, flight: Flight, shadow: Shadow, name: Name, warps: int, timeline: Timeline
    ) -> Finding | None:
        """Return a store before a copy to global memory without a proxy fence between them.

        Data that a bulk copy has written needs none.
        """
        writers = shadow.writer[flight.elements]
        writers = np.where(np.isin(timeline.pcs_at(time_of(writers)), self._copies), 0, writers)
        row = flight.begun.row
        threads = thread_of(writers)
        block = row // warps
        rows = block * warps + ((threads & (1 << BLOCK_SHIFT) - 1) >> 5)
        last = np.maximum(self.fenced[rows], self.fenced[row])
        wrong = (writers != 0) & (time_of(writers) > last)
        if not wrong.any():
            return None
        at = int(np.argmax(wrong))
        array, index = name(at)
        who, copies = thread_named(threads[at]), thread_named(flight.thread)
        line = flight.access.line
        message = (
            f"a {flight.name} of {copies} {flight.access.does} {array}[{index}] in line {line}, "
            f"which {who} writes before: without fence.proxy.async the "
            f"{flight.name.split()[-1]} may read the old contents"
        )
        place = Place(line, flight.access.does, copies)
        return Finding("proxy-fence", message, (place,), array, index, count=int(wrong.sum()))


def touched(
    flight: Flight, elements: Array, time: int, clocks: Clocks, memory: int
) -> ElementAccess:
    """Return elements as an access of the thread of a copy."""
    row, count = flight.begun.row, len(elements)
    return ElementAccess(
        time,
        elements,
        np.full(count, flight.thread, dtype=np.int64),
        np.asarray(clocks.barrier[row]),
        np.asarray(clocks.warp_sync[row]),
        None,
        lambda: np.zeros((1, count)),
        memory=memory,
        heard=None
        if clocks.meetings is None
        else Heard(clocks.meetings.known, np.full(count, row)),
    )
