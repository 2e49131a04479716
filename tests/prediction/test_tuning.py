"""The search for the best launch: rungs, ties, and the fastest of all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.catalogue import Request
from gpusim.errors import InputError
from gpusim.prediction.sweeps.choices import axes_of, crossed_choices
from gpusim.prediction.sweeps.sweep import Case, Swept, row_of
from gpusim.prediction.sweeps.tables import COLUMNS, Row
from gpusim.prediction.sweeps.tuning import Tuned, best_launches
from gpusim.prediction.workload import BUDGET


def timed(time_us: float, block: int) -> Row:
    about = {"device": "h200", "without": "", "set": "", "generator": "gpusim 1", "choices": ""}
    times = {"time_us": time_us, "low_us": 0.5 * time_us, "high_us": 2 * time_us}
    return dict.fromkeys(COLUMNS) | about | times | {"operation": "sum", "block": block}


def test_candidates_near_the_fastest_tie_with_it() -> None:
    """1.03 times as slow is a tie; 1.15 times is not, though the intervals hold both times."""
    rows = [timed(10, 64), timed(10.3, 128), timed(11.5, 256), timed(19, 512)]
    assert Tuned("k", "h200", 1, rows, []).ties == 1


def test_the_default_space_is_what_the_launch_rule_leaves_open() -> None:
    assert list(axes_of(Request("reduce7"))) == ["block", "waves"]
    assert list(axes_of(Request("reduce3"))) == ["block"]
    assert "coarse" in axes_of(Request("reduce_coarsening_gpu"))


def test_candidates_are_crossed_in_order() -> None:
    assert list(crossed_choices({"a": [1, 2], "b": ["x"]})) == [
        (("a", 1), ("b", "x")),
        (("a", 2), ("b", "x")),
    ]


def test_large_spaces_are_halved_and_the_fastest_is_predicted_in_full() -> None:
    asked: list[list[Case]] = []

    def predicted(cases: list[Case], *_: object, **__: object) -> Swept:
        asked.append(cases)
        rows = []
        for case in cases:
            value = dict(case.choices)["a"]
            assert isinstance(value, int)
            reason = "too large" if value % 100 == 99 else None
            row = timed(abs(value - 321), 64) | {"choices": f"a={value}"}
            rows.append(row | {"reason": reason, "kernel": "reduce3"})
        return Swept(rows, 0)

    cases = [Case(Request("reduce3"), "h200", choices=(("a", value),)) for value in range(1000)]
    (found,) = best_launches(cases, exhaustive=100, predict=predicted)
    assert [len(rung) for rung in asked] == [1000, 248, 62]
    budgets = [rung[0].budget for rung in asked]
    assert budgets[-1] == BUDGET
    assert [one.instructions * 4 for one in budgets[:-1]] == [b.instructions for b in budgets[1:]]
    assert found.best is not None
    assert found.best["time_us"] == 0
    assert (len(found.rows), len(found.cannot), found.dropped) == (62, 10, 928)


def test_each_kernel_device_and_size_has_its_own_order() -> None:
    cases = [
        Case(Request("reduce3").sized(n, None), device, choices=(("block", block),))
        for device in ("h200", "k40m")
        for n in (2**10, 2**12)
        for block in (64, 128)
    ]
    found = best_launches(cases, workers=1)
    assert [(one.device, one.n) for one in found] == [
        ("h200", 2**10), ("h200", 2**12), ("k40m", 2**10), ("k40m", 2**12),
    ]  # fmt: skip
    for one in found:
        assert [row["time_us"] for row in one.rows] == sorted(row["time_us"] for row in one.rows)
        assert {row["choices"] for row in one.rows} == {"block=64", "block=128"}


def test_full_waves_beyond_the_elements_are_one_launch() -> None:
    request = Request("reduce7").sized(2**12, None)
    choices = [(), *((("block", 256), ("waves", waves)) for waves in (1, 2, 4))]
    (found,) = best_launches([Case(request, "h200", choices=one) for one in choices], workers=1)
    assert [row["choices"] for row in found.rows] == [""]
    assert found.ties == 0


# From Python


@cuda.jit
def doubled(numbers, n):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    step = cuda.gridsize(1)
    while i < n:
        numbers[i] = numbers[i] * np.float32(2)
        i += step


N = 2**20


def test_a_kernel_of_the_catalogue_is_tuned_over_what_its_launch_rule_leaves_open() -> None:
    found = gpusim.tune("reduce3", n=2**16)
    assert (found.kernel, found.device, found.n) == ("reduce3", "h200", 2**16)
    assert {row["block"] for row in found.rows} == {64, 128, 256, 512, 1024}
    case = Case(Request("reduce3", 2**16), "h200", choices=(("block", 64),))
    (row,) = (row for row in found.rows if row["choices"] == "block=64")
    assert row == row_of(case)
    assert found.launch_rule is not None


def test_launches_that_a_function_makes_are_tuned() -> None:
    def launch(block: int, grid: int) -> Any:
        return doubled[grid, block], (gpusim.array_spec(N, np.float32), np.int32(N))

    found = gpusim.tune(launch, block=[128, 256], waves=[1, 2], device="rtx3080", code="lowering")
    assert {(row["block"], row["choices"]) for row in found.rows} == {
        (block, f"block={block} waves={waves}") for block in (128, 256) for waves in (1, 2)
    }
    one = next(row for row in found.rows if row["choices"] == "block=256 waves=2")
    alone = gpusim.predict(
        doubled[one["grid"], 256],
        gpusim.array_spec(N, np.float32),
        np.int32(N),
        device="rtx3080",
        code="lowering",
    )
    assert one["time_us"] == alone.time_us
    assert found.best is not None
    assert found.best["time_us"] == min(row["time_us"] for row in found.rows)


def test_axes_that_a_function_or_kernel_does_not_have_are_refused() -> None:
    def launch(block: int) -> Any:
        raise AssertionError

    with pytest.raises(InputError, match="launch does not take these axes"):
        gpusim.tune(launch, tile=[8, 16])
    with pytest.raises(InputError, match="nothing varies"):
        gpusim.tune(lambda: launch(64))
    with pytest.raises(InputError, match="knows its own size"):
        gpusim.tune(launch, n=4, block=[64])
    with pytest.raises(InputError, match="no parameter tile=8"):
        gpusim.tune("reduce3", n=2**10, tile=[8])
    with pytest.raises(InputError, match="reduce3 has no coarsening factor"):
        gpusim.tune("reduce3", n=2**10, coarse=[8])
