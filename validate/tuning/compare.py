"""Choices of `gpusim tune` for other kernels, compared with measured times of their candidates.

    python -m validate.tuning.compare predict [KERNEL ...]    writes predicted.csv
    python -m validate.tuning.compare show                    prints the table

Candidates of the catalogue are those of `gpusim validate compare --against h200-tuning`.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpusim.prediction.predict import predict

from ..compare import SMALL_REGRET
from ..table import rows_of, table

HERE = Path(__file__).parent
MEASURED, PREDICTED = HERE / "h200.csv", HERE / "predicted.csv"
DEVICE = "h200"
COLUMNS = "kernel", "n", "block", "grid", "nvcc_us"

Key = tuple[str, int, int, int]  # kernel, size, block and grid


@dataclass(frozen=True)
class Candidate:
    """A launch: its measured time and the one predicted with nvcc's code, with a cold L2."""

    kernel: str
    n: int
    block: int
    grid: int
    measured_us: float
    predicted_us: float


@dataclass(frozen=True)
class Choice:
    """The candidates of a kernel at one size."""

    candidates: Sequence[Candidate]

    @property
    def chosen(self) -> Candidate:
        """The fastest candidate by predictions."""
        return min(self.candidates, key=lambda one: one.predicted_us)

    @property
    def fastest(self) -> Candidate:
        """The fastest candidate as measured."""
        return min(self.candidates, key=lambda one: one.measured_us)

    @property
    def regret(self) -> float:
        """The chosen launch's measured time over that of the fastest, less one."""
        return self.chosen.measured_us / self.fastest.measured_us - 1


def _key(row: dict[str, str]) -> Key:
    return row["kernel"], int(row["n"]), int(row["block"]), int(row["grid"])


def choices() -> list[Choice]:
    """Return the choices of all kernels with a prediction for each of their candidates."""
    predicted = {_key(row): float(row["nvcc_us"]) for row in rows_of(PREDICTED)}
    found: dict[tuple[str, int], list[Candidate]] = {}
    lacking = set()
    for row in rows_of(MEASURED):
        key = _key(row)
        if key in predicted:
            made = Candidate(*key, float(row["cold_us"]), predicted[key])
            found.setdefault(key[:2], []).append(made)
        else:
            lacking.add(key[:2])
    return [
        Choice(tuple(made))
        for launch, made in found.items()
        if launch not in lacking and len(made) > 1
    ]


def report(found: Sequence[Choice]) -> list[str]:
    """Return the number of good choices, and a table of all of them."""
    good = sum(one.regret <= SMALL_REGRET for one in found)
    rows = (
        (
            one.chosen.kernel,
            f"{one.chosen.n:,}",
            len(one.candidates),
            _launch(one.chosen),
            _launch(one.fastest),
            f"{one.fastest.measured_us:,.1f}",
            f"{one.regret:.1%}",
        )
        for one in found
    )
    head = ("kernel", "n", "candidates", "chosen", "fastest", "measured us", "regret")
    return [
        f"Of {len(found)} other kernels, {good} are at most {SMALL_REGRET:.0%} slower in the "
        "launch that predictions with nvcc's code choose than in the fastest one measured.",
        "",
        *table(head, rows),
    ]


def _launch(one: Candidate) -> str:
    return f"{one.grid:,} x {one.block}"


def predict_all(*kernels: str) -> None:
    """Predict the candidates of all kernels, or of some; other predictions are kept."""
    held = {_key(row): row["nvcc_us"] for row in rows_of(PREDICTED)} if PREDICTED.exists() else {}
    measured = [_key(row) for row in rows_of(MEASURED)]
    for key in measured:
        if not kernels or key[0] in kernels:
            held[key] = f"{_predicted_us(key):.3f}"
            print(*key, held[key], flush=True)
            _write((*key, held[key]) for key in measured if key in held)


def _predicted_us(key: Key) -> float:
    from ..others.compare import configured  # a data set that is not in the wheel
    from ..others.plans import KERNELS
    from .candidates import with_block

    name, n, block, grid = key
    launch = with_block(KERNELS[name].at(n), block, grid)
    assert launch is not None
    return predict(configured(launch, "nvcc"), *launch.specified(), device=DEVICE).time_us


def _write(rows: Iterator[Sequence[object]]) -> None:
    with PREDICTED.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows)


if __name__ == "__main__":
    command, *given = sys.argv[1:]
    if command == "predict":
        predict_all(*given)
    else:
        print("\n".join(report(choices())))
