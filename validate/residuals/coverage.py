"""Intervals compared with launches measured later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from .. import files
from ..table import table
from .records import FOLDER, rows_of

PREDICTED = FOLDER / "held.csv"
OTHERS, CATALOGUE_TIMES = FOLDER / "held_others.csv", FOLDER / "held_catalogue.json"
HEAD = (
    "launches of", "kind", "launches", "inside", "median half width", "mean error", "median error",
)  # fmt: skip
ENDS = "low", "predicted", "high"
Key = tuple[str, int, str, str]  # kernel, n, block and type ("" outside the catalogue), L2


@dataclass(frozen=True)
class Held:
    """A launch with its interval as predicted and its time as measured, in microseconds."""

    kernel: str
    is_catalogue: bool
    kind: str
    low_us: float
    predicted_us: float
    high_us: float
    measured_us: float

    @property
    def is_inside(self) -> bool:
        """Whether the measured time lies in the interval."""
        return self.low_us <= self.measured_us <= self.high_us

    @property
    def width(self) -> float:
        """Half the interval's width over the predicted time."""
        return (self.high_us - self.low_us) / 2 / self.predicted_us

    @property
    def error(self) -> float:
        """Relative error of the prediction."""
        return self.predicted_us / self.measured_us - 1


def held() -> list[Held]:
    """Return the launches that were both predicted and measured."""
    measured = {**_of_others(OTHERS), **_of_catalogue(CATALOGUE_TIMES)}
    found = []
    for row in rows_of(PREDICTED):
        us = measured.get((row["kernel"], int(row["n"]), row["block"] + row["dtype"], row["l2"]))
        if us is not None:
            low, predicted, high = (float(row[f"{end}_us"]) for end in ENDS)
            case = row["kernel"], bool(row["block"]), row["kind"]
            found.append(Held(*case, low, predicted, high, us))
    return found


def _of_others(path: Path) -> dict[Key, float]:
    return {
        (row["kernel"], int(row["n"]), "", l2): float(row[f"{l2}_us"])
        for row in rows_of(path)
        for l2 in ("cold", "warm")
    }


def _of_catalogue(path: Path) -> dict[Key, float]:
    return {
        (one.kernel, one.case.n, f"{one.case.block}{one.case.dtype}", one.case.l2): one.time_us
        for one in files.read(path).times
        if one.time_us is not None
    }


def held_table(some: Sequence[Held]) -> list[str]:
    """Return coverage and width of the intervals, the catalogue and others apart, by kind."""
    return table(HEAD, list(_rows(some)), text=2)


def _rows(some: Sequence[Held]) -> Iterator[list[str]]:
    for title, is_catalogue in (("the catalogue", True), ("other kernels", False)):
        part = [one for one in some if one.is_catalogue == is_catalogue]
        kinds = sorted({one.kind for one in part})
        if part:
            yield [title, "all", *_cells(part)]
        for kind in kinds if len(kinds) > 1 else ():
            yield [title, kind, *_cells([one for one in part if one.kind == kind])]


def _cells(some: Sequence[Held]) -> list[str]:
    errors = [abs(one.error) for one in some]
    return [
        str(len(some)),
        f"{fmean(one.is_inside for one in some):.1%}",
        f"±{median(one.width for one in some):.1%}",
        f"{fmean(errors):.1%}",
        f"{median(errors):.1%}",
    ]
