"""The litmus table of the documentation: each kernel is judged as its row says."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
KERNELS = Path(__file__).with_name("litmus.cu")
PAGE = Path(__file__).parents[2] / "docs" / "checking.md"
ROWS = re.findall(r"\| `(\w+)` \| (ordered|race) \| (ordered|race) \|", PAGE.read_text())
NAMES = re.compile(
    r"^(?:PASS|PASS_FENCED|LOCK|LOOK_BACK)\((\w+),|^__global__ void (\w+)\(", re.MULTILINE
)


@cache
def kernels() -> Any:
    return gpusim.cuda_file(str(KERNELS))


def verdict(kernel: str, *, lenient: bool) -> str:
    arrays = [np.zeros(64, np.int32) for _ in range(3)]
    found = gpusim.check(kernels()[kernel][2, 64], *arrays, lenient=lenient)
    assert all(finding.rule == "block-race" for finding in found.errors)
    return "race" if found.errors else "ordered"


@pytest.mark.parametrize(("kernel", "strictly", "leniently"), ROWS, ids=[row[0] for row in ROWS])
def test_a_litmus_test_has_its_verdict(kernel: str, strictly: str, leniently: str) -> None:
    assert verdict(kernel, lenient=False) == strictly
    assert verdict(kernel, lenient=True) == leniently


def test_every_litmus_kernel_has_a_row() -> None:
    named = {one or other for one, other in NAMES.findall(KERNELS.read_text())}
    assert named == {kernel for kernel, *_ in ROWS}
    assert len(named) >= 30
