"""What an observer sees of the SM that is simulated: blocks, barriers, spans of warps' lives."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """A piece of a warp's life, for one reason, before or at the instruction `pc`; in cycles.

    `block` counts the blocks that came to this SM, `warp` those of the block. `reason` is a name
    of `stalls.STALLS`. A warp's spans follow each other without gaps from its start to its exit.
    """

    block: int
    warp: int
    start: float
    end: float
    reason: str
    pc: int


class SpanObserver:
    """Watches an SM. Every hook does nothing; an observer overrides those that it needs.

    Cycles count from the launch of the SM's first block. A prediction may simulate the SM again,
    with more blocks or iterations; each time begins with `begin`, and the last one is what the
    prediction rests on. Iterations and blocks that are extrapolated have no spans.
    """

    def begin(self, blocks: int) -> None:
        """Take note that so many blocks are simulated from here on."""

    def block_started(self, block: int, cycle: float) -> None:
        """Take note that a block's first warp may issue from then on."""

    def span(self, span: Span) -> None:
        """Take note of a span. Those of different warps come in no order."""

    def barrier_opened(self, block: int, cycle: float) -> None:
        """Take note that a block's barrier opens then."""

    def block_ended(self, block: int, cycle: float) -> None:
        """Take note that a block has left the SM, and makes room for another."""

    def end(self, cycles: float) -> None:
        """Take note that all blocks are through and their stores have arrived."""
