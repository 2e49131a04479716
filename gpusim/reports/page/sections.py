"""A kernel's section of a page: rows and texts, from a trace, its steps and a prediction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import dedent
from typing import Any

from gpusim.advice.decisions import passing_lanes
from gpusim.advice.records import NONE, Advice
from gpusim.isa.lines import call_path, calls_of
from gpusim.isa.ops import OPS, Program, text_of
from gpusim.launch.languages import CUDA_CPP
from gpusim.prediction.records import Prediction
from gpusim.prediction.sweeps.jobs import Forecast
from gpusim.prediction.traffic import Fetch
from gpusim.reports import line_counts, line_fetches
from gpusim.reports.columns import TAB
from gpusim.reports.generators import made_by
from gpusim.reports.launches import said_of
from gpusim.reports.layout import NO_LINE, plural, size
from gpusim.reports.page.hierarchy import Level, levels
from gpusim.reports.page.spans import spans_document
from gpusim.reports.page.stepper import stepper_document
from gpusim.reports.page.strip import Fact, strip
from gpusim.reports.page.tables import (
    Cell,
    CountColumns,
    Counts,
    Table,
    counted,
    number,
    shares,
    text,
)
from gpusim.reports.quantities import duration, percent
from gpusim.tracing.block_steps import BlockSteps
from gpusim.tracing.counters import COUNTERS
from gpusim.tracing.records import LineCounters, Trace


@dataclass(frozen=True)
class Remark:
    """A sentence about a line, and others: kind, severity ("note" or worse), gain of its cure."""

    kind: str
    line: int
    message: str
    severity: str = "note"
    gain: str = ""
    others: tuple[int, ...] = ()


@dataclass(frozen=True)
class Subject:
    """The kernel of a section; `remarks` are from analyses other than the trace.

    `label` tells it from others of the page, where the kernel's name does not. `without_time` is
    the reason for a missing prediction.
    """

    trace: Trace
    steps: BlockSteps
    forecast: Forecast | None = None
    remarks: tuple[Remark, ...] = ()
    label: str = ""
    without_time: str = ""


@dataclass(frozen=True)
class SourceRow:
    """A source line: its number and text, its part of the time and its counts.

    `is_marked` where a finding names it. `callers` are the calls of its device function, in words.
    """

    number: int
    text: str
    time: Cell | None
    cells: tuple[Cell, ...]
    is_marked: bool
    callers: str = ""


@dataclass(frozen=True)
class Section:
    """All that the page's template needs about one kernel."""

    subject: Subject
    name: str
    launch: str
    facts: tuple[Fact, ...]
    remarks: tuple[Remark, ...]
    language: str
    source_columns: CountColumns
    source: tuple[SourceRow, ...]
    code_columns: CountColumns
    code: tuple[CodeRow, ...]
    sizes: str
    levels: tuple[Level, ...]
    beside: tuple[Level, ...]
    fetches: tuple[Table, ...]
    tables: tuple[Table, ...]
    stepper: dict[str, Any]
    timeline: dict[str, Any] | None


def section(subject: Subject, characters: int, spans: int) -> Section:
    """Return a kernel's section, steps and timeline, each of limited length."""
    trace, forecast, program = subject.trace, subject.forecast, subject.steps.program
    assert program is not None
    first = None if forecast is None else forecast.first
    remarks = (*subject.remarks, *(_remark(one) for one in trace.findings if one.kind != NONE))
    marked = {line for remark in remarks for line in (remark.line, *remark.others)}
    source_columns, source = _source(trace, forecast, marked)
    code_columns, code = code_rows(program, trace, first)
    main, beside = levels(trace, None if first is None else first.traffic)
    return Section(
        subject=subject,
        name=subject.label or trace.kernel,
        launch=_launch(trace, forecast),
        facts=strip(trace, program, forecast),
        remarks=remarks,
        language=CUDA_CPP if trace.prepared is None else trace.prepared.language,
        source_columns=source_columns,
        source=source,
        code_columns=code_columns,
        code=code,
        sizes=_sizes_of_levels(trace, forecast),
        levels=main,
        beside=beside,
        fetches=tuple(_memory(first.traffic.fetches)) if first is not None else (),
        tables=(*_prediction_tables(forecast), _totals(trace), _warps(trace)),
        stepper=stepper_document(subject.steps, trace, characters),
        timeline=None if first is None else spans_document(first, spans),
    )


