"""A ring buffer that is filled one item too far is found in the usual order of warps, too."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

IN_SHARED_MEMORY = """__global__ void {name}(const int *x, int *y, int *) {{
    __shared__ int ring[4];
    __shared__ volatile int head, tail;
    if (threadIdx.x == 0) {{ head = 0; tail = 0; }}
    __syncthreads();
    if (threadIdx.x == {producer}) {{
        #pragma unroll {unroll}
        for (int i = 0; i < 16; i++) {{
            while (i - tail {full} 4) {{}}
            __threadfence_block();
            ring[i % 4] = x[i];
            __threadfence_block();
            head = i + 1;
        }}
    }} else if (threadIdx.x == {consumer}) {{
        #pragma unroll {unroll}
        for (int i = 0; i < 16; i++) {{
            while (head <= i) {{}}
            __threadfence_block();
            y[i] = ring[i % 4];
            __threadfence_block();
            tail = i + 1;
        }}
    }}
}}"""
BETWEEN_BLOCKS = """__global__ void {name}(const int *x, int *y, int *ring) {{
    volatile int *head = ring + 4, *tail = ring + 5;
    if (threadIdx.x) return;
    if (blockIdx.x == {producer}) {{
        #pragma unroll {unroll}
        for (int i = 0; i < 16; i++) {{
            while (i - *tail {full} 4) {{}}
            __threadfence();
            ring[i % 4] = x[i];
            __threadfence();
            *head = i + 1;
        }}
    }} else {{
        #pragma unroll 1
        for (int i = 0; i < 16; i++) {{
            while (*head <= i) {{}}
            __threadfence();
            y[i] = ring[i % 4];
            __threadfence();
            *tail = i + 1;
        }}
    }}
}}"""


FORMS = {
    "shared": (IN_SHARED_MEMORY, 1, (0, 32), "shared-race"),
    "shared_by_8": (IN_SHARED_MEMORY, 1, (0, 32), "shared-race"),
    "shared_by_16": (IN_SHARED_MEMORY, 1, (32, 0), "shared-race"),
    "shared_last_first": (IN_SHARED_MEMORY, 1, (32, 0), "shared-race"),
    "blocks": (BETWEEN_BLOCKS, 2, (0, 1), "block-race"),
    "blocks_last_first": (BETWEEN_BLOCKS, 2, (1, 0), "block-race"),
}
UNROLLED = {"shared_by_8": 8, "shared_by_16": 16}
FULL = {"late": ">", "in_time": ">="}


@functools.cache
def file() -> Any:
    """Return the file with a kernel of each form, full too late and in time."""
    return gpusim.cuda_source("\n".join(
        text.format(
            name=f"{form}_{when}", full=full, unroll=UNROLLED.get(form, 1),
            producer=roles[0], consumer=roles[1],
        )
        for form, (text, _, roles, _) in FORMS.items()
        for when, full in FULL.items()
    ))  # fmt: skip


def found(form: str, when: str) -> list[gpusim.Finding]:
    arrays = np.arange(16, dtype=np.int32), np.zeros(16, np.int32), np.zeros(8, np.int32)
    return list(gpusim.check(file()[f"{form}_{when}"][FORMS[form][1], 64], *arrays).errors)


@pytest.mark.parametrize("form", FORMS)
def test_a_ring_that_is_full_one_too_late_is_a_race(form: str) -> None:
    """The fifth item is stored while the first may still be read."""
    (race,) = found(form, "late")
    assert (race.rule, race.missing) == (FORMS[form][3], "wait")
    assert race.message.endswith("and no later one is waited for")


@pytest.mark.parametrize("form", FORMS)
def test_a_ring_that_is_full_in_time_is_clean(form: str) -> None:
    assert found(form, "in_time") == []
