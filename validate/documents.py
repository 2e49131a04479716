"""The types of the JSON documents of `gpusim validate`, as those of gpusim's own commands.

docs/schema.py publishes them together, from gpusim.reports.documents and from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

from gpusim.reports.documents import Head

from .compare import Summary
from .operations.verdict import Verdict
from .predicted import Refused
from .records import Machine


class MeasuredCase(TypedDict):
    """A launch with its measured and predicted time, its bound by the roofline, and the error."""

    kernel: str
    n: int
    block: int
    dtype: str
    operation: str
    grid: int | None
    coarse: int | None
    l2: str
    scope: str
    measured_us: float
    predicted_us: float
    roofline_us: float
    error: float


class TimesSection(TypedDict):
    """Times of one kind of launches, with one generator's code."""

    kind: str
    code: str
    bars: list[str]
    summary: Summary | None
    cases: list[MeasuredCase]
    refused: list[Refused]


class MeasuredResults(TypedDict):
    """Results of a launch on a GPU: how many are wrong, or the fault in their place."""

    n: int
    block: int
    results: int | None
    wrong: int | None
    fault: str | None


class WrongResults(TypedDict):
    """A kernel whose results a GPU has wrong, or that has a known defect."""

    kernel: str
    defect: str | None
    fixed_by: str | None
    launches: int
    wrong_launches: int
    by_block: list[MeasuredResults]


class MetricAgreement(TypedDict):
    """A metric of Nsight Compute beside its counter, over all launches."""

    metric: str
    counter: str
    kind: str
    bar: str
    launches: int
    equal: int
    within_5_percent: int
    missed: int


class MetricPair(TypedDict):
    """A metric of one launch, measured and predicted; `noise` is the measurement's own."""

    kernel: str
    block: int
    grid: int | None
    metric: str
    measured: float
    predicted: float
    noise: NotRequired[float]


class RefusedLaunch(TypedDict):
    """A launch that is not counted, and the reason."""

    kernel: str
    block: int
    reason: str


class CountersCompared(TypedDict):
    """Counters with one generator's code beside the hardware's."""

    metrics: list[MetricAgreement]
    unequal: list[MetricPair]
    noise: list[MetricPair]
    refused: list[RefusedLaunch]


class CacheMetric(TypedDict):
    """Errors of one metric of a cache or DRAM, relative; `near` of the launches are within 5 %."""

    metric: str
    kind: str
    unit: str
    launches: int
    mean_error: float
    median_error: float
    percentile_90: float
    worst: float
    near: int


class CachesCompared(TypedDict):
    """Metrics of caches and DRAM beside the hardware's."""

    code: str
    metrics: list[CacheMetric]
    launches: list[MetricPair]


class MeasurementsCompared(TypedDict):
    """One file of measurements beside gpusim's predictions."""

    machine: Machine
    times: list[TimesSection]
    wrong_results: list[WrongResults]
    counters: CountersCompared
    counters_in_nvcc: CountersCompared
    caches: list[CachesCompared]
    missed: list[str]


class ValidateCompare(Head):
    """`gpusim validate compare`: predictions against measurements, with the missed bars."""

    document: Literal["validate compare"]
    reports: list[MeasurementsCompared]
    missed: list[str]


class ValidateCalibrate(Head):
    """`gpusim validate calibrate --json FILE`: all that the microbenchmarks found on a GPU."""

    document: Literal["validate calibrate"]
    machine: Machine
    values: dict[str, float]
    reported: dict[str, int | float | bool | str]
    methods: dict[str, str]
    notes: dict[str, Any]
    failed: dict[str, str]


class ValidateOperations(Head):
    """`gpusim validate operations`: single operations against a GPU's results, bit for bit."""

    document: Literal["validate operations"]
    against: str
    verdicts: list[Verdict]


class LabelledProgram(TypedDict):
    """A labelled program with what a check says of it."""

    name: str
    defects: list[str]
    found: list[str]
    state: Literal["right", "missed", "false report", "refused", "excluded"]
    rules: list[str]
    lines: list[int]
    reason: str
    seconds: float


class ValidateDetectors(Head):
    """`gpusim validate detectors`: how many of a suite's labelled bugs a check finds."""

    document: Literal["validate detectors"]
    suite: str
    counts: dict[str, int]
    verdicts: list[LabelledProgram]


DOCUMENTS: Mapping[str, type] = {
    "validate compare": ValidateCompare,
    "validate calibrate": ValidateCalibrate,
    "validate operations": ValidateOperations,
    "validate detectors": ValidateDetectors,
}
