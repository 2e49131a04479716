"""A defect of a Python kernel is found at its line in either code, and its cure has none."""

from __future__ import annotations

import numpy as np
import pytest
from advice.python_pairs import PYTHON_PAIRS, PythonPair

import gpusim
from gpusim.advice.records import Advice
from gpusim.cuda import Kernel
from gpusim.sass import wheels

CODES = [
    "lowering",
    pytest.param(
        "nvcc",
        marks=[
            pytest.mark.slow,
            pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL),
        ],
    ),
]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("pair", PYTHON_PAIRS, ids=lambda pair: pair.name)
def test_a_trace_names_the_line_of_a_defect_and_not_its_cure(pair: PythonPair, code: str) -> None:
    found = {(advice.kind, advice.line) for advice in traced(pair, pair.defect, code)}
    assert (pair.kind, pair.line()) in found
    assert pair.kind not in {advice.kind for advice in traced(pair, pair.cure, code)}


def traced(pair: PythonPair, kernel: Kernel, code: str) -> list[Advice]:
    """The findings of a trace."""
    dtype = "int32" if pair.kind == "integer-division" else "float32"
    arrays = [np.zeros(size, dtype) for size in pair.sizes]
    return gpusim.trace(kernel[pair.grid, pair.block], *arrays, code=code).findings
