"""`elect.sync` takes the lowest of the lanes that are there."""

import numpy as np
import pytest

import gpusim
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

CODE = r"""
#define ELECT(lane, is, mask) \
  asm volatile("{.reg .pred q; elect.sync %0|q, %2; selp.u32 %1, 1, 0, q;}" \
               : "=r"(lane), "=r"(is) : "r"(mask))
__global__ void some(unsigned *out) {
  unsigned t = threadIdx.x, lane, is;
  out[t] = 999;
  if (t > 4 && t != 7) {
    unsigned mask = __activemask();
    ELECT(lane, is, mask);
    out[t] = lane * 10 + is;
  }
}
__global__ void one_a_warp(unsigned *out) {
  unsigned is;
  asm volatile("{.reg .pred q; elect.sync _|q, -1; selp.u32 %0, 1, 0, q;}" : "=r"(is));
  out[threadIdx.x] = is;
}
__global__ void number_alone(unsigned *out) {
  unsigned t = threadIdx.x, lane;
  asm volatile("{.reg .pred q; elect.sync %0|q, -1;}" : "=r"(lane));
  out[t] = lane;
}
"""


def run(kernel: str, threads: int) -> list[int]:
    out = np.zeros(threads, np.uint32)
    gpusim.cuda_source(CODE)[kernel][1, threads](out)
    return out.tolist()


def test_the_lowest_lane_of_those_that_are_there_is_elected() -> None:
    """As an H200 does; every lane is told the number, one alone that it is elected."""
    expected = [50] * 32
    expected[:5], expected[5], expected[7] = [999] * 5, 51, 999
    assert run("some", 32) == expected


def test_each_warp_elects_a_lane_of_its_own() -> None:
    assert run("one_a_warp", 96) == [1, *[0] * 31] * 3


def test_the_number_may_be_asked_for_alone() -> None:
    assert run("number_alone", 40) == [0] * 40
