"""Notifications of the simulated SM: none, or those of observers."""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.prediction.arithmetic.ticks import TICKS
from gpusim.prediction.clock.spans import STALLS, Span, SpanObserver
from gpusim.prediction.clock.warp import Warp


class Unobserved:
    """Notifies nobody. Times are in ticks."""

    def block_started(self, block: int, at: int) -> None:
        """Notify of a block's start: its first warp may issue from then on."""

    def span(self, warp: Warp, start: int, end: int, reason: int, pc: int) -> None:
        """Notify of a span of a warp's time."""

    def barrier_opened(self, block: int, at: int) -> None:
        """Notify of the opening of a block's barrier."""

    def block_ended(self, block: int, at: int) -> None:
        """Notify that a block has left the SM."""


class Observed(Unobserved):
    """Notifies observers, in cycles."""

    def __init__(self, observers: Sequence[SpanObserver]) -> None:
        self._observers = observers

    def block_started(self, block: int, at: int) -> None:
        """Notify of a block's start: its first warp may issue from then on."""
        for observer in self._observers:
            observer.block_started(block, at / TICKS)

    def span(self, warp: Warp, start: int, end: int, reason: int, pc: int) -> None:
        """Notify of a span of a warp's time, if it has a length."""
        if end > start:
            name = STALLS[reason]
            made = Span(warp.block.number, warp.number, start / TICKS, end / TICKS, name, pc)
            for observer in self._observers:
                observer.span(made)

    def barrier_opened(self, block: int, at: int) -> None:
        """Notify of the opening of a block's barrier."""
        for observer in self._observers:
            observer.barrier_opened(block, at / TICKS)

    def block_ended(self, block: int, at: int) -> None:
        """Notify that a block has left the SM."""
        for observer in self._observers:
            observer.block_ended(block, at / TICKS)
