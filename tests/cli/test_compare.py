"""Two launches side by side: time, counters, and whether they leave the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import Run

from gpusim.cli.results import DIFFERENT, EQUAL, ROUNDED, Outputs, agreements

KERNELS = """
from gpusim import cuda
@cuda.jit
def twice(x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = 2 * x[i]
@cuda.jit
def also_twice(values, out, n):
    i = cuda.grid(1)
    if i < n:
        out[i] = values[i] + values[i]
@cuda.jit
def thrice(x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = 3 * x[i]
@cuda.jit
def picks(x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[x[i]] = 1
"""
LAUNCH = ("--grid", "ceil(n/block)", "-n", "256", "--block", "64")
ARRAYS = ("--arg", "int32[n]", "--arg", "int32[n]", "--arg", "n")
LOWERING = ("--code", "lowering")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(KERNELS)
    return path


def agreed(one: np.ndarray, other: np.ndarray) -> tuple[str, int]:  # type: ignore[type-arg]
    sides = [Outputs({"x": held}, {"x": held}) for held in (one, other)]
    (found,) = agreements(*sides)
    return found.verdict, found.differing


def test_equal_results_have_exit_code_0_and_counters_side_by_side(run: Run, mine: Path) -> None:
    other = f"{mine}:also_twice --block 32 --device rtx3080"
    code, out, _ = run("compare", f"{mine}:twice", other, *LAUNCH, *ARRAYS, *LOWERING, "--json")
    found = json.loads(out)
    first, second = found["sides"]
    assert (code, found["agree"]) == (0, True)
    assert found["outputs"] == [{"array": "y", "verdict": EQUAL, "elements": 256}]
    assert (first["device_id"], second["device_id"]) == ("h200", "rtx3080")
    assert found["speedup"] == pytest.approx(first["time_us"] / second["time_us"])
    by_hand = run("trace", f"{mine}:twice", *LAUNCH, *ARRAYS, *LOWERING, "--json")[1]
    counters = json.loads(by_hand)["counters"]
    assert first["counters"] == {name: one["value"] for name, one in counters.items()}


def test_other_results_have_exit_code_1_and_the_first_element(run: Run, mine: Path) -> None:
    arguments = (*LAUNCH, *ARRAYS, *LOWERING)
    code, out, _ = run("compare", f"{mine}:twice", f"{mine}:thrice", *arguments)
    assert code == 1
    assert "of 256 elements differ, first [0]: 170 and 255" in out
    assert max(map(len, out.splitlines())) <= 100


def test_kernels_of_the_catalogue_are_compared_by_their_final_results(run: Run) -> None:
    code, out, _ = run("compare", "reduce1", "reduce7", "-n", "4096", "--block", "64", *LOWERING)
    assert code == 0
    assert "result: equal (1 element)" in out


def test_a_saved_prediction_or_trace_stands_in_place_of_a_launch(run: Run, tmp_path: Path) -> None:
    saved = {name: tmp_path / f"{name}.json" for name in ("predict", "trace")}
    words = ("reduce2", "-n", "4096", "--block", "64", *LOWERING)
    for name, path in saved.items():
        path.write_text(run(name, *words, "--json")[1])
    other = ("reduce1 --block 64", "-n", "4096", *LOWERING)
    code, out, _ = run("compare", str(saved["predict"]), *other, "--json")
    found = json.loads(out)
    (first,), (second,) = found["saved"], found["sides"]
    assert (code, found["agree"], found["outputs"]) == (0, None, [])
    assert (first["side"], first["name"]) == ("A", str(saved["predict"]))
    assert found["speedup"] == pytest.approx(first["time_us"] / second["time_us"])
    _, out, _ = run("compare", str(saved["trace"]), *other)
    conflicts = json.loads(saved["trace"].read_text())["counters"]["shared_load_bank_conflicts"]
    (row,) = [line for line in out.splitlines() if line.startswith("shared_load_bank_conflicts")]
    assert f"{conflicts['value']:,}" in row
    assert "Results" not in out


def test_a_file_that_is_no_saved_launch_is_refused(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    for text, words in [("[1]", "not a document of gpusim"), ("{", "cannot be read as JSON")]:
        path.write_text(text)
        code, _, err = run("compare", str(path), "reduce1", *LOWERING)
        assert code == 2
        assert words in err


@pytest.mark.parametrize(
    ("first", "words"),
    [
        ("reduce1 --nope", "unrecognized arguments of reduce1: --nope"),
        ("reduce1 'x", "is not a command line"),
        ("reduce1 --arg 1", "--arg cannot be given here"),
    ],
)
def test_a_wrong_side_is_a_sentence(run: Run, first: str, words: str) -> None:
    code, _, err = run("compare", first, "reduce2")
    assert code == 2
    assert words in err


def test_a_ranking_says_which_kernels_do_other_work(run: Run, mine: Path) -> None:
    names = [f"{mine}:{name}" for name in ("twice", "also_twice", "thrice")]
    _, out, _ = run("rank", *names, *LAUNCH, *ARRAYS, *LOWERING, "--json")
    (wrong,) = json.loads(out)["wrong"]
    assert (wrong["kernel"], wrong["reason"][:17]) == (names[2], "other results; y:")
    _, out, _ = run("rank", *names[:2], *LAUNCH, *ARRAYS, *LOWERING, "--json")
    assert json.loads(out)["wrong"] == []


def test_kernels_that_index_with_their_input_are_compared_with_small_numbers(
    run: Run, mine: Path
) -> None:
    names = [f"{mine}:picks"] * 2 + [f"{mine}:twice"]
    arguments = ("--grid", "1", "--block", "32", "--arg", "int32[32]", "--arg", "int32[32]")
    _, out, _ = run("rank", *names, *arguments, "--arg", "32", *LOWERING, "--json")
    (wrong,) = json.loads(out)["wrong"]
    assert wrong["reason"].startswith("other results")


def test_sums_in_another_order_are_equal_within_rounding() -> None:
    x = np.linspace(1, 2, 1000, dtype=np.float32)
    assert agreed(x, x.copy()) == (EQUAL, 0)
    assert agreed(x, x * np.float32(1 + 1e-6))[0] == ROUNDED
    assert agreed(x, np.where(np.arange(1000) == 7, 3, x).astype(np.float32)) == (DIFFERENT, 1)
    nothing = np.full(4, np.nan, np.float32)
    assert agreed(nothing, -nothing)[0] == ROUNDED
    assert agreed(np.arange(4), np.arange(5)) == (DIFFERENT, 0)
