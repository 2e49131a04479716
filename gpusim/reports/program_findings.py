"""The findings of a whole program: of its launches, alike ones together, and of its host side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.text import Text

from gpusim.advice.records import NONE, Advice
from gpusim.checking.findings import Finding
from gpusim.checking.rules import ERROR
from gpusim.reports import checking, diagnostics
from gpusim.reports.advice import findings_lines
from gpusim.reports.diagnostics import FAULT, Diagnostic
from gpusim.reports.layout import DIM, TITLE
from gpusim.reports.program_records import ProgramLaunch, ProgramReport

_LONGEST_NAME = 48


@dataclass(frozen=True)
class Alike:
    """A finding of a check, how often it occurs, and the launches that have it (none: the host)."""

    finding: Finding
    source_file: str
    launches: Sequence[ProgramLaunch]
    count: int

    def lines(self, width: int) -> Iterator[Text]:
        """Yield it as text."""
        lines = checking.finding_lines(self.finding, self.source_file, width)
        yield next(lines)
        if self.launches:
            first, more = self.launches[0], len(self.launches) - 1
            others = f" and {more:,} more" if more else ""
            yield Text(f"  launch {first.number}{others} of {short(first.kernel)}", DIM)
        yield from lines


def of_checks(report: ProgramReport) -> Iterator[Alike]:
    """Yield the findings of checks, of launches first; those of a kernel at one place together."""
    held: dict[tuple[object, ...], list[tuple[Finding, str, ProgramLaunch]]] = {}
    for launch in report.launches:
        for one in launch.findings or ():
            key = launch.kernel, one.rule, one.lines, one.array
            file = launch.findings.source_file if launch.findings is not None else ""
            held.setdefault(key, []).append((one, file, launch))
    for found in held.values():
        first, file, _ = found[0]
        launches = [launch for _, _, launch in found]
        yield Alike(first, file, launches, sum(one.count for one, _, _ in found))
    for host in report.host:
        yield Alike(host.finding, host.source_file, (), host.finding.count)


def of_performance(report: ProgramReport) -> Iterator[tuple[ProgramLaunch, list[Advice]]]:
    """Yield the findings on performance of each kernel, with the first of its launches."""
    held: dict[str, tuple[ProgramLaunch, dict[tuple[str, int], Advice]]] = {}
    for launch in report.launches:
        for one in launch.advice:
            if one.kind != NONE:
                _, found = held.setdefault(launch.kernel, (launch, {}))
                found.setdefault((one.kind, one.line), one)
    for first, found in held.values():
        yield first, list(found.values())


def performance_lines(report: ProgramReport, width: int) -> Iterator[Text]:
    """Yield the findings on performance as text, kernel by kernel."""
    for launch, found in of_performance(report):
        title = Text(f"\n{short(launch.kernel)}", TITLE)
        yield title.append(f"  findings, from launch {launch.number} on", "not bold dim")
        yield from findings_lines(found, width)


def program_diagnostics(report: ProgramReport) -> Iterator[Diagnostic]:
    """Yield all findings, and the faults that ended launches."""
    for launch in report.launches:
        if launch.error:
            message = f"launch {launch.number} of {launch.kernel}: {launch.error}"
            yield Diagnostic(ERROR, FAULT, message, launch.source_file, launch.error_line)
    for alike in of_checks(report):
        made = diagnostics.of_finding(alike.finding, alike.source_file)
        yield replace(made, count=alike.count)
    for launch, found in of_performance(report):
        yield from diagnostics.of_advice(found, launch.source_file, launch.kernel)


def short(kernel: str) -> str:
    """Return a kernel's name in the width that a line has for it."""
    if len(kernel) <= _LONGEST_NAME:
        return kernel
    half = (_LONGEST_NAME - 3) // 2
    return f"{kernel[:half]}...{kernel[-half:]}"
