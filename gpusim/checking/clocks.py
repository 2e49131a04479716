"""Order between the threads of a block: its barriers, and the warp barriers of its warps.

Time is the number of a step. An access is ordered after another of its block if a barrier opened in
between, and after another of its warp if both lanes took part in a `syncwarp` or `*_sync`. Each row
of a batch (a warp) has the times of its block's last barrier and of the last synchronisation of all
its lanes; partial masks add times for each pair of lanes, named barriers for each pair of warps.
"""

from __future__ import annotations

import numpy as np

from gpusim.checking.cluster_clocks import ClusterClocks
from gpusim.launch.events import BarrierOpened, Placement, Step
from gpusim.machine.state import NAMED_BARRIERS
from gpusim.typing import Array

LANE_BITS = np.left_shift(np.uint32(1), np.arange(32, dtype=np.uint32))


class Clocks:
    """The clocks of a batch's rows; `live`, (rows, 32), are the lanes that have not exited."""

    def __init__(self, placement: Placement, threads_per_block: int) -> None:
        rows = placement.warps_per_block
        self.placement = placement
        self.barrier = np.zeros(rows, dtype=np.int64)
        self.warp_sync = np.zeros(rows, dtype=np.int64)  # never before the barrier
        self.exists = np.arange(rows * 32).reshape(rows, 32) < threads_per_block
        self.live = self.exists.copy()
        self.pairs: Array | None = None  # (rows, lane, other lane), where masks name some
        self.meetings: VectorClocks | None = None  # where barriers join some warps
        self.cluster: ClusterClocks | None = None  # where blocks are in clusters
        if not placement.folded:
            self.unfold(placement)

    def unfold(self, placement: Placement) -> None:
        """Give every warp of every block a row of its own."""
        self.placement = placement
        copies = len(placement.blocks)
        self.barrier = np.tile(self.barrier, copies)
        self.warp_sync = np.tile(self.warp_sync, copies)
        self.exists = np.tile(self.exists, (copies, 1))
        self.live = np.tile(self.live, (copies, 1))
        if self.pairs is not None:
            self.pairs = np.tile(self.pairs, (copies, 1, 1))
        if self.meetings is not None:
            self.meetings.unfold(copies)

    def open(self, opened: BarrierOpened, time: int) -> None:
        """Record a barrier that all rows of some blocks have passed."""
        self._pass(np.unique(opened.rows // self.placement.warps_per_block), time)

    def _pass(self, blocks: Array, time: int) -> None:
        """Record that all threads of some blocks have passed a barrier."""
        warps = self.placement.warps_per_block
        rows = (blocks[:, None] * warps + np.arange(warps)).reshape(-1)
        self.barrier[rows] = time
        self.warp_sync[rows] = time

    def arrive(self, rows: Array, numbers: Array, time: int) -> None:
        """Record warps that arrived at numbered barriers without waiting."""
        self._met().arrive(rows, numbers, time)

    def open_for_some(self, opened: BarrierOpened, time: int) -> None:
        """Record numbered barriers that their threads have passed.

        A barrier of all warps of a block, all waiting, orders the whole block; so does one that
        waits for all threads, once all remaining ones have arrived.
        """
        assert opened.numbers is not None
        assert opened.threads is not None
        rows, first = np.unique(opened.rows, return_index=True)
        numbers, warps = opened.numbers[first], self.placement.warps_per_block
        phases = rows // warps * NAMED_BARRIERS + numbers
        came, left = np.bincount(phases)[phases], self.live.any(axis=1).reshape(-1, warps).sum(1)
        awaited = np.where(opened.threads[first] > 0, warps, left[rows // warps])
        whole = came == awaited
        self.warp_sync[rows] = time
        self._pass(np.unique(rows[whole] // warps), time)
        if not whole.all():
            self._met().meet(rows[~whole], numbers[~whole], time)
        if self.meetings is not None:
            self.meetings.forget(rows[whole], numbers[whole])

    def _met(self) -> VectorClocks:
        if self.meetings is None:
            self.meetings = VectorClocks(len(self.barrier), self.placement.warps_per_block)
        return self.meetings

    def leave(self, step: Step) -> None:
        """Record exited lanes."""
        np.logical_and.at(self.live, step.rows, ~step.on.all(axis=0))

    def sync_warp(self, step: Step, time: int) -> None:
        """Record a meeting of lanes: callers that name each other in their masks."""
        active, named = participants(step), names(step)
        whole = (active == self.exists[step.rows]).all(axis=1)
        if named is not None:
            whole &= (named | ~active[:, :, None] | ~active[:, None, :]).all(axis=(1, 2))
        self.warp_sync[step.rows[whole]] = time
        if not whole.all():
            self._meet_in_part(step.rows[~whole], active[~whole], named, ~whole, time)

    def _meet_in_part(
        self, rows: Array, active: Array, named: Array | None, which: Array, time: int
    ) -> None:
        if self.pairs is None:
            self.pairs = np.zeros((len(self.barrier), 32, 32), dtype=np.int64)
        together = active[:, :, None] & active[:, None, :]
        if named is not None:
            mutual = named[which]
            together &= mutual & mutual.transpose(0, 2, 1)
        known = self.pairs[rows]
        learnt = np.where(together, np.int64(time), known)
        for other in range(32):
            heard = np.where(together[:, :, other, None], known[:, other, None, :], 0)
            np.maximum(learnt, heard, out=learnt)
        np.maximum.at(self.pairs, rows, learnt)


def participants(step: Step) -> Array:
    """Return the lanes that synchronise, (rows, lane), at corresponding barriers too."""
    lanes = step.on if step.beside is None else step.beside
    return np.asarray(lanes.all(axis=0))


def names(step: Step) -> Array | None:
    """Return the lanes in each lane's mask, (rows, lane, other lane); None for a full mask."""
    if step.mask is None:
        return None
    mask = step.mask.astype(np.uint32)
    if mask.size == 1 and int(mask.reshape(-1)[0]) == 0xFFFFFFFF:
        return None
    mask = mask if len(mask) == 1 else np.bitwise_and.reduce(mask, axis=0, keepdims=True)
    mask = np.broadcast_to(mask, (1, len(step.rows), 32))[0]
    named: Array = (mask[:, :, None] & LANE_BITS) != 0
    return named


# A named barrier orders only the threads that take part in one of its phases; threads that arrive
# without waiting release their accesses and acquire none (PTX ISA, bar.sync and bar.arrive). Each
# row of a batch (a warp) has a known time for each warp of its block. All threads of a warp take
# part in such barriers (else behaviour is undefined): lanes share a clock.


class VectorClocks:
    """The vector clocks of a batch's rows, (rows, warps), and releases pending at barriers.

    Releases at a barrier without waiting threads are kept for its next phase: phases of one barrier
    come one after the other.
    """

    def __init__(self, rows: int, warps: int) -> None:
        self.known = np.zeros((rows, warps), dtype=np.int64)
        self._released = np.zeros((rows // warps * NAMED_BARRIERS, warps), dtype=np.int64)

    def unfold(self, copies: int) -> None:
        """Give every warp of every block a row of its own."""
        self.known = np.tile(self.known, (copies, 1))
        self._released = np.tile(self._released, (copies, 1))

    def arrive(self, rows: Array, numbers: Array, time: int) -> None:
        """Record the release of warps at barriers without waiting."""
        np.maximum.at(self._released, self._phases(rows, numbers), self._told(rows, time))

    def meet(self, rows: Array, numbers: Array, time: int) -> None:
        """Join the clocks of the warps at a barrier, and its pending releases."""
        phases = self._phases(rows, numbers)
        order = np.argsort(phases, kind="stable")
        mine, which = rows[order], phases[order]
        first = np.flatnonzero(np.append(True, which[1:] != which[:-1]))
        joined = np.maximum.reduceat(self._told(mine, time), first, axis=0)
        joined = np.maximum(joined, self._released[which[first]])
        self._released[which[first]] = 0
        self.known[mine] = np.repeat(joined, np.diff(np.append(first, len(mine))), axis=0)

    def forget(self, rows: Array, numbers: Array) -> None:
        """Drop releases at barriers at which the whole block has arrived."""
        self._released[self._phases(rows, numbers)] = 0

    def _phases(self, rows: Array, numbers: Array) -> Array:
        return np.asarray(rows // self.known.shape[1] * NAMED_BARRIERS + numbers)

    def _told(self, rows: Array, time: int) -> Array:
        """Return the clocks of warps, their own entry set to a time."""
        told: Array = self.known[rows]
        told[np.arange(len(rows)), rows % self.known.shape[1]] = time
        return told
