"""Results as a notebook shows them: tables, findings and pictures, as self-contained HTML.

A picture is left out if Matplotlib is not installed.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from gpusim.advice.decisions import passing_lanes
from gpusim.advice.launch import advice_on
from gpusim.checking.findings import Findings
from gpusim.prediction.rankings import Ranking
from gpusim.prediction.records import Prediction
from gpusim.prediction.sweeps.sweep import Swept
from gpusim.prediction.sweeps.tables import COLUMNS, TEXTS, Row
from gpusim.prediction.sweeps.tuning import Tuned
from gpusim.reports import line_counts, line_fetches
from gpusim.reports.certainty import in_order
from gpusim.reports.changes import changes
from gpusim.reports.comparison import Comparison, comparison_table
from gpusim.reports.layout import NO_LINE, plural, size
from gpusim.reports.notebook.elements import advice_list, headline, listed, note, picture, table
from gpusim.reports.plots.gains import plot_gains
from gpusim.reports.quantities import deviations, duration, interval, percent, rate
from gpusim.tracing.records import Trace

MOST_ROWS = 60  # of a table; a DataFrame has them all


def trace_html(trace: Trace) -> str:
    """Return a trace as HTML: its findings, its lines, and its worst line's banks."""
    launch = f"grid {size(trace.launch.grid)}, block {size(trace.launch.block)}"
    lines = table(LINE_TITLES, _lines(trace), typed=1)
    found = advice_list(trace.findings)
    return f"{headline(trace.kernel, launch)}{found}{lines}{_trace_picture(trace)}"


def _trace_picture(trace: Trace) -> str:
    """Return the picture of bank conflicts, else of divergence; nothing without either."""
    if any(map(line_counts.conflicts, trace.lines)):
        return picture(trace.plot_banks, "Words that each bank of shared memory serves")
    if any(map(line_counts.divergent, trace.lines)):
        return picture(trace.plot_divergence, "Threads that take each condition, by iteration")
    return ""


LINE_TITLES = (
    "line", "source", "executions", "threads on", "threads passing", "divergent", "wavefronts",
    "excessive", "sectors",
)  # fmt: skip


def _lines(trace: Trace) -> Iterator[Sequence[str]]:
    passing = passing_lanes(trace)
    for line in trace.lines:
        counts = (
            line_counts.divergent(line),
            line_counts.wavefronts(line),
            line_counts.conflicts(line),
            line_counts.sectors(line),
        )
        yield (
            str(line.line or ""),
            line.text if line.line else NO_LINE,
            f"{line.executions:,}",
            f"{line_counts.lanes_on(line):.1f}",
            f"{passing[line.line]:.1f}" if line.line in passing else "",
            *(f"{count:,}" if count else "" for count in counts),
        )


def prediction_html(prediction: Prediction) -> str:
    """Return a prediction as HTML: time, limiter, findings, stalls, and sources of bytes."""
    device, bound = prediction.device.name, prediction.limiter.name
    about = (
        f"{duration(prediction.time_us)} on {device} (model; 90 % interval "
        f"{interval(*prediction.interval_us)}); limiter: {bound}"
    )
    findings = advice_on(prediction) if prediction.setting is not None else []
    bounds = prediction.lower_bounds
    stalls = sorted(prediction.stalls.items(), key=lambda item: -item[1])
    tables = (
        table(("lower bound", "time"), ((one.name, duration(one.time_us)) for one in bounds)),
        table(("stall", "fraction"), ((name, percent(part)) for name, part in stalls)),
        table(line_fetches.TITLES, _fetches(prediction), typed=1),
    )
    drawn = (
        picture(prediction.plot_timeline, "Warps over time")
        if prediction.timeline is not None
        else ""
    )
    return headline(prediction.kernel, about) + advice_list(findings) + "".join(tables) + drawn


def _fetches(prediction: Prediction) -> Iterator[Sequence[str]]:
    for one in line_fetches.by_line(prediction.traffic.fetches)[: line_fetches.MOST_ROWS]:
        yield one.cells


def findings_html(findings: Findings) -> str:
    """Return the findings of a check as HTML: a row each, or the accesses compared."""
    launch = f"grid {size(findings.grid)}, block {size(findings.block)}"
    first = headline(findings.kernel, launch)
    if not findings:
        return first + note(f"No hazards found in this launch with these inputs: "
                            f"{findings.coverage}.")  # fmt: skip
    rows = (
        (
            f"{finding.severity}: {finding.rule}",
            _source(findings.source_file, finding.lines),
            finding.message,
            finding.fix,
            f"{finding.count:,}",
        )
        for finding in findings[:MOST_ROWS]
    )
    titles = ("finding", "source", "cause", "fix", "times")
    shown = table(titles, rows, typed=1, texts=("finding", "cause", "fix"))
    return first + shown + note(_rest(len(findings), "finding"))


