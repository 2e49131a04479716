"""Prediction intervals: the two times between which nine of ten launches are meant to lie.

A prediction belongs to a kind, by its device, its code's generator and the mechanisms at work. The
interval has the quantiles of measured over predicted time of that kind's launches, by split
conformal prediction (Papadopoulos et al. 2002; by groups, Vovk et al. 2003). The launches were
measured after they were predicted; their records and the derivation are in `validate.residuals`.
"""

from gpusim.prediction.uncertainty.intervals import Interval, interval_of, is_tie
from gpusim.prediction.uncertainty.kinds import CATALOGUE, KINDS, SHORT, UNKNOWNS, mechanism
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
    "KINDS",
    "SHORT",
    "UNKNOWNS",
    "Factor",
    "Interval",
    "Quantiles",
    "conformal",
    "factors",
    "interval_of",
    "is_tie",
    "mechanism",
    "quantiles",
]
