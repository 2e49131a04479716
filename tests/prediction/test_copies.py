"""Copies from global to shared memory that a warp does not wait for at once (cp.async)."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim import array_spec, cuda_source, predict
from gpusim.prediction.clock.builder import Copies
from gpusim.sass import wheels

pytestmark = pytest.mark.usefixtures("both_evaluators")

SOURCE = """
template <int allowed> __global__ void copies(const float4 *x, float4 *y, int rounds) {
    __shared__ float4 held[4][32];
    int t = threadIdx.x;
    for (int k = 0; k < rounds; k++) {
        unsigned place = (unsigned)__cvta_generic_to_shared(&held[k % 4][t]);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(&x[32 * k + t]));
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group %0;" ::"n"(allowed) : "memory");
        __syncwarp();
    }
    y[t] = held[0][t];
}

__global__ void loads(const float4 *x, float4 *y, int rounds) {
    __shared__ float4 held[4][32];
    int t = threadIdx.x;
#pragma unroll 1
    for (int k = 0; k < rounds; k++) {
        held[k % 4][t] = __ldcg(&x[32 * k + t]);
        __syncwarp();
    }
    y[t] = held[0][t];
}
"""


needs_the_wheels = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)


@pytest.fixture(scope="module")
def a_round_us() -> dict[str, float]:
    """Return what a round takes a lone warp, by kernel: the launch itself left out."""
    file = cuda_source(SOURCE)

    def time_us(name: str, rounds: int) -> float:
        arrays = array_spec(2**14, np.float32), array_spec(128, np.float32)
        launch = file[name][1, 32]
        return predict(launch, *arrays, np.int32(rounds), device="h200", l2="cold").time_us

    names = "loads", "copies<0>", "copies<1>", "copies<3>"
    return {name: (time_us(name, 128) - time_us(name, 64)) / 64 for name in names}


def test_a_group_has_the_copies_since_the_one_before_and_is_waited_for_once() -> None:
    copies = Copies()
    assert [copies.begin(()), copies.begin((-1,))] == [-1, -2]
    copies.commit_group()
    assert copies.begin((-1, -2)) == -3
    copies.commit_group()
    assert copies.awaited(2) == ()
    assert copies.awaited(1) == (-1, -2)
    assert copies.awaited(1) == ()
    assert copies.awaited(0) == (-3,)


@needs_the_wheels
def test_a_copy_that_is_waited_for_at_once_takes_as_long_as_a_load(
    a_round_us: dict[str, float],
) -> None:
    """An H200 takes 384 cycles for either, out of the L2, by one warp."""
    assert a_round_us["copies<0>"] == pytest.approx(a_round_us["loads"], rel=0.03)


@needs_the_wheels
def test_a_warp_waits_for_all_groups_of_copies_but_those_that_may_be_on_their_way(
    a_round_us: dict[str, float],
) -> None:
    """One more group on its way spreads a latency over two rounds, three over four."""
    at_once = a_round_us["copies<0>"]
    assert a_round_us["copies<1>"] == pytest.approx(at_once / 2, rel=0.1)
    assert a_round_us["copies<3>"] == pytest.approx(at_once / 4, rel=0.2)
