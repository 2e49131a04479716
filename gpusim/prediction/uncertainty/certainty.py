"""Which of two launches on one GPU is faster, and how sure that is.

An error in what is known of a GPU moves both predictions of a pair, so that their ratio is better
known than either time. `certainty.csv` has the part of measured pairs that were in the predicted
order, by the predicted ratio and by the difference of the launches; `validate.residuals` writes it.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gpusim.codegen.generators import LOWERING, NVCC
from gpusim.prediction.uncertainty.kinds import CATALOGUE, DESCRIBED, MEASURED, OLDER, errors_of

CERTAIN = 0.95  # of pairs in the predicted order: below it two launches are a tie
LEAST_RATIO = 1.02  # measured twice, nearer launches change places (deviation of 0.6 % on an H200)
TABLE = Path(__file__).parent / "certainty.csv"
COLUMNS = ("gpu", "kernels", "differs", "ratio", "pairs", "ordered", "gpus")

BLOCK, GRID, KERNEL, GENERATOR, GPU = "block", "grid", "kernel", "generator", "GPU"
# The difference of two launches, the first that applies.
DIFFERENCES: Mapping[str, str] = MappingProxyType(
    {
        GPU: "another GPU",
        GENERATOR: "another generator of machine code",
        KERNEL: "another kernel or size",
        BLOCK: "another block",
        GRID: "another grid or coarsening factor",
    }
)
Key = tuple[str, str, str]  # kind of GPU; catalogue, or the generator of other kernels; difference


@dataclass(frozen=True)
class Timed:
    """A predicted launch with all that a comparison with another one depends on.

    `device` distinguishes GPUs, `kernel` kernels and sizes, `block` blocks of threads. `gpu` is a
    kind of `GPUS`, `code` the generator of the machine code.
    """

    time_us: float
    interval_us: tuple[float, float]
    device: Any
    gpu: str
    code: str
    is_catalogue: bool
    kernel: Any
    block: Any


@dataclass(frozen=True)
class Step:
    """Pairs predicted at least `ratio` apart, below the next step's ratio, as they were measured.

    `ordered` of the `pairs` were in the predicted order; they are of `gpus` GPUs.
    """

    ratio: float
    pairs: int
    ordered: int
    gpus: int

    @property
    def share(self) -> float:
        """The part of the pairs in the predicted order."""
        return self.ordered / self.pairs


@dataclass(frozen=True)
class Judgement:
    """The comparison of two predicted launches: ratio, difference and certainty.

    `step` has the measured pairs with that predicted ratio; it is None for launches on different
    GPUs, which tie if each time lies in the other's interval.
    """

    ratio: float
    differs: str
    step: Step | None
    is_tie: bool

    def __str__(self) -> str:
        times = f"{self.ratio:.2f} times"
        if self.step is None:
            return f"{times}: {'a tie' if self.is_tie else 'outside the intervals'}"
        share = f"{100 * self.step.share:.0f} %"
        return (
            f"{times}{', a tie' if self.is_tie else ''}; "
            f"of pairs predicted this far apart {share} were in this order"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data."""
        step = self.step
        return {
            "ratio": self.ratio,
            "differs": DIFFERENCES[self.differs],
            "tie": self.is_tie,
            "in_order": None if step is None else step.share,
            "pairs": None if step is None else step.pairs,
            "gpus": None if step is None else step.gpus,
        }


def judged(one: Timed, other: Timed) -> Judgement:
    """Return the comparison of two predicted launches, whichever is faster."""
    low, high = sorted((one.time_us, other.time_us))
    ratio, differs = high / low, difference(one, other)
    if differs == GPU:
        return Judgement(ratio, differs, None, _holds(one, other) and _holds(other, one))
    step = step_of((one.gpu, kernels_of(one, other), differs), ratio)
    return Judgement(ratio, differs, step, not is_certain(step, ratio))


def is_certain(step: Step, ratio: float) -> bool:
    """Return whether launches that far apart are in the predicted order, rather than a tie."""
    return ratio >= LEAST_RATIO and step.share >= CERTAIN


def difference(one: Timed, other: Timed) -> str:
    """Return the difference of two launches, the first of DIFFERENCES that applies."""
    if one.device != other.device:
        return GPU
    if one.code != other.code:
        return GENERATOR
    if one.kernel != other.kernel:
        return KERNEL
    return BLOCK if one.block != other.block else GRID


def kernels_of(one: Timed, other: Timed) -> str:
    """Return the kind of two kernels: of the catalogue, else by the less certain generator."""
    if one.is_catalogue and other.is_catalogue:
        return CATALOGUE
    return LOWERING if LOWERING in (one.code, other.code) else NVCC


def step_of(key: Key, ratio: float, table: Mapping[Key, Sequence[Step]] | None = None) -> Step:
    """Return the step of a ratio, of a table or else the package's.

    On a GPU that was not measured it is the less certain one of such GPUs and of measured ones.
    Kinds of pairs without measurements have the step of pairs of kernels.
    """
    known = steps() if table is None else table
    gpu, kernels, differs = errors_of(key[0]), *key[1:]
    if gpu == MEASURED:
        return _at(ratio, known.get((gpu, kernels, differs)) or known[gpu, kernels, KERNEL])
    like = DESCRIBED if gpu == OLDER else gpu
    own = known.get((like, kernels, differs)) or known[like, CATALOGUE, KERNEL]
    measured = step_of((MEASURED, kernels, differs), ratio, known)
    return min(_at(ratio, own), measured, key=lambda step: step.share)


def _at(ratio: float, some: Sequence[Step]) -> Step:
    return [step for step in some if step.ratio <= ratio][-1]


@cache
def steps() -> Mapping[Key, Sequence[Step]]:
    """Return the table: the steps of each kind of pair, by ascending ratio."""
    found: dict[Key, list[Step]] = {}
    with TABLE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            counts = int(row["pairs"]), int(row["ordered"]), int(row["gpus"])
            key = row["gpu"], row["kernels"], row["differs"]
            found.setdefault(key, []).append(Step(float(row["ratio"]), *counts))
    return found


def _holds(one: Timed, other: Timed) -> bool:
    low, high = one.interval_us
    return low <= other.time_us <= high
