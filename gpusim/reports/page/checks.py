"""The page of a check, of a program or a kernel: findings by file, with lines, threads, fix."""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from gpusim.checking.findings import Finding, Findings, Place, place_of
from gpusim.checking.rules import SEVERITIES
from gpusim.host.files import write_whole
from gpusim.isa.lines import in_words
from gpusim.reports.layout import plural
from gpusim.reports.page import render
from gpusim.reports.page.program import title
from gpusim.reports.page.tables import Table, number, text
from gpusim.reports.program_findings import Alike, of_checks
from gpusim.reports.program_records import ProgramReport, by_kernel

MOST_FINDINGS = 500
AROUND = 2  # lines before and after one of a finding
_OF_THE_HOST = "host"


@dataclass(frozen=True)
class Row:
    """A source line; whether a finding names it."""

    number: int
    text: str
    is_marked: bool


@dataclass(frozen=True)
class Entry:
    """A finding as the page shows it."""

    severity: str
    title: str
    rule: str
    message: str
    fix: str
    launches: str
    places: Sequence[str]
    excerpts: Sequence[Sequence[Row]]


@dataclass(frozen=True)
class File:
    """The findings in a file, errors first; those of the host without a file."""

    name: str
    entries: Sequence[Entry]


def write(report: ProgramReport, path: Path) -> None:
    """Write the page of a check of a program."""
    render.check(path)
    write_whole(path, page(report))


def write_findings(checks: Sequence[tuple[str, Findings]], about: str, path: Path) -> None:
    """Write the page of checks of a kernel."""
    render.check(path)
    write_whole(path, findings_page(checks, about))


def findings_page(checks: Sequence[tuple[str, Findings]], about: str) -> str:
    """Return the page about checks of a kernel, each with its command line, "" for one alone."""
    entries = []
    for command, one in checks:
        for finding in one:
            times = f"{finding.count:,} times" if finding.count > 1 else ""
            said = ", ".join(filter(None, (command, times)))
            entry = _entry(Alike(finding, one.source_file, (), finding.count), said)
            entries.append((Path(one.source_file).name, entry))
    counts = _counts([finding for _, one in checks for finding in one])
    first = checks[0][1]
    return _rendered(first.kernel, f"{counts}; {about}", entries, judged=f"{first.coverage}.")


def page(report: ProgramReport) -> str:
    """Return the page about a check of a program."""
    found = sorted(of_checks(report), key=_order)
    kernels = by_kernel(report.launches)
    rows = tuple(
        (text(one.kernel), number(len(one.launches)), number(one.findings)) for one in kernels
    )
    columns = (("kernel", False), ("launches", True), ("findings", True))
    checked = sum(one.findings is not None for one in report.launches)
    left = len(report.launches) - checked
    unjudged = f"{plural(left, 'launch', 'launches')} only ran." if left else "all were."
    return _rendered(
        title(report.command),
        _about(report, found),
        [(_name(one), _entry(one, _launches(one))) for one in found],
        judged=f"Launches were checked with these inputs only; {unjudged}",
        faults=[f"launch {o.number} of {o.kernel}: {o.error}" for o in report.launches if o.error],
        kernels=Table("Kernels", columns, rows) if rows else None,
    )


def _rendered(
    title: str,
    about: str,
    entries: Sequence[tuple[str, Entry]],
    *,
    judged: str,
    faults: Sequence[str] = (),
    kernels: Table | None = None,
) -> str:
    """Return a page of findings, each with its file's name."""
    return render.rendered(
        "checks.html.jinja",
        title=title,
        about=about,
        faults=faults,
        files=[
            File(name, [entry for _, entry in each])
            for name, each in groupby(entries[:MOST_FINDINGS], key=lambda pair: pair[0])
        ],
        left_out=max(0, len(entries) - MOST_FINDINGS),
        kernels=kernels,
        judged=judged,
    )


def _order(one: Alike) -> tuple[object, ...]:
    return (not one.launches, one.source_file, *place_of(one.finding))


def _name(one: Alike) -> str:
    if not one.launches:
        return _OF_THE_HOST
    return Path(one.source_file).name if one.source_file else "without lines"


def _about(report: ProgramReport, found: Sequence[Alike]) -> str:
    counts = _counts([one.finding for one in found])
    launches = plural(len(report.launches), "launch", "launches")
    ended = f"; exit code {report.exit_code}" if report.exit_code else ""
    return f"{counts} in {launches} on {report.device}, simulated{ended}"


def _counts(found: Sequence[Finding]) -> str:
    each = (sum(one.severity == severity for one in found) for severity in SEVERITIES)
    return ", ".join(map(plural, each, SEVERITIES))


def _entry(one: Alike, launches: str) -> Entry:
    finding = one.finding
    return Entry(
        severity=finding.severity,
        title=finding.about.title,
        rule=finding.rule,
        message=finding.message,
        fix=finding.fix,
        launches=launches,
        places=[
            _said(each, finding.element) for each in finding.places if finding.hazard or each.calls
        ],
        excerpts=list(_excerpts(one.source_file, finding.lines)),
    )


def _launches(one: Alike) -> str:
    if not one.launches:
        return ""
    first, more = one.launches[0], len(one.launches) - 1
    others = f" and {plural(more, 'more launch', 'more launches')}" if more else ""
    times = f", {one.count:,} times" if one.count > 1 else ""
    return f"launch {first.number}{others} of {first.kernel}{times}"


def _said(place: Place, element: str) -> str:
    who = "a thread" if place.thread is None else str(place.thread)
    return f"{in_words(place.line)}: {who} {place.does} {element}".rstrip()


def _excerpts(file: str, lines: Sequence[int]) -> Iterator[list[Row]]:
    """Yield the lines around those of a finding, near ones together."""
    wanted = sorted({n for line in lines if line for n in range(line - AROUND, line + AROUND + 1)})
    rows = [Row(n, linecache.getline(file, n).rstrip("\n"), n in lines) for n in wanted if n > 0]
    known = [row for row in rows if row.text or row.is_marked] if file else []
    for _, run in groupby(enumerate(known), key=lambda pair: pair[1].number - pair[0]):
        yield [row for _, row in run]
