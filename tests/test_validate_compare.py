"""The comparison's arithmetic on data made by hand, and published tables held to their order."""

from __future__ import annotations

import pytest

from gpusim.cli.app import main
from validate import files
from validate.compare import (
    Compared,
    compare,
    is_comparable,
    kendall_tau,
    misses,
    summary,
    wrong_pairs,
)
from validate.page import section
from validate.records import Case, Machine, Measurements


def case(measured: float, predicted: float, n: int = 1024, kernel: str = "reduce3") -> Compared:
    return Compared(kernel, Case(n, 128, "int32"), measured, predicted, roofline_us=measured / 2)


def test_kendalls_tau_is_agreeing_less_disagreeing_pairs() -> None:
    assert kendall_tau([1, 2, 3, 4], [10, 20, 30, 40]) == 1
    assert kendall_tau([1, 2, 3, 4], [40, 30, 20, 10]) == -1
    assert kendall_tau([1, 2, 3], [10, 30, 20]) == pytest.approx(1 / 3)
    assert kendall_tau([1], [7]) == 1


def test_pairs_less_than_five_percent_apart_have_no_order() -> None:
    assert wrong_pairs([case(100, 10), case(104, 9)]) == []
    slow, fast = case(106, 9), case(100, 10)
    assert wrong_pairs([fast, slow]) == [(slow, fast)]


def test_a_summary_adds_up() -> None:
    """Errors of 0, 10, -20 and 50 %; order is looked at within each size."""
    cases = [case(10, 10), case(20, 22), case(30, 24), case(10, 15, n=2048)]
    found = summary(cases)
    assert found.cases == 4
    assert found.mean_error == pytest.approx(0.2)
    assert found.percentile_90 == pytest.approx(0.5)
    assert found.roofline_mean_error == pytest.approx(0.5)
    assert found.tau_by_size == {1024: 1.0, 2048: 1.0}
    assert (found.pairs_apart, found.pairs_wrong) == (3, 0)
    assert misses(found) == [
        "the mean error is 20.0%, above 10%",
        "the 90th percentile is 50.0%, above 20%",
    ]
    assert misses(found, order_alone=True) == []


def test_a_page_names_the_pairs_in_the_wrong_order() -> None:
    cases = [case(100, 100, kernel="reduce1"), case(50, 120, kernel="reduce2")]
    text = section(Measurements(Machine("a GPU", "h200", "made by hand")), cases)
    assert "reduce1 at block 128 took 100.0 us and reduce2 at block 128 50.0 us" in text
    assert "| reduce2 | 1,024 | 128 | 50.0 | 120.0 | +140.0% |" in text


@pytest.mark.parametrize("name", ["k40m", "gtx1650", "rtx3060ti"])
def test_published_times_are_predicted_in_the_right_order(name: str) -> None:
    found = compare(files.load(name), wanted=is_comparable, workers=1)
    cases = [c for c in found if isinstance(c, Compared)]
    assert len(cases) == len(found) >= 7
    assert summary(cases).pairs_wrong == 0


def test_measurements_that_do_not_exist_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "compare", "--against", "nowhere"]) == 2
    assert "there are no measurements 'nowhere'" in capsys.readouterr().err
