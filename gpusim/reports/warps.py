"""The warps of one block: their totals, and their divergence and replays, by iteration."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.text import Text

from gpusim.reports.columns import Column, Columns, beside
from gpusim.reports.excerpts import others
from gpusim.reports.layout import BAD, DIM, TITLE, heading, integer
from gpusim.tracing import lanes
from gpusim.tracing.execution import Execution
from gpusim.tracing.records import Trace, WarpCounters

WARPS_SHOWN_ONE_BY_ONE = 4  # of more, neighbours that did the same share a row
MOST_ROWS = 8  # of a table on one screen


@dataclass(frozen=True)
class IterationCounts:
    """A count for each warp and iteration, and the source lines that it comes from."""

    lines: list[int]
    iterations: int
    counts: dict[int, list[int]]


def iteration_counts(trace: Trace, measure: Callable[[Execution], int]) -> IterationCounts | None:
    """Return a measure by warp and iteration over the lines that loop, None where it is zero."""
    numbers = trace.iterations
    looping = {e.line for e, i in zip(trace.executions, numbers, strict=True) if i > 0}
    found = [
        (e.line, e.warp, i, value)
        for e, i in zip(trace.executions, numbers, strict=True)
        if e.line in looping and (value := measure(e))
    ]
    if not found:
        return None
    lines = sorted({line for line, *_ in found})
    length = 1 + max(i for e, i in zip(trace.executions, numbers, strict=True) if e.line in lines)
    counts = {warp.warp: [0] * length for warp in trace.warps}
    for _, warp, iteration, value in found:
        counts.setdefault(warp, [0] * length)[iteration] += value
    return IterationCounts(lines, length, counts)


def divergent(trace: Trace) -> Callable[[Execution], int]:
    """Return the measure of divergent conditionals; of machine branches where none are known."""
    conditions = any(lanes.is_condition(e) for e in trace.executions)
    chosen = lanes.is_condition if conditions else lanes.is_machine_branch
    return lambda execution: int(chosen(execution) and lanes.diverges(execution))


def warp_lines(trace: Trace, width: int, *, whole: bool = True) -> Iterator[Text]:
    """Yield the totals of a block's warps, unless `whole` of `MOST_ROWS` groups at most."""
    yield heading(
        f"Warps of block {trace.block_index}", "excessive: shared wavefronts above the ideal"
    )
    made = Columns(
        Column("warp", "left"),
        Column("instructions"),
        Column("divergent ifs"),
        Column("divergent branches"),
        Column("excessive"),
    )
    groups = _alike(trace.warps, _totals)
    shown = groups if whole else groups[:MOST_ROWS]
    for warps in shown:
        instructions, ifs, branches, conflicts = _totals(warps[0])
        made.row(
            lanes.ranges([warp.warp for warp in warps]),
            integer(instructions),
            *((integer(count), BAD if count else "") for count in (ifs, branches, conflicts)),
        )
    yield from made.lines(width)
    yield from others(len(groups) - len(shown), "row")
    if not trace.is_complete:
        yield Text(
            "Only the beginning of the block was recorded; its later steps are not shown.", DIM
        )


def iteration_lines(trace: Trace, width: int, *, whole: bool = True) -> Iterator[Text]:
    """Yield divergence and replays by iteration, side by side where there is room."""
    most = sys.maxsize if whole else MOST_ROWS
    tables = [
        [_title(title, found), *_iterations_lines(found, trace.warps, width, most)]
        for title, found in (
            ("Divergence", iteration_counts(trace, divergent(trace))),
            ("Excessive wavefronts", iteration_counts(trace, lanes.replays)),
        )
        if found
    ]
    joined = beside(tables[0], tables[1], width) if len(tables) == 2 else None
    for lines in [joined] if joined else tables:
        yield Text()
        yield from lines


def _title(title: str, found: IterationCounts) -> Text:
    plural = "s" if len(found.lines) > 1 else ""
    text = Text(title, TITLE)
    text.append(f"  line{plural} {lanes.ranges(found.lines)}, by iteration", style="not bold dim")
    return text


def _totals(warp: WarpCounters) -> tuple[int, int, int, int]:
    counters = warp.counters
    return (
        counters.get("instructions", 0),
        counters.get("source_divergent_branches", 0),
        counters.get("divergent_branches", 0),
        counters.get("shared_load_bank_conflicts", 0)
        + counters.get("shared_store_bank_conflicts", 0),
    )


def _alike(
    warps: Sequence[WarpCounters], key: Callable[[WarpCounters], object]
) -> list[list[WarpCounters]]:
    """Return the rows: every warp of a small block, runs of equal neighbours of a large one."""
    if len(warps) <= WARPS_SHOWN_ONE_BY_ONE:
        return [[warp] for warp in warps]
    return [list(run) for _, run in groupby(warps, key)]


def _iterations_lines(
    found: IterationCounts, warps: Sequence[WarpCounters], width: int, most: int
) -> Iterator[Text]:
    counts = found.counts
    digits = max(len(str(found.iterations - 1)), *(len(str(max(row))) for row in counts.values()))
    shown = min(found.iterations, max(1, (width - 30) // (digits + 2)))
    rest = found.iterations - shown
    columns = [Column(str(step)) for step in range(shown)]
    if rest:
        columns.append(Column(f"+{rest} more"))
    made = Columns(Column("warp", "left"), *columns, Column("sum"))
    groups = _alike(warps, lambda warp: counts[warp.warp])
    for group in groups[:most]:
        row = counts[group[0].warp]
        cells = [(integer(value), BAD if value else DIM) for value in row[:shown]]
        if rest:
            cells.append((integer(sum(row[shown:])), ""))
        made.row(lanes.ranges([warp.warp for warp in group]), *cells, integer(sum(row)))
    yield from made.lines(width)
    yield from others(len(groups[most:]), "row")
