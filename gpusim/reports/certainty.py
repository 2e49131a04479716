"""Columns of tables: the certainty that two launches are in the predicted order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import wrap

from rich.text import Text

from gpusim.prediction.uncertainty.certainty import CERTAIN, DIFFERENCES, Judgement
from gpusim.reports.layout import DIM
from gpusim.reports.quantities import deviations

Times = tuple[float, tuple[float, float]]  # a time with its interval


def in_order(found: Judgement) -> str:
    """Return the fraction of measured pairs in the predicted order as a cell, or "tie"."""
    share = "" if found.step is None else f"{100 * found.step.share:.0f} %"
    return ", ".join(filter(None, ["tie" if found.is_tie else "", share]))


def order_legend(found: Iterable[Judgement], width: int) -> Iterator[Text]:
    """Yield the legend of the column `in order`, with its number of pairs."""
    steps = [one for one in found if one.step is not None]
    if not steps:
        return
    differs = dict.fromkeys(DIFFERENCES[one.differs] for one in steps)
    fewest = min((one.step for one in steps if one.step), key=lambda step: step.pairs)
    gpus = f"{fewest.gpus} GPU{'' if fewest.gpus == 1 else 's'}"
    text = (
        f"in order: fraction of measured pairs in the predicted order, with {' or '.join(differs)} "
        f"and the same predicted ratio ({fewest.pairs:,} pairs or more, of {gpus}); a tie below "
        f"{100 * CERTAIN:.0f} %"
    )
    for part in wrap(text, width):
        yield Text(part, DIM)


def spread(times: Iterable[Times]) -> str:
    """Return the intervals of several times in a phrase, each relative to its time."""
    ends = [(low / time_us, high / time_us) for time_us, (low, high) in times]
    text = deviations(1.0, min(low for low, _ in ends), max(high for _, high in ends))
    first, last, _ = text.split(" ")
    few = len({deviations(1.0, *one) for one in ends}) == 1
    return f"90 % interval of {'each time' if few else 'all times within'} {first} to {last} %"
