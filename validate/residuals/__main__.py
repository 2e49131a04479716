"""Derives the table of prediction intervals, or prints the accuracy page's tables of them."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from gpusim.prediction.uncertainty.quantiles import (
    COLUMNS,
    FACTOR_COLUMNS,
    FACTORS,
    TABLE,
)

from . import held, unknowns
from .derivation import derived, derived_factors
from .records import residuals
from .tables import tables

ORIGIN = (
    "# Quantiles of measured over predicted time by kind, 5 % and 95 %, split conformal:\n"
    "# written by python -m validate.residuals derive from the records of validate/residuals/.\n"
)

FACTORS_ORIGIN = (
    "# Factors that intervals need where blocks were sampled, work was extrapolated or elements\n"
    "# supposed: written by python -m validate.residuals derive, as the quantiles are.\n"
)


def derive() -> None:
    """Write the tables that predictions read."""
    some = residuals()
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        file.write(ORIGIN)
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for key, one in derived(some).items():
            writer.writerow([*key, one.launches, one.kernels, f"{one.low:.4f}", f"{one.high:.4f}"])
    with FACTORS.open("w", encoding="utf-8", newline="") as file:
        file.write(FACTORS_ORIGIN)
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(FACTOR_COLUMNS)
        for name, factor in derived_factors(some).items():
            writer.writerow([name, factor.launches, factor.kernels, f"{factor.factor:.4f}"])


def show() -> None:
    """Print the tables of the accuracy page."""
    sys.stdout.write(tables() + "\n")


if __name__ == "__main__":
    command, *given = sys.argv[1:]
    if command == "measure":
        held.measure(Path(given[0]))
    else:
        {
            "derive": derive,
            "show": show,
            "predict": held.predict_all,
            "unknowns": unknowns.record,
        }[command]()
