"""A launch has one description: its members, each from the first place that has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Run

from gpusim.cli.references import Reference

KERNELS = """
from gpusim import cuda

# gpusim: grid=ceil(n/block) block=64 n=256 args=float32[n],x=float32[n],n
@cuda.jit
def scale(y, x, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = 2 * x[i]

# gpusim: grid=1 block=32 args=int32[32],int32[64],int32[8],float32[32]
@cuda.jit
def gather(picked, values, counts, total):
    i = cuda.threadIdx.x
    picked[i] = values[counts[i % 8]]
    cuda.atomic.add(total, i, 1.0)

# gpusim: grid=1 block=32 args=int32[32],int32[32]
@cuda.jit
def until(out, ends):
    i = cuda.threadIdx.x
    k = 0
    while k < ends[i]:
        k += 1
    out[i] = k
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "mine.py"
    made.write_text(KERNELS)
    return made


def launch(run: Run, *words: object) -> dict[str, Any]:
    code, out, err = run(*words, "--json")
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)["launch"]
    return found


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("reduce2", ("", "reduce2")),
        ("a b/mine.py:f", ("a b/mine.py", "f")),
        ("mine.py", ("mine.py", "")),
        ("k.cu:space::sum<float, 128>", ("k.cu", "space::sum<float, 128>")),
        ("k.cubin: k", ("k.cubin", "k")),
        ("folder/k:f", ("folder/k", "f")),
    ],
)
def test_a_name_has_a_file_and_a_kernel(text: str, parts: tuple[str, str]) -> None:
    found = Reference.of(text)
    assert (found.file, found.kernel) == parts


def test_each_member_says_where_it_is_from(run: Run, file: Path) -> None:
    found = launch(run, "trace", f"{file}:scale", "--block", 128)
    comment = {"origin": "comment in the file", "line": 4}
    assert found["block"] == {"value": "128", "origin": "option"}
    assert found["n"] == {"value": "256", **comment}
    assert found["grid"] == {"value": "ceil(n/block)", **comment}
    assert found["arguments"]["x"] == {"value": "float32[n]", **comment}
    found = launch(run, "trace", "reduce2", "-n", "2^10")
    assert found["n"] == {"value": "1024", "origin": "option"}
    assert found["block"]["origin"] == found["grid"]["origin"] == "the kernel's rule"


def test_a_named_argument_replaces_that_of_the_file_alone(run: Run, file: Path) -> None:
    found = launch(run, "trace", f"{file}:scale", "--arg", "y=float32[512]=1")
    assert found["arguments"]["y"] == {"value": "float32[512]=1", "origin": "option"}
    assert found["arguments"]["x"]["value"] == "float32[n]"
    assert found["data"] == {"x": "random:1"}
    code, _, err = run("trace", f"{file}:scale", "--arg", "z=1")
    assert (code, "scale has no argument 'z'" in err) == (2, True)


def test_arguments_in_order_replace_all_of_the_file(run: Run, file: Path) -> None:
    words = ("trace", f"{file}:scale", "--arg", "float32[n]", "--arg", "float32[n]")
    code, _, err = run(*words)
    assert (code, "give --arg for n: number" in err) == (2, True)


def test_a_heading_says_the_size_and_what_was_assumed(run: Run, file: Path) -> None:
    for command in ("trace", "check", "predict"):
        lines = run(command, f"{file}:scale", "--block", 128)[1].splitlines()
        at = lines.index("n 256; n, grid, arguments: comment in the file, line 4")
        assert lines[at + 1] == "data, assumed: y zeros; x random numbers"


def test_indices_are_small_and_counters_begin_at_zero(run: Run, file: Path) -> None:
    for command in ("trace", "check", "predict"):
        assert launch(run, command, f"{file}:gather")["data"] == {
            "picked": "zeros", "values": "random:1", "counts": "random:2:0:7", "total": "zeros",
        }  # fmt: skip


def test_a_prediction_whose_course_depends_on_assumed_data_says_so(run: Run, file: Path) -> None:
    code, out, _ = run("predict", f"{file}:until", "--json")
    assert (code, json.loads(out)["passes"][0]["depends_on_data"]) == (0, True)
    assert "depends on the assumed data" in run("predict", f"{file}:until")[1]
    given = run("predict", f"{file}:until", "--arg", "ends=int32[32]=3", "--json")[1]
    assert "depends_on_data" not in json.loads(given)["passes"][0]


def test_a_prediction_is_of_more_elements_than_a_trace(run: Run) -> None:
    assert launch(run, "trace", "reduce2")["n"] == {"value": "65536", "origin": "default"}
    assert launch(run, "predict", "reduce2")["n"] == {"value": "16777216", "origin": "default"}
