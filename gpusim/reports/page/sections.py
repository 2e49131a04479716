"""A kernel's section of a page: rows and texts, from a trace, its steps and a prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import dedent
from typing import Any

from gpusim.advice.decisions import passing_lanes
from gpusim.isa.ops import OPS, text_of
from gpusim.prediction.sweeps.jobs import Forecast
from gpusim.prediction.traffic import Fetch
from gpusim.reports import line_counts, line_fetches
from gpusim.reports.generators import made_by
from gpusim.reports.layout import plural, size
from gpusim.reports.page.stepper import stepper_document
from gpusim.reports.quantities import duration, interval, percent, rate
from gpusim.reports.trace import OF_NO_LINE
from gpusim.tracing.block_steps import BlockSteps
from gpusim.tracing.counters import COUNTERS
from gpusim.tracing.records import LineCounters, Trace


@dataclass(frozen=True)
class Remark:
    """A sentence about a line: its kind and its severity ("note" or worse)."""

    kind: str
    line: int
    message: str
    severity: str = "note"


@dataclass(frozen=True)
class Subject:
    """The kernel of a section; `remarks` are from analyses other than the trace."""

    trace: Trace
    steps: BlockSteps
    forecast: Forecast | None = None
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True)
class Cell:
    """A table's cell: its text, its sort key, its heat from 0 to 1, a place of the page."""

    text: str
    value: float | str
    heat: float = 0.0
    link: str = ""


@dataclass(frozen=True)
class Table:
    """A table with a caption; of each column, whether it holds numbers."""

    caption: str
    columns: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class SourceRow:
    """A source line: its number and text, its counts as cells, its instructions by pc."""

    number: int
    text: str
    cells: tuple[Cell, ...]
    code: tuple[tuple[int, str], ...]
    is_marked: bool


@dataclass(frozen=True)
class Section:
    """All that the page's template needs about one kernel."""

    subject: Subject
    name: str
    launch: str
    remarks: tuple[Remark, ...]
    source_columns: tuple[str, ...]
    source: tuple[SourceRow, ...]
    tables: tuple[Table, ...]
    prediction: str
    stepper: dict[str, Any]


def section(subject: Subject, characters: int) -> Section:
    """Return a kernel's section, its steps in at most `characters` characters."""
    trace = subject.trace
    found = [Remark(f.kind, f.line, f.sentence) for f in trace.findings if f.kind != "none"]
    remarks = (*subject.remarks, *found)
    columns, rows = _source(subject, {remark.line for remark in remarks})
    tables = [*_prediction_tables(subject.forecast), _totals(trace), _warps(trace)]
    return Section(
        subject=subject,
        name=trace.kernel,
        launch=_launch(trace),
        remarks=remarks,
        source_columns=columns,
        source=rows,
        tables=tuple(tables),
        prediction=_sentence(subject.forecast),
        stepper=stepper_document(subject.steps, trace, characters),
    )


def _launch(trace: Trace) -> str:
    launch = trace.launch
    threads = plural(launch.blocks * launch.threads_per_block, "thread")
    return (
        f"grid {size(launch.grid)}, block {size(launch.block)}: {threads}; "
        f"compute capability {trace.cc}, {made_by(trace.compiler, trace.lowering)}"
        f"{f' (not nvcc: {trace.fallback})' if trace.fallback else ''}"
    )


def _sentence(forecast: Forecast | None) -> str:
    if forecast is None:
        return ""
    return (
        f"{duration(forecast.time_us)} on {forecast.device.name} (model; 90 % interval "
        f"{interval(*forecast.interval_us)}), "
        f"{rate(forecast.gbps)} of useful bytes, {percent(forecast.peak_fraction)} of the DRAM's "
        f"peak; limiter: {forecast.first.limiter.name}"
    )


# -- the source ----------------------------------------------------------------------------


def _source(subject: Subject, marked: set[int]) -> tuple[tuple[str, ...], tuple[SourceRow, ...]]:
    """Return the names of the counts and a row for each line that became anything."""
    trace, program = subject.trace, subject.steps.program
    assert program is not None
    code: dict[int, list[tuple[int, str]]] = {}
    for pc, one in enumerate(program.instructions):
        if OPS[one.op].issued:
            code.setdefault(one.line, []).append((pc, text_of(one, program.immediates)))
    columns = _line_columns(trace, subject.forecast)
    texts = dedent("\n".join(line.text or " " for line in trace.lines)).split("\n")
    rows = [
        SourceRow(
            line.line,
            texts[place].rstrip() if line.line else OF_NO_LINE,
            tuple(cells[place] for _, cells in columns),
            tuple(code.get(line.line, ())),
            line.line in marked,
        )
        for place, line in enumerate(trace.lines)
    ]
    return tuple(name for name, _ in columns), tuple(rows)


