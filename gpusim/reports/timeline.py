"""The timeline of a block in a terminal: warps downwards, cycles across, reasons as letters."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from gpusim.prediction.timeline import Timeline, WarpLife
from gpusim.reports.excerpts import others
from gpusim.reports.layout import DIM, heading
from gpusim.reports.stall_styles import STALL_STYLES

BLOCK = 0
LABEL = 14
MOST_WARPS = 8  # on one screen


def timeline_lines(timeline: Timeline, width: int, *, whole: bool = True) -> Iterator[Text]:
    """Yield the lives of the warps of the SM's first block, none wider than `width`.

    Unless `whole`, of `MOST_WARPS` at most.
    """
    lives = timeline.of_block(BLOCK)
    begin, end = min(life.start for life in lives), max(life.end for life in lives)
    columns = max(8, width - LABEL)
    cycles = (end - begin) / columns
    yield heading(
        "Timeline",
        f"the SM's first block, cycles {begin:,.0f} to {end:,.0f}; {cycles:.3g} a column",
    )
    for life in lives if whole else lives[:MOST_WARPS]:
        line = Text(f"warp {life.warp} (s{life.scheduler})".ljust(LABEL), DIM)
        for reason in columns_of(life, begin, cycles, columns):
            known = STALL_STYLES.get(reason)
            line.append(known.letter if known else " ", known.style if known else "")
        line.rstrip()
        yield line
    yield from others(0 if whole else len(lives) - MOST_WARPS, "warp")
    yield from _marks(timeline, begin, cycles, columns)
    yield from _legend(lives, width)


def columns_of(life: WarpLife, begin: float, cycles: float, columns: int) -> list[str]:
    """Return the reason that takes most of each column, "" where the warp is not there."""
    spent: list[dict[str, float]] = [{} for _ in range(columns)]
    for span in life.spans:
        first = int((span.start - begin) / cycles)
        for column in range(first, columns):
            left, right = begin + column * cycles, begin + (column + 1) * cycles
            if left >= span.end:
                break
            part = min(right, span.end) - max(left, span.start)
            spent[column][span.reason] = spent[column].get(span.reason, 0.0) + part
    return [max(one, key=lambda reason: one[reason]) if one else "" for one in spent]


def _marks(timeline: Timeline, begin: float, cycles: float, columns: int) -> Iterator[Text]:
    """Yield a line that marks where the block's barriers open."""
    marks = [" "] * columns
    for block, cycle in timeline.barriers:
        if block == BLOCK:
            marks[min(columns - 1, int((cycle - begin) / cycles))] = "^"
    if "^" in marks:
        yield Text("barrier opens".ljust(LABEL) + "".join(marks).rstrip(), DIM)


def _legend(lives: list[WarpLife], width: int) -> Iterator[Text]:
    there = {span.reason for life in lives for span in life.spans}
    line = Text()
    for name, reason in STALL_STYLES.items():
        if name not in there:
            continue
        entry = f"{reason.letter} {name}  "
        if line.cell_len + len(entry) > width:
            yield line
            line = Text()
        line.append(reason.letter, reason.style)
        line.append(entry[1:], DIM)
    line.rstrip()
    yield line
