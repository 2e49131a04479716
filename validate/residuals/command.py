"""`gpusim validate certainty`: intervals and the order of pairs, from the stored launches."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from gpusim.cli import output
from gpusim.prediction.uncertainty import certainty
from gpusim.prediction.uncertainty.certainty import Key, Step
from gpusim.prediction.uncertainty.quantiles import COLUMNS, FACTOR_COLUMNS, FACTORS, TABLE

from . import recording
from .derivation import derived, derived_factors
from .pairs import Launch, certainty_table, derived_steps, launches
from .records import residuals
from .tables import tables

ORIGIN = "# Written by gpusim validate certainty --write from the records of validate/residuals/.\n"
INTERVALS = "# Quantiles of measured over predicted time, 5 % and 95 %, split conformal.\n"
FACTORS_ORIGIN = (
    "# Factors that intervals need where blocks were sampled, work was extrapolated or elements\n"
    "# supposed.\n"
)
PAIRS = "# Pairs of measured launches, by predicted ratio: how many, and in the predicted order.\n"
EXAMPLES = """examples:
  gpusim validate certainty              coverage of intervals, certainty of the order
  gpusim validate certainty --write      the same, and write the tables of the package
  gpusim validate certainty --predict    predict the measured launches again, an hour on one core"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--write", action="store_true", help="write the package's tables")
    parser.add_argument("--predict", action="store_true", help="first predict the launches again")
    parser.set_defaults(function=run)


def run(chosen: argparse.Namespace) -> int:
    """Print how often intervals and orders of launches are right, cross-validated."""
    if chosen.predict:
        recording.record_pairs()
    pairs = launches()
    if chosen.write:
        write(pairs)
    output.write("\n".join([*certainty_table(pairs), "", tables(), ""]))
    return 0


def write(pairs: Sequence[Launch]) -> None:
    """Write the tables that predictions read."""
    some = residuals()
    _write(
        TABLE,
        INTERVALS,
        COLUMNS,
        (
            [*key, one.launches, one.kernels, one.gpus, f"{one.low:.4f}", f"{one.high:.4f}"]
            for key, one in derived(some).items()
        ),
    )
    _write(
        FACTORS,
        FACTORS_ORIGIN,
        FACTOR_COLUMNS,
        (
            [name, one.launches, one.kernels, f"{one.factor:.4f}"]
            for name, one in derived_factors(some).items()
        ),
    )
    _write(certainty.TABLE, PAIRS, certainty.COLUMNS, _step_rows(derived_steps(pairs)))


def _step_rows(found: dict[Key, list[Step]]) -> Iterable[list[object]]:
    for key, steps in found.items():
        for one in steps:
            yield [*key, f"{one.ratio:g}", one.pairs, one.ordered, one.gpus]


def _write(
    path: Path, about: str, columns: Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(about + ORIGIN)
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
