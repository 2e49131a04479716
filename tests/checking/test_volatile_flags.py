"""Volatile flags are judged by their fences, whatever the shape of the wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_file import kernels

import gpusim
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

LOOK_BACK = """__global__ void k(int *value, volatile int *flag, int *out) {
    if (threadIdx.x) return;
    int b = blockIdx.x, sum = 0;
    value[b] = b + 1;
    {BODY}
    out[b] = sum;
}
"""
# Loops over the flags of the blocks before, down to the first.
WALKS = {
    "loop_within": """for (int j = b - 1; j >= 0; j--) {
        while (flag[j] == 0) {}
        F; sum += value[j];
    }""",
    "again": "for (int j = b - 1; j >= 0;) { if (flag[j] == 0) continue; F; sum += value[j--]; }",
    "step": "for (int j = b - 1; j >= 0;) { int s = flag[j]; F; if (s) sum += value[j]; j -= s; }",
    "states": """for (int j = b - 1; j >= 0;) switch (flag[j]) {
        case 0: break;
        case 1: F; sum += value[j--]; break;
        default: F; sum += value[j]; j = -1;
    }""",
    "first_look_before": """for (int j = b - 1; j >= 0; j--) {
        int seen = flag[j];
        while (!seen) seen = flag[j];
        F; sum += value[j];
    }""",
    "single_look": "if (b && flag[b - 1]) { F; sum += value[b - 1]; }",
    "vote": """for (int j = b - 1; j >= 0;) {
        if (!__any_sync(1, flag[j])) continue;
        F; sum += value[j--];
    }""",
}


FENCED, UNFENCED = (
    tuple(
        f"{fence} flag[b] = 1; {walk.replace('F;', '__threadfence();')}" for walk in WALKS.values()
    )
    for fence in ("__threadfence();", "")
)


def rules(kernel: Any) -> set[tuple[str, str]]:
    arrays = [np.zeros(4, np.int32) for _ in range(3)]
    found = gpusim.check(kernel[3, 32], *arrays)
    return {(one.rule, one.array) for one in found}


@pytest.mark.parametrize("body", FENCED, ids=list(WALKS))
def test_a_look_back_with_fences_is_clean(body: str) -> None:
    assert rules(kernels(LOOK_BACK, FENCED + UNFENCED)[body]) == set()


@pytest.mark.parametrize("body", UNFENCED, ids=list(WALKS))
def test_a_look_back_without_the_writers_fence_is_a_race(body: str) -> None:
    found = rules(kernels(LOOK_BACK, FENCED + UNFENCED)[body])
    assert ("block-race", "value") in found or ("block-race", "flag") in found


SIGNAL = """__global__ void k(int *x, volatile int *flag, int *out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 2) { x[0] = 5; {BODY} flag[0] = 1; }
    if (blockIdx.x == 0) { while (!flag[0]) {} out[0] = 7; }
    if (blockIdx.x == 1) { x[1] = 1; __threadfence(); x[2] = 1; }
}
"""


def test_a_flag_that_is_set_without_a_fence_is_a_race_of_its_own_without_data() -> None:
    """Fences of other threads do not help; data may be gone from the machine code."""
    without, fenced = kernels(SIGNAL, ("", "__threadfence();")).values()
    assert rules(without) == {("block-race", "flag")}
    assert rules(fenced) == set()


SHARED = """__global__ void k(int *o) {
    __shared__ volatile int f;
    __shared__ int d;
    if (threadIdx.x == 0) f = 0;
    __syncthreads();
    if (threadIdx.x == 32) { d = 5; {BODY} f = 1; }
    if (threadIdx.x == 0) { while (!f) {} {BODY} o[0] = d; }
}
"""


@pytest.mark.parametrize(("fence", "errors"), [("", 1), ("__threadfence_block();", 0)])
def test_a_flag_in_shared_memory_needs_its_fences(fence: str, errors: int) -> None:
    kernel = kernels(SHARED, ("", "__threadfence_block();"))[fence]
    found = gpusim.check(kernel[1, 64], np.zeros(4, np.int32)).errors
    assert [one.rule for one in found] == ["shared-race"] * errors


def test_a_word_that_is_flag_and_data_in_one_needs_no_fence() -> None:
    text = """__global__ void k(int *x, volatile int *word, int *out) {
        if (threadIdx.x) return;
        int b = blockIdx.x, before = 0;
        while (b && (before = word[b - 1]) == 0) {}
        word[b] = before + 1;
        out[b] = before;
    }"""
    assert rules(gpusim.cuda_source(text)["k"]) == set()


LOCK = """__global__ void k(int *count, int *lock, int *out) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {BODY}
        *(volatile int *)lock = 0;
    }
}
"""
PAUSES = (";", "__nanosleep(20);", "{ clock(); }")
SECTION = "{} __threadfence(); out[blockIdx.x] = count[0]++; {}"
FREED, NOT_FREED = (
    tuple(SECTION.format(pause, fence) for pause in PAUSES) for fence in ("__threadfence();", "")
)


@pytest.mark.parametrize("body", FREED, ids=PAUSES)
def test_a_lock_may_be_opened_by_a_volatile_store(body: str) -> None:
    """A loop with a pause is rotated: its first swap stands before it."""
    assert rules(kernels(LOCK, FREED + NOT_FREED)[body]) == set()


@pytest.mark.parametrize("body", NOT_FREED, ids=PAUSES)
def test_a_lock_opened_without_a_fence_is_a_race(body: str) -> None:
    assert ("block-race", "count") in rules(kernels(LOCK, FREED + NOT_FREED)[body])


QUEUE = """__global__ void k(int *head, int *work, int *out) {
    __shared__ int item;
    while (true) {
        {BODY}
        if (threadIdx.x == 0) item = atomicAdd(head, 1);
        __syncthreads();
        int mine = item;
        if (mine >= 4) break;
        if (threadIdx.x == 0) out[mine] = work[mine] + 1;
    }
}
"""
BARRIERS = ("__syncthreads();", "")


@pytest.mark.parametrize(("barrier", "errors"), [(BARRIERS[0], []), (BARRIERS[1], ["shared-race"])])
def test_a_word_behind_a_barrier_of_its_loop_is_no_flag(barrier: str, errors: list[str]) -> None:
    """Without the first barrier the next item is stored while slower warps still read this one."""
    arrays = [np.zeros(4, np.int32) for _ in range(3)]
    found = gpusim.check(kernels(QUEUE, BARRIERS)[barrier][2, 64], *arrays)
    assert [one.rule for one in found] == errors
