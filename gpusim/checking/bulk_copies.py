"""Bulk copies in a check: their begin and end, and the phases that end them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpusim.checking.access import Access
from gpusim.checking.batch import Batch
from gpusim.checking.bulk_flights import Begun, BulkFlights, Flight, touched
from gpusim.checking.shadow import Shadow
from gpusim.checking.state import CheckState
from gpusim.launch.events import Step
from gpusim.typing import Array


class BulkCopies:
    """Follows bulk copies between shared and global memory, `of_global` the latter's shadow."""

    def __init__(self, state: CheckState, of_global: Shadow) -> None:
        self._state, self._global = state, of_global

    def flights(self, batch: Batch) -> tuple[BulkFlights, Shadow]:
        """Return the bulk copies of a batch, and its shadow of shared memory."""
        elements = self._state.layout.sizes["shared"] * len(batch.clocks.placement.blocks)
        if batch.shared is None:
            batch.shared = Shadow(elements, self._state.history("shared"))
        if batch.bulk is None:
            batch.bulk = BulkFlights(elements, batch.clocks.placement.rows, self._state.copying)
        return batch.bulk, batch.shared

    def _elements(self, space: str, begin: int, size: int) -> Array:
        each = self._state.layout.element_bytes[space]
        return np.arange(begin // each, -(-(begin + size) // each))

    def begin_bulk(self, step: Step, batch: Batch) -> None:
        """Compare new copies with earlier accesses, and keep them in flight."""
        flights, shadow = self.flights(batch)
        access, warps = self._state.accesses[step.pc], step.placement.warps_per_block
        for told in step.values[0].tolist():
            one = Begun(*told)
            lane = int(step.on[0, int(np.flatnonzero(step.rows == one.row)[0])].argmax())
            elements = self._elements("shared", one.place, one.size)
            elements = elements + one.block * self._state.layout.sizes["shared"]
            time, thread = self._state.time(step.pc), int(batch.threads[0, one.row, lane])
            flight = Flight(one, access, elements, thread, time)
            memory = int(step.placement.blocks[0]) + 1
            touch = touched(flight, elements, time, batch.clocks, memory)
            name = self._state.name(access, elements)
            self._state.tell(flights.meanwhile(touch, access, name))
            if access.kind == "load":
                self._state.tell(
                    flights.unfenced(flight, shadow, name, warps, self._state.timeline)
                )
            cluster = batch.clocks.cluster
            if cluster is not None and one.row // warps != one.block:
                row, at, block = (np.array([value]) for value in (one.row, lane, one.block))
                found = cluster.reach(row, at, block, access.does, access.line, is_word=True)
                self._state.tell(found)
            if one.row // warps == one.block:
                self._state.races.touch(shadow, touch, access, name)
            flights.begin(flight)

    def land_bulk(self, step: Step, batch: Batch) -> None:
        """Enter copies of ended phases as stores known to the threads that test the phase."""
        flights, shadow = self.flights(batch)
        arrivals = [one for one in self._state.accesses.values() if _is_arrival(one)]
        memory = int(step.placement.blocks[0]) + 1
        for landed in flights.end(int(told[0]) for told in step.values[0]):
            flight = _received(landed, step, batch)
            time = self._state.time(flight.access.pc)
            shadow.write(touched(flight, flight.elements, time, batch.clocks, memory))
            if self._state.flags is not None and arrivals:
                warps = step.placement.warps_per_block
                barrier = self._elements("shared", flight.begun.barrier, 8)
                barrier = barrier + flight.begun.row // warps * self._state.layout.sizes["shared"]
                fence = touched(flight, barrier, self._state.time(step.pc), batch.clocks, memory)
                self._state.flags.fence(fence, "block")
                late = self._state.time(arrivals[0].pc)
                self._state.flags.touch(
                    touched(flight, barrier, late, batch.clocks, memory), arrivals[0]
                )

    def await_bulk(self, step: Step, batch: Batch) -> None:
        """Enter copies to global memory as loads and stores of the thread that waits for them."""
        flights, shadow = self.flights(batch)
        memory = int(step.placement.blocks[0]) + 1
        access = self._state.accesses[step.pc]
        for flight in flights.end(int(told[0]) for told in step.values[0]):
            time = self._state.time(flight.access.pc)
            shadow.read(touched(flight, flight.elements, time, batch.clocks, memory))
            if flight.begun.address < 0:  # of a tensor's box: not compared
                continue
            begin = flight.begun.address - self._state.layout.first_address
            elements = self._elements("global", begin, flight.begun.size)
            touch = touched(flight, elements, self._state.time(step.pc), batch.clocks, 0)
            self._state.races.touch(self._global, touch, access, self._state.name(access, elements))


def _received(flight: Flight, step: Step, batch: Batch) -> Flight:
    """Return a copy from another block as one of the thread that tests its phase."""
    begun, warps = flight.begun, step.placement.warps_per_block
    if begun.row // warps == begun.block:
        return flight
    number = int(np.flatnonzero(step.rows // warps == begun.block)[0])
    row, lane = int(step.rows[number]), int(step.on[0, number].argmax())
    thread = int(batch.threads[0, row, lane])
    return replace(flight, begun=begun._replace(row=row), thread=thread)


def _is_arrival(access: Access) -> bool:
    """Return whether an access is an arrival at a barrier in shared memory."""
    memory = access.instruction.memory
    is_narrow = memory is not None and memory.space == "shared" and memory.of_block
    return is_narrow and access.kind == "atomic"
