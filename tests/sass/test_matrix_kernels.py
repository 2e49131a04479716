"""Kernels for tensor cores: results, counters and hazards of nvcc's code."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.launch.grid import ComputeCapability
from gpusim.machine import run
from gpusim.sass import wheels
from gpusim.sass.kernels import CodeFile, cuda_source

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
WMMA = """
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void tile(const half *a, const half *b, float *c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::load_matrix_sync(sum, c, 16, wmma::mem_row_major);
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::mma_sync(sum, fa, fb, sum);
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}
"""
ROWS = """
template <bool waits> __device__ void body(unsigned *out, const uint4 *in, int step, int from) {
  __shared__ __align__(128) uint4 rows[128];
  for (int i = threadIdx.x; i < 128; i += 32) rows[127 - i] = in[127 - i];
  if (waits) __syncwarp();
  int lane = threadIdx.x;
  unsigned at = (unsigned)__cvta_generic_to_shared(rows) + from;
  at += step * (lane % 8) + 16 * (lane / 8);
  unsigned x, y, z, w;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "r"(at) : "memory");
  out[lane] = x, out[lane + 32] = y, out[lane + 64] = z, out[lane + 96] = w;
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
               : "=r"(x) : "r"(at) : "memory");
  out[lane + 128] = x;
}
extern "C" __global__ void waiting(unsigned *out, const uint4 *in, int step, int from) {
  body<true>(out, in, step, from);
}
extern "C" __global__ void racing(unsigned *out, const uint4 *in, int step, int from) {
  body<false>(out, in, step, from);
}
"""


@functools.cache
def code(text: str) -> CodeFile:
    return cuda_source(text)


@pytest.mark.parametrize("cc", [(7, 5), (9, 0)])
def test_wmma_multiplies_matrices(cc: tuple[int, int]) -> None:
    draw = np.random.default_rng(3)
    a, b = (draw.integers(-8, 9, (16, 16)).astype(np.float16) for _ in range(2))
    c = draw.integers(-100, 100, (16, 16)).astype(np.float32)
    expected = a.astype(np.float32) @ b.T.astype(np.float32) + c
    tile = code(WMMA)["tile"][1, 32]
    arguments = a.reshape(-1), b.reshape(-1), c.reshape(-1)
    run(tile.kernel.prepare(tile.launch, arguments, ComputeCapability(*cc)))
    assert c.tolist() == expected.tolist()


def given(step: int, start: int = 0) -> tuple[Any, ...]:
    held = np.arange(512, dtype=np.uint32)
    return np.zeros(160, np.uint32), held, np.int32(step), np.int32(start)


@pytest.mark.parametrize(("step", "wavefronts"), [(16, 5), (64, 4 * 4 + 4), (128, 8 * 5)])
def test_each_matrix_loaded_is_a_wavefront_without_bank_conflicts(
    step: int, wavefronts: int
) -> None:
    trace = gpusim.trace(code(ROWS)["waiting"][1, 32], *given(step))
    assert trace.counters["shared_load_wavefronts"] == wavefronts
    assert trace.counters["shared_load_instructions"] == 2
    assert trace.counters["shared_load_bank_conflicts"] == wavefronts - 5


def test_lanes_get_the_elements_of_rows_of_others() -> None:
    waiting = code(ROWS)["waiting"][1, 32]
    arguments = given(16)
    run(waiting.kernel.prepare(waiting.launch, arguments, ComputeCapability(9, 0)))
    out, held = arguments[0].reshape(5, 32), arguments[1]
    assert out[0].tolist() == held[:32].tolist()  # of row 0 in lanes 0 to 3, and so on
    assert out[1].tolist() == held[4:36].tolist()
    halves = held.view(np.uint16)[:64].reshape(8, 8)
    assert out[4].tolist() == np.ascontiguousarray(halves.T).view(np.uint32).reshape(-1).tolist()


def test_rows_that_another_lane_writes_race_without_a_barrier() -> None:
    assert not gpusim.check(code(ROWS)["waiting"][1, 32], *given(16)).errors
    found = gpusim.check(code(ROWS)["racing"][1, 32], *given(16)).errors
    assert {one.rule for one in found} == {"warp-race"}


def test_a_row_outside_of_shared_memory_is_named() -> None:
    found = gpusim.check(code(ROWS)["waiting"][1, 32], *given(16, 1984)).errors
    assert "bounds" in {one.rule for one in found}


@pytest.mark.parametrize("step", [16, 128])
def test_a_prediction_waits_for_bank_conflicts_of_matrices(step: int) -> None:
    took = gpusim.predict(code(ROWS)["waiting"][1, 32], *given(step), device="h200").cycles
    free = gpusim.predict(code(ROWS)["waiting"][1, 32], *given(16), device="h200").cycles
    assert took == free if step == 16 else took > free + 50


CHAINS = """
template <int N, bool HALVED> __device__ void body(unsigned *out) {
  unsigned a = threadIdx.x, d[N][4] = {};
  for (int j = 0; j < N; j++) d[j][0] = out[j];  // equal ones would be joined
  for (int i = 0; i < 64; i++)
    for (int j = 0; j < N; j++) {
      if (HALVED)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
                     " {%0,%1,%2,%3}, {%4,%4}, {%4}, {%0,%1,%2,%3};"
                     : "+r"(d[j][0]), "+r"(d[j][1]), "+r"(d[j][2]), "+r"(d[j][3]) : "r"(a));
      else
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
                     " {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};"
                     : "+r"(d[j][0]), "+r"(d[j][1]), "+r"(d[j][2]), "+r"(d[j][3]) : "r"(a));
    }
  for (int j = 0; j < N; j++) out[threadIdx.x] += d[j][0] + d[j][1] + d[j][2] + d[j][3];
}
extern "C" __global__ void one(unsigned *out) { body<1, false>(out); }
extern "C" __global__ void four(unsigned *out) { body<4, false>(out); }
extern "C" __global__ void one_half(unsigned *out) { body<1, true>(out); }
"""


def cycles(name: str, warps: int, device: str) -> float:
    launch = code(CHAINS)[name][1, 32 * warps]
    return gpusim.predict(launch, np.zeros(512, np.uint32), device=device).cycles


def test_products_wait_for_the_sum_that_they_add_to() -> None:
    whole, half = cycles("one", 1, "h200"), cycles("one_half", 1, "h200")
    assert whole - half == pytest.approx(64 * (24 - 17), rel=0.1)


def test_a_tensor_core_takes_products_one_after_the_other() -> None:
    more = cycles("four", 16, "h200") - cycles("four", 8, "h200")
    assert more == pytest.approx(64 * 4 * 2 * 6.07, rel=0.05)  # two more warps of each scheduler


def test_a_gpu_with_slower_tensor_cores_takes_longer() -> None:
    assert 1 < cycles("four", 8, "rtx3080") / (64 * 4 * 2 * 32) < 1.2  # 32 cycles, 6 on an H200


def test_lanes_of_an_instruction_that_only_waits_for_a_product_are_on() -> None:
    trace = gpusim.trace(code(CHAINS)["one"][1, 32], np.zeros(32, np.uint32))
    program = trace.prepared.program
    assert any("@!UPT" in one.text for one in program.instructions)
    executed = trace.counters["thread_instructions"]
    assert executed - trace.counters["thread_instructions_guard_on"] == 0
