"""gpusim's counters beside the hardware's, by launch and metric.

Loads from shared memory now and then wait for each other in the hardware without a bank conflict.
Such arbitration adds the same number to two metrics, the wavefronts and Nsight's raw bank
conflicts, and a different one in every run: the noise. Counts must be equal without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from gpusim.codegen.generators import LOWERING
from gpusim.errors import GpusimError
from gpusim.host.workers import Listener, ignored, worked_out
from gpusim.tracing.counters import COUNTERS
from gpusim.tracing.trace import trace

from . import twins
from .arrays import random_data
from .counters import SOURCE_VIEW
from .records import Case, Counts, in_code

# Nsight's raw sums of bank conflicts, beside gpusim's metric of the source view.
RAW_CONFLICTS = {
    "shared_load_bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "shared_store_bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
}
NOISY = ("shared_load_wavefronts", "shared_load_bank_conflicts")
MOST_NOISE = 0.05  # of the wavefronts; arbitration alone cannot add more
NEAR = 0.05
INSTRUCTIONS = "instructions"
OF_EVERY_INSTRUCTION = (INSTRUCTIONS, "thread_instructions", "thread_instructions_guard_on")


@dataclass(frozen=True)
class Metric:
    """A metric of Nsight Compute with its counter in gpusim.

    `kind` is the counter's for the executed code. In comparisons every counter must be equal,
    except the counts of all instructions with the lowering's code.
    """

    name: str
    counter: str
    kind: str

    @property
    def is_held_equal(self) -> bool:
        """Whether the bar is equality with the hardware's count, noise aside."""
        return self.kind == "exact" or self.counter not in OF_EVERY_INSTRUCTION

    @property
    def is_noisy(self) -> bool:
        """Whether the hardware's count includes arbitration noise."""
        return self.counter in NOISY

    @property
    def bar(self) -> str:
        """The metric's bar, in words."""
        if self.is_held_equal:
            return "equal after noise" if self.is_noisy else "equal"
        return f"within {NEAR:.0%}" if self.counter == INSTRUCTIONS else ""


def metrics(code: str = LOWERING) -> list[Metric]:
    """Return the metrics counted by both gpusim and the hardware, in gpusim's order."""
    compiler = code if code != LOWERING else ""
    named = {name: RAW_CONFLICTS.get(name, spec.ncu) for name, spec in COUNTERS.items()}
    return [
        Metric(ncu, name, COUNTERS[name].kind_with(compiler))
        for name, ncu in named.items()
        if ncu and not ncu.startswith(SOURCE_VIEW)
    ]


@dataclass(frozen=True)
class Pair:
    """One metric of one launch. `noise` is the part of `measured` added by arbitration."""

    kernel: str
    case: Case
    metric: Metric
    measured: float
    predicted: int
    noise: float = 0

    @property
    def is_equal(self) -> bool:
        """Whether both are the same integer, without the noise."""
        return self.measured - self.noise == self.predicted

    @property
    def is_near(self) -> bool:
        """Whether the prediction is within 5 % of the measurement."""
        return abs(self.predicted - self.measured) <= NEAR * self.measured

    @property
    def is_missed(self) -> bool:
        """Whether the metric's bar is missed."""
        if self.metric.is_held_equal:
            return not self.is_equal
        return self.metric.counter == INSTRUCTIONS and not self.is_near


@dataclass(frozen=True)
class Launch:
    """All metrics of one launch, or the reason why gpusim refuses it.

    The bars apply to correct kernels only.
    """

    kernel: str
    case: Case
    pairs: tuple[Pair, ...]
    is_held: bool
    reason: str = ""


def compare_counters(counts: Counts, code: str = LOWERING) -> Launch:
    """Return the hardware's counts of a launch beside gpusim's, on fresh data.

    `code` is "lowering" for the Python kernel, "nvcc" for its twin in CUDA C++.
    """
    try:
        predicted = _predicted(counts, code)
    except GpusimError as error:
        reason = str(error).splitlines()[0]
        return Launch(counts.kernel, counts.case, (), is_held=False, reason=reason)
    noise = _noise(counts.values, predicted)
    pairs = tuple(
        Pair(
            counts.kernel,
            counts.case,
            metric,
            counts.values[metric.name],
            predicted[metric.counter],
            noise if metric.is_noisy else 0,
        )
        for metric in metrics(code)
        if metric.name in counts.values
    )
    return Launch(counts.kernel, counts.case, pairs, is_held=counts.entry.defect is None)


