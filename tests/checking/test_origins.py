"""Memory that was never written, in nvcc's own code: found where what was read is used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
SOURCE = """
__global__ void remainders(const float *x, const int *lengths, float *y) {
    __shared__ float score[512];
    int t = threadIdx.x, length = lengths[blockIdx.x];
    for (int k = t; k < length - MISSING; k += blockDim.x) score[k] = x[k];
    __syncthreads();
    float sum = 0;
    for (int page = 0; page * 16 < length; page++) {
        int count = min(16, length - page * 16);
        for (int k = 0; k < count; k++) sum += score[page * 16 + k] * x[k * 64 + t];
    }
    y[blockIdx.x * blockDim.x + t] = sum;
}

__global__ void rounds(const float *x, float *y, int rounds, int length) {
    __shared__ float score[128];
    int t = threadIdx.x;
    for (int k = t; k < 128; k += 32) if (k % 16 < length - MISSING) score[k] = x[k];
    __syncthreads();
    float sum = 0;
    for (int r = 0; r < rounds; r++)
        for (int k = 0; k < min(16, length); k++) sum += score[r % 8 * 16 + k] * x[r + k];
    y[t] = sum;
}

#define ONE_OF_THEM         \\
    __shared__ int s[32];   \\
    int t = threadIdx.x;    \\
    if (t == 5) s[5] = x[0];\\
    __syncthreads();        \\
    int mine = s[t];

__global__ void shuffled(const int *x, int *y, int lane) {
    ONE_OF_THEM
    y[t] = __shfl_sync(~0u, mine, lane);
}
__global__ void branch(const int *x, int *y, int limit) {
    ONE_OF_THEM
    for (int k = 0; k < mine; k++) atomicAdd(y + k, limit);
}
__global__ void address(const int *x, int *y, int limit) {
    ONE_OF_THEM
    if (t < limit) y[t] = x[mine & 31];
}
__global__ void stored(const int *x, int *y, int limit) {
    ONE_OF_THEM
    if (t < limit) y[t] = 3 * mine + 1;
}
__global__ void voted(const int *x, int *y, int limit) {
    ONE_OF_THEM
    if (t < limit) y[t] = __popc(__ballot_sync(__activemask(), mine > 7));
}
"""


def found(name: str, *arguments: Any, grid: int = 1, missing: int = 0) -> list[Any]:
    kernels = gpusim.cuda_source(SOURCE, definitions=[f"MISSING={missing}"])
    findings = gpusim.check(kernels[name][grid, 32], *arguments)
    return [(one.rule, one.places[0].thread.thread, one.index, one.count) for one in findings]


def of_lengths(*lengths: int, missing: int = 0) -> list[Any]:
    arrays = np.ones(4096, np.float32), np.array(lengths, np.int32), np.zeros(128, np.float32)
    return found("remainders", *arrays, grid=len(lengths), missing=missing)


def test_words_beside_a_remainder_that_are_loaded_with_it_are_no_finding() -> None:
    """The loop is unrolled by four; what is left, one to three words, is loaded as four."""
    assert of_lengths(1, 2, 3) == []
    assert of_lengths(33, 34, 35, 36) == []


@pytest.mark.parametrize("length", [1, 2, 3, 4, 21, 22, 23])
def test_a_word_of_a_remainder_that_is_used_and_was_never_stored_is_found(length: int) -> None:
    """All 32 threads add the last word of the row to their sums."""
    assert of_lengths(length, missing=1) == [("uninitialised", 0, length - 1, 32)]


@pytest.mark.parametrize("missing", [0, 1])
def test_of_what_is_added_up_in_many_rounds_the_first_is_found(missing: int) -> None:
    """Three words are used and four read in each; the third was never stored, or the fourth."""
    arrays = np.ones(512, np.float32), np.zeros(32, np.float32)
    findings = found("rounds", *arrays, np.int32(200), np.int32(3), missing=missing)
    assert findings == [("uninitialised", 0, 2, 32)] * missing


def ints(name: str, number: int) -> list[Any]:
    return found(name, np.ones(32, np.int32), np.zeros(32, np.int32), np.int32(number))


def test_a_shuffle_uses_the_lane_that_it_reads_from() -> None:
    """Thread 5 alone has a word that was stored; of thread 6 all 32 lanes read it."""
    assert ints("shuffled", 5) == []
    assert ints("shuffled", 6) == [("uninitialised", 6, 6, 1)]


@pytest.mark.parametrize("name", ["address", "stored", "voted"])
def test_an_address_a_store_and_a_vote_use_what_was_loaded(name: str) -> None:
    """Seven of the eight threads below the limit use a word that nobody stored."""
    assert ints(name, 0) == []
    assert [(rule, count) for rule, _, _, count in ints(name, 8)] == [("uninitialised", 7)]


def test_a_branch_uses_what_decides_it() -> None:
    assert ints("branch", 1) == [("uninitialised", 0, 0, 31)]
