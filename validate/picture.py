"""Reports as a picture, two panels for each GPU: predicted against measured, GB/s over size."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpusim import device as devices
from gpusim.catalogue import find
from gpusim.errors import InputError

from .predicted import Compared
from .report import Report

INSTALL = "pip install 'gpusim[plot]'"
SUFFIXES = (".png", ".svg")

# Okabe and Ito's palette, which colour-blind readers can tell apart, without its yellow.
COLOURS = ("#000000", "#e69f00", "#56b4e9", "#009e73", "#0072b2", "#d55e00", "#cc79a7")
MARKERS = "osD^vPX"
GREY = "#808080"
BAND = 0.10

# The series that most is written about; where it was not measured, the kernels that were.
SERIES = (
    "reduce1", "reduce2", "reduce3", "reduce4", "reduce5_fixed", "reduce6", "reduce7",
)  # fmt: skip
BLOCK = 256


class PlotMissingError(InputError):
    """Matplotlib is not there."""


def check(path: Path) -> None:
    """Raise InputError where no picture can be drawn into this file."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"a picture is a file that ends in {' or '.join(SUFFIXES)}, not {path}")
    _matplotlib()


def draw(reports: Sequence[Report], path: Path) -> None:
    """Draw the reports that have predictions into a .png or .svg file."""
    matplotlib = _matplotlib()
    shown = [report for report in reports if any(section.cases for section in report.sections)]
    if not shown:
        raise InputError("there is nothing to draw: no launch can be predicted")
    # The same bytes for the same reports: no date, and ids of the picture's own.
    style: dict[str, Any] = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    style |= {"svg.hashsalt": "gpusim", "figure.dpi": 110}
    with matplotlib.rc_context(style):
        figure = importlib.import_module("matplotlib.figure").Figure(
            figsize=(11, 4.8 * len(shown)), layout="constrained"
        )
        rows = figure.subplots(len(shown), 2, squeeze=False)
        for (left, right), report in zip(rows, shown, strict=True):
            _scatter(left, report)
            _rates(right, report)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _matplotlib() -> Any:
    try:
        return importlib.import_module("matplotlib")
    except ImportError:
        raise PlotMissingError(f"a picture needs matplotlib: {INSTALL}") from None


def _scatter(axes: Any, report: Report) -> None:
    """Draw predicted against measured times, with the band of 10 %."""
    cases = report.sections[0].cases
    by_origin: dict[str, list[Compared]] = {}
    for one in cases:
        by_origin.setdefault(_series(one.kernel), []).append(one)
    every = [time for one in cases for time in (one.measured_us, one.predicted_us)]
    ends = np.array([min(every) / 1.3, max(every) * 1.3])
    axes.fill_between(ends, ends * (1 - BAND), ends * (1 + BAND), color="#dddddd", lw=0)
    axes.plot(ends, ends, color=GREY, lw=0.8)
    for (origin, group), colour, marker in zip(by_origin.items(), COLOURS, MARKERS, strict=False):
        axes.scatter(
            [one.measured_us for one in group],
            [one.predicted_us for one in group],
            s=14,
            marker=marker,
            facecolors="none",
            edgecolors=colour,
            linewidths=0.8,
            label=f"{origin} ({len(group)})",
        )
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
    axes.set(xlabel="measured, us", ylabel="predicted, us")
    axes.annotate(
        "grey: within 10 %", (0.97, 0.03), xycoords="axes fraction", ha="right", color=GREY
    )
    title = report.sections[0].kind.title
    axes.set_title(f"{report.measurements.machine.gpu}: {title}", loc="left", fontsize=9)
    axes.legend(loc="upper left", frameon=False, fontsize=8, handletextpad=0.2)


def _series(kernel: str) -> str:
    """Return the name by which readers know a kernel's series: its first kernel to its last."""
    return find(kernel).origin.title


def _rates(axes: Any, report: Report) -> None:
    """Draw GB/s over size: predicted lines, measured points, the peak as a rule."""
    peak = devices.load(report.measurements.machine.device).bandwidth.dram_peak_gbps
    lines = _lines(report)
    ends = []
    for (kernel, group), colour, marker in zip(lines.items(), COLOURS, MARKERS, strict=False):
        sizes = [one.case.n for one in group]
        predicted = [_gbps(one, one.predicted_us) for one in group]
        axes.plot(sizes, predicted, color=colour, lw=1.3)
        axes.scatter(
            sizes,
            [_gbps(one, one.measured_us) for one in group],
            s=22,
            marker=marker,
            color=colour,
            zorder=3,
            linewidths=0,
        )
        grid = f", {group[0].case.grid} blocks" if group[0].case.grid else ""
        ends.append((predicted[-1], f"{kernel}{grid}", colour))
    axes.axhline(peak, color=GREY, lw=1, ls="--")
    axes.set(xscale="log", yscale="log", xlabel="elements", ylabel="GB/s of useful bytes")
    axes.set_xscale("log", base=2)
    axes.set_ylim(top=peak * 1.5)
    axes.annotate(
        f"peak {peak:,.0f} GB/s", (0.01, peak), xycoords=("axes fraction", "data"),
        xytext=(0, 3), textcoords="offset points", color=GREY,
    )  # fmt: skip
    _label(axes, ends)
    block = {one.case.block for group in lines.values() for one in group}
    axes.set_title(
        f"block {', '.join(map(str, sorted(block)))}: lines predicted, points measured",
        loc="left",
        fontsize=9,
    )


def _lines(report: Report) -> dict[str, list[Compared]]:
    """Return a row of sizes for each of some kernels, all with one block where they can."""
    kinds = ("cold", "2^28", "published")
    cases = [
        one for section in report.sections if section.kind.short in kinds for one in section.cases
    ]
    measured = dict.fromkeys(one.kernel for one in cases)
    kernels = SERIES if set(SERIES) <= set(measured) else tuple(measured)[: len(COLOURS)]
    lines = {}
    for kernel in kernels:
        mine = [one for one in cases if one.kernel == kernel]
        block = min((one.case.block for one in mine), key=lambda block: abs(block - BLOCK))
        # A grid that was chosen is what a kernel that strides over its input is made for.
        mine = [one for one in mine if one.case.block == block]
        grid = max((one.case.grid or 0 for one in mine), default=0)
        dtype = mine[0].case.dtype
        chosen = [o for o in mine if (o.case.grid or 0) == grid and o.case.dtype == dtype]
        lines[kernel] = sorted(chosen, key=lambda one: one.case.n)
    return lines


def _gbps(one: Compared, time_us: float) -> float:
    return float(one.case.n * np.dtype(one.case.dtype).itemsize / time_us / 1000)


def _label(axes: Any, ends: Sequence[tuple[float, str, str]]) -> None:
    """Name each line at its right end, one label above the other where lines lie close."""
    step = 1.14  # of the axis, which is logarithmic: the height of a label
    place = 0.0
    for rate, text, colour in sorted(ends):
        place = max(rate, place * step)
        axes.annotate(
            text,
            (1.01, place),
            xycoords=("axes fraction", "data"),
            va="center",
            color=colour,
            fontsize=8,
            annotation_clip=False,
        )
