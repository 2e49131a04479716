"""The data of a page's timeline: the spans of a block's warps, and stall reasons of the SM."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gpusim.prediction.records import Prediction
from gpusim.prediction.timeline import Timeline, WarpLife
from gpusim.reports.stall_styles import STALL_STYLES

BLOCK = 0
TICKS = 16  # a cycle, the grain of the clock
WINDOWS = 240  # of the warps of the SM over time
MOST_CHARACTERS = 240_000  # of all timelines of a page


def spans_document(prediction: Prediction, most: int = MOST_CHARACTERS) -> dict[str, Any] | None:
    """Return a prediction's timeline for the page's script; None if it has none.

    `warps` are those of the SM's first block: number, scheduler, first tick, and its spans one
    after the other as ticks, reason and pc, cut where all grow beyond `most` characters
    (`whole`). `windows` are the mean resident warps of the SM by reason, in equal parts of the time
    of all blocks in the timeline. A tick is a sixteenth of a cycle of `mhz`.
    """
    timeline = prediction.timeline
    lives = timeline.of_block(BLOCK) if timeline is not None else []
    if timeline is None or not lives:
        return None
    reasons = [name for name in STALL_STYLES if any(_meets(life, name) for life in timeline.warps)]
    warps, is_whole = _warps(lives, reasons, most)
    end = max(life.end for life in timeline.warps)
    return {
        "reasons": reasons,
        "mhz": prediction.device.gpu.sm_clock_mhz,
        "resident": timeline.resident,
        "blocks": timeline.blocks,
        "simulated": timeline.simulated,
        "end": math.ceil(end * TICKS),
        "barriers": [round(cycle * TICKS) for block, cycle in timeline.barriers if block == BLOCK],
        "warps": warps,
        "whole": is_whole,
        "windows": _windows(timeline, reasons, end),
    }


def _meets(life: WarpLife, reason: str) -> bool:
    return any(span.reason == reason for span in life.spans)


def _warps(
    lives: Sequence[WarpLife], reasons: Sequence[str], most: int
) -> tuple[list[list[Any]], bool]:
    """Return the warps of a block with as many spans each as there is room for."""
    number = {name: place for place, name in enumerate(reasons)}
    room, is_whole, warps = most // len(lives), True, []
    for life in lives:
        flat: list[int] = []
        length = 0
        for span in life.spans:
            entry = [round(span.end * TICKS) - round(span.start * TICKS), number[span.reason]]
            entry.append(span.pc)
            length += len(str(entry))
            if length > room:
                is_whole = False
                break
            flat += entry
        warps.append([life.warp, life.scheduler, round(life.start * TICKS), flat])
    return warps, is_whole


def _windows(timeline: Timeline, reasons: Sequence[str], end: float) -> list[list[float]]:
    """Return, for each reason, the mean number of warps that meet it in each part of the time."""
    number = {name: place for place, name in enumerate(reasons)}
    sums = [[0.0] * WINDOWS for _ in reasons]
    width = end / WINDOWS
    for life in timeline.warps:
        for span in life.spans:
            row = sums[number[span.reason]]
            first, last = int(span.start / width), min(int(span.end / width), WINDOWS - 1)
            if first == last:
                row[first] += span.end - span.start
                continue
            for window in range(first, last + 1):
                begin = max(span.start, window * width)
                row[window] += max(0.0, min(span.end, (window + 1) * width) - begin)
    return [[round(value / width, 2) for value in row] for row in sums]
