"""Results as a notebook shows them: tables and a picture, as self-contained HTML.

The picture is left out if Matplotlib is not installed.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from typing import Any

from rich.text import Text

from gpusim.advice.decisions import passing_lanes
from gpusim.errors import InputError
from gpusim.prediction.records import Prediction
from gpusim.reports import line_counts, line_fetches
from gpusim.reports.layout import size
from gpusim.reports.plots.canvas import save_to
from gpusim.reports.quantities import duration, interval, percent
from gpusim.reports.trace import OF_NO_LINE, trace_report
from gpusim.tracing.records import Trace

WIDTH = 100

Bundle = dict[str, str]


def trace_html(trace: Trace) -> str:
    """Return a trace as HTML: its findings, its lines, and its worst line's banks."""
    launch = f"grid {size(trace.launch.grid)}, block {size(trace.launch.block)}"
    findings = "".join(f"<li>{escape(finding.sentence)}</li>" for finding in trace.findings)
    conflicts = any(line_counts.conflicts(line) for line in trace.lines)
    picture = _picture(trace.plot_banks if conflicts else trace.plot_divergence)
    heading = f"<p><b>{escape(trace.kernel)}</b> {escape(launch)}</p>"
    return f"{heading}<ul>{findings}</ul>{_table(LINE_TITLES, _lines(trace))}{picture}"


LINE_TITLES = (
    "line", "source", "executions", "threads on", "divergent", "wavefronts", "excessive", "sectors",
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
            line.text if line.line else OF_NO_LINE,
            f"{line.executions:,}",
            f"{line_counts.lanes_on(line, passing):.1f}",
            *(f"{count:,}" if count else "" for count in counts),
        )


def prediction_html(prediction: Prediction) -> str:
    """Return a prediction as HTML: time, limiter, stalls, and sources of bytes."""
    device, bound = prediction.device.name, prediction.limiter.name
    headline = (
        f"<p><b>{escape(prediction.kernel)}</b> {duration(prediction.time_us)} on "
        f"{escape(device)} (model; 90 % interval "
        f"{interval(*prediction.interval_us)}); limiter: {escape(bound)}</p>"
    )
    bounds = prediction.lower_bounds
    stalls = sorted(prediction.stalls.items(), key=lambda item: -item[1])
    tables = (
        _table(("lower bound", "time"), ((one.name, duration(one.time_us)) for one in bounds)),
        _table(("stall", "fraction"), ((name, percent(part)) for name, part in stalls)),
        _table(line_fetches.TITLES, _fetches(prediction)),
    )
    picture = _picture(prediction.plot_timeline) if prediction.timeline is not None else ""
    return headline + "".join(tables) + picture


def _fetches(prediction: Prediction) -> Iterator[Sequence[str]]:
    for one in line_fetches.by_line(prediction.traffic.fetches)[: line_fetches.MOST_ROWS]:
        yield one.cells


def trace_bundle(trace: Trace, include: Any = None, exclude: Any = None) -> Bundle:
    """Return a trace by media type, for notebooks and for viewers without HTML."""
    return {"text/plain": _plain(trace_report(trace, WIDTH)), "text/html": trace_html(trace)}


def prediction_bundle(prediction: Prediction, include: Any = None, exclude: Any = None) -> Bundle:
    """Return a prediction by media type."""
    time = duration(prediction.time_us)
    plain = (
        f"{prediction.kernel}: {time} on {prediction.device.name}, "
        f"limiter {prediction.limiter.name}"
    )
    return {"text/plain": plain, "text/html": prediction_html(prediction)}


def _plain(lines: Iterable[Text]) -> str:
    return "\n".join(line.plain.rstrip() for line in lines)


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, its second column, where there are more than two, as it was typed."""
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    typed = 1 if len(titles) > 2 else -1
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align: left"><pre>{escape(cell)}</pre></td>'
            if place == typed
            else f"<td>{escape(cell)}</td>"
            for place, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _picture(draw: Callable[[], Any]) -> str:
    """Return a picture as an element that holds it, nothing where there is nothing to draw."""
    try:
        figure = draw()
    except InputError:  # nothing of the kind in this kernel, or no Matplotlib
        return ""
    content = io.BytesIO()
    save_to(figure, content, "png")
    address = base64.b64encode(content.getvalue()).decode("ascii")
    return f'<img alt="" src="data:image/png;base64,{address}">'
