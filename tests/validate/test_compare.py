"""The comparison's arithmetic on data made by hand, and what `gpusim validate compare` tells."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gpusim.cli.app import main
from validate import files
from validate.compare import KINDS, ORDER, TAU, TIME, kendall_tau, misses, summary, wrong_pairs
from validate.page import page, section
from validate.predicted import Compared, Refused, compare
from validate.records import Case, Machine, Measurement, Measurements
from validate.report import Report, Section, report

MADE = Machine("a GPU", "h200", "made by hand")
HELD = KINDS[1]


def case(measured: float, predicted: float, n: int = 1024, kernel: str = "reduce3") -> Compared:
    return Compared(kernel, Case(n, 128, "int32"), measured, predicted, roofline_us=measured / 2)


def made(*results: Compared | Refused) -> Report:
    sections = (Section(HELD, results),)
    return Report(Measurements(MADE), sections, (), report(Measurements(MADE)).counted)


def timed(kernel: str = "reduce3", time_us: float | None = 10.0, **facts: object) -> Measurement:
    wrong = facts.pop("wrong", 0)
    fault = facts.pop("fault", None)
    chosen = Case(**{"n": 2**20, "block": 128, "dtype": "int32", **facts})  # type: ignore[arg-type]
    return Measurement(kernel, chosen, time_us, 9.0, 11.0, 15, 64, wrong, fault)  # type: ignore[arg-type]


def plain(text: str) -> str:
    """A text without what aligns the columns of its tables."""
    return re.sub(" +", " ", text)


# -- arithmetic -----------------------------------------------------------------------------------


def test_kendalls_tau_is_agreeing_less_disagreeing_pairs() -> None:
    assert kendall_tau([1, 2, 3, 4], [10, 20, 30, 40]) == 1
    assert kendall_tau([1, 2, 3, 4], [40, 30, 20, 10]) == -1
    assert kendall_tau([1, 2, 3], [10, 30, 20]) == pytest.approx(1 / 3)
    assert kendall_tau([1], [7]) == 1


def test_a_tie_neither_agrees_nor_disagrees() -> None:
    assert kendall_tau([1, 1], [3, 4]) == 0
    assert kendall_tau([1, 2, 3], [5, 5, 6]) == pytest.approx(2 / 3)


def test_pairs_less_than_five_percent_apart_have_no_order() -> None:
    assert wrong_pairs([case(100, 10), case(104, 9)]) == []
    slow, fast = case(106, 9), case(100, 10)
    assert wrong_pairs([fast, slow]) == [(slow, fast)]


def test_equal_predictions_of_different_times_are_a_wrong_order() -> None:
    slow, fast = case(106, 10), case(100, 10)
    assert wrong_pairs([slow, fast]) == [(slow, fast)]


def test_a_summary_adds_up() -> None:
    """Errors of 0, 10, -20 and 50 %; order is looked at within each size."""
    cases = [case(10, 10), case(20, 22), case(30, 24), case(10, 15, n=2048)]
    found = summary(cases)
    assert found.cases == 4
    assert found.mean_error == pytest.approx(0.2)
    assert found.percentile_90 == found.worst == pytest.approx(0.5)
    assert found.roofline_mean_error == pytest.approx(0.5)
    assert (found.pairs_apart, found.pairs_wrong) == (3, 0)
    assert found.tau_by_size == {}


def test_the_percentile_leaves_out_the_tenth_that_is_worst() -> None:
    found = summary([case(100, 100 + k) for k in range(1, 11)])
    assert (found.percentile_90, found.worst) == pytest.approx((0.09, 0.10))


def test_tau_is_told_for_sizes_with_ten_launches() -> None:
    cases = [case(k, k, n=64) for k in range(1, 11)] + [case(k, k, n=128) for k in range(1, 10)]
    assert summary(cases).tau_by_size == {64: 1.0}


def test_each_bar_that_is_missed_is_told() -> None:
    backwards = summary([case(100 * 2**k, 100 * 2 ** (9 - k)) for k in range(10)])
    assert misses(backwards, (ORDER, TAU)) == [
        "45 of 45 pairs are in the wrong order",
        "Kendall's tau at 1,024 elements is -1.000, below 0.95",
    ]
    doubled = summary([case(10, 20), case(20, 40)])
    assert misses(doubled, (ORDER, TIME, TAU)) == [
        "the mean error is 100.0%, above 10%",
        "the 90th percentile is 100.0%, above 20%",
    ]
    assert misses(doubled, (ORDER,)) == misses(backwards, ()) == []


def test_bars_that_are_just_kept_are_not_told() -> None:
    """Errors of 8 % nine times, then 28 %: 10 % in the mean; the percentile is 8 %."""
    kept = summary([*[case(100, 108) for _ in range(9)], case(1000, 1279.9)])
    assert kept.percentile_90 == pytest.approx(0.08)
    assert misses(kept, (ORDER, TIME)) == []


# -- which launches are looked at -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "short"),
    [
        (timed(), "cold"),
        (timed(n=2**28), "2^28"),
        (timed(l2="warm"), "warm"),
        (timed(scope="all", n=2**28), "all passes"),
        (timed(wrong=1), None),
        (timed(fault="a fault", time_us=None), None),
        (timed("naive_scan", n=2**14, dtype="float32"), "cold"),
        (Measurement("reduce3", Case(2**22, 128, "int32", scope="all"), 10.0), "published"),
        (Measurement("reduce3", Case(2**20, 128, "int32", scope="all"), 10.0), None),
    ],
)
def test_a_launch_belongs_to_one_kind(one: Measurement, short: str | None) -> None:
    """Wrong results and small published times are looked at nowhere."""
    found = [kind.short for kind in KINDS if kind.wanted(one)]
    assert found == ([short] if short else [])


def test_only_cold_single_passes_and_published_orders_are_held_to_bars() -> None:
    held = {kind.short: kind.bars for kind in KINDS if kind.bars}
    assert held == {"published": (ORDER,), "cold": (ORDER, TIME, TAU)}


# -- predictions ----------------------------------------------------------------------------------


def test_all_passes_take_longer_than_the_first_and_a_warm_l2_is_faster() -> None:
    times = [timed(), timed(l2="warm"), timed(scope="all")]
    cold, warm, whole = (
        one.predicted_us for one in compare(times, "h200", workers=1) if isinstance(one, Compared)
    )
    assert warm < cold < whole


def test_predictions_are_the_same_with_any_number_of_workers() -> None:
    times = [timed(block=block, n=2**12) for block in (64, 128)]
    assert compare(times, "h200", workers=1) == compare(times, "h200", workers=2)


def test_a_launch_that_cannot_be_predicted_is_told_with_the_reason() -> None:
    (found,) = compare([timed(block=96)], "h200", workers=1)
    assert isinstance(found, Refused)
    assert found.reason == (
        "reduce3 needs a block that is a power of two from 2 to 1024, not 96; try 64 or 128"
    )
    assert f"- reduce3, block 96, n 1,048,576: {found.reason}" in section(made(found))


# -- what is told ---------------------------------------------------------------------------------


def test_a_page_names_the_pairs_in_the_wrong_order() -> None:
    text = plain(section(made(case(100, 100, kernel="reduce1"), case(50, 120, kernel="reduce2"))))
    assert "reduce1 at block 128 took 100.0 us and reduce2 at block 128 50.0 us" in text
    assert "| reduce2 | 1,024 | 128 | 50.0 | 120.0 | +140.0% |" in text
    assert "missed: 1 of 1 pairs are in the wrong order" in text


def test_a_page_says_how_it_is_written_and_shows_its_picture() -> None:
    text = page([made(case(10, 10))], "gpusim validate compare --page x.md", "x.svg")
    assert "\ngpusim validate compare --page x.md\n" in text
    assert "](x.svg)" in text
    assert "Every pair is in the right order." in text


def test_compare_exits_with_1_where_a_bar_is_missed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.json"
    files.write(mine, Measurements(MADE, (timed(time_us=1.0),)))
    assert main(["validate", "compare", "--against", str(mine), "--workers", "1", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    (times,) = told["reports"][0]["times"]
    assert times["kind"] == "a single pass, cold L2, up to 2^26 elements"
    assert times["cases"][0]["measured_us"] == 1.0
    assert times["cases"][0]["error"] > 0.2
    assert [miss.split(" is ")[0] for miss in told["missed"]] == [
        "a GPU: the mean error",
        "a GPU: the 90th percentile",
    ]


def test_compare_exits_with_0_where_every_bar_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (one,) = compare([timed()], "h200", workers=1)
    assert isinstance(one, Compared)
    mine, written = tmp_path / "mine.json", tmp_path / "mine.md"
    files.write(mine, Measurements(MADE, (timed(time_us=one.predicted_us * 1.01),)))
    words = ["--against", str(mine), "--workers", "1", "--page", str(written)]
    assert main(["validate", "compare", *words]) == 0
    assert "| 1 | 1.0% | 1.0% | 1.0% |" in plain(capsys.readouterr().out)
    assert "gpusim validate compare --against" in written.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--against", "nowhere"], "there are no measurements 'nowhere'"),
        (["--kernels", "reduce99"], "there is no kernel 'reduce99'"),
        (["--sizes", "few"], "a size is 'few', not a whole number"),
        (["--sizes", "17"], "Tesla K40m: nothing that was chosen has been measured"),
        (["--workers", "0"], "--workers must be at least 1"),
        (["--page", "/nowhere/x.md"], "/nowhere/x.md: cannot be written"),
        (["--picture", "x.gif"], "a picture is a file that ends in .png or .svg, not x.gif"),
        (["--colour"], "unrecognized arguments: --colour; see gpusim validate"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", "compare", *words]) == 2
    message = capsys.readouterr().err
    assert message.startswith("gpusim: ")
    assert told in message
    assert message.count("\n") == 1
