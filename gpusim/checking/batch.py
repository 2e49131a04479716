"""State of a batch of blocks: vector clocks, threads, and shadow memory.

Where a batch is folded and all its blocks touch the same, one copy of a shadow stands for all of
them; once they differ, each block has its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gpusim.checking.accessed_elements import threads_of
from gpusim.checking.async_copies import Groups, InFlight
from gpusim.checking.barriers import STAYED
from gpusim.checking.bulk_flights import BulkFlights
from gpusim.checking.clocks import Clocks
from gpusim.checking.cluster_clocks import ClusterClocks
from gpusim.checking.history import History
from gpusim.checking.origins import Origins
from gpusim.checking.shadow import Shadow
from gpusim.launch.events import Placement, Step
from gpusim.launch.grid import Launch
from gpusim.typing import Array


@dataclass
class Batch:
    """State of a batch. `threads` are packed, `gone_at` is the pc of each lane's exit.

    `local` has the written elements of threads' local memory, `origins` the registers with values
    from uninitialised memory. `groups` are present with asynchronous copies. `joined` has the lanes
    that last shared each warp-aggregated atomic, (copies, rows, 32).
    """

    clocks: Clocks
    threads: Array
    gone_at: Array
    origins: Origins
    shared: Shadow | None = None
    shared_copies: int = 1
    local: Array | None = None
    local_copies: int = 1
    groups: Groups | None = None
    on_their_way: InFlight | None = None  # to shared memory
    bulk: BulkFlights | None = None
    joined: dict[int, Array] = field(default_factory=dict)

    @classmethod
    def of(cls, placement: Placement, launch: Launch, *, has_copies: bool) -> Batch:
        """Return the state of blocks that begin; with `has_copies` each has its own memory."""
        clocks = Clocks(placement, launch.threads_per_block)
        if launch.cluster_blocks > 1:
            clocks.cluster = ClusterClocks(placement, launch.cluster_blocks, clocks.live)
        gone_at = np.full(clocks.live.shape, STAYED)
        made = cls(clocks, threads_of(placement), gone_at, Origins(placement))
        if has_copies:
            made.groups = Groups(len(placement.blocks) * placement.warps_per_block * 32)
        return made

    def unfold(self, placement: Placement) -> None:
        """Give every warp of every block a row of its own."""
        copies = len(placement.blocks)
        self.clocks.unfold(placement)
        self.origins.unfold(placement)
        self.threads = threads_of(placement)
        self.gone_at = np.tile(self.gone_at, (copies, 1))
        self.joined = {one: lanes.reshape(1, -1, 32) for one, lanes in self.joined.items()}
        self._copy_shared(copies)
        self._copy_local(copies)

    def join(self, step: Step, number: int) -> None:
        """Record the lanes that share a warp-aggregated atomic, by its number."""
        shape = step.placement.copies, len(self.gone_at), 32
        lanes = self.joined.setdefault(number, np.zeros(shape, dtype=bool))
        lanes[:, step.rows] = step.on

    def of_all(self, step: Step, number: int, element: Array) -> tuple[Step, Array]:
        """Return the step of a warp-aggregated atomic, or of its fence, with all of its lanes."""
        lanes = self.joined.get(number)
        if lanes is None:
            return step, element
        shape = len(lanes), len(step.rows), 32
        on = np.broadcast_to(step.on, shape)
        which = on.argmax(axis=2)[:, :, None]
        element = np.take_along_axis(np.broadcast_to(element, shape), which, axis=2)
        every = lanes[:, step.rows] & on.any(axis=2, keepdims=True)
        return step._replace(on=every), np.broadcast_to(element, shape)

    def shared_for(
        self, step: Step, elements: int, history: History | None, *, has_flags: bool
    ) -> Shadow:
        """Return the shadow of shared memory, with a copy for each distinct block of a step.

        With flags that may order its accesses, or asynchronous copies, every block has its own.
        """
        placement = self.clocks.placement
        is_alike = not has_flags and self.groups is None
        told_apart = _told_apart(step) if is_alike else placement.copies
        if placement.folded and told_apart > self.shared_copies:
            self._copy_shared(told_apart)
        if self.shared is None:
            each = self.shared_copies if placement.folded else len(placement.blocks)
            self.shared = Shadow(elements * each, history)
            if self.groups is not None:
                self.on_their_way = InFlight(elements * each)
        return self.shared

    def local_for(self, step: Step, elements: int) -> Array:
        """Return a flag "written" per element of local memory, in copies as for `shared_for`."""
        placement = self.clocks.placement
        if placement.folded and _told_apart(step) > self.local_copies:
            self._copy_local(_told_apart(step))
        if self.local is None:
            each = self.local_copies if placement.folded else 1
            self.local = np.zeros(each * placement.rows * 32 * elements, dtype=bool)
        return self.local

    def forget(self) -> None:
        """Forget accesses to shared memory that barriers order before all later ones."""
        if self.shared is not None and self.shared.history is not None:
            cluster = self.clocks.cluster
            until = self.clocks.barrier if cluster is None else cluster.known
            self.shared.history.forget(int(until.min()))

    def _copy_shared(self, copies: int) -> None:
        if self.shared is not None and self.shared_copies == 1:
            self.shared = self.shared.for_blocks(self.clocks.placement.blocks)
        self.shared_copies = copies

    def _copy_local(self, copies: int) -> None:
        if self.local is not None and self.local_copies == 1:
            self.local = np.tile(self.local, copies)
        self.local_copies = copies


def _told_apart(step: Step) -> int:
    """Return the number of copies of memory that a step touches: one if all blocks agree."""
    assert step.addresses is not None
    return max(len(step.addresses), len(step.on))
