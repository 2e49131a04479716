"""All that holding one GPU's measurements against gpusim comes to; `page` and `picture` show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from gpusim.workers import Listener, ignored

from . import compare, counted, defects, predicted
from .compare import KINDS, Kind, Summary
from .counted import Counted, compare_all
from .defects import Correctness
from .predicted import Compared, Refused, Result
from .records import Measurement, Measurements


@dataclass(frozen=True)
class Section:
    """Launches of one kind beside their predictions."""

    kind: Kind
    results: tuple[Result, ...]

    @cached_property
    def cases(self) -> list[Compared]:
        """Those that can be predicted."""
        return [one for one in self.results if isinstance(one, Compared)]

    @property
    def refused(self) -> list[Refused]:
        """Those that cannot."""
        return [one for one in self.results if isinstance(one, Refused)]

    @cached_property
    def summary(self) -> Summary | None:
        """How far the predictions are off; None where there is none."""
        return compare.summary(self.cases) if self.cases else None

    def misses(self) -> list[str]:
        """Return which of its bars the section misses."""
        return compare.misses(self.summary, self.kind.bars) if self.summary else []


@dataclass(frozen=True)
class Report:
    """One file of measurements beside what gpusim predicts, counts and knows."""

    measurements: Measurements
    sections: tuple[Section, ...]
    correctness: tuple[Correctness, ...]
    counted: Counted

    def misses(self) -> list[str]:
        """Return which of the stated bars are missed, each as a sentence."""
        times = [miss for section in self.sections for miss in section.misses()]
        return [*times, *self.counted.misses(), *defects.misses(self.correctness)]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it, ready for JSON."""
        return {
            "machine": asdict(self.measurements.machine),
            "times": [_section_dict(section) for section in self.sections],
            "wrong_results": [_correctness_dict(one) for one in self.correctness],
            "counters": _counted_dict(self.counted),
            "missed": self.misses(),
        }


def report(
    measurements: Measurements,
    *,
    workers: int | None = None,
    done: Listener = ignored,
) -> Report:
    """Return measurements beside all that gpusim says of them; `done` is called for each launch."""
    kinds = [(kind, [t for t in measurements.times if kind.wanted(t)]) for kind in KINDS]
    every = [one for _, times in kinds for one in times]
    device = measurements.machine.device
    results = dict(
        zip(every, predicted.compare(every, device, workers=workers, done=done), strict=True)
    )
    return Report(
        measurements,
        tuple(
            Section(kind, tuple(results[one] for one in times)) for kind, times in kinds if times
        ),
        tuple(defects.correctness(measurements.times)),
        compare_all(measurements.counters, workers=workers, done=done),
    )


def pieces(measurements: Measurements) -> int:
    """Return how many pieces of work `report` has."""
    times = sum(kind.wanted(one) for kind in KINDS for one in measurements.times)
    return times + len(measurements.counters)


def _section_dict(section: Section) -> dict[str, Any]:
    return {
        "kind": section.kind.title,
        "bars": list(section.kind.bars),
        "summary": asdict(section.summary) if section.summary else None,
        "cases": [
            {
                "kernel": one.kernel,
                **asdict(one.case),
                "measured_us": one.measured_us,
                "predicted_us": one.predicted_us,
                "roofline_us": one.roofline_us,
                "error": one.error,
            }
            for one in section.cases
        ],
        "refused": [asdict(one) for one in section.refused],
    }


def _correctness_dict(one: Correctness) -> dict[str, Any]:
    return {
        "kernel": one.kernel,
        "defect": one.defect,
        "fixed_by": one.fixed_by,
        "launches": one.launches,
        "wrong_launches": one.wrong,
        "by_block": [_results_dict(shown) for shown in one.shown],
    }


def _results_dict(one: Measurement) -> dict[str, Any]:
    case = one.case
    return {
        "n": case.n,
        "block": case.block,
        "results": one.results,
        "wrong": one.wrong,
        "fault": one.fault,
    }


def _counted_dict(found: Counted) -> dict[str, Any]:
    return {
        "metrics": [
            {
                "metric": row.metric.name,
                "counter": row.metric.counter,
                "kind": row.metric.kind,
                "bar": row.metric.bar,
                "launches": row.launches,
                "equal": row.equal,
                "within_5_percent": row.near,
                "missed": row.missed,
            }
            for row in found.agreements
        ],
        "unequal": [_pair_dict(pair) for pair in found.unequal],
        "noise": [_pair_dict(pair) for pair in found.noise],
        "refused": [
            {"kernel": one.kernel, "block": one.case.block, "reason": one.reason}
            for one in found.refused
        ],
    }


def _pair_dict(pair: counted.Pair) -> dict[str, Any]:
    return {
        "kernel": pair.kernel,
        "block": pair.case.block,
        "grid": pair.case.grid,
        "metric": pair.metric.name,
        "measured": pair.measured,
        "predicted": pair.predicted,
        "noise": pair.noise,
    }


def all_misses(reports: Sequence[Report]) -> list[str]:
    """Return the missed bars of several reports, with each GPU's name in front."""
    return [f"{one.measurements.machine.gpu}: {miss}" for one in reports for miss in one.misses()]
