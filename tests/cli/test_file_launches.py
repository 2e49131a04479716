"""A launch in a comment before its kernel is that of every command; options take precedence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Run

from gpusim.cli.references import Reference
from gpusim.errors import InputError

PYTHON = """
from gpusim import cuda

# gpusim: grid=ceil(n/block) block=64 n=256 args=y=float32[n],x=float32[n]=arange,n
@cuda.jit
def scale(y, x, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = 2 * x[i]

@cuda.jit
def other(y):
    y[cuda.grid(1)] = 1
"""
CUDA = """
// gpusim: grid=4 block=128 args=float32[512]
template <typename T> __global__ void __launch_bounds__(128) first(T *x) { x[0] = 1; }
// gpusim: kernel=first grid=9 block=9
__global__ void second(int n) {}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "mine.py"
    made.write_text(PYTHON)
    return made


def test_a_kept_launch_needs_no_options(run: Run, file: Path) -> None:
    code, out, err = run("trace", f"{file}:scale", "--json")
    assert (code, err) == (0, "")
    launch = json.loads(out)
    assert (launch["grid"][0], launch["block"][0]) == (4, 64)


def test_an_option_takes_precedence(run: Run, file: Path) -> None:
    code, out, _ = run("trace", f"{file}:scale", "--block", "32", "--json")
    launch = json.loads(out)
    assert (code, launch["grid"][0], launch["block"][0]) == (0, 8, 32)


def test_everything_missing_is_said_at_once(run: Run, file: Path) -> None:
    code, _, err = run("trace", f"{file}:other")
    assert code == 2
    assert "give --grid, --block and --arg for y" in err


def test_the_comment_belongs_to_the_kernel_behind_it_or_to_the_one_it_names(
    tmp_path: Path,
) -> None:
    file = tmp_path / "mine.cu"
    file.write_text(CUDA)
    first = Reference.of(f"{file}:first<float>").launch
    assert first is not None
    assert (first.line, first.options) == (2, {
        "grid": "4", "block": "128", "arg": ["float32[512]"],
    })  # fmt: skip
    assert Reference.of(f"{file}:second").launch is None


def test_a_word_that_is_no_key_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.cu"
    file.write_text("\n// gpusim: gird=4\n__global__ void k() {}\n")
    with pytest.raises(InputError, match=r"line 2: 'gird=4' .*did you mean grid"):
        _ = Reference.of(f"{file}:k").launch
