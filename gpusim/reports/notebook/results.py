"""Results as notebooks, `print` and pandas show them: each kind has its forms in one row of FORMS.

HTML is self-contained, with tables, findings and pictures; without Matplotlib a picture is left
out. A DataFrame has a row for each line, finding, kernel or prediction.
"""

from __future__ import annotations

import importlib
import linecache
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Any

from rich.text import Text

from gpusim.advice.decisions import passing_lanes
from gpusim.advice.launch import advice_on
from gpusim.checking.findings import Findings
from gpusim.errors import InputError
from gpusim.host.installation import install
from gpusim.prediction.rankings import Ranking
from gpusim.prediction.records import Prediction
from gpusim.prediction.sweeps.tables import COLUMNS, TEXTS, Row
from gpusim.prediction.sweeps.tuning import Tuned
from gpusim.reports import line_counts, line_fetches
from gpusim.reports.advice import finding_lines
from gpusim.reports.certainty import in_order
from gpusim.reports.changes import changes
from gpusim.reports.checking import check_report
from gpusim.reports.comparison import Comparison, comparison_report, comparison_table
from gpusim.reports.layout import NO_LINE, plural, size
from gpusim.reports.notebook.elements import (
    advice_list,
    headline,
    listed,
    note,
    picture,
    plain,
    table,
)
from gpusim.reports.plots.gains import plot_gains
from gpusim.reports.quantities import deviations, duration, interval, percent, rate
from gpusim.reports.ranking import ranking_report
from gpusim.reports.sweeps import sweep_table
from gpusim.reports.trace import launch_lines
from gpusim.reports.tuning import tuning_report
from gpusim.tracing.records import Trace

WIDTH = 100
MOST_ROWS = 60  # of a table; a DataFrame has them all
MOST_STALLS = 4
SHOWN = 8  # candidates of a launch
LINE_TITLES = (
    "line", "source", "executions", "threads on", "threads passing", "divergent", "wavefronts",
    "excessive", "sectors",
)  # fmt: skip
# Columns of a sweep that a table shows, as far as they are not the same in all rows or empty.
_ALWAYS = ("kernel", "device", "n", "block", "time_us", "low_us", "high_us", "gbps", "limiter")
_VARYING = ("operation", "dtype", "l2", "passes", "without", "set", "choices", "code", "reason")


class PandasMissingError(InputError):
    """Pandas is not there."""


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


def trace_summary(trace: Trace) -> str:
    """Return a trace's launch, its counters in brief, and its findings."""
    wavefronts = sum(map(line_counts.wavefronts, trace.lines))
    excessive = sum(map(line_counts.conflicts, trace.lines))
    divergent = sum(map(line_counts.divergent, trace.lines))
    facts = [
        plural(trace.counters["instructions"], "instruction"),
        f"{divergent:,} divergent {'branch' if divergent == 1 else 'branches'}",
        f"{plural(wavefronts, 'shared wavefront')}, {excessive:,} of them excessive",
        plural(sum(map(line_counts.sectors, trace.lines)), "global sector"),
    ]
    advice = (line for one in trace.findings for line in finding_lines(one, WIDTH))
    return plain([*launch_lines(trace), *map(Text, wrap("; ".join(facts), WIDTH)), *advice])


