"""Intervals of predictions, and ties between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from gpusim.codegen.generators import LOWERING, NVCC
from gpusim.prediction.uncertainty.kinds import CATALOGUE, KINDS, is_measured, kind_of
from gpusim.prediction.uncertainty.quantiles import COVERAGE, quantiles

if TYPE_CHECKING:
    from gpusim.prediction.records import Prediction

MEASURED, DESCRIBED = "measured", "described"


@dataclass(frozen=True)
class Interval:
    """A prediction interval in microseconds, with its kind and the launches behind it.

    `gpu` is "measured" or "described", `code` the generator of the machine code.
    """

    low_us: float
    high_us: float
    gpu: str
    code: str
    kind: str
    launches: int

    @property
    def bounds_us(self) -> tuple[float, float]:
        """The interval as (low, high)."""
        return self.low_us, self.high_us

    def to_dict(self) -> dict[str, Any]:
        """Return the interval as plain data."""
        return {
            "low_us": self.low_us,
            "high_us": self.high_us,
            "coverage": COVERAGE,
            "gpu": self.gpu,
            "code": self.code,
            "kind": self.kind,
            "meaning": KINDS[self.kind],
            "launches": self.launches,
        }


def interval_of(prediction: Prediction) -> Interval:
    """Return the interval of a prediction.

    On a GPU known by its description alone it also spans the interval of all such GPUs.
    """
    code = NVCC if prediction.prepared.program.compiler else LOWERING
    kind, table = kind_of(prediction), quantiles()
    found = table[MEASURED, code, kind]
    gpu = MEASURED if is_measured(prediction) else DESCRIBED
    if gpu == DESCRIBED:
        found = found.spanning(table[DESCRIBED, code, CATALOGUE])
    time = prediction.time_us
    return Interval(time * found.low, time * found.high, gpu, code, kind, found.launches)


class Timed(Protocol):
    """A time with its interval, both in microseconds."""

    @property
    def time_us(self) -> float:
        """The predicted time."""

    @property
    def interval_us(self) -> tuple[float, float]:
        """The interval as (low, high)."""


def is_tie(one: Timed, other: Timed) -> bool:
    """Return whether each of two times lies in the interval of the other."""
    return _holds(one, other.time_us) and _holds(other, one.time_us)


def _holds(one: Timed, time_us: float) -> bool:
    low, high = one.interval_us
    return low <= time_us <= high
