"""Predictions beside measurements: errors, order, and a bare roofline for comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from math import ceil
from typing import Any

import numpy as np

from gpusim import device as devices
from gpusim.arguments import array_spec
from gpusim.catalogue import Setup
from gpusim.errors import GpusimError
from gpusim.prediction import Prediction, predict, total_time_us

from .records import Case, Measurement, Measurements

# Larger launches of kernels whose work grows with the square of n take minutes to play.
MOST_ELEMENTS = {"naive_scan": 4096}
LEAST_ELEMENTS_PUBLISHED = 2**22

APART = 0.05  # two times that differ by less have no order
BARS = {"mean error": 0.10, "90th percentile": 0.20, "tau": 0.95}


@dataclass(frozen=True)
class Compared:
    """One case: what was measured, what is predicted, and what a roofline says (us)."""

    kernel: str
    case: Case
    measured_us: float
    predicted_us: float
    roofline_us: float

    @property
    def error(self) -> float:
        """How far the prediction is off, as a part of what was measured."""
        return self.predicted_us / self.measured_us - 1

    @property
    def roofline_error(self) -> float:
        """How far the roofline is off, as a part of what was measured."""
        return self.roofline_us / self.measured_us - 1


@dataclass(frozen=True)
class Refused:
    """A case that cannot be predicted, and why."""

    kernel: str
    case: Case
    reason: str


def predictions(case: Case, measured: Measurement, device: str) -> list[Prediction]:
    """Return the predictions of a case's launches, in order."""
    gpu = devices.load(device)
    made = []
    for number, setup in enumerate(case.setups(measured.entry)):
        launch = setup.launch
        configured = setup.kernel[launch.grid, launch.block, 0, launch.dynamic_shared_bytes]
        l2 = case.l2 if number == 0 else "warm"
        made.append(predict(configured, *_arguments(setup), device=gpu, l2=l2))
    return made


def _arguments(setup: Setup) -> list[Any]:
    """Return a launch's arguments, with arrays of which only the size is known."""
    known = {
        "input": array_spec(setup.length, setup.dtype),
        "output": array_spec(setup.entry.family.outputs(setup), setup.dtype),
    }
    count = setup.length if setup.entry.one_block else setup.n
    return [known[p] if isinstance(p, str) else p(count) for p in setup.entry.signature]


def compared(measured: Measurement, device: str) -> Compared | Refused:
    """Return a measurement beside its prediction."""
    case = measured.case
    try:
        passes = predictions(case, measured, device)
    except GpusimError as error:
        return Refused(measured.kernel, case, str(error).splitlines()[0])
    gpu = devices.load(device)
    size_bytes = case.n * np.dtype(case.dtype).itemsize
    time = total_time_us(passes)
    roofline = gpu.host.launch_overhead_us + size_bytes / gpu.bandwidth.dram_peak_gbps / 1000
    if case.scope == "copy and all":
        copy = 2 * size_bytes / gpu.bandwidth.dram_gbps / 1000 + gpu.host.pass_gap_us
        time, roofline = time + copy, roofline + copy
    assert measured.time_us is not None
    return Compared(measured.kernel, case, measured.time_us, time, roofline)


def compare(
    measurements: Measurements,
    *,
    wanted: Callable[[Measurement], bool],
    workers: int | None = None,
) -> list[Compared | Refused]:
    """Return every wanted measurement that has a time beside its prediction, in order."""
    chosen = [m for m in measurements.times if m.time_us is not None and wanted(m)]
    device = measurements.machine.device
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(compared, chosen, [device] * len(chosen), chunksize=4))


def is_comparable(measured: Measurement) -> bool:
    """Return whether a measurement is one to be held to: a single cold launch with right results.

    Published times of small inputs hold more of the host than of the kernel.
    """
    case = measured.case
    if case.n > MOST_ELEMENTS.get(measured.kernel, 2**26) or not measured.is_right:
        return False
    if measured.repetitions is None:
        return case.n >= LEAST_ELEMENTS_PUBLISHED
    return case.l2 == "cold" and case.scope == "single"


def misses(found: Summary, *, order_alone: bool = False) -> list[str]:
    """Return which of the stated bars a comparison misses, each as a sentence.

    Published times are held to their order alone: clock, driver and compiler are not known.
    """
    missed = []
    if found.pairs_wrong:
        missed.append(f"{found.pairs_wrong} of {found.pairs_apart} pairs are in the wrong order")
    if order_alone:
        return missed
    if found.mean_error > BARS["mean error"]:
        missed.append(f"the mean error is {found.mean_error:.1%}, above {BARS['mean error']:.0%}")
    if found.percentile_90 > BARS["90th percentile"]:
        missed.append(
            f"the 90th percentile is {found.percentile_90:.1%}, above {BARS['90th percentile']:.0%}"
        )
    return missed


def kendall_tau(measured: Sequence[float], predicted: Sequence[float]) -> float:
    """Return Kendall's tau-a: agreeing less disagreeing pairs, of all pairs; 1 for one value."""
    pairs = list(combinations(range(len(measured)), 2))
    if not pairs:
        return 1.0
    score = 0
    for a, b in pairs:
        product = (measured[a] - measured[b]) * (predicted[a] - predicted[b])
        score += (product > 0) - (product < 0)
    return score / len(pairs)


def wrong_pairs(cases: Sequence[Compared]) -> list[tuple[Compared, Compared]]:
    """Return pairs that were measured more than 5 % apart and are predicted the other way."""
    return [(slow, fast) for slow, fast in _apart(cases) if slow.predicted_us <= fast.predicted_us]


def _apart(cases: Sequence[Compared]) -> Iterable[tuple[Compared, Compared]]:
    for a, b in combinations(cases, 2):
        slow, fast = (a, b) if a.measured_us >= b.measured_us else (b, a)
        if slow.measured_us > fast.measured_us * (1 + APART):
            yield slow, fast


@dataclass(frozen=True)
class Summary:
    """What a comparison comes to. Errors are parts of what was measured."""

    cases: int
    mean_error: float
    percentile_90: float
    worst: float
    roofline_mean_error: float
    tau_by_size: dict[int, float]
    pairs_apart: int
    pairs_wrong: int


def summary(cases: Sequence[Compared]) -> Summary:
    """Return mean and 90th percentile of the absolute errors, and how right the order is.

    Order is looked at within each size. The percentile is the least error that nine tenths
    of the cases do not exceed.
    """
    errors = sorted(abs(c.error) for c in cases)
    by_size: dict[int, list[Compared]] = {}
    for case in cases:
        by_size.setdefault(case.case.n, []).append(case)
    return Summary(
        cases=len(cases),
        mean_error=sum(errors) / len(errors),
        percentile_90=errors[ceil(0.9 * len(errors)) - 1],
        worst=errors[-1],
        roofline_mean_error=sum(abs(c.roofline_error) for c in cases) / len(cases),
        tau_by_size={
            n: kendall_tau([c.measured_us for c in group], [c.predicted_us for c in group])
            for n, group in sorted(by_size.items())
        },
        pairs_apart=sum(1 for group in by_size.values() for _ in _apart(group)),
        pairs_wrong=sum(len(wrong_pairs(group)) for group in by_size.values()),
    )
