"""A roofline: operations of threads a second over operations for a byte of DRAM.

The form is that of Ding and Williams, An Instruction Roofline Model for GPUs (2019): integer
kernels have no floating-point operations to count, so that an operation is an instruction of a
thread. A warp instruction for a 32-byte sector is an operation of each of 32 threads for a byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpusim.errors import InputError
from gpusim.gpu.device import Device
from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.launch.grid import WARP_SIZE
from gpusim.prediction.records import Prediction
from gpusim.reports.plots.canvas import MARKERS, canvas, plain_numbers, title

LABEL_POINTS = 12.0  # the least distance of labels, one above the other


def place(prediction: Prediction) -> tuple[float, float]:
    """Return operations for a byte of DRAM, and operations a nanosecond."""
    traffic = prediction.traffic
    operations = WARP_SIZE * prediction.instructions
    moved = traffic.dram_bytes + traffic.written_back_bytes
    return operations / moved, operations / prediction.time_us / 1000


def roofs(device: Device) -> tuple[float, float]:
    """Return bytes a nanosecond from DRAM, and operations a nanosecond at most."""
    issue = device.gpu.sms * device.sm.schedulers * device.gpu.sm_clock_mhz / 1000
    return device.bandwidth.dram_peak_gbps, WARP_SIZE * issue


def plot_roofline(*predictions: Prediction, theme: str = "light") -> Any:
    """Draw the two roofs of a device, and its kernels; those without DRAM traffic are left out.

    The axes are operations and bytes; above and on the right they are warp instructions and
    sectors. Raises InputError where no kernel has DRAM traffic.
    """
    device = predictions[0].device
    bandwidth, issue = roofs(device)
    shown = [p for p in predictions if p.traffic.dram_bytes + p.traffic.written_back_bytes]
    if not shown:
        names = ", ".join(prediction.kernel for prediction in predictions)
        raise InputError(
            f"{names} moves no byte from or to DRAM ({predictions[0].l2} L2): there is no "
            "intensity to draw"
        )
    places = [place(prediction) for prediction in shown]
    knee = issue / bandwidth
    ends = min([knee, *(x for x, _ in places)]) / 3, max([knee, *(x for x, _ in places)]) * 3
    middle = (ends[0] * knee) ** 0.5
    with canvas(theme, 9, 5.6) as (figure, ink):
        axes = figure.subplots()
        axes.plot(
            [ends[0], knee, ends[1]], [ends[0] * bandwidth, issue, issue], color=ink.grey, lw=1.6
        )
        for number, where in enumerate(places):
            axes.plot(
                *where,
                ls="none",
                marker=MARKERS[number % len(MARKERS)],
                ms=8,
                color=ink.series[number % len(ink.series)],
            )
        axes.set(xscale="log", yscale="log", xlim=ends)
        axes.set_ylim(min(y for _, y in places) / 3, issue * 1.5)
        axes.set(
            xlabel="operations of threads per byte of DRAM", ylabel="operations of threads per ns"
        )
        plain_numbers(axes.yaxis)
        axes.xaxis.set_major_formatter("{x:g}")
        # A sector of 32 bytes to a warp of 32 threads: the same numbers, in other units.
        above = axes.secondary_xaxis("top", functions=(_per_sector, _per_byte))
        above.set_xlabel("warp instructions per sector of DRAM")
        above.xaxis.set_major_formatter("{x:g}")
        beside = axes.secondary_yaxis("right", functions=(_of_warps, _of_threads))
        beside.set_ylabel("warp instructions per ns")
        plain_numbers(beside.yaxis)
        axes.annotate(
            f"issue: {issue / WARP_SIZE:,.0f} warp instructions per ns", (ends[1], issue),
            xytext=(-4, 4), textcoords="offset points", ha="right", va="bottom", color=ink.grey,
        )  # fmt: skip
        axes.annotate(
            f"DRAM's peak: {device.bandwidth.dram_peak_gbps:,.0f} GB/s",
            (middle, middle * bandwidth), xytext=(8, -2), textcoords="offset points", va="top",
            color=ink.grey,
        )  # fmt: skip
        figure.draw_without_rendering()
        _label(axes, [prediction.kernel for prediction in shown], places)
        title(axes, f"{device.name}: instruction roofline, points predicted")
    return figure


def _per_sector(per_byte: Any) -> Any:
    return per_byte * SECTOR_BYTES / WARP_SIZE


def _per_byte(per_sector: Any) -> Any:
    return per_sector * WARP_SIZE / SECTOR_BYTES


def _of_warps(operations: Any) -> Any:
    return operations / WARP_SIZE


def _of_threads(instructions: Any) -> Any:
    return instructions * WARP_SIZE


def _label(axes: Any, names: Sequence[str], places: Sequence[tuple[float, float]]) -> None:
    """Write each name beside its marker, moved up where another one is in its way."""
    points = 72 / axes.figure.dpi
    drawn = [tuple(points * at for at in axes.transData.transform(where)) for where in places]
    taken: list[tuple[float, float]] = []
    for number in sorted(range(len(names)), key=lambda number: drawn[number][1]):
        x, y = drawn[number]
        height = y
        for left, other in sorted(taken, key=lambda one: one[1]):
            width = 7.0 * max(map(len, names))
            if abs(left - x) < width and abs(other - height) < LABEL_POINTS:
                height = other + LABEL_POINTS
        taken.append((x, height))
        axes.annotate(
            names[number], places[number], xytext=(8, height - y), textcoords="offset points",
            va="center",
        )  # fmt: skip
