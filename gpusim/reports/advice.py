"""Findings as lines of text."""

from __future__ import annotations

from textwrap import wrap

from rich.text import Text

from gpusim.advice.records import NONE, Advice
from gpusim.reports.layout import BAD, DIM, plural


def finding_lines(finding: Advice, width: int) -> list[Text]:
    """Return a finding as a sentence with its kind before it, indented."""
    kind = "" if finding.kind == NONE else f"{finding.kind}: "
    parts = wrap(kind + finding.sentence, width - 4)
    lines = [Text(("  " if i == 0 else "    ") + part) for i, part in enumerate(parts)]
    lines[0].stylize(BAD, 2, 2 + len(kind))
    return lines


def further_findings(count: int) -> list[Text]:
    """Return a line with the number of findings that are not shown, if any, and where all are."""
    if count <= 0:
        return []
    return [Text(f"  {plural(count, 'further finding')}: see --json, or the page of report.", DIM)]
