"""The note in reports that elements without given values were taken for ordinary operands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import wrap

from rich.text import Text

from gpusim.prediction.sweeps.jobs import Forecast
from gpusim.reports.layout import DIM

ASSUMED = (
    "array elements without values are taken for ordinary operands: quotients, roots and powers "
    "take their fast path"
)


def assumption_lines(forecasts: Iterable[Forecast], width: int) -> Iterator[Text]:
    """Yield the note, naming the affected ones of several kernels."""
    every = list(forecasts)
    found = [one.job.name for one in every if one.assumes_ordinary_operands]
    if found:
        about = f"{', '.join(found)}: " if len(every) > 1 else ""
        for part in wrap(f"{about}{ASSUMED}", width):
            yield Text(part, DIM)
