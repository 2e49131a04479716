"""Traffic of kernels: bytes read and written by source, as multiples of the least possible."""

from __future__ import annotations

from typing import Any

from gpusim.errors import InputError
from gpusim.prediction.records import Prediction
from gpusim.reports.plots.canvas import canvas, title
from gpusim.reports.quantities import volume

PARTS = (
    ("read from L1", "l1_bytes", 3),
    ("read from L2", "l2_bytes", 2),
    ("read from DRAM", "dram_bytes", 4),
    ("written", "written_bytes", 5),
)
ROOM = 1.35  # beside the longest bar, for its text


def plot_traffic(*predictions: Prediction, theme: str = "light") -> Any:
    """Draw a bar for each kernel, parted by where its bytes come from or go to.

    A bar is as long as the bytes that warps request are multiples of the compulsory ones: distinct
    sectors loaded and distinct sectors stored, once each. Raises InputError where no kernel touches
    global memory.
    """
    shown = [prediction for prediction in predictions if prediction.traffic.compulsory_bytes]
    if not shown:
        names = ", ".join(prediction.kernel for prediction in predictions)
        raise InputError(f"{names} touches no global memory: there is no traffic to draw")
    with canvas(theme, 9, 1.9 + 0.42 * len(shown)) as (figure, ink):
        axes = figure.subplots()
        rows = range(len(shown))
        left = [0.0] * len(shown)
        for name, field, colour in PARTS:
            sizes = [getattr(p.traffic, field) / p.traffic.compulsory_bytes for p in shown]
            if not any(sizes):
                continue
            axes.barh(rows, sizes, left=left, height=0.62, color=ink.series[colour], label=name)
            left = [a + b for a, b in zip(left, sizes, strict=True)]
        for row, prediction in enumerate(shown):
            whole = sum(getattr(prediction.traffic, field) for _, field, _ in PARTS)
            axes.annotate(
                f"{left[row]:.2f}: {volume(whole)}", (left[row], row), xytext=(5, 0),
                textcoords="offset points", va="center",
            )  # fmt: skip
        axes.axvline(1, color=ink.ink, lw=1, ls="--")
        axes.set_yticks(rows, [prediction.kernel for prediction in shown])
        axes.invert_yaxis()
        axes.set_xlim(0, max(1.0, *left) * ROOM)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("bytes over compulsory bytes (dashed: 1), predicted")
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
        first = shown[0]
        title(axes, f"{first.device.name}, {first.l2} L2: requested bytes by source")
    return figure
