"""Branch divergence: the threads that pass a condition in each step, and the divergent warps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.advice.decisions import conditions_of
from gpusim.errors import InputError
from gpusim.launch.grid import WARP_SIZE
from gpusim.reports.plots.canvas import canvas, matplotlib, title
from gpusim.tracing import lanes
from gpusim.tracing.execution import Execution
from gpusim.tracing.records import Trace
from gpusim.typing import Array

ABSENT, NOT_TAKEN, TAKEN = 0, 1, 2
MOST_STEPS = 64


@dataclass(frozen=True)
class Decisions:
    """A block's branch decisions: a row for each step, a column for each thread.

    `states` holds ABSENT, NOT_TAKEN and TAKEN; `steps` are (line, iteration), `divergent` the
    (row, warp) of divergent warps.
    """

    steps: tuple[tuple[int, int], ...]
    states: Array
    divergent: tuple[tuple[int, int], ...]


def decisions(trace: Trace) -> Decisions:
    """Return the conditions that a block comes to, of the source or as compiled."""
    placed = zip(trace.executions, trace.iterations, strict=True)
    chosen = [(e, i) for e, i in placed if lanes.is_condition(e) and lanes.deciding_lanes(e)]
    chosen = chosen or conditions_of(trace)
    rows = {key: place for place, key in enumerate(dict.fromkeys((e.line, i) for e, i in chosen))}
    threads = trace.launch.threads_per_block
    states = np.full((len(rows), -(-threads // WARP_SIZE) * WARP_SIZE), ABSENT)
    divergent: dict[tuple[int, int], None] = {}
    for execution, iteration in chosen:
        row = rows[execution.line, iteration]
        _note(states[row], execution)
        if lanes.diverges(execution):
            divergent[row, execution.warp] = None
    return Decisions(tuple(rows), states[:, :threads], tuple(divergent))


def _note(row: Array, execution: Execution) -> None:
    first = execution.warp * WARP_SIZE
    for lane in lanes.deciding_lanes(execution):
        row[first + lane] = NOT_TAKEN
    for lane in lanes.taken_lanes(execution):
        row[first + lane] = TAKEN


def plot_divergence(trace: Trace, *, theme: str = "light") -> Any:
    """Draw threads across and conditions downwards; a frame marks each warp that diverges.

    Raises InputError where nothing is decided.
    """
    found = decisions(trace)
    if not found.steps:
        raise InputError(f"{trace.kernel} has no conditions: there is no divergence to draw")
    shown = found.steps[:MOST_STEPS]
    threads = found.states.shape[1]
    with canvas(theme, 11, 1.7 + 0.3 * len(shown)) as (figure, ink):
        axes = figure.subplots()
        colours = (ink.paper, ink.faint, ink.series[4])
        patches = matplotlib("patches")
        axes.imshow(
            found.states[: len(shown)],
            aspect="auto",
            interpolation="none",
            cmap=matplotlib("colors").ListedColormap(colours),
            vmin=ABSENT,
            vmax=TAKEN,
        )
        for row in range(1, len(shown)):
            axes.axhline(row - 0.5, color=ink.paper, lw=1.5)
        for first in range(WARP_SIZE, threads, WARP_SIZE):
            axes.axvline(first - 0.5, color=ink.grey, lw=0.8)
        for row, warp in found.divergent:
            if row < len(shown):
                corner = (warp * WARP_SIZE - 0.5, row - 0.42)
                width = min(WARP_SIZE, threads - warp * WARP_SIZE)
                axes.add_patch(
                    patches.Rectangle(corner, width, 0.84, fill=False, lw=1.8, ec=ink.series[5])
                )
        axes.set_yticks(range(len(shown)), [f"line {line}, #{number}" for line, number in shown])
        axes.set_xticks(range(0, threads + 1, WARP_SIZE))
        axes.tick_params(length=0)
        axes.set(xlabel="thread of the block", ylabel="condition, and its iteration")
        legend = [
            patches.Patch(color=colours[TAKEN], label="taken"),
            patches.Patch(color=colours[NOT_TAKEN], label="not taken"),
            patches.Patch(fill=False, lw=1.8, ec=ink.series[5], label="divergent warp"),
        ]
        axes.legend(
            handles=legend, ncols=3, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2
        )
        title(axes, f"{trace.kernel}, block {trace.block_index}: divergence", _sum(found))
    return figure


def _sum(found: Decisions) -> str:
    warps = -(-found.states.shape[1] // WARP_SIZE)
    return f"{len(found.divergent)} of {len(found.steps) * warps} branches of warps are divergent"
