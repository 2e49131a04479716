"""The report of a trace: launch, totals, source lines, warps, and findings."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest
from textwrap import dedent, wrap

from rich.text import Text

from gpusim.advice.decisions import passing_lanes
from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.reports import line_counts
from gpusim.reports.advice import findings_lines
from gpusim.reports.columns import Cell, Column, Columns
from gpusim.reports.excerpts import LEAST_HEIGHT, SCREEN, fitting, heaviest, height, others
from gpusim.reports.generators import fallback_lines, made_by
from gpusim.reports.launches import description_lines
from gpusim.reports.layout import (
    BAD,
    DIM,
    KIND_STYLES,
    NO_LINE,
    TITLE,
    heading,
    integer,
    plural,
    size,
)
from gpusim.reports.quantities import percent, volume
from gpusim.reports.warps import iteration_lines, warp_lines
from gpusim.tracing.counters import COUNTERS
from gpusim.tracing.footprint import Footprint
from gpusim.tracing.records import LineCounters, Trace

WIDTH_FOR_UNITS = 125  # in fewer columns a unit stands after the names that do not have it
LINES_FRAME = 3  # lines around a table: its title, and the count of what is left out
MOST_ACCESSES = 4  # of a footprint on one screen
TOTALS_NOTE = "~: model; zeros, and names in Nsight Compute: --all"
LINES_NOTE = "on: predicated-on, pass: passing the condition, threads per warp"


def trace_report(
    trace: Trace,
    width: int,
    remark: str = "",
    *,
    whole: bool = True,
    after: Sequence[Text] = (),
) -> Iterator[Text]:
    """Yield the lines of the report, none wider than `width`; a remark and `after` come last.

    Unless `whole`, it fits on one screen: counters without their names in Nsight Compute, the
    heaviest source lines, and tables without their last rows.
    """
    before = [*_totals(trace, width, whole)]
    findings = [*_findings(trace, width, remark, whole), *after]
    room = sys.maxsize if whole else SCREEN - height([*before, *findings], width)
    parts: list[list[Text]] = [
        [*iteration_lines(trace, width, whole=whole)],
        [*warp_lines(trace, width, whole=whole)],
        [*_footprint(trace, width, whole)],
    ]
    kept = fitting(parts, room - LEAST_HEIGHT, width)
    after = [line for part in reversed(kept) for line in part]
    yield from before
    yield heading("Source lines", LINES_NOTE)
    yield from _lines(trace, width, room - height(after, width) - LINES_FRAME, whole)
    yield from after
    yield from findings


def _totals(trace: Trace, width: int, whole: bool) -> Iterator[Text]:
    """Yield the launch and its totals."""
    yield from launch_lines(trace)
    yield from description_lines(trace.description, width)
    yield from fallback_lines(trace.fallback, width)
    if whole:
        yield heading("Totals", "exact: from source and addresses; model: by the compiler")
        yield from totals_table(trace, units=width >= WIDTH_FOR_UNITS).lines(width)
    else:
        yield heading("Totals", TOTALS_NOTE)
        yield from short_totals_table(trace).lines(width)


def _footprint(trace: Trace, width: int, whole: bool) -> Iterator[Text]:
    if trace.footprints:
        yield heading("Footprint", "requested and distinct sectors of global memory")
        rows = trace.footprints if whole else _most_requested(trace)
        yield from footprint_table(rows).lines(width)
        yield from others(len(trace.footprints) - len(rows), "access", several="other accesses")


def _findings(trace: Trace, width: int, remark: str, whole: bool) -> Iterator[Text]:
    yield heading("Findings")
    yield from findings_lines(trace.findings, width, whole=whole)
    for part in wrap(remark, width - 4):
        yield Text(f"  {part}", BAD)


def launch_lines(trace: Trace) -> list[Text]:
    """Return the launch: kernel, grid, block, and the code generator."""
    launch = trace.launch
    text = Text(trace.kernel, TITLE)
    text.append(f"  grid {size(launch.grid)}, block {size(launch.block)}", style="not bold")
    threads = launch.blocks * launch.threads_per_block
    warps = launch.blocks * launch.warps_per_block
    text.append(f": {plural(threads, 'thread')}, {plural(warps, 'warp')}", style="not bold")
    code = made_by(trace.compiler, trace.lowering)
    return [text, Text(f"compute capability {trace.cc}, {code}", DIM)]


def totals_table(trace: Trace, *, units: bool = True) -> Columns:
    """Return every counter with its unit, its kind and its name in Nsight Compute.

    Without a column for units the name has its unit: shared_load_requests, or after a comma.
    """
    made = Columns(
        Column("counter" if units else "counter, unit", "left"),
        Column("value"),
        *([Column("unit", "left")] if units else []),
        Column("kind", "left"),
        Column("in Nsight Compute", "left", "fold"),
    )
    for name, spec in COUNTERS.items():
        value = trace.counters.get(name)
        if value is None:
            continue
        style = "" if value else DIM
        bad = value > 0 and "conflicts" in name
        kind = spec.kind_with(trace.compiler)
        made.row(
            (name if units else _with_unit(name, spec.unit), style),
            (f"{value:,}", BAD if bad else style),
            *([(spec.unit, style)] if units else []),
            (kind, KIND_STYLES.get(kind, "")),
            (spec.ncu or "", DIM),
        )
    return made


def _with_unit(name: str, unit: str) -> str:
    return name if unit in name.replace("_", " ") else f"{name}, {unit}"


def short_totals_table(trace: Trace) -> Columns:
    """Return the counters that are not zero, in two columns."""
    cells = [
        (name, ("~" if COUNTERS[name].kind_with(trace.compiler) == "model" else "") + f"{value:,}")
        for name, value in trace.counters.items()
        if value and name in COUNTERS
    ]
    made = Columns(Column("", "left", "fold"), Column(""), Column("", "left", "fold"), Column(""))
    half = (len(cells) + 1) // 2
    for left, right in zip_longest(cells[:half], cells[half:], fillvalue=("", "")):
        made.row(*(cell for pair in (left, right) for cell in _total(*pair)))
    return made


def _total(name: str, value: str) -> tuple[Cell, Cell]:
    return name, (value, BAD if "conflicts" in name else "")


def _lines(trace: Trace, width: int, room: int, whole: bool) -> Iterator[Text]:
    """Yield the source lines, unless `whole` the heaviest that have room."""
    texts = dedent("\n".join(line.text or " " for line in trace.lines)).split("\n")
    rows = list(zip(trace.lines, texts, strict=True))
    marked = _marked(trace)
    weights = [
        share + (line.line in marked)
        for line, share in zip(trace.lines, line_counts.shares(trace.lines), strict=True)
    ]
    table = partial(lines_table, trace, whole=whole)
    shown, left_out = heaviest(rows, weights, table, room, width)
    yield from shown
    counts = [line.counters.get("instructions", 0) for line, _ in left_out]
    part = percent(sum(counts) / max(1, trace.counters.get("instructions", 0)), 0)
    yield from others(len(left_out), "line", f" with {part} of the instructions")


def _marked(trace: Trace) -> set[int]:
    return {line for one in trace.findings if one.kind != "none" for line in one.places}


def lines_table(trace: Trace, rows: Sequence[tuple[LineCounters, str]], *, whole: bool) -> Columns:
    """Return source lines and their texts with their counters, the worst ones marked.

    Unless `whole`, columns of zeros are left out.
    """
    marked = _marked(trace)
    most_divergent = max((line_counts.divergent(line) for line in trace.lines), default=0)
    most_conflicts = max((line_counts.conflicts(line) for line in trace.lines), default=0)
    passing = passing_lanes(trace)
    made = Columns(
        Column("", "left"),
        Column("line"),
        Column("source", "left", "span", hang=4),
        *map(Column, ("execs", "active", "on", "pass", "diverg.", "wavefr.", "excess.", "sectors")),
        gap=1,
    )
    before = ""
    for line, source in rows:
        if line.callers != before:
            before = line.callers
            made.row("", "", (f"{before or trace.kernel}:", DIM), *[""] * 8)
        flagged = line.line in marked
        divergent, conflicts = line_counts.divergent(line), line_counts.conflicts(line)
        made.row(
            (">" if flagged else " ", BAD),
            (str(line.line or ""), BAD if flagged else DIM),
            (source.rstrip() if line.line else NO_LINE, TITLE if flagged else ""),
            integer(line.executions),
            f"{line.active_lanes:.1f}" if line.executions else ".",
            f"{line_counts.lanes_on(line):.1f}" if line.counters.get("instructions") else ".",
            f"{passing[line.line]:.1f}" if line.line in passing else ".",
            (integer(divergent), _bad_if(0 < divergent == most_divergent)),
            integer(line_counts.wavefronts(line)),
            (integer(conflicts), _bad_if(0 < conflicts == most_conflicts)),
            integer(line_counts.sectors(line)),
        )
    return made if whole else made.without_zeros()


def _most_requested(trace: Trace) -> list[Footprint]:
    """Return the accesses with the most requested sectors, in their order."""
    most = sorted(trace.footprints, key=lambda one: -one.requested_sectors)[:MOST_ACCESSES]
    return [one for one in trace.footprints if one in most]


def footprint_table(footprints: Sequence[Footprint]) -> Columns:
    """Return how many sectors of each array the lines request, and how many different ones."""
    made = Columns(
        Column("line"),
        Column("", "left"),
        Column("array", "left", "fold"),
        Column("requested"),
        Column("distinct"),
        Column("footprint"),
    )
    for one in footprints:
        made.row(
            (str(one.line or ""), DIM),
            one.access,
            ", ".join(one.arrays),
            f"{one.requested_sectors:,}",
            f"{one.distinct_sectors:,}",
            volume(SECTOR_BYTES * one.distinct_sectors),
        )
    return made


def _bad_if(condition: bool) -> str:
    return BAD if condition else ""
