"""The comparison's arithmetic on data made by hand, and what `gpusim validate compare` tells."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gpusim.cli.app import main
from gpusim.sass import wheels
from validate import files
from validate.compare import (
    KINDS,
    ORDER,
    TAU,
    TIME,
    kendall_tau,
    misses,
    regrets,
    summary,
    wrong_pairs,
)
from validate.page import page, section
from validate.predicted import Compared, Refused, compare, predictions
from validate.records import Case, Machine, Measurement, Measurements
from validate.report import Report, Section, codes_of, report

MADE = Machine("a GPU", "h200", "made by hand")
HELD, WARM = KINDS[1:3]


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
    assert (found.mean_error, found.median_error) == pytest.approx((0.2, 0.15))
    assert found.percentile_90 == found.worst == pytest.approx(0.5)
    assert found.roofline_mean_error == pytest.approx(0.5)
    assert (found.pairs_apart, found.pairs_wrong) == (3, 0)
    assert found.tau_by_size == {}


def test_a_regret_is_the_chosen_launch_over_the_fastest() -> None:
    """The first choice is 2 of 20 slower; the second size is right, the third has no choice."""
    cases = [case(22, 5), case(20, 6), case(40, 9), case(10, 1, n=64), case(11, 2, n=64)]
    assert regrets([*cases, case(7, 7, n=128)]) == pytest.approx([0.1, 0])
    found = summary(cases)
    assert (found.choices, found.choices_good) == (2, 1)
    assert found.worst_regret == pytest.approx(0.1)


def test_choices_are_shown_by_kernel_with_those_of_other_kernels() -> None:
    """Of reduce3's two choices one costs a tenth, of reduce1's none does."""
    shown = section(
        made(
            case(10, 8), case(11, 7), case(5, 5, n=64), case(6, 6, n=64),
            case(10, 8, kernel="reduce1"), case(11, 9, kernel="reduce1"),
        )
    )  # fmt: skip
    assert "| reduce3 | 2 | 1 | 10.0% |" in plain(shown)
    assert "| reduce1 | 1 | 1 | 0.0% |" in plain(shown)
    assert "other kernels, " in shown
    assert "| copy | 16,777,216 | 5 | 65,536 x 256 | 65,536 x 256 |" in plain(shown)


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
    assert held == {"published": (ORDER,), "cold": (TIME, TAU)}


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


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_nvccs_code_is_that_of_the_twin_which_was_measured() -> None:
    times = [timed("reduce2"), timed("reduce2", scope="all")]
    one, whole = compare(times, "h200", "nvcc", workers=1)
    assert isinstance(one, Compared)
    assert isinstance(whole, Compared)
    (played,) = predictions("reduce2", times[0].case, "h200", "nvcc")
    assert played.prepared.program.compiler.startswith("NVRTC")
    assert played.prepared.source_file.endswith("kernels/reduce.cu")
    assert one.predicted_us == played.time_us < whole.predicted_us


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
    assert "(lowering; 1 in all, the widest apart first)" in text
    assert "- missed: 1 of 1" not in text  # the order is shown, but no bar


def test_a_page_shows_both_codes_beside_what_was_measured() -> None:
    by_lowering, by_nvcc = case(10, 11), case(10, 13)
    both = (Section(HELD, (by_lowering,)), Section(HELD, (by_nvcc,), "nvcc"))
    text = plain(section(Report(Measurements(MADE), both, (), made().counted)))
    assert "| measured us | lowering us | nvcc us | error, lowering | error, nvcc |" in text
    assert "| reduce3 | 1,024 | 128 | 10.0 | 11.0 | 13.0 | +10.0% | +30.0% |" in text
    assert "| time, tau | nvcc | 1 | 30.0% | 30.0% | 30.0% | 30.0% |" in text
    assert "missed: the mean error is 30.0%, above 10%, in nvcc's code" in text


def test_a_long_page_has_a_row_for_each_kernel_with_both_codes() -> None:
    """Errors of 1 to 60 % with the lowering's code, half as much with nvcc's."""

    def of(code: str, share: float) -> tuple[Section, Section]:
        cold = [case(1000, 1000 + 10 * share * k, n=1024 * k) for k in range(1, 61)]
        return Section(HELD, tuple(cold), code), Section(WARM, (case(100, 100 + 4 * share),), code)

    sections = (*of("lowering", 1.0), *of("nvcc", 0.5))
    text = plain(section(Report(Measurements(MADE), sections, (), made().counted)))
    assert "| lowering: mean error | lowest | highest | nvcc: mean error | lowest | " in text
    assert "| reduce3 | 60 | 30.5% | +1.0% | +60.0% | 15.2% | +0.5% | +30.0% | 4.0%, 2.0% |" in text


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_codes_are_both_but_where_one_is_chosen_or_a_gpu_is_too_old() -> None:
    h200, k40m = Measurements(MADE), files.load("k40m")
    assert codes_of(h200) == ("lowering",)  # which the tests pin
    assert codes_of(h200, "auto") == ("lowering", "nvcc")
    assert codes_of(k40m, "auto") == ("lowering",)
    assert (codes_of(h200, "nvcc"), codes_of(k40m, "nvcc")) == (("nvcc",), ())


@pytest.mark.usefixtures("without_compiler")
def test_codes_are_the_lowerings_where_no_compiler_is_installed() -> None:
    assert codes_of(Measurements(MADE), "auto") == ("lowering",)


def test_a_page_says_how_it_is_written_and_shows_its_picture() -> None:
    text = page([made(case(10, 10))], "gpusim validate compare --page x.md", "x.svg")
    assert "\ngpusim validate compare --page x.md\n" in text
    assert "](x.svg)" in text
    assert "Every pair is in the right order (lowering)." in text


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
    assert "lowering 1 1.0% 1.0% 1.0% 0 of 0" in plain(capsys.readouterr().out)
    assert main(["validate", "compare", *words, "--all"]) == 0
    assert "| 1 | 1.0% | 1.0% | 1.0% | 1.0% |" in plain(capsys.readouterr().out)
    assert "gpusim validate compare --against" in written.read_text(encoding="utf-8")


def test_what_stands_below_a_marker_stays_when_a_page_is_written_anew(tmp_path: Path) -> None:
    mine, written = tmp_path / "mine.json", tmp_path / "mine.md"
    files.write(mine, Measurements(MADE, (timed(),)))
    words = ["validate", "compare", "--against", str(mine), "--workers", "1"]
    written.write_text("# What was\n\n<!-- kept -->\n\nMy remarks.\n", encoding="utf-8")
    for _ in range(2):
        main([*words, "--page", str(written)])
        text = written.read_text(encoding="utf-8")
        assert text.startswith("# Accuracy\n")
        assert text.endswith("\n\n<!-- kept -->\n\nMy remarks.\n")
        assert text.count("<!-- kept -->") == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--against", "nowhere"], "there are no measurements 'nowhere'"),
        (["--kernel", "reduce99"], "there is no kernel 'reduce99'"),
        (["-n", "few"], "a size is 'few', not a whole number"),
        (["-n", "17"], "Tesla K40m: none of the chosen launches was measured"),
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
