"""Findings of pipelines of bulk copies: depth, waits, sizes and multicast."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import gpusim
from gpusim.advice.evidence import Evidence
from gpusim.advice.findings import find, with_gains
from gpusim.advice.records import Advice
from gpusim.advice.timed.bulk_copies import bulk_empty, bulk_latency, multicast, small_copies
from gpusim.sass import wheels
from gpusim.sass.kernels import CodeFile, cuda_source

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
BULK = Path(__file__).parents[2] / "validate" / "bulk"
# Stages of some bytes, and adds for each of them; of one tile for all blocks if STRIDE is 0.
SOURCE = """
#include "bulk.cuh"
template <int STAGES, int BYTES, int ADDS, int STRIDE>
__device__ void pipeline(const char *x, float *out, int rounds) {
    __shared__ alignas(128) char s[STAGES][BYTES];
    __shared__ u64 full[STAGES], empty[STAGES];
    int t = threadIdx.x;
    if (t == 0) {
        for (int i = 0; i < STAGES; i++) { init(&full[i], 1); init(&empty[i], blockDim.x); }
        FENCE;
    }
    __syncthreads();
    const char *mine = x + (long)blockIdx.x * rounds * BYTES * STRIDE;
    if (t == 0)
        for (int i = 0; i < STAGES && i < rounds; i++) {
            expect(&full[i], BYTES);
            load(s[i], mine + i * BYTES, BYTES, &full[i]);
        }
    float sum = 0;
    for (int i = 0; i < rounds; i++) {
        int k = i % STAGES, phase = i / STAGES & 1;
        wait(&full[k], phase);
        for (int j = t; j < BYTES / 4; j += blockDim.x) sum += ((float *)s[k])[j];
        for (int j = 0; j < ADDS; j++) sum = sum * sum + 1;
        arrive(&empty[k]);
        if (t == 0 && i + STAGES < rounds) {
            wait(&empty[k], phase);
            expect(&full[k], BYTES);
            load(s[k], mine + (long)(i + STAGES) * BYTES, BYTES, &full[k]);
        }
    }
    out[blockIdx.x * blockDim.x + t] = sum;
}
#define CASE(name, ...) extern "C" __global__ void name(const char *x, float *out, int rounds) { \\
    pipeline<__VA_ARGS__>(x, out, rounds); }
CASE(shallow, 1, 4096, 0, 1)
CASE(deep, 8, 4096, 64, 1)
CASE(small, 4, 128, 0, 1)
CASE(alike, 4, 2048, 0, 0)
"""


@cache
def source() -> CodeFile:
    """Return the file of all kernels."""
    return cuda_source(SOURCE, includes=[str(BULK)])


def said(name: str, rounds: int, tile: int, cluster: int = 1) -> dict[str, str]:
    """Return the messages for a launch of 8 blocks by their kinds."""
    kernel = source()[name][8, 128, 0, 0, cluster]
    arguments = np.zeros(8 * rounds * tile, np.int8), np.zeros(8 * 128, np.float32)
    made = gpusim.predict(kernel, *arguments, np.int32(rounds))
    evidence = Evidence(gpusim.trace(kernel, *arguments, np.int32(rounds)), made)
    rules = bulk_latency, bulk_empty, small_copies, multicast
    return {one.kind: one.message for rule in rules for one in rule(evidence)}


def test_a_pipeline_of_one_stage_waits_for_its_copies() -> None:
    """One stage of 4,096 bytes is in flight; eight stages and some arithmetic hide the latency."""
    found = said("shallow", 16, 4096)
    assert set(found) == {"bulk-latency"}
    assert "1 stage with 4,096 bytes in flight for each block" in found["bulk-latency"]
    assert not said("deep", 16, 4096)


@cache
def measured() -> CodeFile:
    """Return the pipelines by depth that were measured."""
    return cuda_source((BULK / "pipelines.cuh").read_text(), includes=[str(BULK)])


@pytest.mark.parametrize(("work", "kinds"), [(24, {"bulk-empty"}), (0, set())])
def test_a_producer_waits_for_its_consumers_where_they_have_much_to_do(
    work: int, kinds: set[str]
) -> None:
    """Six stages of 1 KB for 96 tiles a block, with 24 dependent products for each word or none."""
    n = np.int32(8 * 96 * 256)
    arguments = np.ones(n, np.float32), np.zeros(8, np.float32), n, *map(np.int32, (6, 256, work))
    kernel = measured()["by_depth"][8, 288, 0, 6 * 1024]
    made = gpusim.predict(kernel, *arguments, l2="warm")
    evidence = Evidence(gpusim.trace(kernel, *arguments), made)
    found = [one for rule in (bulk_latency, bulk_empty) for one in rule(evidence)]
    assert {one.kind for one in found} == kinds
    assert all("the producers of copies wait" in one.message for one in found)


def test_a_replay_in_which_phases_never_end_leaves_a_finding_without_its_gain() -> None:
    """Without its atomics the kernel makes no arrival; on its own it has no such finding."""
    kernel = source()["shallow"][8, 128]
    arguments = np.zeros(8 * 16 * 4096, np.int8), np.zeros(8 * 128, np.float32), np.int32(16)
    trace, made = gpusim.trace(kernel, *arguments), gpusim.predict(kernel, *arguments)
    arrival = Advice("atomics", trace.lines[-1].line, "arrivals", 1.0)
    assert with_gains([arrival], made) == [arrival]
    kinds = {one.kind for one in find(trace, made)}
    assert "bulk-latency" in kinds
    assert "atomics" not in kinds


def test_copies_of_few_bytes_are_named_by_size_and_number() -> None:
    """32 rounds: 28 copies of 128 bytes in the loop, after those for four stages."""
    found = said("small", 32, 128)
    assert "makes 28 bulk copies of 128 bytes" in found["small-copies"]
    assert "4 stages with 512 bytes" in found["bulk-latency"]


def test_blocks_of_a_cluster_that_load_the_same_bytes_are_told_of_multicast() -> None:
    """Eight blocks load one tile: eight times its bytes, in clusters of four."""
    found = said("alike", 16, 2048, cluster=4)
    assert "262,144 bytes" in found["multicast"]
    assert "for the 4 blocks of a cluster" in found["multicast"]
    assert "multicast" not in said("alike", 16, 2048)
