"""Errors and order of predictions over measured launches, and their bars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil
from statistics import median

from .predicted import Compared
from .records import Measurement

APART = 0.05  # relative difference up to which two times have no order
MOST_MEAN_ERROR = 0.10
MOST_90TH_PERCENTILE = 0.20
LEAST_TAU = 0.95
SMALL_REGRET = 0.03  # of a choice of the fastest launch
FEWEST_FOR_TAU = 10  # launches of a size; with fewer, one almost equal pair dominates

MOST_ELEMENTS_HELD = 2**26
# Published times of small inputs are mostly launch overhead.
LEAST_ELEMENTS_PUBLISHED = 2**22


ORDER, TIME, TAU = "order", "time", "tau"

BARS = {
    ORDER: f"every two launches of a size more than {APART:.0%} apart are in the right order",
    TAU: f"Kendall's tau of each size with {FEWEST_FOR_TAU} launches is at least {LEAST_TAU}",
    TIME: f"the mean error is at most {MOST_MEAN_ERROR:.0%}, the 90th percentile "
    f"{MOST_90TH_PERCENTILE:.0%}",
}


@dataclass(frozen=True)
class Kind:
    """A group of launches; `bars` names the applicable ones of BARS."""

    title: str
    short: str
    wanted: Callable[[Measurement], bool]
    bars: tuple[str, ...] = ()


def _is_timed(one: Measurement) -> bool:
    return one.is_right and one.time_us is not None


def _is(one: Measurement, l2: str, scope: str) -> bool:
    """Whether a launch was measured on a GPU, with this L2 state and scope."""
    measured = one.repetitions is not None and (one.case.l2, one.case.scope) == (l2, scope)
    return measured and _is_timed(one)


KINDS = (
    Kind(
        "published times, all passes, 2^22 elements and more",
        "published",
        lambda one: (
            one.repetitions is None and one.case.n >= LEAST_ELEMENTS_PUBLISHED and _is_timed(one)
        ),
        (ORDER,),
    ),
    Kind(
        "a single pass, cold L2, up to 2^26 elements",
        "cold",
        lambda one: _is(one, "cold", "single") and one.case.n <= MOST_ELEMENTS_HELD,
        (TIME, TAU),
    ),
    Kind("a single pass, warm L2", "warm", lambda one: _is(one, "warm", "single")),
    Kind("all passes, the first with a cold L2", "all passes", lambda one: _is(one, "cold", "all")),
    Kind(
        "a single pass, cold L2, 2^28 elements",
        "2^28",
        lambda one: _is(one, "cold", "single") and one.case.n > MOST_ELEMENTS_HELD,
    ),
)


def kendall_tau(measured: Sequence[float], predicted: Sequence[float]) -> float:
    """Return Kendall's tau-a: concordant less discordant pairs over all pairs; 1 for one value."""
    pairs = list(combinations(range(len(measured)), 2))
    if not pairs:
        return 1.0
    score = 0
    for a, b in pairs:
        product = (measured[a] - measured[b]) * (predicted[a] - predicted[b])
        score += (product > 0) - (product < 0)
    return score / len(pairs)


def by_size(cases: Iterable[Compared]) -> dict[int, list[Compared]]:
    """Return cases by their number of elements, ascending."""
    found: dict[int, list[Compared]] = {}
    for case in sorted(cases, key=lambda c: c.case.n):
        found.setdefault(case.case.n, []).append(case)
    return found


def wrong_pairs(cases: Sequence[Compared]) -> list[tuple[Compared, Compared]]:
    """Return pairs measured more than 5 % apart and predicted in the opposite order."""
    return [(slow, fast) for slow, fast in _apart(cases) if slow.predicted_us <= fast.predicted_us]


def _apart(cases: Sequence[Compared]) -> Iterable[tuple[Compared, Compared]]:
    for a, b in combinations(cases, 2):
        slow, fast = (a, b) if a.measured_us >= b.measured_us else (b, a)
        if slow.measured_us > fast.measured_us * (1 + APART):
            yield slow, fast


