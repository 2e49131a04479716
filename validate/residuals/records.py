"""Records of launches, predicted and measured."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpusim.codegen.generators import LOWERING
from gpusim.gpu import device as devices
from gpusim.prediction.uncertainty import CATALOGUE, SHORT
from gpusim.prediction.uncertainty.kinds import (
    GENERATION,
    MEASURED,
    SHORT_OVERHEADS,
    SPINNING,
    gpu_kind,
)

from .. import files
from ..records import L2_STATES

FOLDER = Path(__file__).parent
OTHERS = FOLDER.parent / "others"
GENERATIONS = FOLDER / "generations.csv"
H200 = "h200"
PUBLISHED = "gtx1650", "rtx3060ti", "k40m"
OVERHEADS_OF_THE_HOST = 3.0  # below it most of a published time may be the host's


@dataclass(frozen=True)
class Residual:
    """A launch as predicted and as measured, both in microseconds.

    `group` is left out as a whole in a cross-validation: a set of kernels, a kernel or a GPU.
    `gpu` is a kind of `GPUS`; `kernel` counts the independent cases. `unknown` are the
    names of sampled, extrapolated or supposed properties, None where not recorded. It `is_blind` if
    it was predicted before it was measured, by the model of that time.
    """

    group: str
    gpu: str
    kernel: str
    code: str
    kind: str
    predicted_us: float
    measured_us: float
    unknown: tuple[str, ...] | None = None
    is_blind: bool = False

    @property
    def ratio(self) -> float:
        """Measured over predicted time."""
        return self.measured_us / self.predicted_us


def residuals() -> list[Residual]:
    """Return all records."""
    return [*_others(), *_blind(), *_catalogue(), *_generations(), *_described()]


def rows_of(path: Path) -> Iterator[dict[str, str]]:
    """Yield a table's rows, without its comments."""
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(line for line in file if not line.startswith("#"))


def kind_of(mechanism: str, predicted_us: float) -> str:
    """Return the kind of a launch on the H200, by the mechanism of its program."""
    limit_us = SHORT_OVERHEADS * devices.load(H200).host.launch_overhead_us
    return SHORT if predicted_us < limit_us and mechanism != SPINNING else mechanism


def _others() -> Iterator[Residual]:
    """Yield the other kernels' launches as predicted today."""
    known = {
        (row["kernel"], row["n"], row["code"]): tuple(x for x in row["unknown"].split("; ") if x)
        for row in rows_of(FOLDER / "unknowns.csv")
    }
    measured = {(row["kernel"], row["n"]): row for row in rows_of(OTHERS / "h200.csv")}
    about = {(row["kernel"], row["code"]): row for row in rows_of(FOLDER / "others.csv")}
    for row in rows_of(OTHERS / "predicted.csv"):
        name, n, code = launch = row["kernel"], row["n"], row["code"]
        if row["refused"] or (name, code) not in about:
            continue
        one = about[name, code]
        for l2 in L2_STATES:
            predicted = float(row[f"{l2}_us"])
            kind = kind_of(one["mechanism"], predicted)
            case = one["set"], MEASURED, name, code, kind
            us = float(measured[name, n][f"{l2}_us"])
            yield Residual(*case, predicted, us, known.get(launch))


def _blind() -> Iterator[Residual]:
    """Yield other kernels' launches that were predicted before their measurement."""
    measured = {(row["kernel"], row["n"]): row for row in rows_of(FOLDER / "held_others.csv")}
    for row in rows_of(FOLDER / "held.csv"):
        if (row["kernel"], row["n"]) in measured:
            us = float(measured[row["kernel"], row["n"]][f"{row['l2']}_us"])
            case = "blind", MEASURED, row["kernel"], row["code"], row["kind"]
            yield Residual(*case, float(row["predicted_us"]), us, is_blind=True)


def _catalogue() -> Iterator[Residual]:
    for row in rows_of(FOLDER / "catalogue.csv"):
        case = row["kernel"], MEASURED, row["kernel"], row["code"], CATALOGUE
        yield Residual(*case, float(row["predicted_us"]), float(row["measured_us"]))


def _generations() -> Iterator[Residual]:
    """Yield launches of a measured GPU, predicted with the file of another one of its generation.

    The catalogue's launches are in `pairs.csv`.
    """
    for row in rows_of(FOLDER / "pairs.csv"):
        if row["gpu"] == GENERATION:
            case = row["device"], GENERATION, row["kernel"], LOWERING, CATALOGUE
            yield Residual(*case, float(row["lowering_us"]), float(row["measured_us"]))
    for row in rows_of(GENERATIONS):
        predicted = float(row["predicted_us"])
        kind = kind_of(row["mechanism"], predicted)
        case = row["device"], GENERATION, row["kernel"], row["code"], kind
        yield Residual(*case, predicted, float(row["measured_us"]))


def published_error(launches_of: str) -> float:
    """Return the largest published 90th percentile of errors on GPUs of a measured generation."""
    rows = rows_of(FOLDER / "published.csv")
    return max(float(row["error_90"]) for row in rows if row["launches_of"] == launches_of)


def _described() -> Iterator[Residual]:
    """Yield published times of several launches, without those that the host's time rules.

    That is part of each, and known from the smallest sizes: there all kernels take as long.
    """
    timed = {name: [one for one in files.load(name).times if one.time_us] for name in PUBLISHED}
    least = {name: min(one.time_us or 0.0 for one in some) for name, some in timed.items()}
    for row in rows_of(FOLDER / "described.csv"):
        gpu, measured = row["gpu"], float(row["measured_us"])
        if (
            len({one.case.n for one in timed[gpu]}) > 1
            and measured < OVERHEADS_OF_THE_HOST * least[gpu]
        ):
            continue
        kind = gpu_kind(devices.load(gpu))
        case = gpu, kind, row["kernel"], row["code"], CATALOGUE
        yield Residual(*case, float(row["predicted_us"]), measured)