def _launch(trace: Trace, forecast: Forecast | None) -> str:
    launch, about = trace.launch, trace.description
    threads = plural(launch.blocks * launch.threads_per_block, "thread")
    return (
        f"grid {size(launch.grid)}, block {size(launch.block)}: {threads}; "
        f"compute capability {trace.cc}, {made_by(trace.compiler, trace.lowering)}"
        f"{f' (not nvcc: {trace.fallback})' if trace.fallback else ''}"
        f"{'' if about is None or not said_of(about) else f'; {said_of(about)}'}"
        f"{f'; times: n {timed:,}' if (timed := _size_of_times(trace, forecast)) else ''}"
    )


def _size_of_times(trace: Trace, forecast: Forecast | None) -> int | None:
    """Return the n of predicted times where it is not that of the counters."""
    if forecast is None or trace.description is None or forecast.job.description is None:
        return None
    traced, timed = trace.description.n, forecast.job.description.n
    return None if traced == timed or timed is None else int(timed.value)


def _sizes_of_levels(trace: Trace, forecast: Forecast | None) -> str:
    """Return the n of each part of the memory hierarchy where counters have another n, else ""."""
    timed = _size_of_times(trace, forecast)
    if timed is None or trace.description is None or trace.description.n is None:
        return ""
    counted = int(trace.description.n.value)
    return (
        f"Counted for n {counted:,}: accesses of L1 and of shared memory. "
        f"Predicted for n {timed:,}: hit rates, L2 and DRAM."
    )


def _remark(advice: Advice) -> Remark:
    """Return a finding of the trace as a remark, its gain apart."""
    gain = advice.gain
    worth = "" if gain is None else f"fixing it: {duration(gain.time_us)} ({advice.times} faster)"
    return Remark(advice.kind, advice.line, advice.message, gain=worth, others=advice.places)


# -- the source ----------------------------------------------------------------------------


def _source(
    trace: Trace, forecast: Forecast | None, marked: set[int]
) -> tuple[CountColumns, tuple[SourceRow, ...]]:
    """Return the columns of counts and a row for each line that became anything."""
    columns = _line_columns(trace)
    found = {} if forecast is None else forecast.first.lines
    times = shares([found.get(line.line, 0.0) for line in trace.lines])
    texts = dedent("\n".join(line.text or " " for line in trace.lines)).expandtabs(TAB).split("\n")
    rows = [
        SourceRow(
            line.line,
            texts[place].rstrip() if line.line else NO_LINE,
            None if forecast is None else times[place],
            columns.row(place),
            line.line in marked,
            line.callers,
        )
        for place, line in enumerate(trace.lines)
    ]
    return columns, tuple(rows)


def _line_columns(trace: Trace) -> CountColumns:
    """Return the counts that a line of the kernel has."""
    lines, lanes_passing = trace.lines, passing_lanes(trace)

    def column(count: Callable[[LineCounters], int]) -> tuple[Cell, ...]:
        return counted([count(line) for line in lines])

    on = tuple(_mean(line_counts.lanes_on(line) or None) for line in lines)
    passing = tuple(_mean(lanes_passing.get(line.line)) for line in lines)
    columns = [
        Counts("executions", column(lambda line: line.executions), is_minor=True, is_of_all=True),
        Counts("threads on", on, is_minor=True, is_of_all=True),
        Counts("threads passing", passing, is_minor=True),
        Counts("divergent", column(line_counts.divergent)),
        Counts("wavefronts", column(line_counts.wavefronts), is_minor=True),
        Counts("excessive", column(line_counts.conflicts)),
        Counts("sectors", column(line_counts.sectors)),
    ]
    return CountColumns.of(columns, "each line")


def _mean(mean: float | None) -> Cell:
    return Cell("" if mean is None else f"{mean:.1f}", mean or 0.0)


# -- tables --------------------------------------------------------------------------------