def regrets(cases: Iterable[Compared]) -> list[float]:
    """Return the regret of each choice of the fastest launch by predictions."""
    return [regret for found in regrets_by_kernel(cases).values() for regret in found]


def regrets_by_kernel(cases: Iterable[Compared]) -> dict[str, list[float]]:
    """Return the regrets of each kernel's choices of the fastest launch by predictions.

    A choice is among the blocks, grids and coarsening factors of a kernel at one size and type. Its
    regret is the chosen launch's measured time over that of the fastest, less one.
    """
    launches: dict[tuple[str, int, str], list[Compared]] = {}
    for one in cases:
        launches.setdefault((one.kernel, one.case.n, one.case.dtype), []).append(one)
    found: dict[str, list[float]] = {}
    for (kernel, _, _), candidates in launches.items():
        if len(candidates) > 1:
            chosen = min(candidates, key=lambda one: one.predicted_us)
            fastest = min(one.measured_us for one in candidates)
            found.setdefault(kernel, []).append(chosen.measured_us / fastest - 1)
    return found


@dataclass(frozen=True)
class Summary:
    """Statistics of a comparison. Errors are relative to the measurement.

    `choices` of a kernel's fastest launch have a regret, at most SMALL_REGRET for `choices_good`.
    """

    cases: int
    mean_error: float
    median_error: float
    percentile_90: float
    worst: float
    roofline_mean_error: float
    tau_by_size: dict[int, float]
    pairs_apart: int
    pairs_wrong: int
    choices: int
    choices_good: int
    worst_regret: float


def summary(cases: Sequence[Compared]) -> Summary:
    """Return mean, median and 90th percentile of the absolute errors, and the rank correlation.

    Order is compared within each size, tau only for sizes with ten cases. The percentile is the
    least error not exceeded by nine tenths of the cases.
    """
    errors = sorted(abs(c.error) for c in cases)
    groups, chosen = by_size(cases), regrets(cases)
    return Summary(
        cases=len(cases),
        mean_error=sum(errors) / len(errors),
        median_error=median(errors),
        percentile_90=errors[ceil(0.9 * len(errors)) - 1],
        worst=errors[-1],
        roofline_mean_error=sum(abs(c.roofline_error) for c in cases) / len(cases),
        tau_by_size={
            n: kendall_tau([c.measured_us for c in group], [c.predicted_us for c in group])
            for n, group in groups.items()
            if len(group) >= FEWEST_FOR_TAU
        },
        pairs_apart=sum(1 for group in groups.values() for _ in _apart(group)),
        pairs_wrong=sum(len(wrong_pairs(group)) for group in groups.values()),
        choices=len(chosen),
        choices_good=sum(regret <= SMALL_REGRET for regret in chosen),
        worst_regret=max(chosen, default=0.0),
    )


def misses(found: Summary, bars: Sequence[str]) -> list[str]:
    """Return the missed bars of a comparison, each as a sentence."""
    missed = []
    if ORDER in bars and found.pairs_wrong:
        missed.append(f"{found.pairs_wrong} of {found.pairs_apart} pairs are in the wrong order")
    if TAU in bars:
        missed += [
            f"Kendall's tau at {n:,} elements is {tau:.3f}, below {LEAST_TAU}"
            for n, tau in found.tau_by_size.items()
            if tau < LEAST_TAU
        ]
    if TIME in bars and found.mean_error > MOST_MEAN_ERROR:
        missed.append(f"the mean error is {found.mean_error:.1%}, above {MOST_MEAN_ERROR:.0%}")
    if TIME in bars and found.percentile_90 > MOST_90TH_PERCENTILE:
        missed.append(
            f"the 90th percentile is {found.percentile_90:.1%}, above {MOST_90TH_PERCENTILE:.0%}"
        )
    return missed
