"""Records of launches, predicted and measured."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpusim.gpu import device as devices
from gpusim.prediction.uncertainty import CATALOGUE, SHORT
from gpusim.prediction.uncertainty.gpus import DESCRIBED, MEASURED
from gpusim.prediction.uncertainty.kinds import SHORT_OVERHEADS, SPINNING

FOLDER = Path(__file__).parent
GENERATIONS = FOLDER / "generations.csv"
H200 = "h200"


@dataclass(frozen=True)
class Residual:
    """A launch as predicted and as measured, both in microseconds.

    `group` is left out as a whole in a cross-validation: a set of kernels, a kernel or a GPU.
    `gpu` is "measured" or "described"; `kernel` counts the independent cases. `unknown` are the
    names of what was sampled, extrapolated or supposed, None where that was not recorded.
    """

    group: str
    gpu: str
    kernel: str
    code: str
    kind: str
    predicted_us: float
    measured_us: float
    unknown: tuple[str, ...] | None = None

    @property
    def ratio(self) -> float:
        """Measured over predicted time."""
        return self.measured_us / self.predicted_us


def residuals() -> list[Residual]:
    """Return all records."""
    return [*_others(), *_catalogue(), *_described()]


def rows_of(path: Path) -> Iterator[dict[str, str]]:
    """Yield a table's rows, without its comments."""
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(line for line in file if not line.startswith("#"))


def kind_of(mechanism: str, predicted_us: float) -> str:
    """Return the kind of a launch on the H200, by the mechanism of its program."""
    limit_us = SHORT_OVERHEADS * devices.load(H200).host.launch_overhead_us
    return SHORT if predicted_us < limit_us and mechanism != SPINNING else mechanism


def _others() -> Iterator[Residual]:
    known = {
        (row["kernel"], row["n"], row["code"]): tuple(x for x in row["unknown"].split("; ") if x)
        for row in rows_of(FOLDER / "unknowns.csv")
    }
    for row in rows_of(FOLDER / "others.csv"):
        predicted = float(row["predicted_us"])
        kind = kind_of(row["mechanism"], predicted)
        case = row["set"], MEASURED, row["kernel"], row["code"], kind
        unknown = known.get((row["kernel"], row["n"], row["code"]))
        yield Residual(*case, predicted, float(row["measured_us"]), unknown)


def _catalogue() -> Iterator[Residual]:
    for row in rows_of(FOLDER / "catalogue.csv"):
        case = row["kernel"], MEASURED, row["kernel"], row["code"], CATALOGUE
        yield Residual(*case, float(row["predicted_us"]), float(row["measured_us"]))


def _described() -> Iterator[Residual]:
    for row in rows_of(FOLDER / "described.csv"):
        case = row["gpu"], DESCRIBED, row["kernel"], row["code"], CATALOGUE
        yield Residual(*case, float(row["predicted_us"]), float(row["measured_us"]))