def _source(file: str, lines: Sequence[int]) -> str:
    """Return source lines with their numbers, for machine code without source the numbers."""
    found = [(line, linecache.getline(file, line).strip() if file else "") for line in lines]
    name = f"{Path(file).name}:" if file else "line "
    return "\n".join(f"{name}{line}  {text}".rstrip() for line, text in found)


def _rest(count: int, noun: str) -> str:
    left = count - MOST_ROWS
    return f"and {plural(left, f'more {noun}')}: to_dataframe() has them all" if left > 0 else ""


def comparison_html(comparison: Comparison) -> str:
    """Return two launches as HTML: facts, times and counters side by side, and their results."""
    made = comparison_table(comparison.sides)
    titles = [column.heading for column in made.columns]
    rows = ([text for text, _ in row] for row in made.rows)
    about = headline("", "results of arrays that either launch changes") if comparison.found else ""
    return table(titles, rows, texts=("",)) + about + listed(map(str, comparison.found or ()))


def ranking_html(ranking: Ranking) -> str:
    """Return a ranking as HTML: kernels from slow to fast with their steps, and a picture."""
    first = ranking.forecasts[0]
    setup = first.job.launches[0].setup
    work = f"{setup.operation} of {setup.n:,} {setup.dtype.name}, " if setup else ""
    about = f"{work}block {size(first.first.launch.block)}, {first.first.l2} L2; slowest first"
    titles = ("rank", "kernel", "time", "90 %", "GB/s", "of peak", "step", "in order", "changes")
    rows = table(titles, _ranked(ranking), texts=("kernel", "changes"))
    apart = (f"{one.job.name} is not ranked: {reason}" for one, reason in ranking.wrong)
    failed = listed(
        [*apart, *(f"{name} cannot run: {reason}" for name, reason in ranking.failures)]
    )
    times = [one.time_us for one in ranking.forecasts]
    firsts = [one.first for one in ranking.forecasts]
    drawn = picture(
        partial(plot_gains, *firsts, times_us=times, what=work.rstrip(", ")), "Times, step by step"
    )
    return headline(first.device.name, about) + rows + failed + drawn


def _ranked(ranking: Ranking) -> Iterator[Sequence[str]]:
    count = len(ranking.forecasts)
    for place, one in enumerate(ranking.forecasts):
        found = [f"limiter {one.first.limiter.name}"]
        if place:
            found = changes(ranking.forecasts[place - 1].first, one.first)
        yield (
            str(count - place),
            one.job.name,
            duration(one.time_us),
            deviations(one.time_us, *one.interval_us),
            rate(one.gbps).removesuffix(" GB/s"),
            percent(one.peak_fraction),
            f"{ranking.step(place):.2f}x" if place else "",
            in_order(ranking.judged(place)) if place else "",
            "; ".join(found),
        )


# Columns of a sweep that a table shows, as far as they are not the same in all rows or empty.
_ALWAYS = ("kernel", "device", "n", "block", "time_us", "low_us", "high_us", "gbps", "limiter")
_VARYING = ("operation", "dtype", "l2", "passes", "without", "set", "choices", "code", "reason")


def sweep_html(swept: Swept) -> str:
    """Return a sweep as HTML: a row for each prediction."""
    return _rows_html(swept.rows)


def tuned_html(tuned: Tuned) -> str:
    """Return the candidates of a launch as HTML, fastest first."""
    about = f"on {tuned.device}" + (f", n = {tuned.n:,}" if tuned.n else "")
    if tuned.best is None:
        about += f": none of {plural(len(tuned.cannot), 'candidate')} can run"
    elif tuned.ties:
        about += f"; a tie with {plural(tuned.ties, 'other candidate')}"
    apart = listed(f"{row['choices']} is not ranked: {row['wrong']}" for row in tuned.rejected)
    return headline(tuned.kernel, about) + _rows_html([*tuned.rows, *tuned.cannot]) + apart


def _rows_html(rows: Sequence[Row]) -> str:
    varying = {name for name in _VARYING if len({row[name] for row in rows}) > 1}
    shown = [name for name in COLUMNS if name in _ALWAYS or name in varying]
    cells = (tuple(_cell(row[name]) for name in shown) for row in rows[:MOST_ROWS])
    return table(shown, cells, texts=TEXTS) + note(_rest(len(rows), "row"))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
