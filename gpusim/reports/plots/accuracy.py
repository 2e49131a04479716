"""Predicted against measured times, with the band of 10 %."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpusim.errors import InputError
from gpusim.prediction.records import Prediction
from gpusim.reports.plots.canvas import MARKERS, Theme, canvas, plain_numbers, title

BAND = 0.10
ROOM = 1.3  # between the outermost points and the frame


@dataclass(frozen=True)
class Timed:
    """A launch's time twice, in microseconds; launches of a group look alike."""

    group: str
    measured_us: float
    predicted_us: float

    @property
    def error(self) -> float:
        """The relative error of the prediction: predicted / measured - 1."""
        return self.predicted_us / self.measured_us - 1


def plot_accuracy(
    *predictions: Prediction, measured_us: Sequence[float], theme: str = "light"
) -> Any:
    """Draw predictions against a GPU's measured times of the same launches, in the same order.

    Raises InputError unless there is one time, above zero, for each prediction.
    """
    if len(measured_us) != len(predictions) or not all(time > 0 for time in measured_us):
        raise InputError(
            f"{len(predictions)} predictions need as many measured times in us, each above zero; "
            f"measured_us has {len(measured_us)}: {', '.join(f'{time:g}' for time in measured_us)}"
        )
    launches = [
        Timed(prediction.kernel, measured, prediction.time_us)
        for prediction, measured in zip(predictions, measured_us, strict=True)
    ]
    return plot_times(launches, predictions[0].device.name, theme=theme)


def plot_times(launches: Sequence[Timed], device: str, *, theme: str = "light") -> Any:
    """Draw launches on a device, a colour and a marker for each group."""
    with canvas(theme, 9, 6.2) as (figure, ink):
        axes = figure.subplots()
        draw_times(axes, ink, launches)
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), handletextpad=0.3)
        title(axes, f"{device}: predicted against measured", told(launches))
    return figure


def told(launches: Sequence[Timed]) -> str:
    """Return how far off launches are on the mean, and at worst."""
    errors = [abs(one.error) for one in launches]
    mean = 100 * sum(errors) / len(errors)
    inside = sum(error <= BAND for error in errors)
    return (
        f"{len(errors)} launches, mean error {mean:.1f} %, {inside} within {100 * BAND:.0f} %, "
        f"the worst {100 * max(errors):.1f} % off"
    )


def draw_times(axes: Any, ink: Theme, launches: Sequence[Timed]) -> None:
    """Draw launches and the band on the given axes, with a legend of the groups."""
    every = [time for one in launches for time in (one.measured_us, one.predicted_us)]
    ends = [min(every) / ROOM, max(every) * ROOM]
    low, high = ([end * factor for end in ends] for factor in (1 - BAND, 1 + BAND))
    axes.fill_between(ends, low, high, color=ink.faint, lw=0, label=f"within {100 * BAND:.0f} %")
    axes.plot(ends, ends, color=ink.grey, lw=0.8)
    groups: dict[str, list[Timed]] = {}
    for one in launches:
        groups.setdefault(one.group, []).append(one)
    for place, (group, members) in enumerate(groups.items()):
        # Points as markers of a line without a stroke: SVG a third the size of a scatter's.
        axes.plot(
            [one.measured_us for one in members],
            [one.predicted_us for one in members],
            ls="none",
            marker=MARKERS[place % len(MARKERS)],
            ms=4,
            mfc="none",
            mec=ink.series[place % len(ink.series)],
            mew=0.9,
            label=f"{group}: {len(members)} launch{'es' if len(members) > 1 else ''}",
        )
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
    axes.set(xlabel="measured, us", ylabel="predicted, us")
    plain_numbers(axes.xaxis, axes.yaxis)