def trace_frame(trace: Trace) -> Any:
    """Return the source lines: number, text, executions, active lanes, and every counter."""
    return frame(
        {
            "line": line.line,
            "text": line.text,
            "executions": line.executions,
            "active_lanes": line.active_lanes,
            **line.counters,
        }
        for line in trace.lines
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


def prediction_summary(prediction: Prediction) -> str:
    """Return a prediction's time with its interval, its limiter, and its largest stalls."""
    stalls = sorted(prediction.stalls.items(), key=lambda item: -item[1])
    most = ", ".join(f"{name} {percent(part)}" for name, part in stalls[:MOST_STALLS] if part)
    return "\n".join(
        (
            f"{prediction.kernel}: {duration(prediction.time_us)} on {prediction.device.name} "
            f"(model; 90 % interval {interval(*prediction.interval_us)}), "
            f"limiter {prediction.limiter.name}",
            f"  {rate(prediction.gbps(prediction.traffic.compulsory_bytes))} of compulsory "
            f"traffic, occupancy {percent(prediction.occupancy.fraction)}, "
            f"{prediction.waves:.3g} waves",
            f"  stalls: {most}",
        )
    )


def prediction_frame(prediction: Prediction) -> Any:
    """Return the source lines: fraction of the warp cycles, and that of each stall reason."""
    return frame(
        {"line": line, "fraction": prediction.lines.get(line, 0.0), **stalls}
        for line, stalls in prediction.stalls_by_line.items()
    )


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


def findings_frame(findings: Findings) -> Any:
    """Return the findings of a check, with the lines of each as a list."""
    columns = ("rule", "severity", "message", "fix", "hazard", "array", "index", "count", "lines")
    documents = (finding.to_dict() for finding in findings)
    return frame(({name: one[name] for name in columns} for one in documents), columns)


def comparison_html(comparison: Comparison) -> str:
    """Return two launches as HTML: facts, times and counters side by side, and their results."""
    made = comparison_table(comparison.sides)
    titles = [column.heading for column in made.columns]
    rows = ([text for text, _ in row] for row in made.rows)
    about = headline("", "results of arrays that either launch changes") if comparison.found else ""
    return table(titles, rows, texts=("",)) + about + listed(map(str, comparison.found or ()))


def comparison_frame(comparison: Comparison) -> Any:
    """Return a row for either launch: name, facts, time and interval in us, and counters."""
    return frame(
        {
            "kernel": side.name,
            **side.facts,
            "time_us": side.time_us,
            "low_us": None if side.interval_us is None else side.interval_us[0],
            "high_us": None if side.interval_us is None else side.interval_us[1],
            **side.counters,
        }
        for side in comparison.sides
    )


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


def ranking_summary(ranking: Ranking) -> str:
    """Return the table of a ranking."""
    launches = ranking.forecasts[0].job.launches
    return plain(ranking_report(ranking, "all" if len(launches) > 1 else "one", WIDTH))


def ranking_frame(ranking: Ranking) -> Any:
    """Return the kernels from slow to fast: time and interval in us, GB/s, step, limiter."""
    return frame(
        {
            "kernel": one.job.name,
            "device": one.device.id,
            "time_us": one.time_us,
            "low_us": one.interval_us[0],
            "high_us": one.interval_us[1],
            "gbps": one.gbps,
            "peak_fraction": one.peak_fraction,
            "step": ranking.step(place) if place else None,
            "tie": ranking.is_tie(place) if place else None,
            "limiter": one.first.limiter.name,
        }
        for place, one in enumerate(ranking.forecasts)
    )


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


def _rest(count: int, noun: str) -> str:
    left = count - MOST_ROWS
    return f"and {plural(left, f'more {noun}')}: to_dataframe() has them all" if left > 0 else ""


def frame(rows: Iterable[Mapping[str, Any]], columns: Sequence[str] | None = None) -> Any:
    """Return rows as a DataFrame; PandasMissingError where pandas is not installed."""
    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        raise PandasMissingError(f"to_dataframe() needs pandas: {install('jupyter')}") from None
    return pandas.DataFrame(list(rows), columns=columns)


@dataclass(frozen=True)
class Forms:
    """The displays of a kind of result: as HTML, as text of some lines, and as a DataFrame."""

    html: Callable[[Any], str]
    summary: Callable[[Any], str]
    frame: Callable[[Any], Any]


FORMS = {
    "trace": Forms(trace_html, trace_summary, trace_frame),
    "prediction": Forms(prediction_html, prediction_summary, prediction_frame),
    "findings": Forms(
        findings_html, lambda found: plain(check_report(found, WIDTH)), findings_frame
    ),
    "comparison": Forms(
        comparison_html,
        lambda both: plain(comparison_report(both.sides, both.found, WIDTH)),
        comparison_frame,
    ),
    "ranking": Forms(ranking_html, ranking_summary, ranking_frame),
    "sweep": Forms(
        lambda swept: _rows_html(swept.rows),
        lambda swept: plain(sweep_table(swept.rows, WIDTH)),
        lambda swept: frame(swept.rows, COLUMNS),
    ),
    "tuned": Forms(
        tuned_html,
        lambda tuned: plain(tuning_report([tuned], SHOWN, WIDTH)),
        lambda tuned: frame([*tuned.rows, *tuned.cannot], COLUMNS),
    ),
}
