"""Launches and their limits: a report, plain data, and a table for a job's summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from rich.text import Text

from gpusim.checking.findings import Finding, Findings
from gpusim.checking.rules import RULES
from gpusim.host.files import printable
from gpusim.limits.verdicts import OF_BASELINE, Held, Verdict, number
from gpusim.reports.checking import finding_lines
from gpusim.reports.diagnostics import Diagnostic, of_finding, of_verdict
from gpusim.reports.layout import BAD, DIM, TITLE, plural

GOOD = "bold green"
MOST_LINES = 3  # of a limit


@dataclass(frozen=True)
class JudgedLaunch:
    """A launch of a project with its verdict, and the findings of its check, if it was checked."""

    name: str
    kernel: str
    device: str
    generator: str
    source_file: str
    verdict: Verdict
    findings: Findings | None = None

    @property
    def exceeding(self) -> list[Finding]:
        """The findings of the check whose severity or rule exceeds its limit."""
        measures = {one.measure for one in self.verdict.exceeded}
        return [
            one
            for one in self.findings or ()
            if one.rule in measures or f"{one.severity}s" in measures
        ]

    def diagnostics(self) -> Iterator[Diagnostic]:
        """Yield the findings that exceed a limit, then all other limits that are exceeded."""
        found = self.exceeding
        for one in found:
            yield of_finding(one, self.source_file)
        said = {one.rule for one in found} | {f"{one.severity}s" for one in found}
        yield from of_verdict(self.name, self.verdict, self.source_file, said)

    def to_dict(self) -> dict[str, Any]:
        """Return it, ready for JSON."""
        return {
            "name": self.name,
            "kernel": self.kernel,
            "device": self.device,
            "generator": self.generator,
            "within_limits": self.verdict.is_within,
            "fault": self.verdict.fault or None,
            "limits": [one.to_dict() for one in self.verdict.limits],
            "check": None if self.findings is None else self.findings.to_dict(),
        }


def limits_document(judged: Sequence[JudgedLaunch]) -> dict[str, Any]:
    """Return all launches as plain data."""
    return {
        "within_limits": all(one.verdict.is_within for one in judged),
        "launches": [one.to_dict() for one in judged],
    }


def limits_report(judged: Sequence[JudgedLaunch], width: int) -> Iterator[Text]:
    """Yield the lines of the report, none wider than `width`."""
    for one in judged:
        yield from _launch_lines(one, width)
    beyond = [one for one in judged if not one.verdict.is_within]
    text = f"\n{plural(len(judged), 'launch').replace('launchs', 'launches')}, "
    kept = "all within their limits" if not beyond else f"{len(beyond)} beyond"
    yield Text(f"{text}{kept}", BAD if beyond else GOOD)


def _launch_lines(one: JudgedLaunch, width: int) -> Iterator[Text]:
    is_within = one.verdict.is_within
    title = Text("within  " if is_within else "beyond  ", GOOD if is_within else BAD)
    title.append(one.name, TITLE)
    kernel = f"{one.kernel}, " if one.kernel != one.name else ""
    made_by = f", {one.generator}" if one.generator else ""
    title.append(f"  {kernel}{one.device}{made_by}", DIM)
    yield title
    kept = [
        held for held in one.verdict.limits if not held.is_exceeded and held.origin != OF_BASELINE
    ]
    said = [f"{held.measure} {number(held.found)} of {number(held.allowed)}" for held in kept]
    of_baseline = sum(held.origin == OF_BASELINE for held in one.verdict.limits)
    said += [f"{plural(of_baseline, 'measure')} checked against the baseline"] * bool(of_baseline)
    for part in wrap(", ".join(said), width - 8):
        yield Text(f"        {part}", DIM)
    for held in one.verdict.exceeded:
        yield from _held_lines(held, width)
    if one.verdict.fault:
        for part in wrap(one.verdict.fault, width - 8):
            yield Text(f"        {part}", BAD)
    for finding in one.exceeding:
        yield from finding_lines(finding, one.source_file, width)


def _held_lines(held: Held, width: int) -> Iterator[Text]:
    yield Text(f"        {held}", BAD)
    if held.measure in ("errors", "warnings", *RULES):  # shown as findings
        return
    for share in held.shares[:MOST_LINES]:
        is_named = not share.line or share.text.startswith("line ")
        where = "" if is_named else f"line {share.line}: "
        for number_, part in enumerate(wrap(f"{where}{share.text}", width - 12)):
            yield Text(f"          {'  ' if number_ else ''}{part}")
    left = len(held.shares) - MOST_LINES
    if left > 0:
        yield Text(f"          and {plural(left, 'line')} more", DIM)


def limits_markdown(judged: Sequence[JudgedLaunch]) -> str:
    """Return a table of the launches in Markdown, for the summary of a job."""
    rows = ["| launch | kernel | device | verdict |", "| --- | --- | --- | --- |"]
    for one in judged:
        beyond = [str(held) for held in one.verdict.exceeded]
        beyond += [one.verdict.fault] if one.verdict.fault else []
        said = "within its limits" if one.verdict.is_within else "; ".join(beyond)
        cells = (one.name, one.kernel, one.device, said)
        shown = (printable(" ".join(cell.split())).replace("|", "&#124;") for cell in cells)
        rows.append(f"| {' | '.join(shown)} |")
    return "\n".join(rows) + "\n"
