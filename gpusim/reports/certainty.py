"""Comparisons of predicted launches in tables: how surely the order is the predicted one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import wrap

from rich.text import Text

from gpusim.prediction.uncertainty.certainty import CERTAIN, DIFFERENCES, Judgement
from gpusim.reports.layout import DIM
from gpusim.reports.quantities import deviations

Times = tuple[float, tuple[float, float]]  # a time with its interval


def in_order(found: Judgement) -> str:
    """Return the part of measured pairs in the predicted order as a cell, with "tie" for one."""
    share = "" if found.step is None else f"{100 * found.step.share:.0f} %"
    return ", ".join(filter(None, ["tie" if found.is_tie else "", share]))


def order_legend(found: Iterable[Judgement], width: int) -> Iterator[Text]:
    """Yield the meaning of the cells of `in_order`, with the pairs that they rest on."""
    steps = [one for one in found if one.step is not None]
    if not steps:
        return
    differs = dict.fromkeys(DIFFERENCES[one.differs] for one in steps)
    fewest = min((one.step for one in steps if one.step), key=lambda step: step.pairs)
    gpus = f"{fewest.gpus} GPU{'' if fewest.gpus == 1 else 's'}"
    text = (
        f"in order: of measured pairs with {' or '.join(differs)} predicted as far apart, the part "
        f"in this order ({fewest.pairs:,} pairs or more, of {gpus}); a tie below {CERTAIN:.0%}"
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
