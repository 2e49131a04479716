"""The picture of the model of time: what is simulated, and which rule of the page is about what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpusim.reports.plots.canvas import canvas, matplotlib, save

# Name, rules, and the box: left, bottom, width, height. Inner boxes come after those around them.
BOXES = (
    ("host: fixed launch overhead, gap between passes", "23", (0.0, 8.1, 10.0, 0.8)),
    ("grid: classes of blocks that do the same", "1-3", (0.0, 6.9, 10.0, 0.8)),
    ("the SM that is simulated, one of all alike", "4, 21, 22", (0.0, 2.2, 10.0, 4.3)),
    ("resident blocks", "5, 6", (0.2, 4.9, 2.4, 0.9)),
    ("barriers", "20", (0.2, 3.7, 2.4, 0.9)),
    ("scheduler x 4", "7-10", (3.1, 4.9, 3.2, 0.9)),
    ("queue to memory x 4", "12", (3.1, 3.7, 3.2, 0.9)),
    ("pipes: ALU, FMA, XU", "8, 9", (6.8, 4.9, 3.0, 0.9)),
    ("special registers, constants", "11", (6.8, 3.7, 3.0, 0.9)),
    ("data stage: shared memory, shuffles, L1", "12-15, 19", (0.2, 2.4, 9.6, 0.9)),
    ("L2: its share of the bandwidth; stores, atomics", "15, 18, 19", (0.0, 1.1, 10.0, 0.8)),
    ("DRAM: its share, and a latency that grows with load", "15-18", (0.0, -0.1, 10.0, 0.8)),
)
ARROWS = (
    ((5.0, 8.1), (5.0, 7.7)), ((5.0, 6.9), (5.0, 6.5)), ((2.6, 5.35), (3.1, 5.35)),
    ((6.3, 5.35), (6.8, 5.35)), ((4.7, 4.9), (4.7, 4.6)), ((6.3, 4.15), (6.8, 4.15)),
    ((4.7, 3.7), (4.7, 3.3)), ((1.4, 3.7), (1.4, 3.3)), ((1.4, 4.9), (1.4, 4.6)),
    ((5.0, 2.2), (5.0, 1.9)), ((5.0, 1.1), (5.0, 0.7)),
)  # fmt: skip


def diagram() -> Any:
    """Return the picture as a figure."""
    with canvas("light", 8.5, 6.6) as (figure, ink):
        axes = figure.subplots()
        axes.set(xlim=(-0.1, 10.1), ylim=(-0.2, 9.0))
        axes.axis("off")
        rectangle = matplotlib("patches").Rectangle
        for name, rules, (left, bottom, width, height) in BOXES:
            is_whole = height > 1
            colour = "#f6f6f4" if is_whole or width == 10 else "#d9ecf8"
            axes.add_patch(rectangle((left, bottom), width, height, fc=colour, ec=ink.grey, lw=1))
            top = bottom + height - (0.3 if is_whole else height / 2)
            axes.text(left + 0.12, top, name, va="center", fontsize=9)
            axes.text(
                left + width - 0.1, top, rules, va="center", ha="right", fontsize=8,
                color=ink.series[5], weight="bold",
            )  # fmt: skip
        for start, end in ARROWS:
            axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": ink.grey})
    return figure


def draw(path: Path) -> None:
    """Write the picture."""
    save(diagram(), path)
