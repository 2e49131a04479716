"""The report of a check: findings by line, with a picture of the first one."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from textwrap import wrap

from rich.text import Text

from gpusim.checking.coverage import lines_not_run
from gpusim.checking.explored import Explored
from gpusim.checking.findings import Finding, Findings, Place
from gpusim.checking.rules import ERROR, NOTE, SEVERITIES, WARNING
from gpusim.reports.columns import Column, Columns
from gpusim.reports.excerpts import SCREEN, height, others
from gpusim.reports.generators import made_by
from gpusim.reports.launches import description_lines
from gpusim.reports.layout import BAD, DIM, TITLE, command_lines, heading, linked, plural, size

MOST_SHOWN = 100
MOST_ROWS = 10  # of further findings on one screen
MOST_BESIDE = 6  # of findings after another report
ROWS_FRAME = 4  # lines around these rows
STYLES = {ERROR: BAD, WARNING: "bold yellow", NOTE: "bold cyan"}
IN_FULL = "  in full: --all"
SOME = "in this launch with these inputs"
NONE = "no hazards found in this launch with these inputs"


def check_report(findings: Findings, width: int, *, whole: bool = True) -> Iterator[Text]:
    """Yield the lines of the report, none wider than `width`.

    Unless `whole`, it fits on one screen: the first finding of each rule in full, and a row for
    each of the others.
    """
    before, after = [*_heading(findings, width)], [Text(""), *_coverage(findings, width)]
    yield from before
    if findings:
        room = sys.maxsize if whole else SCREEN - height([*before, *after], width)
        yield from _findings(findings[:MOST_SHOWN], findings.source_file, width, room)
    left = len(findings) - MOST_SHOWN
    if left > 0:
        yield Text(f"\nand {plural(left, 'more finding')} (--json shows all)", DIM)
    yield from after


def short_report(findings: Findings, width: int) -> Iterator[Text]:
    """Yield the lines that end another report on its screen: a row for each finding."""
    yield heading("Check").append("  ").append_text(_counts(findings))
    if findings:
        yield from _rows(findings[:MOST_BESIDE], "severity").lines(width)
        yield from others(len(findings) - MOST_BESIDE, "finding")
        yield Text(IN_FULL, DIM)
    yield from _coverage(findings, width)


def _coverage(findings: Findings, width: int) -> Iterator[Text]:
    """Yield the numbers of accesses that were compared."""
    words, style = (SOME, DIM) if findings else (NONE, "green")
    for part in wrap(f"{words}: {findings.coverage}", width):
        yield Text(part, style)


def _findings(shown: Sequence[Finding], source_file: str, width: int, room: int) -> Iterator[Text]:
    """Yield findings in a room: the first with its picture, others in full or as rows."""
    parts = [[Text(""), *finding_lines(one, source_file, width)] for one in shown]
    parts[0] += interval(shown[0], width)
    if height(chain(*parts), width) <= room:
        yield from chain(*parts)
        return
    room -= min(len(shown) - 1, MOST_ROWS) + ROWS_FRAME
    rest, said = [], set()
    for number, (one, part) in enumerate(zip(shown, parts, strict=True)):
        needed = height(part, width)
        if number and (one.rule in said or needed > room):
            rest.append(one)
            continue
        said.add(one.rule)
        room -= needed
        yield from part
    yield Text("")
    yield from _rows(rest[:MOST_ROWS]).lines(width)
    yield from others(len(rest) - MOST_ROWS, "finding")
    yield Text(IN_FULL, DIM)


def _rows(findings: Sequence[Finding], title: str = "further") -> Columns:
    """Return a row for each finding: its severity and rule, its lines, and its count."""
    made = Columns(
        Column(f"  {title}", "left"), Column("rule", "left"), Column("lines"), Column("times"),
        Column("", "left", "fold"),
    )  # fmt: skip
    for one in findings:
        made.row(
            (f"  {one.severity}", STYLES[one.severity]),
            one.rule,
            ", ".join(map(str, one.lines)),
            f"{one.count:,}",
            (one.about.title, DIM),
        )
    return made


def explored_report(explored: Explored, width: int, *, whole: bool = True) -> Iterator[Text]:
    """Yield the lines of a report on several launches: the smallest of each finding.

    Unless `whole`, the findings of launches after the first are a row each.
    """
    refused = len(explored.tried) - len(explored.ran)
    failed = sum(bool(one.findings) for one in explored.ran)
    count = len(explored.ran)
    said = f"{count:,} launch{'es' * (count > 1)}, seed {explored.seed}"
    if refused:
        said += f", {refused:,} more that cannot be launched"
    smallest = explored.smallest
    if not smallest:
        said = f"no hazards found in {said}"
    else:
        said = f"{said}: {failed:,} with findings; the smallest of each finding:"
    for words in (said, *lines_not_run(explored.lines_not_run)):
        for part in wrap(words, width):
            yield Text(part, TITLE if smallest else "green")
    for number, one in enumerate(smallest):
        assert one.findings is not None
        yield Text("")
        yield from command_lines(one.command, width, TITLE)
        if whole or number == 0:
            yield from check_report(one.findings, width, whole=whole)
        else:
            yield from _rows(one.findings[:MOST_ROWS]).lines(width)
    if not whole and len(smallest) > 1:
        yield Text(IN_FULL, DIM)


def _heading(findings: Findings, width: int) -> Iterator[Text]:
    text = Text(findings.kernel, TITLE)
    text.append(f"  grid {size(findings.grid)}, block {size(findings.block)}", "not bold")
    yield text
    code = made_by(findings.compiler, findings.lowering)
    yield Text(f"compute capability {findings.compute_capability}, {code}", DIM)
    yield from description_lines(findings.description, width)
    if findings.lenient:
        yield Text("--lenient: locks and flags acquire without a fence after them", DIM)
    if findings.order is not None:
        yield Text(f"--order {findings.order}: warps and blocks run in random order", DIM)
    yield _counts(findings)


def _counts(findings: Findings) -> Text:
    """Return the number of findings of each severity."""
    counts = Text()
    for severity in SEVERITIES:
        count = len(findings.of(severity))
        style = STYLES[severity] if count else DIM
        counts.append(", " if counts else "").append(plural(count, severity), style)
    return counts


def finding_lines(finding: Finding, source_file: str, width: int) -> Iterator[Text]:
    """Yield one finding: title, places, message and fix."""
    title = Text(f"{finding.severity}: ", STYLES[finding.severity])
    title.append(finding.about.title, TITLE)
    title.append(f"  [{finding.rule}]", DIM)
    if finding.count > 1:
        title.append(f"  {finding.count:,} times", DIM)
    yield title
    for line in finding.lines if source_file else ():
        text = linecache.getline(source_file, line).strip()
        place = Text(f"{Path(source_file).name}:{line}", linked(DIM, source_file))
        yield Text.assemble("  ", place, "  ", text)
        for part in wrap(finding.callers(line), width - 6):
            yield Text(f"      {part}", DIM)
    for part in wrap(finding.message, width - 4):
        yield Text(f"    {part}")
    for part in wrap(f"fix: {finding.fix}", width - 4):
        yield Text(f"    {part}", DIM)


def interval(finding: Finding, width: int) -> Iterator[Text]:
    """Yield a picture of two accesses in their barrier interval, with fences and flag between."""
    if len(finding.places) != 2 or not finding.hazard:
        return
    first, second = finding.places
    column = max(28, min(44, (width - 8) // 2))
    yield Text("")
    yield Text(f"      {_who(first):<{column}}{_who(second)}", DIM)
    yield _rule(_start(first), 2 * column)
    for place in finding.sequence or finding.places:
        indent = 0 if place.thread == first.thread else column
        yield Text(f"      {'':<{indent}}{_what(place, finding)}", "" if place.line else BAD)
    yield _rule("the two accesses are unordered: either may come first", 2 * column)


def _who(place: Place) -> str:
    assert place.thread is not None
    thread = place.thread
    return f"block {thread.block}, warp {thread.warp}, lane {thread.lane}"


def _start(place: Place) -> str:
    return f"the barrier in line {place.since}" if place.since else "start of the kernel"


def _what(place: Place, finding: Finding) -> str:
    """Return what a thread does: one that is none of the two is named."""
    if place in finding.places:
        return f"line {place.line}: {place.does} {finding.element}"
    who = "" if place.thread in [one.thread for one in finding.places] else f" ({_who(place)})"
    return (f"line {place.line}: " if place.line else "") + f"{place.does}{who}"


def _rule(text: str, width: int) -> Text:
    return Text(f"      {f' {text} ':-^{width}}", DIM)
