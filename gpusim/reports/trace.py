"""The report of a trace: launch, totals, source lines, warps, and findings."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent, wrap

from rich.text import Text

from gpusim.advice.decisions import passing_lanes
from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.reports import line_counts
from gpusim.reports.advice import findings_lines
from gpusim.reports.columns import Column, Columns
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
from gpusim.reports.quantities import volume
from gpusim.reports.warps import warp_lines
from gpusim.tracing.counters import COUNTERS
from gpusim.tracing.records import Trace

WIDTH_FOR_UNITS = 125  # in fewer columns a unit stands behind the names that do not have it


def trace_report(trace: Trace, width: int, remark: str = "") -> Iterator[Text]:
    """Yield the lines of the report, none wider than `width`; a remark comes last."""
    yield from launch_lines(trace)
    yield from description_lines(trace.description, width)
    yield from fallback_lines(trace.fallback, width)
    yield heading("Totals", "exact: from source and addresses; model: what the compiler emits")
    yield from totals_table(trace, units=width >= WIDTH_FOR_UNITS).lines(width)
    yield heading(
        "Source lines",
        "active, on: average active and predicated-on threads per warp; > finding",
    )
    yield from lines_table(trace).lines(width)
    if trace.footprints:
        yield heading("Footprint", "requested and distinct sectors of global memory")
        yield from footprint_table(trace).lines(width)
    yield from warp_lines(trace, width)
    yield heading("Findings")
    yield from findings_lines(trace.findings, width)
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

    Without a column for units the name has its unit: shared_load_requests, or behind a comma.
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


def lines_table(trace: Trace) -> Columns:
    """Return the source lines with their counters, the worst ones marked."""
    made = Columns(
        Column("", "left"),
        Column("line"),
        Column("source", "left", "span", hang=4),
        Column("execs"),
        Column("active"),
        Column("on"),
        Column("diverg."),
        Column("wavefr."),
        Column("excess."),
        Column("sectors"),
        gap=1,
    )
    texts = dedent("\n".join(line.text or " " for line in trace.lines)).split("\n")
    marked = {finding.line for finding in trace.findings if finding.kind != "none"}
    most_divergent = max((line_counts.divergent(line) for line in trace.lines), default=0)
    most_conflicts = max((line_counts.conflicts(line) for line in trace.lines), default=0)
    passing = passing_lanes(trace)
    before = ""
    for line, source in zip(trace.lines, texts, strict=True):
        if line.callers != before:
            before = line.callers
            made.row("", "", (f"{before or trace.kernel}:", DIM), *[""] * 7)
        flagged, on = line.line in marked, line_counts.lanes_on(line, passing)
        divergent, conflicts = line_counts.divergent(line), line_counts.conflicts(line)
        made.row(
            (">" if flagged else " ", BAD),
            (str(line.line or ""), BAD if flagged else DIM),
            (source.rstrip() if line.line else NO_LINE, TITLE if flagged else ""),
            integer(line.executions),
            f"{line.active_lanes:.1f}" if line.executions else ".",
            f"{on:.1f}" if line.counters.get("instructions") or line.line in passing else ".",
            (integer(divergent), _bad_if(0 < divergent == most_divergent)),
            integer(line_counts.wavefronts(line)),
            (integer(conflicts), _bad_if(0 < conflicts == most_conflicts)),
            integer(line_counts.sectors(line)),
        )
    return made


def footprint_table(trace: Trace) -> Columns:
    """Return how many sectors of each array the lines request, and how many different ones."""
    made = Columns(
        Column("line"),
        Column("", "left"),
        Column("array", "left", "fold"),
        Column("requested"),
        Column("distinct"),
        Column("footprint"),
    )
    for one in trace.footprints:
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
