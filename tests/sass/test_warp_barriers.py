"""For whom a WARPSYNC waits, and who goes on meanwhile: as an H200 did with the same kernels."""

import numpy as np
import pytest

import gpusim
from gpusim.errors import BarrierError, NoProgressError
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

ALL = 0xFFFFFFFF
CODE = r"""
#define ACTIVE __activemask()
typedef volatile unsigned V;
__global__ void all_inside(unsigned *out, int n) {
  __shared__ V s[64];
  int t = threadIdx.x;
  s[t] = t;
  __syncthreads();
  if (t < 8) {
    s[t] = s[t] + 1;
    if (t < 2) { s[t] = s[t] * 3; __syncwarp(); out[t] = ACTIVE; }
    out[8 + t] = ACTIVE;
    s[t] = s[t] + s[t ^ 1];
  }
  out[32 + t] = ACTIVE;
  out[64 + t] = s[t];
}
__global__ void some_inside(unsigned *out, int n) {
  __shared__ V s[64];
  int t = threadIdx.x;
  s[t] = t;
  __syncthreads();
  if (t < 2) { s[t] = s[t] + 1; __syncwarp(n * 0xf); out[t] = ACTIVE; }
  out[32 + t] = ACTIVE;
}
__global__ void both_sides(unsigned *out, int n) {
  __shared__ V a, b;
  int t = threadIdx.x;
  a = 0; b = 0;
  __syncthreads();
  if (t < 2) { a = 7; __syncwarp(); out[t] = b; out[8 + t] = ACTIVE; }
  else { b = 7; __syncwarp(); out[t + 8] = a; }
  out[32 + t] = ACTIVE;
}
__global__ void one_more(unsigned *out, int n) {
  __shared__ V s[64];
  int t = threadIdx.x;
  s[t] = t;
  __syncthreads();
  if (t < 2) { s[t] += 1; __syncwarp(); s[t] = s[t] + s[t + 2]; __syncwarp(); out[t] = s[t ^ 1]; }
  else { s[t] += 2; __syncwarp(); out[t] = s[t ^ 1]; }
  out[32 + t] = ACTIVE;
}
__global__ void others_at_a_barrier(unsigned *out, int n) {
  __shared__ V a;
  int t = threadIdx.x;
  a = 0;
  __syncthreads();
  if (t < 2) { __syncwarp(); out[t] = 1; asm volatile("barrier.sync 1;" ::: "memory"); out[t] = 2; }
  else { a = t; asm volatile("barrier.sync 1;" ::: "memory"); out[t] = 3; }
}
__global__ void others_spin(unsigned *out, int n) {
  __shared__ V a;
  int t = threadIdx.x;
  a = 0;
  __syncthreads();
  if (t < 2) { __syncwarp(); a = 1; out[t] = ACTIVE; } else { while (a == 0); out[t] = 5; }
}
"""
APART = [3, 3, *[0xFFFFFFFC] * 30]


def run(kernel: str) -> list[list[int]]:
    """Return what a warp writes, 32 words a line."""
    out = np.zeros(128, np.uint32)
    gpusim.cuda_source(CODE)[kernel][1, 32](out, 1)
    return [part.tolist() for part in np.split(out, 4)]


def test_lanes_at_a_convergence_barrier_go_on_for_a_warpsync_that_waits_for_them() -> None:
    """They go on together, and the lanes of the WARPSYNC without them once they have left."""
    inside, behind, values, _ = run("all_inside")
    assert inside == [3, 3, *[0] * 6, 3, 3, *[0xFC] * 6, *[0] * 16]
    assert behind == APART
    assert values == [9, 9, 7, 7, 11, 11, 15, 15, *range(8, 32)]


def test_a_check_tells_of_lanes_that_a_syncwarp_names_and_that_never_come() -> None:
    """What then happens is undefined, though a GPU goes on."""
    out = np.zeros(128, np.uint32)
    found = gpusim.check(gpusim.cuda_source(CODE)["all_inside"][1, 32], out, 1)
    (one,) = (each for each in found.errors if each.rule == "mask")
    assert "the mask names lanes 2-31 of warp 0 (block 0), but they do not arrive" in one.message


def test_those_that_the_mask_does_not_name_go_on_with_them() -> None:
    inside, behind, *_ = run("some_inside")
    assert inside[:2] == [3, 3]
    assert behind == APART


def test_two_syncwarps_with_the_same_mask_correspond() -> None:
    """Each side goes on by itself and sees what the other wrote; they meet behind the branch."""
    inside, behind, *_ = run("both_sides")
    assert inside == [7, 7, *[0] * 6, 3, 3, *[7] * 22]
    assert behind == [ALL] * 32


def test_a_side_with_one_more_syncwarp_goes_on_without_the_other() -> None:
    inside, behind, *_ = run("one_more")
    assert inside == [7, 5, *((lane ^ 1) + 2 for lane in range(2, 32))]
    assert behind == APART


def test_a_warpsync_waits_for_lanes_at_a_barrier_of_the_block() -> None:
    with pytest.raises(BarrierError, match="deadlock"):
        run("others_at_a_barrier")


def test_a_warpsync_waits_for_lanes_that_run() -> None:
    with pytest.raises(NoProgressError):
        run("others_spin")