def _totals(trace: Trace) -> Table:
    rows = []
    for name, value in trace.counters.items():
        spec = COUNTERS[name]
        cells = (text(name), number(value), text(spec.unit), text(spec.kind_with(trace.compiler)))
        rows.append((*cells, text(spec.ncu or "")))
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
        (number(warp.warp), *(number(warp.counters.get(name, 0)) for name in known))
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
        (text(b.name), Cell(duration(b.time_us), b.time_us, b.time_us / longest))
        for b in first.lower_bounds
    ]
    stalls = [
        (text(name), Cell(percent(share), share, share))
        for name, share in sorted(first.stalls.items(), key=lambda item: -item[1])
    ]
    return [
        Table(
            "Lower bounds: the duration with one limiter alone",
            (("limiter", False), ("time", True)),
            tuple(bounds),
        ),
        Table("Stalls: warp cycles by reason", (("reason", False), ("share", True)), tuple(stalls)),
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


@dataclass(frozen=True)
class CodeRow:
    """An instruction: its counts as cells, its time, the largest reason of its cycles.

    `target` is the instruction that a branch leads to, -1 for any other; `callers` are the calls
    by which it was inlined, in words.
    """

    pc: int
    line: int
    text: str
    target: int
    time: Cell
    stalls: str
    cells: tuple[Cell, ...]
    callers: str = ""


def code_rows(
    program: Program, trace: Trace, prediction: Prediction | None
) -> tuple[CountColumns, tuple[CodeRow, ...]]:
    """Return the columns of counts and a row for each instruction of the GPU."""
    pcs = [pc for pc, one in enumerate(program.instructions) if OPS[one.op].issued]
    issued = {pc: place for place, pc in enumerate(pcs)}
    columns = _columns(trace, pcs)
    spent = {} if prediction is None else prediction.stalls_by_pc
    times = shares([sum(spent.get(pc, {}).values()) for pc in pcs])
    rows = []
    for place, pc in enumerate(pcs):
        one = program.instructions[pc]
        target = _behind(issued, one.target, len(program.instructions))
        rows.append(
            CodeRow(
                pc,
                one.line,
                text_of(one, program.immediates),
                target if OPS[one.op].is_branch else -1,
                times[place],
                _most(spent.get(pc, {})),
                columns.row(place),
                call_path(calls_of(one.line)),
            )
        )
    return columns, tuple(rows)


def _behind(issued: dict[int, int], pc: int, end: int) -> int:
    """Return the first issued instruction at or after a pc, -1 where none is."""
    return next((at for at in range(pc, end) if at in issued), -1) if pc >= 0 else -1


def _columns(trace: Trace, pcs: Sequence[int]) -> CountColumns:
    def sums(*names: str) -> list[int]:
        known = [trace.blocks.by_pc(name) for name in names if name in trace.counters]
        return [sum(int(counts[pc]) for counts in known) for pc in pcs]

    executed, on = sums("instructions"), sums("thread_instructions_guard_on")
    means = [lanes / count if count else 0.0 for lanes, count in zip(on, executed, strict=True)]
    on_cells = tuple(Cell(f"{mean:.1f}" if mean else "", mean) for mean in means)
    wavefronts = sums("shared_load_wavefronts", "shared_store_wavefronts")
    conflicts = sums("shared_load_bank_conflicts", "shared_store_bank_conflicts")
    sectors = sums("global_load_sectors", "global_store_sectors")
    columns = [
        Counts("executions", counted(executed), is_minor=True, is_of_all=True),
        Counts("threads on", on_cells, is_minor=True, is_of_all=True),
        Counts("wavefronts", counted(wavefronts), is_minor=True),
        Counts("excessive", counted(conflicts)),
        Counts("sectors", counted(sectors)),
    ]
    return CountColumns.of(columns, "each instruction")


def _most(stalls: Mapping[str, float]) -> str:
    """Return the largest reason of an instruction's warp cycles, with its part of them."""
    whole = sum(stalls.values())
    if not whole:
        return ""
    name = max(stalls, key=lambda reason: stalls[reason])
    return f"{name} {percent(stalls[name] / whole, 0)}"
