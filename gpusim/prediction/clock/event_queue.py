"""Interface of the SM to its event queue: SimPy's, or that of the compiled clock."""

from __future__ import annotations

from typing import Protocol

from gpusim.prediction.clock.warp import Block

NEVER = 1 << 62


class EventQueue(Protocol):
    """The event queue of an SM and its schedulers. Times are in ticks."""

    def next(self) -> int:
        """Return the time of the next event, NEVER or more for an empty queue."""

    def wake(self, at: int, schedulers: list[int]) -> None:
        """Let schedulers, given by number, check their warps at a time, in this order."""

    def end_block(self, at: int, block: Block) -> None:
        """End a block on the SM at a time."""
