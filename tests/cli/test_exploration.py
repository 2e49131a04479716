"""`gpusim check --explore`: other inputs and orders, and the smallest launch of each finding."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from gpusim.cli.app import main
from gpusim.sass import wheels

needs_compiler = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
PYTHON = """
import numpy as np
from gpusim import cuda

# gpusim: grid=ceil(n/64) block=64 n=256 args=float32[n],float32[n],n
@cuda.jit
def shift(x, y, n):
    tile = cuda.shared.array(64, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    if i < n:
        tile[t] = x[i]
    cuda.syncthreads()
    if i < n and t < 63{guard}:
        y[i] = tile[t + 1]

@cuda.jit
def modes(x, y, mode, n):
    i = cuda.grid(1)
    if i < n:
        if mode == 3:
            y[0] = i
        elif x[i] > 1000:
            y[1] = i
        else:
            y[i] = 2

@cuda.jit
def whose(x, flag, out):
    if cuda.threadIdx.x == 0:
        if cuda.blockIdx.x == 0:
            x[0] = 1
            cuda.threadfence()
            cuda.atomic.exch(flag, 0, 1)
        elif cuda.atomic.add(flag, 0, 0) == 1:
            cuda.threadfence()
            out[0] = x[0]
        else:
            x[0] = 2
"""
CUDA = """
// gpusim: grid=ceil(n/64) block=64 n=256 args=float32[n],float32[n],n
__global__ void shift(const float *x, float *y, int n) {
    __shared__ float tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
    if (i < n) tile[t] = x[i];
    __syncthreads();
    if (i < n && t < 63 GUARD) y[i] = tile[t + 1];
}
__global__ void modes(const int *x, int *y, int mode, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        if (mode == 3) y[0] = i;
        else if (x[i] > 1000) y[1] = i;
        else y[i] = 2;
    }
}
"""
MODES = ["--grid", "2", "--block", "64", "--arg", "int32[128]", "--arg", "int32[128]"]
MODES += ["--arg", "mode=0", "--arg", "n=128"]
BOTH = pytest.mark.parametrize("suffix", [".py", pytest.param(".cu", marks=needs_compiler)])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(PYTHON.format(guard=""))
    (tmp_path / "right.py").write_text(PYTHON.format(guard=" and i + 1 < n"))
    (tmp_path / "a.cu").write_text(CUDA.replace("GUARD", ""))
    (tmp_path / "right.cu").write_text(CUDA.replace("GUARD", "&& i + 1 < n"))
    return tmp_path


def explored(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, object]]:
    code = main(["check", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


@BOTH
def test_a_size_that_fills_no_block_is_found_and_made_as_small_as_it_can_be(
    folder: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    name = f"a{suffix}:shift"
    assert main(["check", name]) == 0
    capsys.readouterr()
    code, found = explored(capsys, name, "--explore", "4")
    (smallest,) = found["smallest"]
    assert (code, found["seed"], len(found["tried"]) >= 5) == (1, 0, True)
    assert [one["rule"] for one in smallest["findings"]] == ["uninitialised"]
    words = shlex.split(smallest["command"])
    assert words[words.index("-n") + 1] == "1"
    assert main(words[1:]) == 1
    assert "[uninitialised]" in capsys.readouterr().out
    code, found = explored(capsys, f"right{suffix}:shift", "--explore", "8")
    assert (code, found["smallest"]) == (0, [])
    assert found["launches"] == 9


@BOTH
def test_branches_go_the_other_way_by_numbers_and_by_elements(
    folder: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    assert main(["check", f"a{suffix}:modes", *MODES]) == 0
    capsys.readouterr()
    code, found = explored(capsys, f"a{suffix}:modes", *MODES, "--explore", "12", "--seed", "5")
    commands = " ".join(one["command"] for one in found["smallest"])
    assert code == 1
    assert "mode=3" in commands
    assert "int32[128]=random:" in " ".join(one["command"] for one in found["tried"])
    assert {one["rule"] for part in found["smallest"] for one in part["findings"]} >= {
        "one-instruction"
    }
    assert found["lines_not_run"] == []
    assert (
        explored(capsys, f"a{suffix}:modes", *MODES, "--explore", "12", "--seed", "5")[1] == found
    )


def test_another_order_of_blocks_is_tried_where_they_communicate(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    launch = ["a.py:whose", "--grid", "2", "--block", "32", *["--arg", "int32[1]"] * 3]
    assert main(["check", *launch]) == 0
    assert "not run" in capsys.readouterr().out
    code, found = explored(capsys, *launch, "--explore", "20")
    assert code == 1
    words = shlex.split(found["smallest"][0]["command"])
    assert "--order" in words
    assert main(words[1:]) == 1
    out = capsys.readouterr().out
    assert "[block-race]" in out
    assert f"--order {words[words.index('--order') + 1]}: warps and blocks" in out


def test_kernels_of_the_catalogue_have_other_sizes_blocks_and_operations(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, found = explored(capsys, "reduce3", "-n", "1000", "--explore", "12")
    commands = " ".join(one["command"] for one in found["tried"])
    assert (code, found["smallest"]) == (0, [])
    assert all(flag in commands for flag in ("-n 1 ", "--block 128", "--op max", "--order 0"))


def test_the_report_has_each_command_in_lines_that_a_shell_joins(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["check", "a.py:shift", "--explore", "2"]) == 1
    out = capsys.readouterr().out
    assert "launches, seed 0: " in out
    begin = out.index("gpusim check")
    words = shlex.split(out[begin : out.index("\nshift", begin)].replace("\\\n", ""))
    assert main(words[1:]) == 1
    assert main(["check", "right.py:shift", "--explore", "2"]) == 0
    assert "no hazards found in 3 launches, seed 0" in capsys.readouterr().out


def test_sarif_has_each_finding_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "a.py:shift", "--explore", "6", "--sarif"]) == 1
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert [one["ruleId"] for one in run["results"]] == ["uninitialised"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--seed", "3"], "--seed cannot be given here"),
        (["--explore", "0"], "--explore must be at least 1"),
        (["--explore", "many"], "--explore is 'many', not a whole number"),
        (["--order", "-1"], "--order must be at least 0"),
    ],
)
def test_what_cannot_be_explored_is_said(
    capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    assert main(["check", "reduce3", *words]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("filling", "least", "most"),
    [("random:3:5:9", 5, 9), ("random:3:-2:-1", -2, -1), ("random:7", 0, 99)],
)
def test_random_elements_lie_within_their_ends(filling: str, least: int, most: int) -> None:
    from gpusim.cli.arguments import argument

    array = argument(f"int32[400]={filling}").value
    assert (array.min() >= least, array.max() <= most) == (True, True)
    assert len(set(array.tolist())) > 1
    assert (argument(f"int32[400]={filling}").value == array).all()


def test_random_elements_between_wrong_ends_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["check", "a.py:k", "--arg", "int32[4]=random:1:9:5"]) == 2
