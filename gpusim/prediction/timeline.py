"""A timeline: the spans of the warps of an SM's first blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpusim.prediction.clock.spans import Span, SpanObserver
from gpusim.prediction.clock.warp import scheduler_of

MOST_BLOCKS = 32
MOST_SPANS = 200_000


@dataclass(frozen=True)
class WarpLife:
    """A warp from its start to its exit: spans in order, without gaps."""

    block: int
    warp: int
    scheduler: int
    spans: tuple[Span, ...]

    @property
    def start(self) -> float:
        """The cycle of its earliest issue."""
        return self.spans[0].start

    @property
    def end(self) -> float:
        """The cycle after its exit."""
        return self.spans[-1].end


@dataclass(frozen=True)
class Timeline:
    """The first blocks of an SM, in cycles from the launch of the first.

    `blocks` of the `simulated` blocks are in it; `resident` run at a time. `barriers` are (block,
    cycle) of each opening.
    """

    schedulers: int
    resident: int
    simulated: int
    blocks: int
    cycles: float
    warps: tuple[WarpLife, ...]
    barriers: tuple[tuple[int, float], ...]

    def of_block(self, block: int) -> list[WarpLife]:
        """Return the warps of a block."""
        return [life for life in self.warps if life.block == block]

    def to_dict(self) -> dict[str, Any]:
        """Return the timeline as plain data; a span is start, end, reason and pc."""
        return {
            "blocks": self.blocks,
            "simulated": self.simulated,
            "barriers": [list(one) for one in self.barriers],
            "warps": [
                {
                    "block": life.block,
                    "warp": life.warp,
                    "scheduler": life.scheduler,
                    "spans": [[s.start, s.end, s.reason, s.pc] for s in life.spans],
                }
                for life in self.warps
            ],
        }


class TimelineRecorder(SpanObserver):
    """Keeps the spans of an SM's first blocks, of the last simulation."""

    def __init__(self, schedulers: int, resident: int) -> None:
        self._schedulers = schedulers
        self._resident = resident
        self.begin(0)

    def begin(self, blocks: int) -> None:
        """Discard an earlier simulation."""
        self._simulated = blocks
        self._cycles = 0.0
        self._blocks = MOST_BLOCKS
        self._spans: dict[tuple[int, int], list[Span]] = {}
        self._count = 0
        self._barriers: list[tuple[int, float]] = []

    def span(self, span: Span) -> None:
        """Keep a span of one of the first blocks; fewer blocks if they have too many spans."""
        if span.block >= self._blocks:
            return
        self._spans.setdefault((span.block, span.warp), []).append(span)
        self._count += 1
        if self._count > MOST_SPANS and self._blocks > 1:
            self._blocks -= 1
            gone = [key for key in self._spans if key[0] >= self._blocks]
            self._count -= sum(len(self._spans.pop(key)) for key in gone)

    def barrier_opened(self, block: int, cycle: float) -> None:
        """Keep a barrier."""
        self._barriers.append((block, cycle))

    def end(self, cycles: float) -> None:
        """Record the end."""
        self._cycles = cycles

    @property
    def timeline(self) -> Timeline:
        """The recorded timeline."""
        blocks = min(self._blocks, self._simulated)
        lives = (
            WarpLife(block, warp, scheduler_of(block, warp, self._schedulers), tuple(spans))
            for (block, warp), spans in sorted(self._spans.items())
        )
        barriers = tuple(one for one in self._barriers if one[0] < blocks)
        return Timeline(
            self._schedulers,
            self._resident,
            self._simulated,
            blocks,
            self._cycles,
            tuple(lives),
            barriers,
        )


def joined(spans: Sequence[Span]) -> Iterator[Span]:
    """Yield spans, merged with directly following ones of the same reason, at the first pc."""
    whole: Span | None = None
    for span in spans:
        if whole is not None and whole.reason == span.reason and whole.end == span.start:
            whole = replace(whole, end=span.end)
        else:
            if whole is not None:
                yield whole
            whole = span
    if whole is not None:
        yield whole
