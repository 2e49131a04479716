"""Searches of a program over configurations, as Triton's autotuner makes: a table of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

from gpusim.reports.columns import Column, Columns
from gpusim.reports.layout import TITLE, plural
from gpusim.reports.program_findings import short
from gpusim.reports.program_records import ProgramLaunch

_TIE = 1.02  # closer times than this are a tie: configurations of one kernel share most errors
_REFUSED = "not simulated"


def searches(launches: Iterable[ProgramLaunch], width: int) -> Iterator[Text]:
    """Yield a title and a table for each search with times, the fastest configuration first."""
    found: dict[int, dict[str, ProgramLaunch]] = {}
    for one in launches:
        if one.tried is not None and (one.time_us is not None or one.error):
            found.setdefault(one.tried.search, {})[one.tried.configuration] = one
    for tried in found.values():
        yield from _table(tried, width)


def _table(tried: dict[str, ProgramLaunch], width: int) -> Iterator[Text]:
    timed = {name: one for name, one in tried.items() if one.time_us is not None}
    best = min((one.kernel_us for one in timed.values()), default=0.0)
    ties = sum(one.kernel_us <= _TIE * best for one in timed.values())
    kernel = short(next(iter(tried.values())).kernel)
    title = f"{kernel}: {plural(len(tried), 'configuration')} by predicted time"
    yield Text(title + (f", {ties} within 2 % of the fastest" if ties > 1 else ""), TITLE)
    made = Columns(
        Column("configuration", "left", "span", hang=2),
        Column("us"),
        Column("of the fastest"),
        Column("bound by", "left"),
    )
    for name, one in sorted(timed.items(), key=lambda item: item[1].kernel_us):
        ratio = one.kernel_us / best if best else 1.0
        made.row(name, f"{one.kernel_us:,.2f}", f"{ratio:.2f}", one.bound)
    for name in tried:
        if name not in timed:
            made.row(name, ".", ".", _REFUSED)
    yield from made.lines(width)
