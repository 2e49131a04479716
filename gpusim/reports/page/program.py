"""The page of a program: its timeline, its kernels and launches, and a section for each kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import join

from gpusim.host.files import write_whole
from gpusim.reports.layout import plural, size
from gpusim.reports.page import render
from gpusim.reports.page.sections import Subject
from gpusim.reports.page.tables import Cell, Table, number, text
from gpusim.reports.program_records import KernelSum, ProgramLaunch, ProgramReport, by_kernel
from gpusim.reports.program_timeline import HOST_NOTE, Strip, by_kind, span_us, strips
from gpusim.reports.programs import NUMBERS
from gpusim.reports.quantities import deviations, duration, percent, rate, volume

MOST_LAUNCHES = 1000  # in the table
MOST_SECTIONS = 12
WIDTH, ROW, LABEL = 1000, 26, 150  # of the picture, in its own units


@dataclass(frozen=True)
class Rectangle:
    """A bar of the picture, in the picture's units."""

    kind: int
    x: float
    y: int
    width: float
    text: str


@dataclass(frozen=True)
class Picture:
    """The timeline: names of streams with their heights, bars, kinds, and times below."""

    height: int
    names: tuple[tuple[int, str], ...]
    bars: tuple[Rectangle, ...]
    kinds: tuple[str, ...]
    marks: tuple[tuple[float, str], ...]


def write(report: ProgramReport, subjects: Mapping[str, Subject], path: Path) -> None:
    """Write the page of a program; `subjects` are launches of kernels, by the kernel's name."""
    render.check(path)
    write_whole(path, page(report, subjects))


def page(report: ProgramReport, subjects: Mapping[str, Subject]) -> str:
    """Return the page about a program."""
    sums = sorted(by_kernel(report.launches), key=lambda one: -(one.kernel_us or 0.0))
    shown = [one.kernel for one in sums if one.kernel in subjects]
    launches = report.launches[:MOST_LAUNCHES]
    return render.rendered(
        "program.html.jinja",
        report=report,
        title=title(report.command),
        about=_about(report),
        picture=_picture(report),
        tables=[_kinds(report)] if report.intervals else [],
        kernels=_kernels(sums, shown),
        launches=_launches(launches, report) if launches else None,
        left_out=len(report.launches) - len(launches),
        without_section=[one.kernel for one in sums if one.kernel not in subjects],
        sections=render.sections([subjects[name] for name in shown]),
        host_note=HOST_NOTE,
    )


def title(command: Sequence[str]) -> str:
    """Return a command line with the names of files alone."""
    return join([Path(word).name if "/" in word else word for word in command])


def _about(report: ProgramReport) -> str:
    ended = "" if not report.exit_code else f"; exit code {report.exit_code}"
    launches = plural(len(report.launches), "launch", "launches")
    kernels = plural(len({one.kernel for one in report.launches}), "kernel")
    return f"{launches} of {kernels} on {report.device}, simulated{ended}"


def _picture(report: ProgramReport) -> Picture | None:
    """Return the timeline as a picture; None without work."""
    whole = span_us(report.intervals)
    if not whole:
        return None
    rows: list[Strip] = strips(report.intervals)
    begin = min(one["begin_us"] for one in report.intervals)
    scale = (WIDTH - LABEL) / whole
    kinds = tuple(dict.fromkeys(bar.kind for row in rows for bar in row.bars))
    bars = [
        Rectangle(
            kinds.index(bar.kind),
            LABEL + (bar.begin_us - begin) * scale,
            number * ROW,
            max((bar.end_us - bar.begin_us) * scale, 0.5),
            bar.text,
        )
        for number, row in enumerate(rows)
        for bar in row.bars
    ]
    marks = [(LABEL + (WIDTH - LABEL) * k / 4, duration(whole * k / 4)) for k in range(5)]
    names = tuple((number * ROW, row.name) for number, row in enumerate(rows))
    return Picture(ROW * len(rows) + 20, names, tuple(bars), kinds, tuple(marks))


def _kinds(report: ProgramReport) -> Table:
    whole = span_us(report.intervals)
    rows = tuple(
        (
            text(one.kind),
            number(one.pieces),
            Cell(duration(one.time_us), one.time_us),
            Cell(percent(one.time_us / whole), one.time_us, one.time_us / whole),
            Cell(volume(one.bytes) if one.bytes else "", one.bytes),
            Cell(rate(one.gbps) if one.bytes else "", one.gbps),
        )
        for one in by_kind(report.intervals)
    )
    names = (("work", False), ("pieces", True), ("time", True), ("share", True), ("bytes", True))
    return Table(f"The GPU's {duration(whole)} by work", (*names, ("rate", True)), rows)


def _kernels(sums: Sequence[KernelSum], shown: Sequence[str]) -> Table | None:
    if not sums:
        return None
    names = [name for name in NUMBERS if any(one.counters.get(name) for one in sums)]
    links = {name: f"#kernel-{number}" for number, name in enumerate(shown)}
    whole = sum(one.kernel_us or 0.0 for one in sums) or 1.0
    rows = []
    for one in sums:
        time = one.kernel_us or 0.0
        cells = [
            Cell(one.kernel, one.kernel, link=links.get(one.kernel, "")),
            number(len(one.launches)),
            Cell(duration(time), time),
            Cell(deviations(time, *one.interval_us) if time else "", time),
            Cell(percent(time / whole), time, time / whole),
            *(number(one.counters.get(name, 0)) for name in names),
        ]
        rows.append((*cells, number(one.findings)))
    columns = (
        ("kernel", False), ("launches", True), ("time", True), ("90 %", True), ("share", True),
    )  # fmt: skip
    counted = tuple((NUMBERS[name], True) for name in names)
    return Table(
        "Kernels; times without launch overhead",
        (*columns, *counted, ("findings", True)),
        tuple(rows),
    )


def _launches(launches: Sequence[ProgramLaunch], report: ProgramReport) -> Table:
    begins = {
        (one["process"], one["number"]): one["begin_us"] + one["overhead_us"]
        for one in report.intervals
        if one["kind"] == "kernel"
    }
    longest = max((one.kernel_us for one in launches), default=0.0) or 1.0
    rows = []
    for one in launches:
        begin, time = begins.get((one.process, one.number)), one.kernel_us
        is_timed = one.time_us is not None
        rows.append(
            (
                number(one.number),
                text(one.kernel),
                text(size(one.grid)),
                text(size(one.block)),
                number(one.stream),
                Cell(duration(begin) if begin is not None else "", begin or 0.0),
                Cell(duration(time) if is_timed else "", time, time / longest),
                text(one.error or one.bound),
            )
        )
    columns = (
        ("launch", True), ("kernel", False), ("grid", False), ("block", False), ("stream", True),
        ("begin", True), ("time", True), ("limiter", False),
    )  # fmt: skip
    return Table("Launches", columns, tuple(rows))
