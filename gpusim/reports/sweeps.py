"""The rows of a sweep as a table on the screen, and a summary line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Any

from rich.text import Text

from gpusim.launch.description import LaunchDescription
from gpusim.prediction.sweeps.sweep import Swept
from gpusim.prediction.sweeps.tables import Row, timed
from gpusim.prediction.uncertainty import Judgement, judged
from gpusim.reports.certainty import in_order, order_legend, spread
from gpusim.reports.columns import Column, Columns
from gpusim.reports.generators import fallback_lines
from gpusim.reports.launches import launches_lines
from gpusim.reports.layout import BAD, DIM, plural
from gpusim.reports.quantities import duration, percent, rate
from gpusim.reports.tuning import reasons_lines

GROUP = ("device", "n", "operation", "dtype", "l2", "passes", "without", "set")  # same work
VARYING = ("operation", "dtype", "l2", "passes", "code")  # alternatives, beside the kernel


def sweep_table(
    rows: Sequence[Row], width: int, launches: Sequence[LaunchDescription] = ()
) -> Iterator[Text]:
    """Yield the rows as lines of at most `width` columns, and what the launches are made of."""
    varying = [name for name in VARYING if len({row[name] for row in rows if row[name]}) > 1]
    judgements = _judgements(rows)
    devices = tuple(dict.fromkeys(row["device"] for row in rows))
    for part in wrap("; ".join(_headings(rows, devices)), width):
        yield Text(part, DIM)
    made = Columns(
        *([Column("device", "left")] if len(devices) > 1 else []),
        Column("n"),
        Column("block"),
        Column("kernel", "left", "fold"),
        Column("time"),
        *([Column("of best"), Column("in order")] if judgements else []),
        Column("GB/s"),
        Column("of peak"),
        Column("limiter", "left", "fold"),
    )
    for place, row in enumerate(rows):
        made.row(
            *([row["device"]] if len(devices) > 1 else []),
            f"{row['n']:,}" if row["n"] else "",
            f"{row['block']}{' !' if row['wrong'] else ''}",
            " ".join([row["kernel"], *(row[name] or "" for name in varying)]),
            "-" if row["reason"] is not None else duration(row["time_us"]),
            *(_of_best(judgements.get(place)) if judgements else ()),
            *_result(row),
        )
    yield from made.lines(width)
    yield from order_legend(judgements.values(), width)
    yield from _generators(rows, width)
    yield from launches_lines([(one.kernel, one) for one in launches], width)
    yield from reasons_lines("! not the same work", _having(rows, "wrong"), "wrong", width, BAD)
    for reason in dict.fromkeys(row["reason"] for row in _having(rows, "reason")):
        yield from (Text(part, BAD) for part in wrap(f"cannot run: {reason}", width))
    uncompared = _having(rows, "not_compared")
    yield from reasons_lines("results not compared", uncompared, "not_compared", width)


def _judgements(rows: Sequence[Row]) -> dict[int, Judgement]:
    """Return the comparisons of rows with the fastest right one of the same GPU and size."""
    groups: dict[Any, list[int]] = {}
    for place, row in enumerate(rows):
        if row["reason"] is None and row["wrong"] is None:
            about = tuple(row[name] for name in GROUP)
            groups.setdefault(about, []).append(place)
    found: dict[int, Judgement] = {}
    for places in groups.values():
        best = min(places, key=lambda place: rows[place]["time_us"])
        fastest = timed(rows[best])
        found |= {k: judged(fastest, timed(rows[k])) for k in places if k != best}
    return found


def _of_best(found: Judgement | None) -> tuple[Any, ...]:
    return ("", "") if found is None else (f"{found.ratio:.2f}x", (in_order(found), DIM))


def _having(rows: Sequence[Row], column: str) -> list[Row]:
    return [row for row in rows if row[column] is not None]


def _generators(rows: Sequence[Row], width: int) -> Iterator[Text]:
    """Yield the code generators, and the reasons for not using nvcc's compiler, if requested."""
    names = dict.fromkeys(row["generator"] for row in rows if row["generator"])
    if names:
        yield Text(f"machine code of {' and '.join(names)}", DIM)
    reasons: dict[str, dict[str, None]] = {}
    for row in rows:
        reasons.setdefault(row["fallback"] or "", {})[row["kernel"]] = None
    for reason, kernels in reasons.items():
        yield from fallback_lines(reason, width, ", ".join(kernels))


def _headings(rows: Sequence[Row], devices: Sequence[str]) -> Iterator[str]:
    """Yield each device with the interval of its times."""
    for device in devices:
        times = [
            (row["time_us"], (row["low_us"], row["high_us"]))
            for row in rows
            if row["device"] == device and row["reason"] is None
        ]
        yield f"{device}: {spread(times)}" if times else device


def _result(row: Row) -> tuple[Any, ...]:
    if row["reason"] is not None:
        return "-", "-", ("cannot run", BAD)
    gbps = rate(row["gbps"]).removesuffix(" GB/s")
    return gbps, percent(row["peak_fraction"]), row["limiter"]


def sweep_summary(swept: Swept, output: str, width: int) -> Iterator[Text]:
    """Yield the destination of the rows, and the counts of impossible and of earlier ones."""
    predicted = len(swept.rows) - swept.failed
    text = f"{output}: {plural(len(swept.rows), 'row')}, {predicted:,} predicted"
    if swept.failed:
        text += f", {swept.failed:,} cannot run (column reason)"
    for part in wrap(text, width):
        yield Text(part)
    if swept.was_complete:
        yield Text("already complete; --overwrite predicts all rows again", DIM)
    elif swept.found:
        yield Text(f"{swept.found:,} of them from an interrupted sweep", DIM)
