"""Kernels of one's own in rankings and sweeps, and GPUs with other numbers."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from conftest import Run

from gpusim.cli.inputs import counts
from gpusim.errors import InputError
from gpusim.sass import wheels

KERNELS = """
from gpusim import cuda
from beside import ONE


@cuda.jit
def near(x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = x[i] + ONE


@cuda.jit
def far(x, y, n):
    i = cuda.grid(1)
    if i < n:
        j = i * 33 % n
        y[j] = x[j] + ONE


@cuda.jit
def one_block(x):
    x[cuda.threadIdx.x] = 1
"""
CUDA = """
__global__ void plain(const int *x, int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + 1;
}
"""
ARGUMENTS = ("--grid", "ceil(n/block)", "--arg", "int32[n]", "--arg", "int32[n]", "--arg", "n")
SMALL = ("-n", "2^14", "--block", 128, *ARGUMENTS)


@pytest.fixture(autouse=True)
def _mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(KERNELS)
    (tmp_path / "beside.py").write_text("ONE = 1\n")
    (tmp_path / "mine.cu").write_text(CUDA)
    monkeypatch.chdir(tmp_path)


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def test_own_kernels_are_ranked_with_the_catalogues(run: Run) -> None:
    code, out, _ = run("rank", "mine.py:near", "mine.py:far", "reduce3", *SMALL, "--json")
    assert code == 0
    kernels = {one["kernel"]: one for one in json.loads(out)["kernels"]}
    assert set(kernels) == {"mine.py:near", "mine.py:far", "reduce3"}
    assert kernels["mine.py:near"]["time_us"] < kernels["mine.py:far"]["time_us"]
    alone = json.loads(run("predict", "mine.py:near", *SMALL, "--json")[1])
    assert kernels["mine.py:near"]["time_us"] == alone["time_us"]
    assert kernels["mine.py:near"]["useful_bytes"] == 2 * 4 * 2**14
    assert kernels["reduce3"]["n"] == 2**14


def test_a_ranking_of_own_kernels_is_told(run: Run) -> None:
    code, out, _ = run("rank", "mine.py:near", "mine.py:far", *SMALL)
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "H200  block 128"
    assert "lowering O3" in lines[1]
    head = next(place for place, line in enumerate(lines) if line.split()[:1] == ["rank"])
    places = [line.split()[:2] for line in lines[head + 1 :] if line.split()[:1] in (["1"], ["2"])]
    assert places == [["2", "mine.py:far"], ["1", "mine.py:near"]]


def test_a_ranking_has_the_block_of_each_kernel(run: Run, tmp_path: Path) -> None:
    launch = "# gpusim: grid=ceil(n/block) block={} args=int32[n],int32[n],n n=16384\n"
    (tmp_path / "two.py").write_text(KERNELS.replace("@cuda.jit", "{}@cuda.jit").format(
        *(launch.format(block) for block in (64, 128)), *[""] * 8
    ))  # fmt: skip
    code, out, err = run("rank", "two.py:near", "two.py:far")
    assert code == 0, err
    assert out.startswith("H200  blocks 128, 64, in the order of the kernels\n")


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_cuda_and_python_are_ranked_side_by_side(run: Run) -> None:
    code, out, _ = run("rank", "mine.cu:plain", "mine.py:near", *SMALL, "--code", "auto", "--json")
    assert code == 0
    made = {one["kernel"]: one["passes"][0]["generator"] for one in json.loads(out)["kernels"]}
    assert made["mine.cu:plain"] == made["mine.py:near"]
    assert made["mine.cu:plain"].startswith("NVRTC ")


def test_a_sweep_of_own_kernels_has_the_rows_that_predict_has(run: Run, tmp_path: Path) -> None:
    words = ("sweep", "mine.py:near", "--block", "64,128", "-n", "2^12..2^14", *ARGUMENTS)
    code, out, _ = run(*words, "--workers", 1, "--out", "table.csv")
    assert (code, out) == (0, "table.csv: 6 rows, 6 predicted\n")
    rows = rows_of(tmp_path / "table.csv")
    assert [(row["n"], row["block"], row["grid"]) for row in rows] == [
        ("4096", "64", "64"), ("4096", "128", "32"), ("8192", "64", "128"),
        ("8192", "128", "64"), ("16384", "64", "256"), ("16384", "128", "128"),
    ]  # fmt: skip
    alone = json.loads(run("predict", "mine.py:near", *SMALL, "--json")[1])
    assert float(rows[-1]["time_us"]) == alone["time_us"]


def test_a_sweep_knows_the_files_that_its_kernels_are_made_from(run: Run, tmp_path: Path) -> None:
    words = ("sweep", "mine.py:near", "-n", "2^12", *ARGUMENTS, "--out", "t.csv", "--workers", 1)
    assert run(*words)[0] == 0
    assert "already complete" in run(*words)[1]
    (tmp_path / "mine.py").write_text(KERNELS.replace("+ ONE", "- ONE"))
    code, _, err = run(*words)
    assert (code, "has other content than the rows of this sweep" in err) == (2, True)


def test_a_kernel_without_a_size_is_a_row_for_each_block(run: Run) -> None:
    words = ("sweep", "mine.py:one_block", "--block", "32,64", "-n", "2^12,2^13")
    code, out, _ = run(*words, "--grid", 1, "--arg", "int32[64]", "--workers", 1, "--json")
    assert code == 0
    assert [(row["n"], row["block"]) for row in json.loads(out)["rows"]] == [(None, 32), (None, 64)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("rank mine.py:nar", "mine.py has no 'nar'; did you mean near or far?"),
        ("rank none.cu:k", "none.cu: there is no such file"),
        ("sweep none.py:k", "none.py: there is no such file"),
        ("rank mine.py:near --passes all", "--passes all is for reductions of the catalogue"),
        ("sweep mine.py:near -n 2^12..2^10", "a size must be at least 4096, not 2^10"),
        ("sweep mine.py:near -n 2^12..", "a size is '', not a whole number"),
        ("rank reduce3 --set l2=3", "l2 is not a key; did you mean latency_cycles.l2?"),
        ("rank reduce3 --set bandwidth.dram", "--set is 'bandwidth.dram'; write KEY=VALUE"),
        ("sweep --set latency_cycles.l2=-1", "latency_cycles.l2 = -1 is impossible: expected a n"),
        (
            "predict reduce3 --set bandwidth.l2_latency_growth=99",
            "bandwidth.l2_latency_growth = 99 is impossible: expected a number from 0 to 10",
        ),
        ("predict reduce3 --set gpu.sms=many", "gpu.sms = 'many' is impossible: expected a whole"),
        (
            "predict reduce3 --set bandwidth.dram_gbps=9000",
            "it must not be above bandwidth.dram_p",
        ),
    ],
)
def test_mistakes_are_a_sentence(run: Run, words: str, message: str) -> None:
    code, _, err = run(*words.split())
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_a_ranking_says_what_a_launch_lacks(run: Run) -> None:
    code, _, err = run("rank", "mine.py:near", "-n", "2^12")
    assert code == 2
    assert "mine.py:near has no launch rule; give --grid, --block and --arg for x: array" in err
    assert "\n  gpusim trace mine.py:near " in err


def test_a_range_doubles() -> None:
    assert counts("2^3..2^5,7,3..20", "-n", "a size") == [8, 16, 32, 7, 3, 6, 12]
    with pytest.raises(InputError, match="at least 32"):
        counts("32..8", "-n", "a size")


def test_another_number_is_predicted_with_and_told(run: Run) -> None:
    words = ("predict", "reduce7", "-n", "2^22", "--set", "bandwidth.dram_gbps=1000")
    plain = json.loads(run("predict", "reduce7", "-n", "2^22", "--json")[1])
    slower = json.loads(run(*words, "--json")[1])
    assert (plain["set"], slower["set"]) == ({}, {"bandwidth.dram_gbps": 1000})
    assert slower["time_us"] > 1.5 * plain["time_us"]
    assert slower["with_all_mechanisms"]["time_us"] == plain["time_us"]
    out = run(*words)[1]
    assert "with bandwidth.dram_gbps = 1000 GB/s" in out
    assert "with bandwidth.dram_gbps = 4580" in out
    assert "with bandwidth.dram_gbps = 1000 GB/s" in run("rank", "reduce7", *words[2:])[1]


def test_other_numbers_are_other_rows_of_a_sweep(run: Run) -> None:
    words = ("sweep", "reduce3", "-n", "2^12", "--out", "t.csv", "--workers", 1)
    changed = (*words, "--set", "latency_cycles.l2=250", "--set", "host.launch_overhead_us=0")
    assert run(*words)[0] == 0
    assert run(*changed)[0] == 2
    assert run(*changed, "--overwrite")[0] == 0
    (row,) = rows_of(Path("t.csv"))
    assert row["set"] == "host.launch_overhead_us=0 latency_cycles.l2=250"
