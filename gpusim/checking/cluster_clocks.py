"""Order between the threads of a thread block cluster, and the lifetimes of its blocks.

`barrier.cluster` orders accesses before the arrival of a thread before accesses of its cluster
after their wait. A block's shared memory exists from its start to its end: an access from another
block needs a barrier after the start, and one before the end (CUDA C++ Programming Guide,
distributed shared memory).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.checking.element_access import BLOCK_SHIFT
from gpusim.checking.findings import Finding, Place, Thread
from gpusim.launch.events import Placement
from gpusim.typing import Array


@dataclass(frozen=True)
class ClusterHeard:
    """Times up to which threads know accesses of their cluster; `rows` are those of the entries."""

    clocks: ClusterClocks
    rows: Array

    def of(self, threads: Array) -> Array:
        """Return the last time of other threads known to each entry's; -1 outside the cluster."""
        clocks = self.clocks
        block = clocks.position[threads >> BLOCK_SHIFT]
        warp = (threads & (1 << BLOCK_SHIFT) - 1) >> 5
        row = block * clocks.warps + warp
        is_mine = row // clocks.size == self.rows // clocks.size
        return np.where(is_mine, clocks.known[self.rows, row % clocks.size], -1)

    def take(self, which: Array) -> ClusterHeard:
        """Return some of the entries."""
        return ClusterHeard(self.clocks, self.rows[which])


