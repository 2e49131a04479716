"""Quantiles of measured over predicted time by kind, and factors of wider intervals.

Both tables, `quantiles.csv` and `factors.csv`, are written by `validate.residuals`.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

COVERAGE = 0.9
TABLE = Path(__file__).parent / "quantiles.csv"
FACTORS = Path(__file__).parent / "factors.csv"
FACTOR_COLUMNS = ("unknown", "launches", "kernels", "factor")
COLUMNS = ("gpu", "code", "kind", "launches", "kernels", "gpus", "low", "high")
Key = tuple[str, str, str]  # kind of GPU, code, kind of launch


@dataclass(frozen=True)
class Factor:
    """The factor of wider intervals for a row of `UNKNOWNS`, and its launches."""

    launches: int
    kernels: int
    factor: float


@dataclass(frozen=True)
class Quantiles:
    """Quantiles of measured over predicted time, and their launches, kernels and GPUs."""

    launches: int
    kernels: int
    low: float
    high: float
    gpus: int = 1

    @property
    def width(self) -> float:
        """Half the interval's width, as a fraction of the predicted time."""
        return (self.high - self.low) / 2

    def widened(self, factor: float) -> Quantiles:
        """Return the interval with both ends further from the prediction, by a factor."""
        return replace(self, low=self.low / factor, high=self.high * factor)

    def spanning(self, other: Quantiles) -> Quantiles:
        """Return the interval of two kinds that both apply: the lower low, the higher high."""
        low, high = min(self.low, other.low), max(self.high, other.high)
        return replace(self, low=low, high=high)


def conformal(ratios: Sequence[float], coverage: float = COVERAGE) -> tuple[float, float]:
    """Return the interval that holds another ratio of the kind with at least this probability.

    With n exchangeable ratios, those of rank floor((n + 1) a / 2) and ceil((n + 1) (1 - a / 2)),
    where a = 1 - coverage, and the extremes where n is too small (Vovk, Gammerman and Shafer,
    Algorithmic Learning in a Random World, 2005). `ratios` must not be empty.
    """
    ordered, number = sorted(ratios), len(ratios)
    tail = round((number + 1) * (1 - coverage) / 2, 9)  # 5, not 4.999...
    low = max(math.floor(tail), 1)
    high = min(math.ceil(number + 1 - tail), number)
    return ordered[low - 1], ordered[high - 1]


@cache
def quantiles() -> Mapping[Key, Quantiles]:
    """Return the table by GPU, code and kind."""
    return {
        (row["gpu"], row["code"], row["kind"]): Quantiles(
            int(row["launches"]),
            int(row["kernels"]),
            float(row["low"]),
            float(row["high"]),
            int(row["gpus"]),
        )
        for row in _rows(TABLE)
    }


@cache
def factors() -> Mapping[str, Factor]:
    """Return the factors by row of `kinds.UNKNOWNS`."""
    return {
        row["unknown"]: Factor(int(row["launches"]), int(row["kernels"]), float(row["factor"]))
        for row in _rows(FACTORS)
    }


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))
