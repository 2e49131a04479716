"""Notes in reports on the assumptions of a predicted time: ordinary operands, no sleeping."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from textwrap import wrap

from rich.text import Text

from gpusim.isa.ops import Program
from gpusim.prediction.sweeps.jobs import Forecast
from gpusim.program.polling import awaits_time
from gpusim.reports.layout import DIM


def _sleeps(program: Program) -> bool:
    """Return whether threads of a program may sleep for a time."""
    return any(row.text.startswith("NANOSLEEP") for row in program.instructions)


def _of_any(holds: Callable[[Program], bool], forecast: Forecast) -> bool:
    return any(holds(one.prepared.program) for one in forecast.predictions)


def _has_waves_of_clusters(forecast: Forecast) -> bool:
    """Return whether clusters of a launch start where others have ended."""
    return any(one.waves > 1 and one.prepared.program.clusters for one in forecast.predictions)


NOTES: Mapping[str, Callable[[Forecast], bool]] = {
    "array elements without values are assumed to be ordinary operands: quotients, roots and "
    "powers take their fast path": lambda forecast: forecast.assumes_ordinary_operands,
    "the time that threads are asleep in __nanosleep is not in the duration": partial(
        _of_any, _sleeps
    ),
    "the time that loops wait for by clock(), clock64() or %globaltimer is not in the "
    "duration": partial(_of_any, awaits_time),
    "clusters of several waves are taken not to wait for the slowest of their blocks; of four such "
    "launches on an H200 the slowest took 1.4 times as long as predicted": _has_waves_of_clusters,
}


def assumption_lines(forecasts: Iterable[Forecast], width: int) -> Iterator[Text]:
    """Yield the notes, naming the affected ones of several kernels."""
    every = list(forecasts)
    for note, holds in NOTES.items():
        found = [one.job.name for one in every if holds(one)]
        about = f"{', '.join(found)}: " if len(every) > 1 else ""
        for part in wrap(f"{about}{note}", width) if found else ():
            yield Text(part, DIM)
