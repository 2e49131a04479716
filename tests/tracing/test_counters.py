"""Counters say of themselves what they are worth: what the compiler decides is no exact number."""

from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.tracing.counters import COUNTERS

EXACT = {
    "source_branches",
    "source_divergent_branches",
    "shared_store_wavefronts",
    "shared_store_bank_conflicts",
    "global_load_requests",
    "global_load_sectors",
    "global_store_requests",
    "global_store_sectors",
    "barriers",
    "shuffles",
    "bulk_load_sectors",
    "bulk_store_sectors",
    "bulk_reduction_sectors",
    "peer_copy_sectors",
}


@cuda.jit
def halves(data: object) -> None:
    """Add two halves of a block: short bodies to guard, a value to keep, a barrier."""
    shared = cuda.shared.array(64, dtype=np.int32)
    tid = cuda.threadIdx.x
    shared[2 * (tid % 32)] = data[tid]
    cuda.syncthreads()
    if tid < 16:
        shared[tid] += shared[tid + 16]
        cuda.syncwarp(0xFFFF)
        shared[tid] += shared[tid + 8]
    if tid % 2 == 0:
        data[tid] = shared[tid] * shared[tid]


def test_exact_is_what_follows_from_the_source_alone() -> None:
    assert {name for name, spec in COUNTERS.items() if spec.kind == "exact"} == EXACT
    assert {spec.kind for spec in COUNTERS.values()} == {"exact", "model"}


@pytest.mark.parametrize("name", sorted(EXACT))
def test_exact_counters_are_the_same_at_either_level(name: str) -> None:
    counts = [
        gpusim.trace(halves[1, 64], np.arange(64, dtype=np.int32), level=level).counters[name]
        for level in ("O0", "O3")
    ]
    assert counts[0] == counts[1]


def test_what_the_compiler_decides_differs_between_levels() -> None:
    first, second = (
        gpusim.trace(halves[1, 64], np.arange(64, dtype=np.int32), level=level).counters
        for level in ("O0", "O3")
    )
    different = {name for name in COUNTERS if first[name] != second[name]}
    assert {"branches", "divergent_branches", "shared_load_instructions"} <= different
    assert different.isdisjoint(EXACT)
