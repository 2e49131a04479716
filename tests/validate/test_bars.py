"""The stated bars, held to the measurements that come with the package."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from validate import files
from validate.compare import KINDS, TAU, TIME, Summary, misses, summary
from validate.counted import Counted, compare_all
from validate.defects import correctness
from validate.defects import misses as unknown_defects
from validate.predicted import Compared, compare
from validate.records import Counts, Measurement

PUBLISHED, COLD = KINDS[:2]


def predicted(name: str, wanted: Callable[[Measurement], bool]) -> Summary:
    measured = files.load(name)
    times = [one for one in measured.times if wanted(one)]
    found = compare(times, measured.machine.device, workers=1)
    cases = [one for one in found if isinstance(one, Compared)]
    assert len(cases) == len(times)
    return summary(cases)


def counted(wanted: Callable[[Counts], bool]) -> Counted:
    return compare_all([one for one in files.load("h200").counters if wanted(one)], workers=1)


@pytest.mark.parametrize(
    ("name", "pairs"),
    [
        ("k40m", 21),
        *(
            pytest.param(name, 54, marks=pytest.mark.slow)
            for name in ("gtx1650", "rtx2060", "rtx3060", "rtx3060ti", "rtx3070ti", "rtx3080")
        ),
    ],
)
def test_published_times_are_predicted_in_the_right_order(name: str, pairs: int) -> None:
    """Wherever two of one size differ by more than 5 %."""
    found = predicted(name, PUBLISHED.wanted)
    assert (found.pairs_apart, found.pairs_wrong) == (pairs, 0)


def is_of_the_subset(one: Measurement) -> bool:
    case = one.case
    is_first = case.dtype == one.entry.dtypes[0]
    return COLD.wanted(one) and is_first and case.n == 2**22 and case.block == 128


def test_times_on_an_h200_are_within_the_bars() -> None:
    """Every right reduction at 2^22 elements with blocks of 128: cold, a single pass."""
    found = predicted("h200", is_of_the_subset)
    assert found.cases >= 20
    assert misses(found, (TIME,)) == []


@pytest.fixture(scope="module")
def cold_on_h200() -> Summary:
    """All kernels, blocks and sizes up to 2^26; takes minutes."""
    found = predicted("h200", COLD.wanted)
    assert found.cases >= 700
    return found


@pytest.mark.slow
def test_all_times_on_an_h200_are_within_the_bars(cold_on_h200: Summary) -> None:
    assert misses(cold_on_h200, (TIME,)) == []


@pytest.mark.slow
def test_kendalls_tau_on_an_h200_is_within_the_bar(cold_on_h200: Summary) -> None:
    assert len(cold_on_h200.tau_by_size) == 4
    assert misses(cold_on_h200, (TAU,)) == []


@pytest.mark.slow
def test_the_order_on_an_h200_is_right_but_for_one_pair_in_200(cold_on_h200: Summary) -> None:
    """No bar, but what is reached."""
    assert cold_on_h200.pairs_wrong < cold_on_h200.pairs_apart / 200


def test_counters_of_every_kernel_at_block_128_equal_an_h200s() -> None:
    """Exact ones as integers, instructions within 5 %."""
    found = counted(lambda one: one.case.block == 128)
    assert len(found.launches) >= 27
    assert found.misses() == []


@pytest.mark.slow
def test_counters_of_every_launch_equal_an_h200s() -> None:
    found = counted(lambda one: True)
    assert len(found.launches) >= 160
    assert found.misses() == []


def test_every_kernel_that_is_wrong_as_published_was_measured_as_wrong() -> None:
    found = correctness(files.load("h200").times)
    assert len([one for one in found if one.defect]) == 7
    assert unknown_defects(found) == []
