"""Threads that meet in a check: warp barriers, exchanges of lanes, block barriers and exits."""

from __future__ import annotations

import numpy as np

from gpusim.checking.accessed_elements import element_access_of
from gpusim.checking.barriers import Barriers
from gpusim.checking.batch import Batch
from gpusim.checking.bulk_copies import BulkCopies
from gpusim.checking.state import CheckState
from gpusim.isa.ops import OPS, Instruction
from gpusim.launch.events import Step
from gpusim.typing import Array


class Meetings:
    """Orders threads that meet, and checks their masks and barriers."""

    def __init__(self, state: CheckState, barriers: Barriers, bulk: BulkCopies) -> None:
        self._state, self._barriers, self._bulk = state, barriers, bulk

    def sync_warp(self, step: Step, batch: Batch) -> None:
        """Order lanes that meet."""
        batch.clocks.sync_warp(step, self._state.time(step.pc))

    def gather(self, step: Step, batch: Batch) -> None:
        """Report a mask of machine code that names exited lanes, unless the next step does so."""
        batch.clocks.sync_warp(step, self._state.time(step.pc))
        program, following = self._state.program, step.pc + 1
        if following in program.masks or following in program.mask_registers:
            return
        if step.mask is not None and step.instruction.detail != "all":
            outside = self._barriers.outside(step, step.mask)
            self._state.tell(outside or self._barriers.named_in_vain(step, batch.clocks))

    def exchange(self, step: Step, batch: Batch) -> None:
        """Report a shuffle of machine code from inactive source lanes."""
        batch.clocks.sync_warp(step, self._state.time(step.pc))
        self._state.tell(self._barriers.read_in_vain(step))

    def meet_masked(self, step: Step, batch: Batch) -> None:
        """Report a mask that machine code has dropped, and order the lanes that it names."""
        program = self._state.program
        if step.pc in program.masks:
            mask = np.full((1, 1, 1), program.masks[step.pc], np.uint32)
        else:
            assert step.registers is not None
            mask = _of_lanes_on(step.registers(program.mask_registers[step.pc]), step.on)
        batch.clocks.sync_warp(step._replace(mask=mask), self._state.time(step.pc))
        found = self._barriers.outside(step, mask)
        if (
            OPS[step.instruction.op].kind != "compute"
        ):  # lanes may wait at other warp barriers with this mask
            found = found or self._barriers.absent(step, mask, batch.clocks, batch.gone_at)
        self._state.tell(found or self._barriers.read_in_vain(step))

    def arrive(self, step: Step, batch: Batch) -> None:
        """Note lanes that go past a barrier without waiting: it is checked when it opens."""
        past = step.active & ~step.on
        if past.any():
            self._barriers.skip(step, past)

    def arrive_in_cluster(self, step: Step, batch: Batch) -> None:
        """Record arrivals at the barrier of a cluster."""
        assert batch.clocks.cluster is not None
        batch.clocks.cluster.arrive(step.rows, step.on[0], self._state.time(step.pc))

    def fence(self, step: Step, batch: Batch) -> None:
        """Record a fence."""
        shape = (step.placement.copies, len(step.rows), 32)
        time = self._state.time(step.pc)
        zero = np.zeros((1, 1, 1), dtype=np.int64)
        if step.pc in self._state.program.joined:
            step, zero = batch.of_all(step, self._state.program.joined[step.pc], zero)
        touch = element_access_of(step, time, batch.clocks, batch.threads, zero, 1, shape)
        assert self._state.flags is not None
        self._state.flags.fence(touch, str(step.instruction.detail))
        if self._state.copying and "FENCE.VIEW.ASYNC" in step.instruction.text:
            self._bulk.flights(batch)[0].fenced[step.rows] = time
        if batch.clocks.cluster is not None and _is_of_cluster(step.instruction):
            batch.clocks.cluster.fence(step.rows[step.on[0].any(axis=1)], time)

    def leave(self, step: Step, batch: Batch) -> None:
        """Record lanes that exit."""
        row, lane = np.nonzero(step.on.any(axis=0))
        batch.gone_at[step.rows[row], lane] = step.pc
        batch.clocks.leave(step)
        if batch.clocks.cluster is not None:
            self._state.tell(batch.clocks.cluster.leave(step.rows))


def _is_of_cluster(row: Instruction) -> bool:
    """Return whether a fence orders mbarrier.init before a relaxed arrival in the cluster.

    An ERRBAR of block scope stands for fence.mbarrier_init.
    """
    is_plain = (row.op, row.detail) in {("MEMBAR", "gpu"), ("ERRBAR", "block")}
    return is_plain or "FENCE.VIEW.ASYNC" in row.text


def _of_lanes_on(masks: Array, on: Array) -> Array:
    """Return each lane's mask; a lane that is off holds an older one, and is given the first's."""
    held = np.broadcast_to(masks.astype(np.uint32, copy=False), on.shape)
    first = np.take_along_axis(held, np.argmax(on, axis=2, keepdims=True), axis=2)
    return np.where(on, held, first)
