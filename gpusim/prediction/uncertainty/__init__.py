"""Prediction intervals, nine of ten launches within, and the certainty of a comparison of two.

A prediction belongs to a kind, by its device, its code's generator and the mechanisms active. The
interval has the quantiles of measured over predicted time of that kind's launches, by split
conformal prediction (Papadopoulos et al. 2002; by groups, Vovk et al. 2003). The launches were
measured after they were predicted; their records and the derivation are in `validate.residuals`.
"""

from gpusim.prediction.uncertainty.certainty import Judgement, Timed, judged
from gpusim.prediction.uncertainty.intervals import Interval, interval_of
from gpusim.prediction.uncertainty.kinds import (
    CATALOGUE,
    GPUS,
    KINDS,
    SHORT,
    UNKNOWNS,
    gpu_kind,
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
