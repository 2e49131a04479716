"""An instruction roofline: warp instructions a second over warp instructions for a sector.

The form is that of Ding and Williams, An Instruction Roofline Model for GPUs (2019): integer
kernels have no floating-point operations to count.
"""

from __future__ import annotations

from typing import Any

from gpusim.gpu.device import Device
from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.prediction.records import Prediction
from gpusim.reports.plots.canvas import MARKERS, canvas, plain_numbers, title


def place(prediction: Prediction) -> tuple[float, float]:
    """Return warp instructions for a sector of DRAM, and warp instructions a nanosecond."""
    traffic = prediction.traffic
    sectors = (traffic.dram_bytes + traffic.written_back_bytes) / SECTOR_BYTES
    return prediction.instructions / sectors, prediction.instructions / prediction.time_us / 1000


def roofs(device: Device) -> tuple[float, float]:
    """Return sectors a nanosecond from DRAM, and warp instructions a nanosecond at most."""
    issue = device.gpu.sms * device.sm.schedulers * device.gpu.sm_clock_mhz / 1000
    return device.bandwidth.dram_peak_gbps / SECTOR_BYTES, issue


def plot_roofline(*predictions: Prediction, theme: str = "light") -> Any:
    """Draw the two roofs of a device, and its kernels; those without DRAM traffic are left out."""
    device = predictions[0].device
    bandwidth, issue = roofs(device)
    shown = [p for p in predictions if p.traffic.dram_bytes + p.traffic.written_back_bytes]
    places = [place(prediction) for prediction in shown]
    knee = issue / bandwidth
    ends = min([knee, *(x for x, _ in places)]) / 3, max([knee, *(x for x, _ in places)]) * 3
    middle = (ends[0] * knee) ** 0.5
    with canvas(theme, 9, 5) as (figure, ink):
        axes = figure.subplots()
        axes.plot(
            [ends[0], knee, ends[1]], [ends[0] * bandwidth, issue, issue], color=ink.grey, lw=1.6
        )
        for number, (prediction, where) in enumerate(zip(shown, places, strict=True)):
            axes.plot(
                *where,
                ls="none",
                marker=MARKERS[number % len(MARKERS)],
                ms=8,
                color=ink.series[number % len(ink.series)],
                label=prediction.kernel,
            )
        axes.set(xscale="log", yscale="log", xlim=ends)
        axes.set_ylim(top=issue * 1.3)
        axes.set(
            xlabel="warp instructions per 32-byte sector of DRAM",
            ylabel="warp instructions per ns",
        )
        plain_numbers(axes.yaxis)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.annotate(
            f"issue: {issue:,.0f} warp instructions per ns", (ends[1], issue), xytext=(0, 3),
            textcoords="offset points", ha="right", va="bottom", color=ink.grey,
        )  # fmt: skip
        axes.annotate(
            f"DRAM's peak: {device.bandwidth.dram_peak_gbps:,.0f} GB/s",
            (middle, middle * bandwidth), xytext=(8, -2), textcoords="offset points", va="top",
            color=ink.grey,
        )  # fmt: skip
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
        title(axes, f"{device.name}: instruction roofline", "points predicted")
    return figure
