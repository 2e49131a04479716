"""Findings as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from rich.text import Text

from gpusim.advice.findings import CERTAIN
from gpusim.advice.records import LIMIT, NONE, Advice
from gpusim.advice.registry import title
from gpusim.reports.columns import Column, Columns
from gpusim.reports.layout import BAD, DIM

SENTENCES = 3


def findings_lines(
    found: Sequence[Advice], width: int, sentences: int = SENTENCES, *, whole: bool = False
) -> Iterator[Text]:
    """Yield the limit, the first findings and each kind of counted events as sentences.

    Other findings are rows of a table, unless the report is `whole`.
    """
    rest: list[Advice] = []
    said: set[str] = set()
    has_limit = bool(found) and found[0].kind == LIMIT
    for place, one in enumerate(found, -has_limit):
        if whole or place < sentences or (one.kind in CERTAIN and one.kind not in said):
            said.add(one.kind)
            yield from finding_lines(one, width)
        else:
            rest.append(one)
    if rest:
        yield from _table(rest).lines(width)
        yield Text("  in full: --all", DIM)


def finding_lines(finding: Advice, width: int) -> list[Text]:
    """Return a finding as an indented sentence, after its kind unless it is the limit."""
    kind = "" if finding.kind in (NONE, LIMIT) else f"{finding.kind}: "
    parts = wrap(kind + finding.sentence, width - 4)
    lines = [Text(("  " if i == 0 else "    ") + part) for i, part in enumerate(parts)]
    lines[0].stylize(BAD, 2, 2 + len(kind))
    return lines


def _table(found: Sequence[Advice]) -> Columns:
    """Return a row for each finding: its kind, line, gain, and what the kind is about."""
    made = Columns(
        Column("  further", "left"), Column("line"), Column("gain"),
        Column("", "left", "fold"),
    )  # fmt: skip
    for one in found:
        made.row((f"  {one.kind}", BAD), str(one.line or ""), one.times, (title(one.kind), DIM))
    return made