class ClusterClocks:
    """The clocks of a batch's rows; its blocks are in the order of their clusters.

    `known`, for each row, has the times up to which it knows accesses of each row of its cluster.
    `live`, (rows, 32), are the lanes that have not exited.
    """

    def __init__(self, placement: Placement, cluster_blocks: int, live: Array) -> None:
        self.placement, self.warps = placement, placement.warps_per_block
        self.size = cluster_blocks * self.warps  # rows of a cluster
        self.position = np.full(int(placement.blocks.max()) + 1, -1)
        self.position[placement.blocks] = np.arange(len(placement.blocks))
        rows = len(live)
        self._live = live
        self._came, self._arrived = np.zeros((rows, 32), dtype=bool), np.zeros(rows, dtype=np.int64)
        self._ended = np.zeros(rows, dtype=np.int64)
        self.known = np.zeros((rows, self.size), dtype=np.int64)
        # The last access of each row to the shared memory of each block of its cluster.
        self._last = np.zeros((rows, cluster_blocks), dtype=np.int64)
        self._lines = np.zeros((rows, cluster_blocks), dtype=np.int64)
        self._lanes = np.zeros((rows, cluster_blocks), dtype=np.int64)
        # When rows initialised mbarriers, and fenced; whether a phase ended between the two.
        self._initialised, self._fenced = np.zeros((2, rows), dtype=np.int64)
        self._hidden = np.zeros(rows, dtype=bool)

    def initialise(self, rows: Array, time: int) -> None:
        """Record rows that initialise mbarriers."""
        self._initialised[rows] = time

    def fence(self, rows: Array, time: int) -> None:
        """Record rows that run a fence of the cluster's scope or wider, or of mbarriers."""
        self._fenced[rows] = time

    def arrive(self, rows: Array, on: Array, time: int) -> None:
        """Record lanes, (rows, 32), that arrive at the barrier of their cluster."""
        np.logical_or.at(self._came, rows, on)
        self._arrived[rows] = time
        self._hidden[rows] = self._initialised[rows] > self._fenced[rows]
        self.settle()

    def settle(self) -> None:
        """End the phase of each cluster after all threads have arrived or exited."""
        missing = (self._live & ~self._came).any(axis=1).reshape(-1, self.size).any(axis=1)
        over = np.repeat(~missing, self.size) & self._came.any(axis=1)
        self._ended[over] = self._arrived[over]
        self._came[over] = False

    def pass_on(self, rows: Array) -> None:
        """Record rows that have waited for their cluster's barrier."""
        self.known[rows] = self._ended.reshape(-1, self.size)[rows // self.size]

    def heard(self, rows: Array) -> ClusterHeard:
        """Return the times known to the threads of some rows."""
        return ClusterHeard(self, rows)

    def block_of(self, rows: Array, ranks: Array) -> Array:
        """Return the place in the batch of blocks of some rows' clusters."""
        return np.asarray(rows // self.size * (self.size // self.warps) + ranks)

    # -- lives of blocks ---------------------------------------------------------------

    def touch(
        self,
        rows: Array,
        lanes: Array,
        blocks: Array,
        does: str,
        line: int,
        time: int,
        *,
        is_word: bool = False,
    ) -> Finding | None:
        """Record lanes' accesses to other blocks' shared memory; return one that is too soon.

        Accesses of an mbarrier's word (`is_word`) may not see its initialisation.
        """
        far = blocks != rows // self.warps
        if not far.any():
            return None
        rows, lanes, blocks = rows[far], lanes[far], blocks[far]
        ranks = blocks % (self.size // self.warps)
        self._last[rows, ranks], self._lines[rows, ranks] = time, line
        self._lanes[rows, ranks] = lanes
        return self.reach(rows, lanes, blocks, does, line, is_word=is_word)

    def reach(
        self, rows: Array, lanes: Array, blocks: Array, does: str, line: int, *, is_word: bool
    ) -> Finding | None:
        """Return an access to other blocks out of their lifetime, or of an mbarrier too soon."""
        ranks = blocks % (self.size // self.warps)
        of_warps = self.known.reshape(len(self.known), -1, self.warps)[rows, ranks]
        early = ~of_warps.any(axis=1)
        lives = np.asarray(self._live.reshape(-1, self.warps * 32).any(axis=1))
        late = ~lives[blocks]
        hidden = self._hidden.reshape(-1, self.warps)[blocks].any(axis=1) & is_word
        for wrong, rule in (
            (early, "cluster-start"),
            (late, "cluster-end"),
            (hidden, "mbarrier-init"),
        ):
            if wrong.any():
                at = int(np.argmax(wrong))
                who, other = self._thread(int(rows[at]), int(lanes[at])), int(blocks[at])
                return self._finding(rule, who, other, does, line, int(np.count_nonzero(wrong)))
        return None

    def leave(self, rows: Array) -> Finding | None:
        """Return an access that may come after the end of a block: its last threads exit."""
        self.settle()
        for block in np.unique(rows // self.warps).tolist():
            mine = slice(block * self.warps, (block + 1) * self.warps)
            if self._live[mine].any():
                continue
            cluster = block * self.warps // self.size
            others = slice(cluster * self.size, (cluster + 1) * self.size)
            rank = block % (self.size // self.warps)
            late = self._last[others, rank] > self.known[mine].max(axis=0)
            if late.any():
                row = others.start + int(np.argmax(late))
                who = self._thread(row, int(self._lanes[row, rank]))
                line, count = int(self._lines[row, rank]), int(np.count_nonzero(late))
                return self._finding("cluster-end", who, block, "accesses", line, count)
        return None

    def _thread(self, row: int, lane: int) -> Thread:
        block = int(self.placement.blocks[row // self.warps])
        return Thread(block, row % self.warps * 32 + lane)

    def _finding(
        self, rule: str, who: Thread, block: int, does: str, line: int, count: int
    ) -> Finding:
        number = int(self.placement.blocks[block])
        when = {
            "cluster-start": f"before block {number} is known to have started",
            "cluster-end": f"which block {number} does not wait for before it ends",
            "mbarrier-init": f"an mbarrier that block {number} has initialised without a fence "
            "before its relaxed arrival at the barrier of the cluster",
        }[rule]
        message = f"{who} {does} shared memory of block {number} in line {line}, {when}"
        return Finding(rule, message, (Place(line, does, who),), count=count)
