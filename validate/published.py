"""Published times of kernels that are not in the catalogue, on GPUs that were not measured here.

`published.csv` has a launch a row: GPU, kernel, rows and columns of its matrices, microseconds
with a cold L2, and where they were published.
"""

# Bodies of kernels are in the dialect: the compiler infers their types.
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import gpusim
from gpusim import cuda

from .table import rows_of

TIMES = Path(__file__).parent / "published.csv"
BLOCK = 16  # a side


@cuda.jit
def add_along_rows(a, b, total, columns, rows):
    """Add two matrices; neighbouring lanes are in neighbouring columns."""
    column, row = cuda.grid(2)
    if row < rows and column < columns:
        total[row * columns + column] = a[row * columns + column] + b[row * columns + column]


@cuda.jit
def add_along_columns(a, b, total, columns, rows):
    """Add two matrices; neighbouring lanes are in neighbouring rows."""
    row, column = cuda.grid(2)
    if row < rows and column < columns:
        total[row * columns + column] = a[row * columns + column] + b[row * columns + column]


KERNELS: dict[str, Any] = {
    "add_along_rows": add_along_rows,
    "add_along_columns": add_along_columns,
}


@dataclass(frozen=True)
class Published:
    """A launch with its published time."""

    device: str
    kernel: str
    side: int
    measured_us: float
    source: str

    def predicted_us(self) -> float:
        """Return the predicted time of the launch."""
        matrices = [np.zeros(self.side**2, np.float32) for _ in range(3)]
        grid, block = (self.side // BLOCK,) * 2, (BLOCK, BLOCK)
        sides = np.int32(self.side), np.int32(self.side)
        launch = KERNELS[self.kernel][grid, block]
        return float(gpusim.predict(launch, *matrices, *sides, device=self.device).time_us)


def published() -> list[Published]:
    """Return the launches of `published.csv`."""
    return [
        Published(row["device"], row["kernel"], int(row["side"]), float(row["us"]), row["source"])
        for row in rows_of(TIMES)
    ]
