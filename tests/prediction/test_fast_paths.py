"""Quotients, roots and sines of elements that are not given."""

from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim.errors import InputError
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
EACH = """
__global__ void {name}(const {kind} *a, {kind} *c) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {kind} x = a[i];
    c[i] = {value};
}}
"""
VALUES = (
    ("quotient", "float", "x / (x + 3.0f)"),
    ("reciprocal", "double", "1.0 / x"),
    ("root", "double", "sqrt(x) + rsqrt(x)"),
    ("sine", "float", "sinf(x) + sqrtf(x)"),
    ("chosen", "float", "x / 3.1f > 1 ? a[i + 1] : 0"),
)
TEXT = "".join(EACH.format(name=name, kind=kind, value=value) for name, kind, value in VALUES)
BLOCKS, THREADS = 264, 128


@pytest.mark.parametrize("name", ["quotient", "reciprocal", "root", "sine"])
def test_they_take_as_long_as_those_of_ordinary_numbers(name: str) -> None:
    kernel = gpusim.cuda_source(TEXT)[name]
    kind = np.float64 if name in ("reciprocal", "root") else np.float32
    size = BLOCKS * THREADS
    spec = gpusim.array_spec(size, kind)
    given = np.linspace(0.5, 1.5, size, dtype=kind)
    ordinary = gpusim.predict(kernel[BLOCKS, THREADS], given, np.zeros_like(given))
    assert gpusim.predict(kernel[BLOCKS, THREADS], spec, spec).time_us == ordinary.time_us


def test_what_is_given_takes_the_path_that_it_takes() -> None:
    """A quotient of zeros is worked out by a function, which takes longer."""
    quotient = gpusim.cuda_source(TEXT)["reciprocal"]
    size = BLOCKS * THREADS
    zeros, ones = np.zeros(size), np.ones(size)
    slow = gpusim.predict(quotient[BLOCKS, THREADS], zeros, np.zeros(size))
    assert slow.instructions > gpusim.predict(quotient[BLOCKS, THREADS], ones, zeros).instructions


def test_what_the_source_asks_of_elements_is_refused_as_before() -> None:
    chosen = gpusim.cuda_source(TEXT)["chosen"]
    spec = gpusim.array_spec(BLOCKS * THREADS + 1, np.float32)
    with pytest.raises(InputError, match=r"of chosen in line .* give the elements of a"):
        gpusim.predict(chosen[BLOCKS, THREADS], spec, spec)


WIDE = """
__global__ void wide(const int *a, int *c, unsigned long long added, unsigned long long by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long x = (unsigned)a[i] + added;
    c[i] = (int)(x / by);
}
"""


@pytest.mark.parametrize("added", [0, 1 << 40])
def test_integers_fit_in_32_bits_unless_the_code_makes_them_larger(added: int) -> None:
    kernel = gpusim.cuda_source(WIDE)["wide"][BLOCKS, THREADS]
    size = BLOCKS * THREADS
    given = np.arange(size, dtype=np.int32)
    numbers = np.uint64(added), np.uint64(7)
    known = gpusim.predict(kernel, given, np.zeros_like(given), *numbers)
    spec = gpusim.array_spec(size, np.int32)
    assert gpusim.predict(kernel, spec, spec, *numbers).time_us == known.time_us
