"""Timeline of a block and of an SM: warps and source lines by time, coloured by stall reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpusim.errors import InputError
from gpusim.prediction.records import Prediction
from gpusim.prediction.timeline import Timeline, WarpLife, joined
from gpusim.reports.plots.canvas import canvas, matplotlib, title
from gpusim.reports.stall_styles import STALL_STYLES
from gpusim.typing import Array

BLOCK = 0
MOST_SHAPES_OF = 32  # warps
COLUMNS = 600  # of the time, in which warps at a source line are counted


def plot_timeline(prediction: Prediction, *, theme: str = "light") -> Any:
    """Draw the SM's first block, its source lines, and all warps of the SM's first blocks.

    The panels share one axis, in cycles below and microseconds above. Raises InputError for a
    prediction that was made without its timeline.
    """
    timeline = prediction.timeline
    if timeline is None:
        raise InputError("this prediction has no timeline; predict(..., timeline=True) keeps it")
    block, blocks = timeline.of_block(BLOCK), min(timeline.blocks, 2 * timeline.resident)
    lives = [life for life in timeline.warps if life.block < blocks]
    end = max(life.end for life in lives) * 1.005
    lines, counts = warps_at_lines(prediction, block, end)
    rows = len(block), len(lines), min(3.0 * len(block) + 12, 0.12 * len(lives) + 6)
    with canvas(theme, 11, 3.0 + 0.16 * sum(rows)) as (figure, ink):
        upper, middle, lower = figure.subplots(3, 1, height_ratios=rows, sharex=True)
        _lives(upper, block, ink, height=0.9)
        for number, cycle in timeline.barriers:
            if number == BLOCK:
                upper.axvline(cycle, color=ink.ink, lw=1, ls=":")
        every = max(1, len(block) // 8)
        upper.set_yticks(
            list(range(0, len(block), every)), [f"warp {life.warp}" for life in block[::every]]
        )
        _lines(middle, lines, counts, end, ink)
        _lives(lower, lives, ink, height=1.0)
        _blocks(lower, lives)
        lower.set_xlim(0, end)
        kernel, device = prediction.kernel, prediction.device.gpu
        title(upper, f"{kernel} on {device.name}: the SM's first block", "dotted: barriers open")
        title(middle, "its source lines: the fuller the shade, the more of its warps")
        title(lower, _which(timeline, blocks))
        lower.set_xlabel("SM cycles since the first block was launched")
        _microseconds(upper, device.sm_clock_mhz)
        _legend(figure, lives)
    return figure


def warps_at_lines(
    prediction: Prediction, lives: Sequence[WarpLife], end: float
) -> tuple[list[int], Array]:
    """Return the source lines of some warps, and how many are at each over time.

    The array is shaped (lines, COLUMNS): mean warps in equal parts of the cycles up to `end`; line
    0 is of no line.
    """
    code = prediction.prepared.program.instructions
    spans = [(code[s.pc].line if s.pc >= 0 else 0, s.start, s.end) for v in lives for s in v.spans]
    lines = sorted({line for line, _, _ in spans})
    edges = np.linspace(0, end, COLUMNS + 1)
    counts = np.zeros((len(lines), COLUMNS))
    for row, line in enumerate(lines):
        of_line = np.array([(a, b) for number, a, b in spans if number == line])
        before = _since(of_line[:, 0], edges) - _since(of_line[:, 1], edges)
        counts[row] = np.diff(before) / (end / COLUMNS)
    return lines, counts


def _since(times: Array, edges: Array) -> Array:
    """Return, for each edge, the sum of the cycles since those of some times that lie before it."""
    ordered = np.sort(times)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    before = np.searchsorted(ordered, edges)
    return np.asarray(before * edges - sums[before])


def _lines(axes: Any, lines: Sequence[int], counts: Array, end: float, ink: Any) -> None:
    """Draw the warps at each source line over time, from paper to ink."""
    ramp = matplotlib("colors").LinearSegmentedColormap.from_list("", [ink.paper, ink.ink])
    place = (0, end, len(lines) - 0.5, -0.5)
    axes.imshow(counts, aspect="auto", cmap=ramp, vmin=0, extent=place, interpolation="nearest")
    axes.set_yticks(range(len(lines)), [f"line {one}" if one else "set up" for one in lines])
    axes.tick_params(axis="y", length=0, labelsize=8)


def _microseconds(axes: Any, mhz: float) -> None:
    """Write the time in microseconds above the panels."""
    above = axes.secondary_xaxis("top", functions=(lambda c: c / mhz, lambda us: us * mhz))
    above.set_xlabel("us", loc="right")


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
    axes.set(ylim=(len(lives) - 0.4, -0.6))
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
