"""Notes on indices that leave 32 bits, in launches that show them by their accesses or arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.host.lazy_memory import zeros
from gpusim.sass import wheels
from gpusim.sass.kernels import cuda_source

needs_nvcc = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
KERNELS = """
__global__ void signed_product(const char *x, char *y, int row, int columns)
{
    int at = row * columns + threadIdx.x;
    y[threadIdx.x] = x[at];
}
__global__ void shifted(char *y, int n)
{
    int at = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (at < n) y[at] = 1;
}
__global__ void widened_late(char *y, long long n)
{
    long long i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 1;
}
__global__ void wide(char *y, int row, int columns)
{
    y[(long long)row * columns + threadIdx.x] = 1;
}
__global__ void hashed(int *y, unsigned key)
{
    y[(key + threadIdx.x) * 2654435761u % 64] = 1;
}
__global__ void runtime_remainder(int *y, unsigned first, unsigned m)
{
    y[(first + threadIdx.x) % m] = 1;
}
__global__ void constant_remainder(int *y, unsigned first, unsigned m)
{
    y[(first + threadIdx.x) % 47u] = 1;
}
__global__ void wide_remainder(int *y, unsigned first, unsigned m)
{
    y[(first + threadIdx.x) % (unsigned long long)m] = 1;
}
__global__ void back(int *y, unsigned first, unsigned m)
{
    y[(first + threadIdx.x) * m - m * 4000000u] = 1;
}
"""


@cuda.jit
def rows_of(x, y, row, columns):
    y[cuda.threadIdx.x] = x[row * columns + cuda.threadIdx.x]


def notes(found: gpusim.Findings) -> list[str]:
    return [one.message for one in found if one.rule == "index-overflow"]


def small() -> Any:
    return np.zeros(64, np.int8)


@needs_nvcc
def test_a_signed_product_is_named_beside_the_access_out_of_bounds() -> None:
    """262,143 * 8,960 is 2,348,801,280, less 2^32 it is -1,946,166,016."""
    kernel = cuda_source(KERNELS)["signed_product"]
    found = gpusim.check(kernel[1, 32], small(), small(), np.int32(262143), np.int32(8960))
    assert [one.rule for one in found.errors] == ["bounds"]
    (note,) = notes(found)
    assert note.endswith(
        "line 4: an index of 2,348,801,280 does not fit in a signed number of 32 bits and becomes "
        "-1,946,166,016"
    )


def test_the_dialect_has_the_same_note() -> None:
    arguments = np.int32(262143), np.int32(8960)
    found = gpusim.check(rows_of[1, 32], small(), small(), *arguments)
    (note,) = notes(found)
    assert "an index of 2,348,801,280 does not fit in a signed number" in note


@needs_nvcc
def test_a_shift_of_the_last_block_is_a_product() -> None:
    """Block 2^22 of 256 threads begins at 2^30: twice that is 2^31."""
    found = gpusim.check(
        cuda_source(KERNELS)["shifted"][2**22 + 1, 256], small(), np.int32(64), blocks=[2**22]
    )
    (note,) = notes(found)
    assert "an index of 2,147,483,648 does not fit in a signed number of 32 bits" in note


@needs_nvcc
def test_an_unsigned_product_that_is_widened_late_wraps_within_bounds() -> None:
    """Block 2^22 of 1,024 threads begins at 2^32: its stores lie at the begin of the array."""
    n = 2**32 + 1024
    kernel = cuda_source(KERNELS)["widened_late"][2**22 + 1, 1024]
    found = gpusim.check(kernel, zeros(n, np.int8), np.int64(n), blocks=[2**22])
    assert not found.errors
    (note,) = notes(found)
    assert "an index of 4,294,967,296 does not fit in an unsigned number of 32 bits" in note
    assert note.endswith("becomes 0")


@needs_nvcc
def test_products_of_64_bits_have_no_note() -> None:
    kernel = cuda_source(KERNELS)["wide"]
    found = gpusim.check(kernel[1, 32], small(), np.int32(262143), np.int32(8960))
    assert [one.rule for one in found.errors] == ["bounds"]
    assert notes(found) == []


@needs_nvcc
@pytest.mark.parametrize("fast", ["0", "1"])
def test_a_hash_within_its_array_has_no_note(fast: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUSIM_FAST", fast)
    kernel = cuda_source(KERNELS)["hashed"]
    assert notes(gpusim.check(kernel[1, 1], np.zeros(64, np.int32), np.uint32(3))) == []


@needs_nvcc
@pytest.mark.parametrize("fast", ["0", "1"])
@pytest.mark.parametrize(
    "name", ["runtime_remainder", "constant_remainder", "wide_remainder", "back"]
)
def test_a_negative_factor_or_term_is_no_overflow(
    name: str, fast: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index `i % 47` is `i - i / 47 * 47`: 46 for 4,000,000,000."""
    monkeypatch.setenv("GPUSIM_FAST", fast)
    first = 4_000_000 + 47 if name == "back" else 4_000_000_000
    kernel = cuda_source(KERNELS)[name]
    found = gpusim.check(kernel[1, 64], np.zeros(4, np.int32), np.uint32(first), np.uint32(47))
    assert {one.rule for one in found.errors} >= {"bounds"}
    assert notes(found) == []
