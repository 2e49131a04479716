"""Matrix products of warpgroups (wgmma) in a check: shared memory that they read until awaited.

A product reads its factors by the async proxy, at any time until its group is awaited: stores
before it need a barrier and a proxy fence, stores after it the wait and a barrier (PTX ISA,
Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions).
"""

from __future__ import annotations

from itertools import count

import numpy as np

from gpusim.checking.batch import Batch
from gpusim.checking.bulk_copies import BulkCopies
from gpusim.checking.bulk_flights import Begun, Flight, touched
from gpusim.checking.meetings import Meetings
from gpusim.checking.memory_accesses import MemoryAccesses
from gpusim.checking.state import CheckState
from gpusim.isa.warpgroups import UNIT
from gpusim.launch.events import Step


class WarpgroupProducts:
    """Follows the factors of products in shared memory, by warp and group of products."""

    def __init__(
        self, state: CheckState, memory: MemoryAccesses, bulk: BulkCopies, meetings: Meetings
    ) -> None:
        self._state, self._memory, self._bulk, self._meetings = state, memory, bulk, meetings
        self._numbers = count(1)
        # By first block of a batch and warp: groups of products not yet awaited, the last one open.
        self._groups: dict[tuple[int, int], list[list[int]]] = {}

    def begin(self, step: Step, batch: Batch) -> None:
        """Compare the factors of products with earlier stores, and keep them in flight."""
        flights, shadow = self._bulk.flights(batch)
        access, time = self._state.accesses[step.pc], self._state.time(step.pc)
        memory, warps = int(step.placement.blocks[0]) + 1, step.placement.warps_per_block
        each = self._state.layout.element_bytes["shared"]
        within = np.arange(0, UNIT, each)
        running = np.flatnonzero(step.on[0].any(axis=1))
        for row, units in zip(step.rows[running].tolist(), step.values[0][running], strict=True):
            block = row // warps
            elements = np.unique((units[:, None] + within) // each)
            elements = elements + block * self._state.layout.sizes["shared"]
            number = -next(self._numbers)
            flight = Flight(
                Begun(number, row, 0, 0, 0, -1, 0, block),
                access, elements, int(batch.threads[0, row, 0]), time,
            )  # fmt: skip
            touch = touched(flight, elements, time, batch.clocks, memory)
            name = self._state.name(access, elements)
            self._state.tell(flights.meanwhile(touch, access, name))
            self._state.tell(flights.unfenced(flight, shadow, name, warps, self._state.timeline))
            self._memory.judge(touch, access, shadow, batch.on_their_way)
            flights.begin(flight)
            self._groups.setdefault((memory, row), [[]])[-1].append(number)

    def commit(self, step: Step, batch: Batch) -> None:
        """End the open group of each warp."""
        memory = int(step.placement.blocks[0]) + 1
        for row in step.rows[np.flatnonzero(step.on[0].any(axis=1))].tolist():
            self._groups.setdefault((memory, row), [[]]).append([])

    def wait(self, step: Step, batch: Batch) -> None:
        """Enter the factors of awaited groups as read; the warp's lanes know of it."""
        flights, shadow = self._bulk.flights(batch)
        memory = int(step.placement.blocks[0]) + 1
        for row in step.rows[np.flatnonzero(step.on[0].any(axis=1))].tolist():
            groups = self._groups.get((memory, row), [[]])
            ended = max(0, len(groups) - 1 - step.instruction.detail)
            numbers = [number for group in groups[:ended] for number in group]
            del groups[:ended]
            for flight in flights.end(numbers):
                self._state.timeline.waits[flight.time] = step.instruction.line
                shadow.read(touched(flight, flight.elements, flight.time, batch.clocks, memory))
        self._meetings.sync_warp(step, batch)
