"""The times of a sweep by size: a panel for each device, a line for each launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpusim.errors import InputError
from gpusim.prediction.sweeps.tables import Row
from gpusim.reports.plots.canvas import MARKERS, canvas, plain_numbers, title

# Columns that tell lines of a panel apart, as far as they differ.
TELLING = ("kernel", "block", "operation", "dtype", "l2", "passes", "without", "set", "code")
MOST_LINES = 28  # all pairs of a colour and a marker
PANELS_IN_A_ROW = 3


def plot_sweep(rows: Sequence[Row], theme: str = "light") -> Any:
    """Draw time over size with its 90 % interval, both axes logarithmic.

    Raises InputError where no launch has a time and a size, and for more lines than can be told
    apart.
    """
    timed = [row for row in rows if row["reason"] is None and row["n"] is not None]
    if not timed:
        raise InputError("there is no time by size to draw: no row has a time and a size n")
    devices = list(dict.fromkeys(row["device"] for row in timed))
    differing = [name for name in TELLING if len({row[name] for row in timed}) > 1] or ["kernel"]
    lines = list(dict.fromkeys(_label(row, differing) for row in timed))
    if len(lines) > MOST_LINES:
        raise InputError(
            f"{len(lines)} lines are too many for a picture; choose fewer kernels or "
            f"blocks, at most {MOST_LINES} together"
        )
    columns = min(PANELS_IN_A_ROW, len(devices))
    high = -(-len(devices) // columns)
    with canvas(theme, 3 + 4 * columns, 0.6 + 3.4 * high) as (figure, ink):
        panels = figure.subplots(high, columns, squeeze=False, sharex=True, sharey=True).ravel()
        for panel in panels[len(devices) :]:
            panel.set_visible(False)
        for panel, device in zip(panels, devices, strict=False):
            of_device = [row for row in timed if row["device"] == device]
            for number, line in enumerate(lines):
                found = sorted(
                    (row for row in of_device if _label(row, differing) == line),
                    key=lambda row: row["n"],
                )
                style = ink.series[number % len(ink.series)]
                sizes = [row["n"] for row in found]
                panel.fill_between(
                    sizes,
                    [row["low_us"] for row in found],
                    [row["high_us"] for row in found],
                    color=style,
                    alpha=0.12,
                    lw=0,
                )
                panel.plot(
                    sizes,
                    [row["time_us"] for row in found],
                    color=style,
                    marker=MARKERS[number // len(ink.series) % len(MARKERS)],
                    ms=5,
                    label=line,
                )
            panel.set_xscale("log", base=2)
            panel.set(yscale="log", xlabel="elements n", ylabel="time (us)")
            plain_numbers(panel.yaxis)
            title(panel, device)
        panels[0].figure.legend(
            *panels[0].get_legend_handles_labels(), loc="outside right upper", fontsize=9
        )
    return figure


def _label(row: Row, names: Sequence[str]) -> str:
    return " ".join(str(row[name]) for name in names if row[name] not in (None, ""))
