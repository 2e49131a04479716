"""Traffic of kernels: the sources of the bytes read, and the destinations of the bytes written."""

from __future__ import annotations

from typing import Any

from gpusim.prediction.records import Prediction
from gpusim.reports.plots.canvas import canvas, title

MEGABYTE = 1e6
PARTS = (
    ("read from L1", "l1_bytes", 3),
    ("read from L2", "l2_bytes", 2),
    ("read from DRAM", "dram_bytes", 4),
    ("written", "written_bytes", 5),
)


def plot_traffic(*predictions: Prediction, theme: str = "light") -> Any:
    """Draw a bar for each kernel, parted by where its bytes come from or go to."""
    with canvas(theme, 9, 1.9 + 0.42 * len(predictions)) as (figure, ink):
        axes = figure.subplots()
        rows = range(len(predictions))
        left = [0.0] * len(predictions)
        for name, field, colour in PARTS:
            sizes = [getattr(p.traffic, field) / MEGABYTE for p in predictions]
            axes.barh(rows, sizes, left=left, height=0.62, color=ink.series[colour], label=name)
            left = [a + b for a, b in zip(left, sizes, strict=True)]
        axes.set_yticks(rows, [prediction.kernel for prediction in predictions])
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("MB (10^6 bytes) of one launch, as predicted")
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
        first = predictions[0]
        title(axes, f"{first.device.name}, {first.l2} L2: bytes by source")
    return figure
