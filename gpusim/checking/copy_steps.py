"""Asynchronous copies in a check: pending from their instruction until their thread waits."""

from __future__ import annotations

import numpy as np

from gpusim.checking.access import Access
from gpusim.checking.accessed_elements import Spread, owners
from gpusim.checking.async_copies import Copy, InFlight
from gpusim.checking.batch import Batch
from gpusim.checking.element_access import ElementAccess
from gpusim.checking.shadow import Shadow
from gpusim.checking.state import CheckState
from gpusim.launch.events import Step
from gpusim.typing import Array


class CopySteps:
    """Follows copies between global and shared memory; `of_global` is global memory's shadow."""

    def __init__(self, state: CheckState) -> None:
        self._state = state
        elements, history = state.layout.sizes["global"], state.history("global")
        self.of_global = Shadow(elements, history, by_segment=state.has_many_narrow)
        self.copied = InFlight(elements) if state.has_copies else None

    def begin(
        self,
        step: Step,
        batch: Batch,
        touch: ElementAccess,
        access: Access,
        copies: InFlight | None,
    ) -> None:
        """Record copies that are pending from now on."""
        assert batch.groups is not None
        assert copies is not None
        places = _places(step)
        each = np.repeat(places, len(touch.element) // len(places))
        alike = copies.begin(Copy.begun(batch.groups, access, touch, each))
        if access.kind == "store" and alike.any():
            self._state.races.at_once(alike, touch, access, self._state.name(access, touch.element))

    def commit(self, step: Step, batch: Batch) -> None:
        """Close the groups of copies of some threads."""
        if batch.groups is not None:
            batch.groups.commit(_places(step))

    def await_groups(self, step: Step, batch: Batch) -> None:
        """Enter copies as accesses of the threads that waited for them."""
        if batch.groups is None or step.instruction.detail is None:
            return
        line = step.instruction.line
        ended = batch.groups.ended(_places(step), int(step.instruction.detail), line)
        for copies, shadow in ((self.copied, self.of_global), (batch.on_their_way, batch.shared)):
            for copy in () if copies is None else copies.end(batch.groups, ended):
                assert shadow is not None
                time = self._state.time(copy.access.pc)
                self._state.timeline.waits[time] = line
                touch = copy.touch(time, batch.clocks)
                if not step.instruction.text and batch.on_their_way is copies is not None:
                    copies.arrive(copy, touch)  # the wait is part of an arrival at a barrier
                else:
                    (shadow.read if copy.access.kind == "load" else shadow.write)(touch)

    def land(self, touch: ElementAccess, access: Access, shadow: Shadow, copies: InFlight) -> None:
        """Record mbarriers; complete their copies when a thread tests a phase."""
        memory = access.instruction.memory
        if access.kind == "atomic" and memory is not None and memory.of_block:
            copies.barriers[touch.element] = True
        elif access.kind == "load" and copies.barriers[touch.element].any():
            size = self._state.layout.sizes["shared"]
            for block in np.unique(touch.element // size).tolist():
                for landed in copies.land(block * size, (block + 1) * size):
                    shadow.write(landed)


def _places(step: Step) -> Array:
    """Return the active lanes, numbered throughout the blocks of the batch."""
    spread = Spread(step, (step.placement.copies, len(step.rows), 32))
    return spread.flat(owners(step, step.placement.copies, by_lane=True))
