"""Notes in reports on what a predicted time supposes: ordinary operands, no time asleep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from textwrap import wrap

from rich.text import Text

from gpusim.prediction.sweeps.jobs import Forecast
from gpusim.reports.layout import DIM


def _sleeps(forecast: Forecast) -> bool:
    """Return whether threads of a launch may sleep for a time."""
    programs = (one.prepared.program for one in forecast.predictions)
    return any(
        row.text.startswith("NANOSLEEP") for program in programs for row in program.instructions
    )


NOTES: Mapping[str, Callable[[Forecast], bool]] = {
    "array elements without values are taken for ordinary operands: quotients, roots and powers "
    "take their fast path": lambda forecast: forecast.assumes_ordinary_operands,
    "the time that threads are asleep in __nanosleep is not in the duration": _sleeps,
}


def assumption_lines(forecasts: Iterable[Forecast], width: int) -> Iterator[Text]:
    """Yield the notes, naming the affected ones of several kernels."""
    every = list(forecasts)
    for note, holds in NOTES.items():
        found = [one.job.name for one in every if holds(one)]
        about = f"{', '.join(found)}: " if len(every) > 1 else ""
        for part in wrap(f"{about}{note}", width) if found else ():
            yield Text(part, DIM)
