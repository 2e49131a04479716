"""Timeline of a block and of an SM: warps by cycles, coloured by stall reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpusim.errors import InputError
from gpusim.prediction.records import Prediction
from gpusim.prediction.timeline import Timeline, WarpLife, joined
from gpusim.reports.plots.canvas import canvas, matplotlib, title
from gpusim.reports.stall_styles import STALL_STYLES

BLOCK = 0
MOST_SHAPES_OF = 32  # warps


def plot_timeline(prediction: Prediction, *, theme: str = "light") -> Any:
    """Draw the SM's first block above and all warps of its first blocks below.

    Raises InputError for a prediction that was made without its timeline.
    """
    timeline = prediction.timeline
    if timeline is None:
        raise InputError("this prediction has no timeline; predict(..., timeline=True) keeps it")
    block, blocks = timeline.of_block(BLOCK), min(timeline.blocks, 2 * timeline.resident)
    lives = [life for life in timeline.warps if life.block < blocks]
    rows = len(block), min(3.0 * len(block) + 12, 0.12 * len(lives) + 6)
    with canvas(theme, 11, 2.2 + 0.16 * sum(rows)) as (figure, ink):
        upper, lower = figure.subplots(2, 1, height_ratios=rows)
        _lives(upper, block, ink, height=0.9)
        for number, cycle in timeline.barriers:
            if number == BLOCK:
                upper.axvline(cycle, color=ink.ink, lw=1, ls=":")
        every = max(1, len(block) // 8)
        upper.set_yticks(
            list(range(0, len(block), every)),
            [f"warp {life.warp}" for life in block[::every]],
        )
        _lives(lower, lives, ink, height=1.0)
        _blocks(lower, lives)
        kernel, device = prediction.kernel, prediction.device.gpu.name
        title(upper, f"{kernel} on {device}: the SM's first block", "dotted: barriers open")
        title(lower, _which(timeline, blocks))
        lower.set_xlabel("SM cycles since the first block was launched")
        _legend(figure, lives)
    return figure


def _lives(axes: Any, lives: Sequence[WarpLife], ink: Any, *, height: float) -> None:
    """Draw each warp as a row, the spans of a reason as one collection.

    Many rows are drawn as an image: as shapes they are thousands.
    """
    by_reason: dict[str, list[Any]] = {}
    for row, life in enumerate(lives):
        for span in joined(life.spans):
            low, high = row - height / 2, row + height / 2
            corners = [(span.start, low), (span.end, low), (span.end, high), (span.start, high)]
            by_reason.setdefault(span.reason, []).append(corners)
    for reason, boxes in by_reason.items():
        known = STALL_STYLES.get(reason)
        drawn = matplotlib("collections").PolyCollection(
            boxes,
            facecolors=known.colour if known else ink.grey,
            lw=0,
            rasterized=len(lives) > MOST_SHAPES_OF,
        )
        drawn.set_gid(reason)
        axes.add_collection(drawn)
    axes.set(
        ylim=(len(lives) - 0.4, -0.6),
        xlim=(0, max(life.end for life in lives) * 1.005),
    )
    axes.tick_params(axis="y", length=0)


def _blocks(axes: Any, lives: Sequence[WarpLife]) -> None:
    """Name the blocks at their first warps."""
    firsts = {life.block: row for row, life in reversed(list(enumerate(lives)))}
    every = max(1, len(firsts) // 8)
    shown = sorted(firsts)[::every]
    axes.set_yticks([firsts[block] for block in shown], [f"block {block}" for block in shown])


def _which(timeline: Timeline, blocks: int) -> str:
    return (
        f"blocks 0 to {blocks - 1} of {timeline.simulated} simulated on the SM, "
        f"{timeline.resident} resident at a time"
    )


def _legend(figure: Any, lives: Sequence[WarpLife]) -> None:
    there = {span.reason for life in lives for span in life.spans}
    handles = [
        matplotlib("patches").Patch(color=reason.colour, label=name)
        for name, reason in STALL_STYLES.items()
        if name in there
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=5)
