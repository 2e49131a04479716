"""Predicted counters of L1, L2 and DRAM beside the hardware's.

Nsight Compute empties the caches before it counts, so that predictions are for a cold L2. They are
a model's: no bar applies, and errors are reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from statistics import fmean, median

from gpusim.codegen.generators import LOWERING
from gpusim.errors import GpusimError
from gpusim.host.workers import Listener, ignored, worked_out
from gpusim.prediction.traffic import PREDICTED

from .predicted import predictions
from .records import Case, Counts
from .statistics import quantile

NEAR = 0.05


@dataclass(frozen=True)
class Pair:
    """One metric of one launch, counted and predicted."""

    kernel: str
    case: Case
    metric: str
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """Relative error of the prediction; for a rate, the difference.

        Relative to the prediction if the count is 0.
        """
        if is_rate(self.metric):
            return (self.predicted - self.measured) / 100
        return (self.predicted - self.measured) / (self.measured or self.predicted or 1)


@dataclass(frozen=True)
class Agreement:
    """Errors of one metric over all launches; `near` of them are at most 5 % off."""

    metric: str
    launches: int
    mean_error: float
    median_error: float
    percentile_90: float
    worst: float
    near: int


@dataclass(frozen=True)
class Caches:
    """The metrics of all launches in one file, beside predictions with one code."""

    pairs: tuple[Pair, ...]
    code: str = LOWERING

    @cached_property
    def agreements(self) -> list[Agreement]:
        """Error statistics, one row for each counted metric."""
        by_metric = {
            name: [abs(pair.error) for pair in self.pairs if pair.metric == name]
            for name in PREDICTED
        }
        return [
            Agreement(
                name,
                launches=len(errors),
                mean_error=fmean(errors),
                median_error=median(errors),
                percentile_90=quantile(errors, 0.9),
                worst=max(errors),
                near=sum(error <= NEAR for error in errors),
            )
            for name, errors in by_metric.items()
            if errors
        ]

    def of(self, kernel: str, metric: str) -> list[Pair]:
        """Return the launches of one kernel."""
        return [one for one in self.pairs if (one.kernel, one.metric) == (kernel, metric)]


def is_rate(metric: str) -> bool:
    """Whether a metric is a percentage: its errors are differences."""
    unit, _, _ = PREDICTED[metric]
    return unit == "%"


def compare_launch(counts: Counts, device: str, code: str = LOWERING) -> list[Pair]:
    """Return a launch's counts beside predictions; empty for a refused launch."""
    counted = [name for name in PREDICTED if name in counts.values]
    try:
        found = predictions(counts.kernel, counts.case, device, code)[0] if counted else None
    except GpusimError:
        return []
    said = found.traffic.counters if found else {}
    return [
        Pair(counts.kernel, counts.case, name, counts.values[name], said[name]) for name in counted
    ]


def compare(
    counts: Sequence[Counts],
    device: str,
    code: str = LOWERING,
    *,
    workers: int | None = None,
    done: Listener = ignored,
) -> Caches:
    """Return all launches beside their predictions; `done` is called for each finished one.

    `device` is a device file's name, `code` the generator of the machine code, `workers` a number
    of processes.
    """
    found: dict[int, list[Pair]] = {}
    for number, pairs in worked_out(
        partial(compare_launch, device=device, code=code), counts, workers
    ):
        found[number] = pairs
        done(counts[number].kernel)
    return Caches(tuple(pair for number in range(len(counts)) for pair in found[number]), code)
