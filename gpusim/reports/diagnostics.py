"""Findings as diagnostics: one line each, in the formats that editors and code hosts read.

`gcc` is FILE:LINE: LEVEL: MESSAGE [RULE], https://www.gnu.org/prep/standards/html_node/Errors.html;
`github` are workflow commands, https://docs.github.com/actions/reference/workflow-commands-for-github-actions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpusim.advice.records import LIMIT, NONE, Advice
from gpusim.checking.findings import Finding, Findings, Place
from gpusim.checking.rules import ERROR, NOTE, WARNING
from gpusim.limits.verdicts import Verdict

EXCEEDED, FAULT = "limit-exceeded", "kernel-fault"
# https://docs.github.com/actions/reference/workflows-and-actions/variables
CHECKOUT = "GITHUB_WORKSPACE"
_GITHUB = {ERROR: "error", WARNING: "warning", NOTE: "notice"}


@dataclass(frozen=True)
class Related:
    """Another place of a diagnostic: its line, and the thread and access there."""

    line: int
    text: str


@dataclass(frozen=True)
class Diagnostic:
    """A finding: level (error, warning or note), rule, message, file, and line (0 for none).

    `place` says who does it there, `related` are the places before and the calls of device
    functions, `count` how often it occurs.
    """

    level: str
    rule: str
    message: str
    file: str
    line: int
    fix: str = ""
    place: str = ""
    related: tuple[Related, ...] = ()
    count: int = 1


def of_findings(findings: Findings) -> Iterator[Diagnostic]:
    """Yield the diagnostics of a check; the last access is the place of each."""
    for one in findings:
        yield of_finding(one, findings.source_file)


def of_finding(one: Finding, source_file: str) -> Diagnostic:
    """Return the diagnostic of one finding of a check."""
    places = [Related(place.line, _who(place)) for place in one.places]
    last = places.pop() if places else Related(0, "")
    calls = dict.fromkeys(call for place in one.places for call in place.calls)
    places += [Related(call.line, f"calls {call.function or 'the function'}") for call in calls]
    return Diagnostic(
        one.severity, one.rule, one.message, source_file, last.line, one.fix, last.text,
        tuple(places), one.count,
    )  # fmt: skip


def of_advice(found: Iterable[Advice], source_file: str, kernel: str = "") -> Iterator[Diagnostic]:
    """Yield the diagnostics of findings on performance, with a kernel's name where they need it."""
    for one in found:
        if one.kind != NONE:
            message = one.sentence.removeprefix(f"line {one.line}: " if source_file else "")
            message = f"{kernel}: {message}" if kernel and not one.line else message
            level = NOTE if one.kind == LIMIT else WARNING
            others = tuple(Related(line, "likewise") for line in one.places if line != one.line)
            yield Diagnostic(
                level,
                one.kind,
                message,
                source_file,
                one.line,
                related=others,
                count=1 + len(others),
            )


def of_verdict(
    name: str, verdict: Verdict, source_file: str, said: Collection[str]
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each limit that a launch exceeds, at the largest share's line.

    Measures in `said` have diagnostics already.
    """
    for one in verdict.exceeded:
        if one.measure in said:
            continue
        line = one.shares[0].line if one.shares else 0
        yield Diagnostic(ERROR, EXCEEDED, f"{name}: {one}", source_file, line)
    if verdict.fault:
        message = f"{name}: {verdict.fault}"
        yield Diagnostic(ERROR, FAULT, message, source_file, verdict.fault_line)


def gcc(found: Iterable[Diagnostic]) -> Iterator[str]:
    """Yield the lines of diagnostics as compilers write them."""
    for one in found:
        place = f"{shown_file(one.file)}:{max(one.line, 1)}" if one.file else "gpusim"
        for other in one.related:
            yield f"{place.rpartition(':')[0]}:{max(other.line, 1)}: note: {other.text}"
        fix = f"; fix: {one.fix}" if one.fix else ""
        yield f"{place}: {one.level}: {_line(one.message)}{fix} [{one.rule}]"


def github(found: Iterable[Diagnostic]) -> Iterator[str]:
    """Yield the workflow commands that annotate the lines of a pull request."""
    for one in found:
        fix = f"\nFix: {one.fix}" if one.fix else ""
        values = {"title": f"gpusim: {one.rule}"}
        if one.file:
            values = {"file": file_of_checkout(one.file), "line": str(max(one.line, 1))} | values
        settings = ",".join(f"{key}={_escaped(value, ',:')}" for key, value in values.items())
        yield f"::{_GITHUB[one.level]} {settings}::{_escaped(one.message + fix)}"


FORMATS: Mapping[str, Callable[[Iterable[Diagnostic]], Iterator[str]]] = {
    "github": github,
    "gcc": gcc,
}


def shown_file(file: str) -> str:
    """Return a file's name from the current directory, if it lies below."""
    path = Path(file).resolve()
    return path.relative_to(Path.cwd()).as_posix() if path.is_relative_to(Path.cwd()) else str(path)


def file_of_checkout(file: str) -> str:
    """Return a file's name from the top of the checkout in a job on GitHub; else `shown_file`."""
    path, top = Path(file).resolve(), os.environ.get(CHECKOUT)
    if top and path.is_relative_to(Path(top).resolve()):
        return path.relative_to(Path(top).resolve()).as_posix()
    return shown_file(file)


def _who(place: Place) -> str:
    return f"{place.thread} {place.does}" if place.thread is not None else place.does


def _line(text: str) -> str:
    return " ".join(text.split())


def _escaped(text: str, also: str = "") -> str:
    """Return text with the letters that end a workflow command's value as %XX."""
    for letter in "%\r\n" + also:
        text = text.replace(letter, f"%{ord(letter):02X}")
    return text
