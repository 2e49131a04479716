"""What caches and DRAM count beside predictions of it: how far off, and what is told."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gpusim.cli.app import main
from gpusim.prediction.traffic import PREDICTED
from validate import counters, files
from validate.caches import Caches, Pair, compare, compare_launch
from validate.records import Case, Counts, Machine, Measurements

SECTORS, DRAM, HITS = PREDICTED
CASE = Case(2**12, 128, "int32")
# 4,096 integers of 4 bytes; what a launch reads for itself, and 40 to 48 instructions of 16 bytes.
READ = 16_384 + 2_560 + 3 * 256


def pair(metric: str, measured: float, predicted: float, kernel: str = "reduce3") -> Pair:
    return Pair(kernel, CASE, metric, measured, predicted)


def counted(**values: float) -> Counts:
    return Counts("reduce3", CASE, {DRAM: float(READ), **values})


def test_the_profiler_is_asked_for_all_that_is_predicted() -> None:
    assert set(PREDICTED) <= set(counters.metrics())


def test_an_error_is_a_part_of_what_was_counted_and_of_a_rate_the_difference() -> None:
    assert pair(DRAM, 200, 150).error == -0.25
    assert pair(HITS, 20, 15).error == pytest.approx(-0.05)


def test_where_nothing_was_counted_a_prediction_is_off_by_all_of_itself() -> None:
    assert pair(DRAM, 0, 0).error == 0
    assert pair(DRAM, 0, 32).error == 1


def test_a_launch_stands_beside_its_own_prediction_with_a_cold_l2() -> None:
    (found,) = compare_launch(counted(), "h200")
    assert (found.kernel, found.case, found.metric) == ("reduce3", CASE, DRAM)
    assert (found.measured, found.predicted, found.error) == (READ, READ, 0)


def test_only_what_was_counted_is_compared() -> None:
    assert compare_launch(Counts("reduce3", CASE, {"smsp__inst_executed.sum": 7.0}), "h200") == []
    both = compare_launch(counted(**{HITS: 0.0}), "h200")
    assert [one.metric for one in both] == [DRAM, HITS]


def test_a_launch_that_cannot_be_predicted_is_left_out() -> None:
    refused = Counts("reduce3", Case(2**12, 96, "int32"), {DRAM: float(READ)})
    found = compare([refused, counted()], "h200", workers=1)
    assert [one.case.block for one in found.pairs] == [128]


def test_launches_are_summed_up_metric_by_metric() -> None:
    """Errors of 0, 4, -5 and 20 %, and one of two percentage points."""
    four = [pair(DRAM, 100, predicted) for predicted in (100, 104, 95, 120)]
    dram, hits = Caches((*four, pair(HITS, 50, 52))).agreements
    assert (dram.metric, dram.launches, dram.near) == (DRAM, 4, 3)
    assert (dram.mean_error, dram.median_error) == pytest.approx((0.0725, 0.045))
    assert dram.worst == pytest.approx(0.20)
    assert (hits.metric, hits.launches, hits.near) == (HITS, 1, 1)
    assert hits.mean_error == pytest.approx(0.02)


def test_compare_tells_how_far_off_each_metric_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """20 % less is predicted than was counted, and no hit where a quarter was."""
    mine = tmp_path / "mine.json"
    values = {DRAM: READ / 0.8, HITS: 25.0}
    held = Measurements(Machine("a GPU", "h200", "made"), (), (counted(**values),))
    files.write(mine, held)
    chosen = ["validate", "compare", "--against", str(mine), "--code", "lowering", "--workers", "1"]
    assert main(chosen) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"mean error with lowering: {DRAM} 20.0%, {HITS} 25.0 points" in said
    assert main([*chosen, "--all"]) == 0  # none of it is held to a bar
    text = re.sub(" +", " ", capsys.readouterr().out)
    assert f"| `{DRAM}` | lowering | model | 1 | 20.0% | 20.0% | 20.0% | 20.0% | 0 of 1 |" in text
    assert f"| `{HITS}` | lowering | model | 1 | 25.0 points |" in text
    assert "| reduce3 | 20.0% | 25.0 points |" in text
    assert main([*chosen, "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)["reports"]
    (caches,) = report["caches"]
    assert [row["metric"] for row in caches["metrics"]] == [DRAM, HITS]
    assert caches["metrics"][0]["unit"] == "bytes"
    assert caches["launches"][0]["predicted"] == READ
