"""Published times of single launches, on GPUs that were not measured here.

`published.csv` has a launch a row: GPU, its clock where it was not the device file's, kernel,
elements, microseconds with a cold L2, and where they were published. Other kernels than those of
KERNELS are the catalogue's, in blocks of 256.
"""

# Bodies of kernels are in the dialect: the compiler infers their types.
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np

import gpusim
from gpusim import cuda
from gpusim.catalogue import Request
from gpusim.codegen.generators import LOWERING
from gpusim.gpu import device
from gpusim.gpu.device import Device
from gpusim.prediction.sweeps.jobs import catalogue_job

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
    """A launch with its published time; `gpu` has the clock of then."""

    gpu: Device
    kernel: str
    n: int
    grid: int | None
    measured_us: float
    source: str

    def predicted_us(self) -> float:
        """Return the time predicted with gpusim's code, of the catalogue's without overhead."""
        if self.kernel not in KERNELS:
            job = catalogue_job(Request(self.kernel, self.n, BLOCK * BLOCK, grid=self.grid))
            gpu = self.gpu.without("launch-overhead")
            return float(job.in_code(LOWERING).on(gpu).first.time_us)
        side = isqrt(self.n)
        matrices = [np.zeros(self.n, np.float32) for _ in range(3)]
        launch = KERNELS[self.kernel][(side // BLOCK,) * 2, (BLOCK, BLOCK)]
        sides = np.int32(side), np.int32(side)
        found = gpusim.predict(launch, *matrices, *sides, device=self.gpu, code=LOWERING)
        return float(found.time_us)


def published() -> list[Published]:
    """Return the launches of `published.csv`."""
    return [
        Published(
            device.load(row["device"]).having(
                {"gpu.sm_clock_mhz": float(row["mhz"])} if row["mhz"] else {}
            ),
            row["kernel"],
            int(row["n"]),
            int(row["grid"]) if row["grid"] else None,
            float(row["us"]),
            row["source"],
        )
        for row in rows_of(TIMES)
    ]
