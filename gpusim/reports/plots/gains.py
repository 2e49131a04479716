"""The gain step by step: kernels in the order in which they improve on each other."""

from __future__ import annotations

from textwrap import shorten
from typing import Any

from gpusim.prediction.jobs import Forecast
from gpusim.reports.changes import changes
from gpusim.reports.plots.canvas import canvas, title
from gpusim.reports.quantities import duration

MOST_REASON = 70


def plot_gains(*forecasts: Forecast, theme: str = "light") -> Any:
    """Draw each kernel's time as a bar, with how many times as fast it is as the one before."""
    times = [forecast.time_us for forecast in forecasts]
    with canvas(theme, 11, 1.4 + 0.5 * len(times)) as (figure, ink):
        axes = figure.subplots()
        rows = range(len(times))
        axes.barh(rows, times, color=ink.series[4], height=0.62)
        for row, time in enumerate(times):
            text = duration(time)
            if row:
                reasons = changes(forecasts[row - 1], forecasts[row])
                why = shorten("; ".join(reasons), MOST_REASON, placeholder=" ...")
                text += f"   {times[row - 1] / time:.2f}x   {why}"
            axes.annotate(text, (time, row), xytext=(5, 0), textcoords="offset points", va="center")
        axes.set_yticks(rows, [forecast.job.name for forecast in forecasts])
        axes.invert_yaxis()
        axes.set_xlim(0, max(times) * 2.3)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("predicted time, us")
        setup = forecasts[0].job.launches[0].setup
        what = f"{setup.n:,} {setup.dtype.name}, block {setup.block}" if setup else ""
        title(axes, f"{forecasts[0].device.name}: the gain, step by step", what)
    return figure
