"""Sizes that depend on others, parsed and never evaluated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpusim.cli.expressions import is_expression, number_of, parts_of, value_of
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
        ("50257*768", 38_597_376),
        ("0.5*n", 500),
    ],
)
def test_an_expression_comes_to_a_whole_number(text: str, value: int) -> None:
    assert value_of(text, NAMES) == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("n/3", "ceil(...) rounds up"),
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


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("ceil(n/16)xceil(n/32)", ["ceil(n/16)", "ceil(n/32)"]),
        ("1xn/16", ["1", "n/16"]),
        ("nxnx3", ["n", "n", "3"]),
        ("blockx(n+1)", ["block", "(n+1)"]),
        ("max(n, 2),3", ["max(n, 2)", "3"]),
        ("16x16", ["16", "16"]),
    ],
)
def test_a_comma_or_an_x_parts_sizes(text: str, parts: list[str]) -> None:
    assert parts_of(text) == parts


def test_an_argument_with_a_decimal_point_is_any_number() -> None:
    assert number_of("1.0/n", NAMES) == 0.001
    assert number_of("n/8", NAMES) == 125
    with pytest.raises(InputError, match="rounds up"):
        number_of("n/3", NAMES)


@pytest.mark.parametrize("text", ["1e-8", "-5", "2^20+1", "0.5", "inf", "true", "m+1", "16x16"])
def test_what_is_no_expression_is_read_as_before(text: str) -> None:
    assert not is_expression(text, NAMES)


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
    assert code == 2
    assert "nothing is named 'n' here; -n gives it" in error
    fixed = ("--arg", "int32[64]", "--arg", "int32[64]", "--arg", "64")
    code, _, error = run("trace", *common[:3], "--grid", "1", *fixed, "-n", "64")
    assert code == 2
    assert "-n is given, but no --arg" in error


def test_a_grid_of_two_axes_depends_on_n_as_well(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(KERNEL, encoding="utf-8")
    arguments = ("--arg", "int32[4*16*16]", "--arg", "int32[n*n]", "--arg", "4*4*64")
    code, out, _ = run(
        "trace", f"{file}:double", "--block", "128", "--grid", "ceil(n/16)xceil(n/8)",
        *arguments, "-n", "32",
    )  # fmt: skip
    assert code == 0
    assert "grid 2 x 4, block 128" in out
