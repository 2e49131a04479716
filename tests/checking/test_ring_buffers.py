"""A ring buffer that is filled one item too far is found in the usual order of warps, too."""

from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

IN_SHARED_MEMORY = """__global__ void k(const int *x, int *y, int *) {{
    __shared__ int ring[4];
    __shared__ volatile int head, tail;
    if (threadIdx.x == 0) {{ head = 0; tail = 0; }}
    __syncthreads();
    if (threadIdx.x == {producer}) {{
        for (int i = 0; i < 32; i++) {{
            while (i - tail {full} 4) {{}}
            __threadfence_block();
            ring[i % 4] = x[i];
            __threadfence_block();
            head = i + 1;
        }}
    }} else if (threadIdx.x == {consumer}) {{
        for (int i = 0; i < 32; i++) {{
            while (head <= i) {{}}
            __threadfence_block();
            y[i] = ring[i % 4];
            __threadfence_block();
            tail = i + 1;
        }}
    }}
}}"""
BETWEEN_BLOCKS = """__global__ void k(const int *x, int *y, int *ring) {{
    volatile int *head = ring + 4, *tail = ring + 5;
    if (threadIdx.x) return;
    if (blockIdx.x == {producer}) {{
        for (int i = 0; i < 32; i++) {{
            while (i - *tail {full} 4) {{}}
            __threadfence();
            ring[i % 4] = x[i];
            __threadfence();
            *head = i + 1;
        }}
    }} else {{
        for (int i = 0; i < 32; i++) {{
            while (*head <= i) {{}}
            __threadfence();
            y[i] = ring[i % 4];
            __threadfence();
            *tail = i + 1;
        }}
    }}
}}"""


def found(text: str, blocks: int, full: str, producer: int, consumer: int) -> list[gpusim.Finding]:
    kernel = gpusim.cuda_source(text.format(full=full, producer=producer, consumer=consumer))["k"]
    arrays = np.arange(32, dtype=np.int32), np.zeros(32, np.int32), np.zeros(8, np.int32)
    return list(gpusim.check(kernel[blocks, 64], *arrays).errors)


KINDS = pytest.mark.parametrize(
    ("text", "blocks", "roles", "rule"),
    [
        (IN_SHARED_MEMORY, 1, (0, 32), "shared-race"),
        (IN_SHARED_MEMORY, 1, (32, 0), "shared-race"),
        (BETWEEN_BLOCKS, 2, (0, 1), "block-race"),
        (BETWEEN_BLOCKS, 2, (1, 0), "block-race"),
    ],
    ids=["shared", "shared_last_first", "blocks", "blocks_last_first"],
)


@KINDS
def test_a_ring_that_is_full_one_too_late_is_a_race(
    text: str, blocks: int, roles: tuple[int, int], rule: str
) -> None:
    """The fifth item is stored while the first may still be read."""
    (race,) = found(text, blocks, ">", *roles)
    assert (race.rule, race.missing) == (rule, "wait")
    assert race.message.endswith("and no later one is waited for")


@KINDS
def test_a_ring_that_is_full_in_time_is_clean(
    text: str, blocks: int, roles: tuple[int, int], rule: str
) -> None:
    assert found(text, blocks, ">=", *roles) == []