def _line_columns(trace: Trace, forecast: Forecast | None) -> list[tuple[str, list[Cell]]]:
    lines, passing = trace.lines, passing_lanes(trace)
    columns = [
        ("executions", _heated([line.executions for line in lines])),
        ("predicated-on threads per warp", [_mean(line, passing) for line in lines]),
        ("divergent", _heated([line_counts.divergent(line) for line in lines])),
        ("wavefronts", _heated([line_counts.wavefronts(line) for line in lines])),
        ("excessive wavefronts", _heated([line_counts.conflicts(line) for line in lines])),
        ("sectors", _heated([line_counts.sectors(line) for line in lines])),
    ]
    if forecast is not None:
        shares = forecast.first.lines
        found = [shares.get(line.line, 0.0) for line in lines]
        most = max(found, default=0.0) or 1.0
        columns.insert(0, ("time", [Cell(percent(s), s, s / most) for s in found]))
    return columns


def _heated(counts: Sequence[int]) -> list[Cell]:
    most = max(counts, default=0) or 1
    return [Cell(f"{count:,}" if count else "", count, count / most) for count in counts]


def _mean(line: LineCounters, passing: Mapping[int, float]) -> Cell:
    mean = line_counts.lanes_on(line, passing)
    return Cell(f"{mean:.1f}" if line.counters.get("instructions") else "", mean)


# -- tables --------------------------------------------------------------------------------


def _text(text: str) -> Cell:
    return Cell(text, text)


def _number(value: int) -> Cell:
    return Cell(f"{value:,}", value)


def _totals(trace: Trace) -> Table:
    rows = []
    for name, value in trace.counters.items():
        spec = COUNTERS[name]
        cells = (
            _text(name),
            _number(value),
            _text(spec.unit),
            _text(spec.kind_with(trace.compiler)),
        )
        rows.append((*cells, _text(spec.ncu or "")))
    columns = (("counter", False), ("value", True), ("unit", False), ("kind", False))
    return Table("Totals of the launch", (*columns, ("in Nsight Compute", False)), tuple(rows))


_OF_WARPS = (
    "instructions", "source_divergent_branches", "divergent_branches",
    "shared_load_wavefronts", "shared_store_wavefronts",
    "shared_load_bank_conflicts", "shared_store_bank_conflicts",
)  # fmt: skip


def _warps(trace: Trace) -> Table:
    known = [name for name in _OF_WARPS if any(w.counters.get(name) for w in trace.warps)]
    rows = [
        (_number(warp.warp), *(_number(warp.counters.get(name, 0)) for name in known))
        for warp in trace.warps
    ]
    columns = (("warp", True), *((name.replace("_", " "), True) for name in known))
    return Table(f"Warps of block {trace.block_index}", columns, tuple(rows))


def _prediction_tables(forecast: Forecast | None) -> list[Table]:
    if forecast is None:
        return []
    first = forecast.first
    longest = first.lower_bounds[0].time_us or 1.0
    bounds = [
        (_text(b.name), Cell(duration(b.time_us), b.time_us, b.time_us / longest))
        for b in first.lower_bounds
    ]
    stalls = [
        (_text(name), Cell(percent(share), share, share))
        for name, share in sorted(first.stalls.items(), key=lambda item: -item[1])
    ]
    return [
        Table(
            "Lower bounds: the time with one limiter alone",
            (("limiter", False), ("time", True)),
            tuple(bounds),
        ),
        Table(
            "Stalls: warp cycles by reason",
            (("reason", False), ("share", True)),
            tuple(stalls),
        ),
        *_memory(first.traffic.fetches),
    ]


def _memory(fetches: Sequence[Fetch]) -> list[Table]:
    """Return where the bytes come from, by line and array; nothing where nothing is loaded."""
    rows = [tuple(map(Cell, one.cells, _values(one))) for one in line_fetches.by_line(fetches)]
    names = zip(line_fetches.TITLES, (True, False, True, True, True, True, True), strict=True)
    return [Table(f"Memory: {line_fetches.NOTE}", tuple(names), tuple(rows))] if rows else []


def _values(one: line_fetches.LineFetches) -> tuple[float | str, ...]:
    """Return a row's sort keys; data read once comes before all reuse distances."""
    reuse = -1.0 if one.reuse_distance_bytes is None else one.reuse_distance_bytes
    return one.line, one.array, one.loaded_bytes, one.l1, one.l2, one.dram, reuse


def comparison(subjects: Sequence[Subject]) -> Table:
    """Return kernels side by side: predicted time, and every counter that one of them has."""
    rows = []
    forecasts = [subject.forecast for subject in subjects]
    if all(forecasts):
        times = [forecast.time_us for forecast in forecasts if forecast is not None]
        texts = [duration(time) for time in times]
        rows.append((_text("predicted duration"), *_compared(times, texts)))
    for name in COUNTERS:
        counts = [subject.trace.counters.get(name, 0) for subject in subjects]
        if any(counts):
            rows.append((_text(name), *_compared(counts, [f"{count:,}" for count in counts])))
    columns = (("counter", False), *((subject.trace.kernel, True) for subject in subjects))
    return Table("Side by side", columns, tuple(rows))


def _compared(values: Sequence[float], texts: Sequence[str]) -> list[Cell]:
    """Return cells with a heat from the least value to the largest; 0 if all are equal."""
    least, span = min(values), max(values) - min(values)
    return [
        Cell(text, value, (value - least) / span if span else 0.0)
        for value, text in zip(values, texts, strict=True)
    ]
