"""A store of release order that the compiler joins with stores before it releases them too."""

from __future__ import annotations

import numpy as np
import pytest
from one_file import kernels

import gpusim
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

HEAD = """
struct alignas(16) Message { int text, flag, more, last; };
#define STORE(order) asm volatile("st." #order ".cta.shared.s32 [%0], 1;" :: \\
    "r"((unsigned)__cvta_generic_to_shared(&m.flag)) : "memory")
__device__ int load(int *flag) {
    int seen;
    asm volatile("ld.acquire.cta.shared.s32 %0, [%1];" : "=r"(seen) :
                 "r"((unsigned)__cvta_generic_to_shared(flag)) : "memory");
    return seen;
}
"""
KERNEL = """
__global__ void k(int *y) {
    __shared__ Message m;
    int t = threadIdx.x;
    if (t == 0) m.flag = 0;
    __syncthreads();
    if (t == 32) { {BODY} }
    if (t == 0) { while (!load(&m.flag)); y[0] = m.text; }
}
"""
RELEASED = {
    "two_words": "m.text = 42;",
    "four_words": "m.text = 42; m.more = 43; m.last = 44;",
    "a_word_before_them": "m.more = 43; m.text = 42;",
}
BEHIND_THE_FENCE = "__threadfence_block(); m.text = 42;"


ORDERED = {before: f"{before} STORE(release);" for before in RELEASED.values()}
UNORDERED = {
    before: f"{before} STORE(relaxed);" for before in (RELEASED["two_words"], BEHIND_THE_FENCE)
}


def rules(body: str, cc: str = "9.0") -> list[str]:
    launch = kernels(KERNEL, (*ORDERED.values(), *UNORDERED.values()), HEAD)[body][1, 64]
    device = {"7.5": "t4", "9.0": "h200"}[cc]
    return [one.rule for one in gpusim.check(launch, np.zeros(1, np.int32), device=device).errors]


@pytest.mark.parametrize("cc", ["7.5", "9.0"])
@pytest.mark.parametrize("before", ORDERED, ids=list(RELEASED))
def test_a_joined_release_orders_the_words_stored_before_it(before: str, cc: str) -> None:
    """The code is MEMBAR and one store of two or four words, the flag among them."""
    assert rules(ORDERED[before], cc) == []


@pytest.mark.parametrize("before", UNORDERED)
def test_a_joined_relaxed_store_orders_no_word_that_no_fence_follows(before: str) -> None:
    assert rules(UNORDERED[before]) == ["shared-race"]
