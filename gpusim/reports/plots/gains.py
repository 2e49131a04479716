"""The gain step by step: kernels in order, each an improvement of the one before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpusim.errors import InputError
from gpusim.prediction.records import Prediction
from gpusim.reports.changes import changes
from gpusim.reports.plots.canvas import canvas, matplotlib, title
from gpusim.reports.quantities import duration

MOST_REASON = 76  # letters
ROOM = 2.3  # the longest bar, and the text beside it


def plot_gains(
    *predictions: Prediction, times_us: Sequence[float] = (), what: str = "", theme: str = "light"
) -> Any:
    """Draw each kernel's time as a bar, with how many times as fast it is as the one before.

    `times_us` stand in place of the predictions' own, where each is a job of several launches.
    Raises InputError for a single kernel.
    """
    if len(predictions) < 2:
        raise InputError(f"gains compare kernels: name one or more beside {predictions[0].kernel}")
    times = list(times_us) or [prediction.time_us for prediction in predictions]
    with canvas(theme, 11, 1.4 + 0.5 * len(times)) as (figure, ink):
        axes = figure.subplots()
        rows = range(len(times))
        axes.barh(rows, times, color=ink.series[4], height=0.62)
        for row, time in enumerate(times):
            text = duration(time)
            if row:
                reasons = changes(predictions[row - 1], predictions[row])
                text += f"   {times[row - 1] / time:.2f}x   {fitting(reasons)}"
            axes.annotate(text, (time, row), xytext=(5, 0), textcoords="offset points", va="center")
        axes.set_yticks(rows, [prediction.kernel for prediction in predictions])
        axes.invert_yaxis()
        axes.set_xlim(0, max(times) * ROOM)
        ticks = matplotlib("ticker").MaxNLocator(5).tick_values(0, max(times))
        axes.set_xticks([tick for tick in ticks if tick <= max(times) * 1.1])
        axes.tick_params(axis="y", length=0)
        axes.spines["bottom"].set_bounds(0, axes.get_xticks()[-1])
        axes.set_xlabel("predicted time, us", loc="left")
        title(axes, f"{predictions[0].device.name}: the gain, step by step", what)
    return figure


def fitting(reasons: Sequence[str]) -> str:
    """Return the first reasons, as many as fit beside a bar."""
    said = ""
    for reason in reasons:
        longer = f"{said}; {reason}" if said else reason
        if len(longer) > MOST_REASON:
            break
        said = longer
    return said
