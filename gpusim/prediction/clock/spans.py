"""Events of the simulated SM for observers: blocks, barriers, spans of warps."""

from __future__ import annotations

from dataclasses import dataclass

STALLS = (
    "selected",
    "not_selected",
    "wait",
    "short_scoreboard",
    "long_scoreboard",
    "mio_throttle",
    "lg_throttle",
    "math_pipe_throttle",
    "barrier",
)
(SELECTED, NOT_SELECTED, WAIT, SHORT, LONG, MIO, LG, MATH, BARRIER) = range(len(STALLS))
REASONS = len(STALLS)


@dataclass(frozen=True)
class Span:
    """A time span of a warp with one reason, before or at the instruction `pc`; in cycles.

    `block` counts the blocks of this SM, `warp` those of the block. `reason` is a name of
    `stalls.STALLS`. A warp's spans follow each other without gaps from its start to its exit.
    """

    block: int
    warp: int
    start: float
    end: float
    reason: str
    pc: int


class SpanObserver:
    """Observes the simulated SM. All hooks are empty; an observer overrides the ones it needs.

    Cycles count from the launch of the SM's first block. A prediction may simulate the SM again,
    with more blocks or iterations; each simulation begins with `begin`, and the prediction rests on
    the last one. Extrapolated iterations and blocks have no spans.
    """

    def begin(self, blocks: int) -> None:
        """Called before a simulation of `blocks` blocks."""

    def block_started(self, block: int, cycle: float) -> None:
        """Called for a block's start: its first warp may issue from then on."""

    def span(self, span: Span) -> None:
        """Called for each span. Spans of different warps come in no order."""

    def barrier_opened(self, block: int, cycle: float) -> None:
        """Called for the opening of a block's barrier."""

    def block_ended(self, block: int, cycle: float) -> None:
        """Called when a block has left the SM and its place is free."""

    def end(self, cycles: float) -> None:
        """Called after the last block, when all stores have arrived."""
