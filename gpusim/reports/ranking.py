"""Kernels in order of their time, with the step from each to the next and its reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Any

from rich.text import Text

from gpusim.catalogue import Entry
from gpusim.prediction.rankings import Ranking
from gpusim.prediction.sweeps.jobs import Forecast
from gpusim.reports.certainty import in_order, order_legend, spread
from gpusim.reports.changes import changes
from gpusim.reports.columns import Column, Columns
from gpusim.reports.device_changes import device_changes
from gpusim.reports.generators import code_of, fallback_lines
from gpusim.reports.launches import launches_lines
from gpusim.reports.layout import BAD, DIM, TITLE, size
from gpusim.reports.operand_assumptions import assumption_lines
from gpusim.reports.quantities import duration, percent, rate
from gpusim.reports.runs import known_defect

INDENT = " " * 6  # of changes below a kernel


def ranking_document(ranking: Ranking, remarks: Sequence[str] = ()) -> dict[str, Any]:
    """Return the document of `gpusim rank --json`: kernels from slow to fast."""
    kernels = []
    for place, forecast in enumerate(ranking.forecasts):
        kernels.append(
            {
                "rank": len(ranking.forecasts) - place,
                **forecast.to_dict(),
                "measured_gbps": ranking.measured.get(forecast.job.name),
                "step": ranking.step(place) if place else None,
                "tie": ranking.is_tie(place) if place else None,
                "comparison": ranking.judged(place).to_dict() if place else None,
                "reasons": _changes(ranking, place) if place else [],
            }
        )
    cannot = [{"kernel": name, "reason": reason} for name, reason in ranking.failures]
    wrong = [{**one.to_dict(), "reason": reason} for one, reason in ranking.wrong]
    return {"kernels": kernels, "wrong": wrong, "cannot_run": cannot, "remarks": list(remarks)}


def _changes(ranking: Ranking, place: int) -> list[str]:
    """Return the differences to the kernel before."""
    return changes(ranking.forecasts[place - 1].first, ranking.forecasts[place].first)


def ranking_report(
    ranking: Ranking, passes: str, width: int, remarks: Sequence[str] = ()
) -> Iterator[Text]:
    """Yield the ranking as lines of at most `width` columns."""
    yield from _title(ranking, passes, width)
    yield Text()
    yield from _rows(ranking, width)
    places = range(1, len(ranking.forecasts))
    yield from order_legend(map(ranking.judged, places), width)
    for one, reason in ranking.wrong:
        entry = _entry(one)
        why = reason if entry is None or not entry.defect else known_defect(entry)
        text = f"! not ranked: {one.job.name}, {duration(one.time_us)}. {why}"
        yield from _note(text, width, BAD)
    yield from _fallbacks(ranking, width)
    all_of_them = [*ranking.forecasts, *(one for one, _ in ranking.wrong)]
    yield from launches_lines(((o.job.name, o.job.description) for o in all_of_them), width)
    yield from assumption_lines(ranking.forecasts, width)
    for remark in remarks:
        yield from _note(f"! {remark}", width, BAD)
    for name, reason in ranking.failures:
        yield from _note(f"{name} cannot run: {reason}", width)


def _entry(forecast: Forecast) -> Entry | None:
    """Return the kernel of the catalogue, None for one of the user's own."""
    setup = forecast.job.launches[0].setup
    return setup.entry if setup is not None else None


def _title(ranking: Ranking, passes: str, width: int) -> Iterator[Text]:
    one = ranking.forecasts[0]
    setups = [forecast.job.launches[0].setup for forecast in ranking.forecasts]
    setup = next(filter(None, setups), None)
    title = Text(f"{one.device.name}", TITLE)
    work = "" if setup is None else f"{setup.operation} of {setup.n:,} {setup.dtype.name}, "
    yield title.append(f"  {work}{_blocks(ranking)}", "not bold")
    launches = "all passes" if passes == "all" else "one pass"
    imagined = device_changes(one.device)
    peak = rate(one.device.bandwidth.dram_peak_gbps)
    codes = dict.fromkeys(code_of(one.first.prepared.program) for one in ranking.forecasts)
    state = f"{one.first.l2} L2{f', {imagined}' if imagined else ''}, {' and '.join(codes)}"
    ends = spread((one.time_us, one.interval_us) for one in ranking.forecasts)
    about = f"{launches}, {state}; DRAM peak {peak}; {ends}; slowest first"
    for part in wrap(about, width):
        yield Text(part, DIM)


def _blocks(ranking: Ranking) -> str:
    """Return the block of all kernels, or of each in their order."""
    blocks = [size(one.first.launch.block) for one in ranking.forecasts]
    if len(set(blocks)) == 1:
        return f"block {blocks[0]}"
    return f"blocks {', '.join(blocks)}, in the order of the kernels"


def _fallbacks(ranking: Ranking, width: int) -> Iterator[Text]:
    """Yield the reasons for not using nvcc's code, if it was requested, each once."""
    reasons: dict[str, list[str]] = {}
    for one in ranking.forecasts:
        reasons.setdefault(one.first.prepared.fallback, []).append(one.job.name)
    for reason, names in reasons.items():
        yield from fallback_lines(reason, width, ", ".join(names))


def _rows(ranking: Ranking, width: int) -> Iterator[Text]:
    """Yield a line for each kernel, and below it the changes from the one before."""
    lines = list(_table(ranking).lines(width))
    head = len(lines) - len(ranking.forecasts)
    yield from lines[:head]
    for place, line in enumerate(lines[head:]):
        yield line
        limiter = [f"limiter {ranking.forecasts[0].first.limiter.name}"]
        said = "; ".join(_changes(ranking, place) if place else limiter)
        for part in wrap(said, width, initial_indent=INDENT, subsequent_indent=INDENT):
            yield Text(part, DIM)


def _table(ranking: Ranking) -> Columns:
    made = Columns(
        Column("rank"),
        Column("kernel", "left"),
        Column("time"),
        Column("useful GB/s"),
        *([Column("measured GB/s")] if ranking.measured else []),
        Column("of peak"),
        Column("step"),
        Column("in order"),
    )
    last = len(ranking.forecasts) - 1
    for place, forecast in enumerate(ranking.forecasts):
        style = TITLE if place == last else ""
        step, order = "", ""
        if place:
            step, order = f"{ranking.step(place):.2f}x", in_order(ranking.judged(place))
        made.row(
            (str(last - place + 1), DIM),
            (forecast.job.name, style),
            (duration(forecast.time_us), style),
            (rate(forecast.gbps).removesuffix(" GB/s"), style),
            *([_measured(ranking, forecast)] if ranking.measured else []),
            (percent(forecast.peak_fraction), style),
            (step, "cyan"),
            (order, DIM),
        )
    return made


def _measured(ranking: Ranking, forecast: Forecast) -> str:
    found = ranking.measured.get(forecast.job.name)
    return "" if found is None else rate(found).removesuffix(" GB/s")


def _note(text: str, width: int, style: str = "") -> Iterator[Text]:
    yield Text()
    for part in wrap(text, width - 2, subsequent_indent="  "):
        yield Text(part, style)
