"""Candidates whose times are compared leave the same results, or are listed apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Run

KERNELS = """
import numpy as np
from gpusim import cuda

# gpusim: grid=ceil(n/8) block=8 n=512 args=float32[n],float32[n]
@cuda.jit
def turned(x, y):  # for 8 threads alone
    tile = cuda.shared.array(8, np.float32)
    i = cuda.blockIdx.x * 8 + cuda.threadIdx.x
    tile[cuda.threadIdx.x % 8] = x[i]
    cuda.syncthreads()
    y[i] = tile[7 - cuda.threadIdx.x % 8]


# gpusim: grid=ceil(n/block) block=64 n=1024 args=float32[n],float32[ceil(n/block)]
@cuda.jit
def sums(x, y):
    s = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)]
    d = cuda.blockDim.x // 2
    while d > 0:
        cuda.syncthreads()
        if t < d:
            s[t] += s[t + d]
        d //= 2
    if t == 0:
        y[cuda.blockIdx.x] = s[0]


# gpusim: grid=ceil(n/block) block=64 n=1024 args=float32[n],float32[ceil(n/block)]
@cuda.jit
def racing(x, y):
    s = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)]
    d = cuda.blockDim.x // 2
    while d > 0:
        if t < d:
            s[t] += s[t + d]
        d //= 2
    if t == 0:
        y[cuda.blockIdx.x] = s[0]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "mine.py"
    made.write_text(KERNELS)
    return made


def document(run: Run, *words: object) -> dict[str, Any]:
    code, out, err = run(*words, "--code", "lowering", "--json")
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def test_tune_never_recommends_a_block_that_leaves_something_else(run: Run, file: Path) -> None:
    words = ("tune", f"{file}:turned", "--block", "8,4,16", "--workers", 1)
    (found,) = document(run, *words)["launches"]
    assert (found["best"]["block"], [row["block"] for row in found["candidates"]]) == (8, [8])
    reasons = {row["block"]: row["wrong"] for row in found["rejected"]}
    assert reasons[4].startswith("other results; y: 512 of 512 elements differ, first [0]")
    assert [row["choices"] for row in found["cannot_run"]] == ["block=16"]  # out of bounds
    told = run(*words, "--code", "lowering")[1]
    assert "best: block 8" in told
    assert "! not the same work: block=4: other results" in told


def test_a_sweep_marks_rows_that_leave_something_else(run: Run, file: Path) -> None:
    words = ("sweep", f"{file}:turned", "--block", "4,8", "--workers", 1)
    rows = document(run, *words)["rows"]
    assert [row["wrong"] is None for row in rows] == [False, True]
    assert all(row["time_us"] for row in rows)
    told = run(*words, "--code", "lowering")[1]
    assert "4 !" in told
    assert "! not the same work: block 4: other results" in told


def test_a_value_for_each_block_is_compared_in_total(run: Run, file: Path) -> None:
    words = ("tune", f"{file}:sums", "--block", "32..256", "--workers", 1)
    (found,) = document(run, *words)["launches"]
    assert (len(found["candidates"]), found["rejected"]) == (4, [])


def test_a_race_is_listed_apart(run: Run, file: Path) -> None:
    found = document(run, "rank", f"{file}:sums", f"{file}:racing")
    assert [one["kernel"] for one in found["kernels"]] == [f"{file}:sums"]
    (wrong,) = found["wrong"]
    assert wrong["kernel"] == f"{file}:racing"
    assert "race" in wrong["reason"]


def test_a_kernel_with_a_known_defect_has_no_rank(run: Run) -> None:
    found = document(run, "rank", "reduce5", "reduce5_fixed", "reduce1", "-n", "2^16")
    ranks = {one["kernel"]: one["rank"] for one in found["kernels"]}
    assert ranks == {"reduce1": 2, "reduce5_fixed": 1}
    assert [one["kernel"] for one in found["wrong"]] == ["reduce5"]
    assert found["wrong"][0]["time_us"] > 0
    code, _, err = run("rank", "reduce5", "-n", "2^16", "--code", "lowering")
    assert (code, "none of the kernels does its work (reduce5: known defect" in err) == (2, True)


def test_all_commands_have_the_same_launch_of_a_file(run: Run, file: Path) -> None:
    kernel = f"{file}:sums"
    made = {
        command: document(run, command, kernel, *words)["launch"]
        for command, words in {"trace": ("--device", "h200"), "predict": ()}.items()
    }
    made["check"] = json.loads(run("check", kernel, "--json")[1])["launch"]
    for number, side in enumerate(document(run, "compare", kernel, kernel)["sides"]):
        made[f"compare {number}"] = side["launch"]
    made["rank"] = document(run, "rank", kernel)["kernels"][0]["launch"]
    made["sweep"] = document(run, "sweep", kernel, "--workers", 1)["launches"][0]
    words = ("tune", kernel, "--block", "64,128", "--workers", 1)
    made["tune"] = document(run, *words)["launches"][0]["launch"]
    first = made.pop("predict")
    assert first["n"] == {"value": "1024", "origin": "comment in the file", "line": 15}
    assert first["data"] == {"x": "random:0", "y": "zeros"}
    for command, found in made.items():
        for member in ("n", "grid", "block", "arguments", "data"):
            assert found[member] == first[member], command
        assert found["device"]["value"] == "h200", command
