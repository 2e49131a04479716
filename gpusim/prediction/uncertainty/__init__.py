"""Prediction intervals, nine of ten launches within, and the certainty of a comparison of two.

A prediction belongs to a kind, by its device, its code's generator and the mechanisms active. The
interval has the quantiles of measured over predicted time of that kind's launches, by split
conformal prediction (Papadopoulos et al. 2002; by groups, Vovk et al. 2003). The launches were
measured after they were predicted; their records and the derivation are in `validate.residuals`.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from gpusim.codegen.generators import LOWERING, NVCC
from gpusim.gpu.device import Device
from gpusim.launch.prepared import Prepared
from gpusim.prediction.uncertainty.certainty import Judgement, Timed, judged
from gpusim.prediction.uncertainty.kinds import (
    CATALOGUE,
    GPUS,
    KINDS,
    SHORT,
    UNKNOWNS,
    errors_of,
    gpu_kind,
    kind_of,
    mechanism,
)
from gpusim.prediction.uncertainty.quantiles import (
    COVERAGE,
    Factor,
    Quantiles,
    conformal,
    factors,
    quantiles,
)

__all__ = [
    "CATALOGUE",
    "COVERAGE",
    "GPUS",
    "KINDS",
    "SHORT",
    "UNKNOWNS",
    "Factor",
    "Interval",
    "Judgement",
    "Quantiles",
    "Timed",
    "conformal",
    "factors",
    "gpu_kind",
    "interval_of",
    "judged",
    "mechanism",
    "quantiles",
]


@dataclass(frozen=True)
class Interval:
    """A prediction interval in microseconds, with its kind and the launches it is derived from.

    `gpu` is a kind of `GPUS` or "calibrated", `code` the generator of the machine code; `unknown`
    are the reasons for a wider interval, rows of `UNKNOWNS`. The launches are of `gpus` GPUs.
    """

    low_us: float
    high_us: float
    gpu: str
    code: str
    kind: str
    launches: int
    gpus: int
    unknown: tuple[str, ...] = ()

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
            "gpus": self.gpus,
            "unknown": list(self.unknown),
        }


def interval_of(
    prepared: Prepared, device: Device, time_us: float, unknown: Collection[str] = ()
) -> Interval:
    """Return the interval of a predicted time.

    With nvcc's code, the code of the factors' launches, it is wider by the largest factor of
    `unknown`.
    """
    code = NVCC if prepared.program.compiler else LOWERING
    kind, gpu = kind_of(prepared, device, time_us), gpu_kind(device)
    found = quantiles()[errors_of(gpu), code, kind]
    has_factors = code == NVCC and kind != CATALOGUE
    wider = {name: factors()[name].factor for name in unknown} if has_factors else {}
    found = found.widened(max(wider.values(), default=1.0))
    low, high = time_us * found.low, time_us * found.high
    widening = tuple(name for name, factor in wider.items() if factor > 1)
    return Interval(low, high, gpu, code, kind, found.launches, found.gpus, widening)
