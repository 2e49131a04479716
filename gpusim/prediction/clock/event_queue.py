"""What is to happen on an SM, in order of time: SimPy's, or the compiled clock's own."""

from __future__ import annotations

from typing import Protocol

from gpusim.prediction.clock.warp import Block

NEVER = 1 << 62


class EventQueue(Protocol):
    """What the SM and its schedulers say of what is to come. Times are in ticks."""

    def next(self) -> int:
        """Return when the next of what was said happens, NEVER or more where nothing does."""

    def wake(self, at: int, schedulers: list[int]) -> None:
        """Let schedulers look at a time at what they have, by number, in this order."""

    def end_block(self, at: int, block: Block) -> None:
        """Let a block leave the SM at a time."""
