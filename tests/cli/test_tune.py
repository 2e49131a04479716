"""`gpusim tune`: the fastest of the candidates, whatever varies, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from conftest import Run

from gpusim.cli.tuning_parameters import axes, with_values
from gpusim.cuda_cpp.named_values import with_values as with_other_values
from gpusim.errors import InputError
from gpusim.sass import wheels

PYTHON = """
from gpusim import cuda

ELEMENTS: int = 2
AGAIN = ELEMENTS


@cuda.jit
def add(x, y, n):
    i = cuda.grid(1) * ELEMENTS
    for k in range(AGAIN):
        if i + k < n:
            y[i + k] = x[i + k] + 1
"""
CUDA = """
#define TILE 16
template <int BLOCK> __global__ void sum(const int *x, int *y, int n) {
    int found = 0;
    for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK) found += x[i];
    atomicAdd(y, found);
}
__global__ void copy(const int *x, int *y, int n) {
    __shared__ int tile[TILE][TILE];
    int i = blockIdx.x * TILE * TILE + threadIdx.y * TILE + threadIdx.x;
    if (i < n) tile[threadIdx.y][threadIdx.x] = x[i];
    __syncthreads();
    if (i < n) y[i] = tile[threadIdx.y][threadIdx.x];
}
"""
ARRAYS = ("--arg", "int32[n]", "--arg", "int32[n]", "--arg", "n")


@pytest.fixture(autouse=True)
def _mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(PYTHON)
    (tmp_path / "mine.cu").write_text(CUDA)
    monkeypatch.chdir(tmp_path)


def tuned(run: Run, *arguments: object) -> list[dict[str, object]]:
    code, out, err = run("tune", *arguments, "--json", "--workers", 1)
    assert (code, err) == (0, "")
    found: list[dict[str, object]] = json.loads(out)["launches"]
    return found


def times(run: Run, *arguments: object) -> float:
    time_us: float = json.loads(run("predict", *arguments, "--json")[1])["time_us"]
    return time_us


def test_the_best_launch_has_the_time_that_predict_says(run: Run) -> None:
    (one,) = tuned(run, "reduce3", "-n", 2**14, "--block", "64,256")
    by_block = {block: times(run, "reduce3", "-n", 2**14, "--block", block) for block in (64, 256)}
    best = one["best"]
    assert isinstance(best, dict)
    assert best["time_us"] == min(by_block.values())
    assert by_block[best["block"]] == best["time_us"]


def test_the_launch_rule_is_a_candidate_of_the_catalogue(run: Run) -> None:
    (one,) = tuned(run, "reduce3", "-n", 2**14, "--block", "64")
    rows = one["candidates"]
    assert isinstance(rows, list)
    assert {(row["choices"], row["block"]) for row in rows} == {("", 256), ("block=64", 64)}
    rule = next(row for row in rows if not row["choices"])
    assert one["speedup"] == pytest.approx(rule["time_us"] / rows[0]["time_us"])


def test_full_waves_are_resident_blocks_times_sms(run: Run) -> None:
    (one,) = tuned(run, "reduce7", "-n", 2**22, "--waves", "1,2", "--block", 256)
    rows = one["candidates"]
    assert isinstance(rows, list)
    grids = {row["choices"]: row["grid"] for row in rows}
    assert grids["block=256 waves=1"] == 8 * 132  # 2,048 threads on each of an H200's SMs
    assert grids["block=256 waves=2"] == 2 * 8 * 132


def test_a_constant_of_a_python_file_varies_with_all_that_follows_from_it(run: Run) -> None:
    (one,) = tuned(
        run, "mine.py:add", "--tune", "ELEMENTS=1,4", "--block", 128, "-n", 2**12,
        "--grid", "ceil(n/(block*ELEMENTS))", *ARRAYS, "--code", "lowering",
    )  # fmt: skip
    rows = one["candidates"]
    assert isinstance(rows, list)
    assert {row["choices"]: row["grid"] for row in rows} == {
        "block=128 ELEMENTS=1": 32,
        "block=128 ELEMENTS=4": 8,
    }
    per_thread = {row["choices"]: row["instructions"] / row["grid"] for row in rows}
    assert per_thread["block=128 ELEMENTS=4"] >= 2 * per_thread["block=128 ELEMENTS=1"]


@pytest.mark.skipif(not wheels.are_there(), reason="needs nvcc's compiler")
def test_a_macro_varies_with_the_block_that_it_gives(run: Run) -> None:
    (one,) = tuned(
        run, "mine.cu:copy", "--tune", "TILE=8,16", "--block", "TILExTILE", "-n", 2**12,
        "--grid", "ceil(n/(TILE*TILE))", *ARRAYS,
    )  # fmt: skip
    rows = one["candidates"]
    assert isinstance(rows, list)
    assert {(row["block"], row["grid"], row["shared_bytes"]) for row in rows} == {
        ("8x8", 64, 256),
        ("16x16", 16, 1024),
    }


@pytest.mark.skipif(not wheels.are_there(), reason="needs nvcc's compiler")
def test_a_template_argument_varies_and_limits_exclude(run: Run) -> None:
    arguments = (
        "mine.cu:sum<SIZE>", "--tune", "SIZE=64,128", "--block", "SIZE", "--waves", 1,
        "-n", 2**16, "--arg", "int32[n]", "--arg", "int32[1]", "--arg", "n",
    )  # fmt: skip
    (one,) = tuned(run, *arguments)
    rows = one["candidates"]
    assert isinstance(rows, list)
    assert {row["block"] for row in rows} == {64, 128}
    code, out, err = run("tune", *arguments, "--max-registers", 4, "--workers", 1)
    assert (code, out) == (2, "")
    assert "none of the candidates can run: block=SIZE waves=1 SIZE=64: " in err
    assert "registers of a thread, over the limit of 4" in err


@pytest.mark.parametrize("blocks", [(), ("--block", 256)])
def test_full_waves_need_elements_for_their_blocks(run: Run, blocks: tuple[object, ...]) -> None:
    wave = 8 * 132  # blocks of 256 threads, of 2 elements each
    code, out, err = run("tune", "reduce7", "-n", 2**16, "--waves", "1,2", *blocks, "--workers", 1)
    assert (code, out) == (2, "")
    assert (
        "none of the candidates can run: waves=1: n = 65,536 is too small for as many full waves"
        in err
    )
    assert "its 128 blocks of 256 threads are 0.12 waves on h200" in err
    (one,) = tuned(run, "reduce7", "-n", wave * 512, "--waves", 1, *blocks)
    assert isinstance(one["best"], dict)
    assert (one["best"]["grid"], one["best"]["waves"]) == (wave, 1)


def test_a_launch_rule_does_not_stand_in_for_candidates_that_cannot_run(run: Run) -> None:
    code, out, err = run("tune", "reduce3", "-n", 2**12, "--block", 33333, "--workers", 1)
    assert (code, out) == (2, "")
    assert "none of the candidates can run: block=33333: reduce3 needs a block" in err
    for blocks in ("33333,128", "33333,256"):  # 256 is the rule's
        (one,) = tuned(run, "reduce3", "-n", 2**12, "--block", blocks)
        assert one["best"] is not None
        refused = one["cannot_run"]
        assert isinstance(refused, list)
        assert [row["choices"] for row in refused] == ["block=33333"]


def test_all_candidates_are_written(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "all.csv"
    code, text, _ = run(
        "tune", "reduce3", "-n", 2**12, "--block", "64,128", "--out", out, "--workers", 1
    )
    assert code == 0
    assert "best:" in text
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [row["choices"] for row in rows] == ["", "block=64", "block=128"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "there is no kernel to tune"),
        (("mine.py:add",), "nothing varies"),
        (("reduce3", "--coarse", "1,2"), "reduce3 has no coarsening factor"),
        (("reduce3", "--waves", "1"), "follows from n and the block"),
        (("reduce3", "--block", "8x8"), "has one dimension, not 8x8"),
        (("reduce7", "--waves", "1", "--grid", "4"), "--waves makes the grid"),
        (("mine.py:add", "--tune", "NOWHERE=1", *ARRAYS), "is named NOWHERE"),
        (("mine.py:add", "--tune", "block=1"), "give --block"),
        (("mine.py:add", "--tune", "A=1", "--tune", "A=2"), "given twice"),
        (("mine.py:add", "--tune", "A=$(x)"), "neither a number nor a type"),
        (("mine.py:add", "--coarse", "2"), "--coarse is for kernels of the catalogue"),
    ],
)
def test_what_cannot_be_tuned_is_refused(
    run: Run, arguments: tuple[str, ...], sentence: str
) -> None:
    code, _, err = run("tune", *arguments, "-n", 2**12)
    assert code == 2
    assert sentence in err


def test_values_of_a_parameter_are_listed() -> None:
    assert axes(["TILE=8..32,48", "T=float,unsigned int"]) == {
        "TILE": ["8", "16", "32", "48"],
        "T": ["float", "unsigned int"],
    }
    with pytest.raises(InputError, match="write NAME=VALUE"):
        axes(["TILE"])


def test_names_are_replaced_in_a_launch_and_no_parts_of_names() -> None:
    from argparse import Namespace

    chosen = Namespace(
        kernel="mine.cu:sum<TILE>",
        block="TILExTILE",
        grid="ceil(n/TILE)xTILES",
        arg=["int32[TILE]"],
    )
    found = with_values(chosen, {"TILE": "8"})
    assert (found.kernel, found.block) == ("mine.cu:sum<8>", "8x8")
    assert (found.grid, found.arg) == ("ceil(n/8)xTILES", ["int32[8]"])


def test_macros_and_constants_get_other_values_on_the_same_lines() -> None:
    text = (
        "#define TILE 16 \\\n  + 1\nconst int A = 4, B = 5;\nconstexpr unsigned C{7};\nint d = D;\n"
    )
    found, definitions = with_other_values(text, {"TILE": "8", "A": "1", "C": "2", "D": "3"})
    assert found.splitlines() == [
        "#define TILE 8\\", "", "const int A = 1, B = 5;", "constexpr unsigned C= 2;", "int d = D;",
    ]  # fmt: skip
    assert definitions == ("D=3",)
