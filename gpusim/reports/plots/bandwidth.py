"""Bandwidth over size: predicted lines, measured points, and the peak as a rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpusim.errors import InputError
from gpusim.gpu.device import Device
from gpusim.reports.plots.canvas import MARKERS, canvas, matplotlib, plain_numbers, title

Point = tuple[int, float]  # elements, GB/s of useful bytes


@dataclass(frozen=True)
class Rates:
    """A kernel's rates by size."""

    kernel: str
    predicted: tuple[Point, ...]
    measured: tuple[Point, ...] = ()


def plot_bandwidth(rates: Sequence[Rates], device: Device, *, theme: str = "light") -> Any:
    """Draw GB/s of useful bytes over the number of elements, a colour for each kernel.

    Raises InputError for a single size.
    """
    if len({size for one in rates for size, _ in (*one.predicted, *one.measured)}) < 2:
        raise InputError("bandwidth is drawn over sizes: give two or more")
    peak = device.bandwidth.dram_peak_gbps
    with canvas(theme, 9, 5) as (figure, ink):
        axes, legend = figure.subplots(), []
        for place, one in enumerate(rates):
            colour = ink.series[place % len(ink.series)]
            marker = MARKERS[place % len(MARKERS)]
            axes.plot(*zip(*one.predicted, strict=True), color=colour, lw=1.5)
            style = {"color": colour, "marker": marker, "ms": 6, "mec": ink.paper, "mew": 0.6}
            if one.measured:
                axes.plot(*zip(*one.measured, strict=True), ls="none", **style)
            named = style if one.measured else {"color": colour}
            legend.append(matplotlib("lines").Line2D([], [], lw=1.5, label=one.kernel, **named))
        axes.axhline(peak, color=ink.grey, lw=1, ls="--")
        axes.annotate(
            f"DRAM's peak, {peak:,.0f} GB/s", (0.01, peak), xycoords=("axes fraction", "data"),
            xytext=(0, -4), textcoords="offset points", va="top", color=ink.grey,
        )  # fmt: skip
        axes.set_xscale("log", base=2)
        axes.set(xlabel="elements", ylabel="GB/s of useful bytes", yscale="log")
        axes.set_ylim(top=peak * 1.25)
        plain_numbers(axes.yaxis)
        axes.legend(handles=legend, loc="upper left", bbox_to_anchor=(1, 1))
        points = "points measured" if any(one.measured for one in rates) else "nothing measured"
        title(axes, f"{device.name}: bandwidth over size", f"lines predicted, {points}")
    return figure
