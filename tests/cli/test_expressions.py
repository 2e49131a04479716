"""Sizes that depend on others, parsed and never evaluated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpusim.cli.expressions import value_of
from gpusim.errors import InputError

NAMES = {"n": 1000, "block": 128}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n", 1000),
        ("ceil(n/(2*block))", 4),
        ("n-n%block", 896),
        ("min(n, 4*block, 2^20)", 512),
        ("max(ceil(n/block), 16)", 16),
        ("2*n+1", 2001),
        ("n-2-3", 995),
        ("n/8*8", 1000),
    ],
)
def test_an_expression_comes_to_a_whole_number(text: str, value: int) -> None:
    assert value_of(text, NAMES) == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("n/3", "ceil(...) rounds it up"),
        ("m+1", "nothing is named 'm'"),
        ("n*(", "its end"),
        ("n**n", "not understood"),
        ("__import__('os')", "not understood"),
        ("n/(block-128)", "divides by zero"),
        ("ceil(1, 2)", "not understood"),
        ("n*" * 60 + "n", "not understood"),
    ],
)
def test_what_is_no_size_is_refused_with_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says.replace("(", r"\(").replace(")", r"\)")):
        value_of(text, NAMES)


KERNEL = """
from gpusim import cuda

@cuda.jit
def double(x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = 2 * x[i]
"""


def test_a_kernel_of_ones_own_takes_its_sizes_from_n_and_block(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(KERNEL, encoding="utf-8")
    common = (f"{file}:double", "--block", "128", "--grid", "ceil(n/block)")
    arguments = ("--arg", "int32[n]=arange", "--arg", "int32[n]", "--arg", "n")
    code, out, _ = run("trace", *common, *arguments, "-n", "1000")
    assert code == 0
    assert "grid 8, block 128" in out
    code, out, _ = run("predict", *common, *arguments, "-n", "2^20")
    assert code == 0
    assert "grid 8,192, block 128" in out
    code, _, error = run("trace", *common, *arguments)
    assert (code, "Traceback" in error) == (2, False)
    fixed = ("--arg", "int32[64]", "--arg", "int32[64]", "--arg", "64")
    code, _, error = run("trace", *common[:3], "--grid", "1", *fixed, "-n", "64")
    assert code == 2
    assert "-n is given, but n stands in no --arg" in error
