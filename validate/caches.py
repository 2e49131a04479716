"""What the L1, the L2 and DRAM are predicted to count beside what the hardware counted.

Nsight Compute empties the caches before it counts, so that predictions are those of a cold L2. They
are a model's: none is held to a bar, and how far off they are is told.
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
    """One metric of one launch: what was counted, and what is predicted."""

    kernel: str
    case: Case
    metric: str
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """How far the prediction is off: a part of what was counted, of a rate the difference.

        Where nothing was counted, any other prediction is off by all of itself.
        """
        if is_rate(self.metric):
            return (self.predicted - self.measured) / 100
        return (self.predicted - self.measured) / (self.measured or self.predicted or 1)


@dataclass(frozen=True)
class Agreement:
    """How far off one metric is over all launches; `near` of them are at most 5 % off."""

    metric: str
    launches: int
    mean_error: float
    median_error: float
    percentile_90: float
    worst: float
    near: int


@dataclass(frozen=True)
class Caches:
    """The metrics of all launches that one file holds, beside predictions with one code."""

    pairs: tuple[Pair, ...]
    code: str = LOWERING

    @cached_property
    def agreements(self) -> list[Agreement]:
        """What the launches come to, a row for each metric that was counted."""
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
    """Whether a metric is a percentage, the errors of which are differences."""
    unit, _, _ = PREDICTED[metric]
    return unit == "%"


def compare_launch(counts: Counts, device: str, code: str = LOWERING) -> list[Pair]:
    """Return what was counted in a launch beside what is predicted; nothing where it is refused."""
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
    """Return all launches beside their predictions; `done` is called for each that is finished.

    `device` is a device file's name, `code` whose machine code is played, `workers` a number of
    processes.
    """
    found: dict[int, list[Pair]] = {}
    for number, pairs in worked_out(
        partial(compare_launch, device=device, code=code), counts, workers
    ):
        found[number] = pairs
        done(counts[number].kernel)
    return Caches(tuple(pair for number in range(len(counts)) for pair in found[number]), code)
