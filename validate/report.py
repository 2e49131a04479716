"""The report on one GPU's measurements against gpusim; `page` and `picture` show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from gpusim.codegen import generators
from gpusim.codegen.generators import AUTO, LOWERING, NVCC, OPTIMISED
from gpusim.gpu import device as devices
from gpusim.host.workers import Listener, ignored
from gpusim.prediction.traffic import PREDICTED

from . import caches, compare, counted, defects, predicted
from .caches import Caches
from .compare import KINDS, Kind, Summary
from .counted import Counted, compare_all
from .defects import Correctness
from .predicted import Compared, Refused, Result
from .records import Measurement, Measurements, in_code


@dataclass(frozen=True)
class Section:
    """Launches of one kind beside their predictions, with the machine code of `code`."""

    kind: Kind
    results: tuple[Result, ...]
    code: str = LOWERING

    @cached_property
    def cases(self) -> list[Compared]:
        """Cases with a prediction."""
        return [one for one in self.results if isinstance(one, Compared)]

    @property
    def refused(self) -> list[Refused]:
        """Cases without one."""
        return [one for one in self.results if isinstance(one, Refused)]

    @cached_property
    def summary(self) -> Summary | None:
        """Statistics of the errors; None without predictions."""
        return compare.summary(self.cases) if self.cases else None

    def misses(self) -> list[str]:
        """Return the section's missed bars."""
        missed = compare.misses(self.summary, self.kind.bars) if self.summary else []
        return [f"{miss}{in_code(self.code)}" for miss in missed]


@dataclass(frozen=True)
class Report:
    """One file of measurements beside gpusim's predictions, counters and known defects.

    Each kind of launches has a section for each code. `counted` has the counters with the
    lowering's code, `counted_in_nvcc` with nvcc's, `caches` those of caches and DRAM, by code.
    """

    measurements: Measurements
    sections: tuple[Section, ...]
    correctness: tuple[Correctness, ...]
    counted: Counted
    counted_in_nvcc: Counted = field(default=Counted((), NVCC))
    caches: tuple[Caches, ...] = ()

    def of_code(self, code: str) -> list[Section]:
        """Return the sections with one code, in order."""
        return [section for section in self.sections if section.code == code]

    def misses(self) -> list[str]:
        """Return the missed bars, each as a sentence."""
        times = [miss for section in self.sections for miss in section.misses()]
        counts = [*self.counted.misses(), *self.counted_in_nvcc.misses()]
        return [*times, *counts, *defects.misses(self.correctness)]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return {
            "machine": asdict(self.measurements.machine),
            "times": [_section_dict(section) for section in self.sections],
            "wrong_results": [_correctness_dict(one) for one in self.correctness],
            "counters": _counted_dict(self.counted),
            "counters_in_nvcc": _counted_dict(self.counted_in_nvcc),
            "caches": [_caches_dict(one) for one in self.caches],
            "missed": self.misses(),
        }


def codes_of(measurements: Measurements, code: str | None = None) -> tuple[str, ...]:
    """Return the generators of predictions: both, or the chosen one.

    nvcc's is only available on GPUs supported by its compiler, and if that is installed.
    """
    chosen = generators.chosen(code)
    refused = generators.refusal(devices.load(measurements.machine.device).cc, OPTIMISED)
    if chosen != AUTO:
        return () if chosen == NVCC and refused else (chosen,)
    return (LOWERING,) if refused or not generators.is_installed() else (LOWERING, NVCC)


def report(
    measurements: Measurements,
    codes: Sequence[str] = (LOWERING,),
    *,
    workers: int | None = None,
    done: Listener = ignored,
) -> Report:
    """Return the report of measurements; `done` is called for each launch."""
    kinds = [(kind, [t for t in measurements.times if kind.wanted(t)]) for kind in KINDS]
    every = [one for _, times in kinds for one in times]
    device = measurements.machine.device
    sections = []
    for code in codes:
        having = [one for one in every if code != LOWERING or one.entry.is_lowered]
        found = predicted.compare(having, device, code, workers=workers, done=done)
        results = dict(zip(having, found, strict=True))
        sections += [
            Section(kind, tuple(results[one] for one in times if one in results), code)
            for kind, times in kinds
            if times
        ]
    counts = measurements.counters
    in_lowering, in_nvcc = (
        compare_all(counts, code, workers=workers, done=done)
        if code in codes
        else Counted((), code)
        for code in (LOWERING, NVCC)
    )
    return Report(
        measurements,
        tuple(sections),
        tuple(defects.correctness(measurements.times)),
        in_lowering,
        in_nvcc,
        tuple(caches.compare(counts, device, code, workers=workers, done=done) for code in codes),
    )


def pieces(measurements: Measurements, codes: Sequence[str]) -> int:
    """Return the number of pieces of work in `report`."""
    times = sum(kind.wanted(one) for kind in KINDS for one in measurements.times)
    return (times + 2 * len(measurements.counters)) * len(codes)


def _section_dict(section: Section) -> dict[str, Any]:
    return {
        "kind": section.kind.title,
        "code": section.code,
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


def _caches_dict(found: Caches) -> dict[str, Any]:
    return {
        "code": found.code,
        "metrics": [
            {**asdict(row), "kind": "model", "unit": PREDICTED[row.metric][0]}
            for row in found.agreements
        ],
        "launches": [
            {
                "kernel": pair.kernel,
                "block": pair.case.block,
                "grid": pair.case.grid,
                "metric": pair.metric,
                "measured": pair.measured,
                "predicted": pair.predicted,
            }
            for pair in found.pairs
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
    """Return the missed bars of several reports, prefixed with each GPU's name."""
    return [f"{one.measurements.machine.gpu}: {miss}" for one in reports for miss in one.misses()]
