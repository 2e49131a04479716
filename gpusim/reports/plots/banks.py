"""Banks of shared memory: how many words each has to serve, execution by execution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.errors import InputError
from gpusim.isa.ops import OPS
from gpusim.reports.plots.canvas import Theme, canvas, matplotlib, title
from gpusim.tracing import lanes
from gpusim.tracing.execution import Execution
from gpusim.tracing.iterations import ITERATION, numbering
from gpusim.tracing.records import Trace
from gpusim.typing import Array

MOST_ROWS = 40
WEAKEST = 0.2  # of the ramp
LIGHT = 0.35  # from here on black text is readable, white text before


@dataclass(frozen=True)
class BankUse:
    """How the accesses of one line by one warp lie on the banks.

    `words` is shaped (executions, banks): the number of different words that lanes access in the
    bank, each a wavefront. `rows` name operand and iteration, `wavefronts` are each execution's
    count.
    """

    line: int
    warp: int
    rows: tuple[str, ...]
    counted: str
    words: Array
    wavefronts: tuple[int, ...]


def bank_use(trace: Trace, line: int | None = None, warp: int | None = None) -> BankUse:
    """Return the bank use of a line: without one named, of that with the most bank conflicts.

    Raises InputError where nothing of the kind accesses shared memory.
    """
    placed = [
        (e, i)
        for e, i in zip(trace.executions, trace.iterations, strict=True)
        if e.space == "shared" and lanes.on_lanes(e) and line in (None, e.line)
    ]
    placed = [(e, i) for e, i in placed if warp in (None, e.warp)]
    if not placed:
        where = trace.kernel if line is None else f"line {line} of {trace.kernel}"
        raise InputError(f"{where} has no access to shared memory: there are no banks to draw")
    replays: dict[tuple[int, int], int] = {}
    for execution, _ in placed:
        key = (execution.line, execution.warp)
        replays[key] = replays.get(key, 0) + lanes.replays(execution)
    chosen = max(replays, key=lambda key: (replays[key], -key[1]))
    mine = [(e, i) for e, i in placed if (e.line, e.warp) == chosen]
    counted, numbers = numbering(mine)
    banks = lanes.bank_count(trace.cc)
    return BankUse(
        *chosen,
        rows=tuple(
            f"{name}, {counted} {number}"
            for name, number in zip(_operands(mine, counted), numbers, strict=True)
        ),
        counted=counted,
        words=np.array([_words(e, banks) for e, _ in mine]),
        wavefronts=tuple(e.wavefronts for e, _ in mine),
    )


def _operands(accesses: Sequence[tuple[Execution, int]], counted: str) -> list[str]:
    """Return each access as "2nd load of tile": its place among those of an iteration.

    Where executions are counted, the number is their only place.
    """
    executions = [execution for execution, _ in accesses]
    pcs: dict[tuple[str, str], list[int]] = {}
    kinds = []
    for one in executions:
        kind = OPS[one.op].access or OPS[one.op].kind
        kinds.append((kind, one.array or "shared memory"))
        found = pcs.setdefault(kinds[-1], [])
        if one.pc not in found:
            found.append(one.pc)
    names = []
    for one, (kind, array) in zip(executions, kinds, strict=True):
        places = sorted(pcs[kind, array])
        nth = (
            f"{lanes.ordinal(places.index(one.pc) + 1)} "
            if len(places) > 1 and counted == ITERATION
            else ""
        )
        names.append(f"{nth}{kind} of {array}")
    return names


def _words(execution: Execution, banks: int) -> list[int]:
    table = lanes.words_in_banks(execution, banks)
    return [len(table.get(bank, ())) for bank in range(banks)]


def plot_banks(
    trace: Trace, *, line: int | None = None, warp: int | None = None, theme: str = "light"
) -> Any:
    """Draw banks across and executions of a line downwards, each cell with its words.

    Cells of several words are bank conflicts: they are numbered, a colour for each number.
    """
    found = bank_use(trace, line, warp)
    words = found.words[:MOST_ROWS]
    levels = sorted({int(count) for count in np.unique(words) if count})
    with canvas(theme, 11, 1.6 + 0.32 * len(words)) as (figure, ink):
        axes = figure.subplots()
        strengths = {count: _strength(count, levels[-1]) for count in levels}
        colours = [_colour(strength, ink) for strength in strengths.values()]
        shown = np.ma.masked_where(words == 0, np.searchsorted(levels, words))
        image = axes.imshow(
            shown,
            aspect="auto",
            interpolation="none",
            cmap=matplotlib("colors").ListedColormap(colours),
            vmin=-0.5,
            vmax=len(levels) - 0.5,
        )
        for row, bank in np.argwhere(words > 1):
            light = strengths[int(words[row, bank])] > LIGHT
            axes.text(
                bank,
                row,
                str(words[row, bank]),
                ha="center",
                va="center",
                fontsize=8,
                color="#000000" if light else "#ffffff",
            )
        labels = zip(found.rows, found.wavefronts, strict=True)
        axes.set_yticks(
            range(len(words)),
            [f"{name}: {count} wavefront{'s' * (count > 1)}" for name, count in labels][:MOST_ROWS],
        )
        axes.set_xticks(range(0, words.shape[1], 4))
        axes.set_xticks(np.arange(words.shape[1] + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(len(words) + 1) - 0.5, minor=True)
        axes.grid(which="minor", color=ink.faint, lw=0.8)
        axes.tick_params(which="both", length=0)
        axes.set_xlabel("bank of shared memory, 4 bytes wide")
        bar = figure.colorbar(image, ax=axes, label="words served by a bank", pad=0.01)
        bar.set_ticks(range(len(levels)), labels=[str(count) for count in levels])
        bar.outline.set_visible(False)
        title(
            axes,
            f"{trace.kernel}, line {found.line}, warp {found.warp} of block {trace.block_index}",
            "one wavefront for each word of a bank; numbers above 1 are bank conflicts",
        )
    return figure


def _strength(count: int, most: int) -> float:
    """Return a number of words from 0 for one to 1 for the most, each doubling as far."""
    return math.log(count) / math.log(most) if most > 1 else 0.0


def _colour(strength: float, ink: Theme) -> Any:
    """Return a colour of the theme's ramp, whose darkest part is too dark for dark paper."""
    return matplotlib().colormaps[ink.ramp](WEAKEST + (1 - WEAKEST) * strength)
