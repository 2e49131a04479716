"""The best launch of a kernel: the fastest candidates, their limiters and their ties."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Any

from rich.text import Text

from gpusim.prediction.sweeps.tables import Row, choices_of
from gpusim.prediction.sweeps.tuning import Tuned
from gpusim.reports.certainty import in_order, order_legend, spread
from gpusim.reports.columns import Column, Columns
from gpusim.reports.launches import launches_lines
from gpusim.reports.layout import BAD, DIM, TITLE, plural
from gpusim.reports.quantities import duration, percent

RULE = "launch rule"


def tuning_document(found: Sequence[Tuned]) -> dict[str, Any]:
    """Return the document of `gpusim tune --json`: a launch for each kernel, device and size."""
    return {"launches": [one.to_dict() for one in found]}


def tuning_report(found: Sequence[Tuned], shown: int, width: int) -> Iterator[Text]:
    """Yield the first `shown` candidates of each launch, as lines of at most `width` columns."""
    for number, one in enumerate(found):
        if number:
            yield Text()
        yield from _report(one, shown, width)


def _report(one: Tuned, shown: int, width: int) -> Iterator[Text]:
    title = Text(one.kernel, TITLE)
    title.append(f" on {one.device}{f', n = {one.n:,}' if one.n else ''}", "not bold")
    yield title
    yield from launches_lines([("", one.description)], width)
    if one.rows:
        times = ((row["time_us"], (row["low_us"], row["high_us"])) for row in one.rows)
        yield Text(spread(times), DIM)
    if one.best is None:
        count = plural(len(one.cannot) + len(one.rejected), "candidate")
        yield from _note(f"none of {count} runs as the first launch does", width, BAD)
    else:
        yield from _note(_conclusion(one, one.best), width)
        yield Text()
        yield from _table(one, shown).lines(width)
        yield from order_legend(map(one.judged, range(1, len(one.rows[:shown]))), width)
        left = len(one.rows) - shown
        if left > 0:
            yield Text(f"and {plural(left, 'slower candidate')}; --top or --json shows them", DIM)
    if one.dropped:
        yield Text(f"{plural(one.dropped, 'candidate')} dropped by successive halving", DIM)
    yield from reasons_lines("! not the same work", one.rejected, "wrong", width, BAD)
    uncompared = [row for row in one.rows if row["not_compared"] is not None]
    yield from reasons_lines("results not compared", uncompared, "not_compared", width)
    yield from reasons_lines("cannot run", one.cannot, "reason", width)


def _conclusion(one: Tuned, best: Row) -> str:
    """Return the best launch in a sentence, with its gain over the launch rule's and its ties."""
    text = f"best: {_launch(best, _varying(one))}, {duration(best['time_us'])}"
    rule = one.launch_rule
    if rule is best:
        text = f"best: the {RULE}'s, block {best['block']}, {duration(best['time_us'])}"
    elif rule is not None:
        gain = rule["time_us"] / best["time_us"]
        text += f", {gain:.2f}x faster than the {RULE}'s (block {rule['block']})"
    if one.ties:
        others = "another" if one.ties == 1 else f"{one.ties} others"
        any_of = "either" if one.ties == 1 else "any of them"
        text += f"; a tie with {others}, take {any_of}"
    return text


def _varying(one: Tuned) -> list[str]:
    """Return the names of choices with several values."""
    values: dict[str, set[str]] = {}
    for row in (*one.rows, *one.cannot):
        for name, value in choices_of(row).items():
            values.setdefault(name, set()).add(value)
    return [name for name, found in values.items() if len(found) > 1]


def _launch(row: Row, names: Sequence[str]) -> str:
    chosen = choices_of(row)
    parts = [f"{name} {chosen[name]}" for name in names if name in chosen]
    return ", ".join(parts) or (row["choices"] or RULE)


def _table(one: Tuned, shown: int) -> Columns:
    names = _varying(one)
    made = Columns(
        *(Column(name) for name in names),
        Column("blocks"),
        Column("time"),
        Column("of best"),
        Column("in order"),
        Column("occupancy"),
        Column("registers"),
        Column("limiter", "left", "fold"),
    )
    fastest = one.rows[0]["time_us"]
    for place, row in enumerate(one.rows[:shown]):
        chosen = choices_of(row) or {"block": str(row["block"])}
        made.row(
            *((chosen.get(name, "-"), TITLE if not place else "") for name in names),
            f"{row['grid']:,}",
            duration(row["time_us"]),
            f"{row['time_us'] / fastest:.2f}x",
            (in_order(one.judged(place)) if place else "", DIM),
            percent(row["occupancy"]),
            str(row["registers"]),
            row["limiter"],
        )
    return made


def reasons_lines(
    what: str, rows: Sequence[Row], column: str, width: int, style: str = DIM
) -> Iterator[Text]:
    """Yield the reasons in a column of some rows, each once, with its launches."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        launch = row["choices"] or (RULE if column == "reason" else f"block {row['block']}")
        reasons.setdefault(row[column], []).append(launch)
    for reason, choices in reasons.items():
        more = f" and {len(choices) - 2} more" if len(choices) > 2 else ""
        yield from _note(f"{what}: {'; '.join(choices[:2])}{more}: {reason}", width, style)


def _note(text: str, width: int, style: str = "") -> Iterator[Text]:
    for part in wrap(text, width - 2, subsequent_indent="  "):
        yield Text(part, style)