def _predicted(counts: Counts, code: str) -> dict[str, int]:
    setup = counts.case.setups(counts.entry)[0]
    call = setup.call(random_data(np.random.default_rng(), setup.n, setup.dtype))
    configured = call.configured if code == LOWERING else twins.configured(setup)
    return trace(configured, *call.arguments, code=code).counters


def _noise(measured: Mapping[str, float], predicted: Mapping[str, int]) -> float:
    """Return the arbitration noise of loads: raw conflicts in excess of predicted ones.

    0 for impossible values: negative, or more than a small part.
    """
    raw = measured.get(RAW_CONFLICTS["shared_load_bank_conflicts"], 0)
    noise = raw - predicted["shared_load_bank_conflicts"]
    most = MOST_NOISE * predicted["shared_load_wavefronts"]
    return noise if 0 <= noise <= most else 0


@dataclass(frozen=True)
class Agreement:
    """Agreement of the launches on one metric; `missed` counts those that miss their bar."""

    metric: Metric
    launches: int
    equal: int
    near: int
    missed: int


@dataclass(frozen=True)
class Counted:
    """The counters of all launches in one file, beside those with one code."""

    launches: tuple[Launch, ...]
    code: str = LOWERING

    @cached_property
    def pairs(self) -> list[Pair]:
        """Every metric of every launch."""
        return [pair for launch in self.launches for pair in launch.pairs]

    @cached_property
    def agreements(self) -> list[Agreement]:
        """Agreement, one row for each measured metric."""
        by_metric: dict[Metric, list[Pair]] = {metric: [] for metric in metrics(self.code)}
        for pair in self.pairs:
            by_metric[pair.metric].append(pair)
        missed = [pair.metric for pair in self.missed]
        return [
            Agreement(
                metric,
                launches=len(pairs),
                equal=sum(pair.is_equal for pair in pairs),
                near=sum(pair.is_near for pair in pairs),
                missed=missed.count(metric),
            )
            for metric, pairs in by_metric.items()
            if pairs
        ]

    @cached_property
    def missed(self) -> list[Pair]:
        """Metrics that miss their bar, in launches with bars."""
        held = [pair for launch in self.launches if launch.is_held for pair in launch.pairs]
        return [pair for pair in held if pair.is_missed]

    @cached_property
    def unequal(self) -> list[Pair]:
        """Unequal counts with a bar of equality, and unequal instructions, in any launch."""
        return [
            pair
            for pair in self.pairs
            if not pair.is_equal
            and (pair.metric.is_held_equal or pair.metric.counter == INSTRUCTIONS)
        ]

    @cached_property
    def noise(self) -> list[Pair]:
        """The wavefronts of loads with arbitration noise."""
        return [p for p in self.pairs if p.metric.counter == NOISY[0] and p.noise]

    @property
    def refused(self) -> list[Launch]:
        """Launches refused by gpusim."""
        return [launch for launch in self.launches if launch.reason]

    def misses(self) -> list[str]:
        """Return the missed bars, each as a sentence."""
        return [
            f"{a.metric.counter} ({a.metric.name}): {a.missed} launches are not {a.metric.bar}"
            f"{in_code(self.code)}"
            for a in self.agreements
            if a.missed
        ]


def compare_all(
    counts: Sequence[Counts],
    code: str = LOWERING,
    *,
    workers: int | None = None,
    done: Listener = ignored,
) -> Counted:
    """Return all counters beside gpusim's; `done` is called for each finished launch."""
    found: dict[int, Launch] = {}
    for number, launch in worked_out(partial(compare_counters, code=code), counts, workers):
        found[number] = launch
        done(launch.kernel)
    return Counted(tuple(found[number] for number in range(len(counts))), code)
