"""Reports as a picture, two panels for each GPU: predicted against measured, GB/s over size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpusim.catalogue import find
from gpusim.codegen.generators import LOWERING, NVCC
from gpusim.errors import InputError
from gpusim.gpu import device as devices
from gpusim.reports.plots.accuracy import Timed, draw_times
from gpusim.reports.plots.canvas import MARKERS, THEMES, Theme, canvas, plain_numbers, save, title

from .predicted import Compared
from .records import launch_name
from .report import Report, Section

COLOURS = THEMES["light"].series
GREY = THEMES["light"].grey

# The best-known series; without measurements of it, any measured kernels.
SERIES = (
    "reduce1", "reduce2", "reduce3", "reduce4", "reduce5_fixed", "reduce6", "reduce7",
)  # fmt: skip
BLOCK = 256
DASHES, NAMES = ("-", "--"), ("solid", "dashed")  # of the first code, and of the second
WHOSE = {LOWERING: "the lowering's", NVCC: "nvcc's"}


def draw(reports: Sequence[Report], path: Path) -> None:
    """Draw the reports with predictions into a .png or .svg file, reproducibly."""
    save(figure(reports), path)


def figure(reports: Sequence[Report]) -> Any:
    """Return a Matplotlib figure with a row of two panels for each report with predictions."""
    shown = [report for report in reports if any(section.cases for section in report.sections)]
    if not shown:
        raise InputError("there is nothing to draw: no launch can be predicted")
    with canvas("light", 11, 4.8 * len(shown)) as (made, ink):
        rows = made.subplots(len(shown), 2, squeeze=False)
        for (left, right), report in zip(rows, shown, strict=True):
            _scatter(left, ink, report)
            _rates(right, report)
    return made


def _scatter(axes: Any, ink: Theme, report: Report) -> None:
    """Draw predicted against measured times, with the band of 10 %."""
    section = report.sections[0]
    launches = [
        Timed(_file(one.kernel), one.measured_us, one.predicted_us) for one in section.cases
    ]
    draw_times(axes, ink, launches)
    axes.legend(loc="lower right", frameon=False, handletextpad=0.3, borderaxespad=0.2)
    title(axes, report.measurements.machine.gpu, section.kind.title)


def _file(kernel: str) -> str:
    """Return a kernel's file in `gpusim/kernels/`: each is a published series."""
    return find(kernel).factory.__module__.rpartition(".")[2]


def _rates(axes: Any, report: Report) -> None:
    """Draw GB/s over size: predicted lines, measured points, the peak as a rule."""
    peak = devices.load(report.measurements.machine.device).bandwidth.dram_peak_gbps
    by_code = {code: _lines(report, code) for code in _codes(report)}
    first = next(iter(by_code.values()))
    ends = []
    for (kernel, group), colour, marker in zip(first.items(), COLOURS, MARKERS, strict=False):
        for lines, dashes in zip(by_code.values(), DASHES, strict=False):
            mine = lines.get(kernel, [])
            if not mine:
                continue
            sizes = [one.case.n for one in mine]
            predicted = [_gbps(one, one.predicted_us) for one in mine]
            dash = "_" if len(sizes) == 1 else ""  # a single point makes no line
            axes.plot(sizes, predicted, color=colour, lw=1.4, ls=dashes, marker=dash, ms=24)
        sizes = [one.case.n for one in group]
        measured = [_gbps(one, one.measured_us) for one in group]
        axes.plot(
            sizes, measured, ls="none", marker=marker, ms=6, color=colour, mec="white", mew=0.6
        )
        end = sizes[-1], _gbps(group[-1], group[-1].predicted_us)
        ends.append((end, launch_name(kernel, group[0].case), colour))
    axes.axhline(peak, color=GREY, lw=1, ls="--")
    axes.set(xlabel="elements", ylabel="GB/s of useful bytes", yscale="log")
    axes.set_xscale("log", base=2)
    axes.set_ylim(top=peak * 1.25)
    plain_numbers(axes.yaxis)
    axes.annotate(
        f"DRAM's peak, {peak:,.0f} GB/s", (0.01, peak), xycoords=("axes fraction", "data"),
        xytext=(0, -4), textcoords="offset points", va="top", color=GREY,
    )  # fmt: skip
    _label(axes, ends)
    blocks = sorted({one.case.block for group in first.values() for one in group})
    whose = "; ".join(
        f"{name}: {WHOSE[code]} code" for code, name in zip(by_code, NAMES, strict=False)
    )
    what = f"block {', '.join(map(str, blocks))}; {whose}"
    title(axes, "Lines predicted, points measured", what)


def _codes(report: Report) -> list[str]:
    """Return the codes of a report's predictions, nvcc's first."""
    found = {section.code for section in report.sections if _is_drawn(section)}
    return sorted(found, key=(NVCC, LOWERING).index)


def _is_drawn(section: Section) -> bool:
    return section.kind.short in ("cold", "2^28", "published") and bool(section.cases)


def _lines(report: Report, code: str) -> dict[str, list[Compared]]:
    """Return the launches of some kernels by size in one code, the same block size if possible."""
    drawn = [one for one in report.of_code(code) if _is_drawn(one)]
    cases = [one for section in drawn for one in section.cases]
    measured = dict.fromkeys(one.kernel for one in cases)
    kernels = SERIES if set(SERIES) <= set(measured) else tuple(measured)[: len(COLOURS)]
    lines = {}
    for kernel in kernels:
        mine = [one for one in cases if one.kernel == kernel]
        block = min((one.case.block for one in mine), key=lambda block: abs(block - BLOCK))
        # A chosen grid is the intended one of a kernel with a grid-stride loop.
        mine = [one for one in mine if one.case.block == block]
        grid = max((one.case.grid or 0 for one in mine), default=0)
        dtype = mine[0].case.dtype
        chosen = [o for o in mine if (o.case.grid or 0) == grid and o.case.dtype == dtype]
        lines[kernel] = sorted(chosen, key=lambda one: one.case.n)
    return lines


def _gbps(one: Compared, time_us: float) -> float:
    return float(one.case.n * np.dtype(one.case.dtype).itemsize / time_us / 1000)


def _label(axes: Any, ends: Sequence[tuple[tuple[float, float], str, str]]) -> None:
    """Label each line at its right end, with readable distances."""
    low, high = np.log(axes.get_ylim())
    ordered = sorted(ends, key=lambda end: end[0][1])
    places = _apart([float(np.log(rate)) for (_, rate), _, _ in ordered], (high - low) * 0.05)
    for ((size, rate), text, colour), place in zip(ordered, places, strict=True):
        axes.annotate(
            text,
            xy=(size, rate),
            xytext=(1.03, np.exp(place)),
            textcoords=("axes fraction", "data"),
            va="center",
            color=colour,
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.6, "shrinkB": 4},
            annotation_clip=False,
        )


def _apart(places: Sequence[float], least: float) -> list[float]:
    """Return ascending places, moved minimally until all are `least` apart."""
    moved = list(places)
    for _ in range(100):
        for k in range(len(moved) - 1):
            short = least - (moved[k + 1] - moved[k])
            if short > 0:
                moved[k] -= short / 2
                moved[k + 1] += short / 2
    return moved
