"""Tensor maps that a program encodes: `cuTensorMapEncodeTiled`, and the boxes that kernels copy."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from driver.host import Host, needs_compilers

from gpusim.sass import compiler

pytestmark = needs_compilers
KERNEL = """
#include <cuda.h>
extern "C" __global__ void box(const __grid_constant__ CUtensorMap map, float *out, int x, int y) {
  __shared__ __align__(128) float tile[4][8];
  __shared__ __align__(8) unsigned long long bar;
  unsigned b = __cvta_generic_to_shared(&bar), t = __cvta_generic_to_shared(tile);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(b));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" :: "r"(b) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3}], [%4];" :: "r"(t), "l"(&map), "r"(x), "r"(y), "r"(b) : "memory");
  }
  __syncthreads();
  asm volatile("{.reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra W;}"
    :: "r"(b) : "memory");
  out[threadIdx.x] = tile[threadIdx.x / 8][threadIdx.x % 8];
}
"""
# An array of 6 rows of 10 numbers, each row at a multiple of 48 bytes; boxes of 4 by 8.
ENCODE = """
def encode(kind=7, dims=(10, 6), strides=(48,), box=(8, 4), steps=(1, 1), swizzle=0):
    many = lambda kind, values: (kind * len(values))(*values)
    return cuda.cuTensorMapEncodeTiled(
        m, kind, 2, x, many(C.c_uint64, dims), many(C.c_uint64, strides), many(C.c_uint32, box),
        many(C.c_uint32, steps), 0, swizzle, 0, 0)
x, out = take(512), take(128)
to(x, struct.pack("72f", *range(72)))
m = (C.c_uint64 * 16)()
"""


@pytest.fixture
def host(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Host:
    return Host(tmp_path, capfd)


@functools.cache
def made() -> bytes:
    return compiler.compiled(KERNEL, "box.cu", [], "sm_90a").cubin


def test_a_box_of_rows_with_a_stride_comes_with_zeros_outside(host: Host) -> None:
    ran = host.run(
        ENCODE + 'print(encode()); launch("box", 1, 32, m, out, C.c_int(4), C.c_int(3))\n'
        'print([int(one) for one in struct.unpack("32f", back(out, 128))])',
        made=made(),
    )
    rows = [[12 * y + x if x < 10 and y < 6 else 0 for x in range(4, 12)] for y in range(3, 7)]
    assert ran.out == ["0", str([one for row in rows for one in row])]


def test_maps_that_cuda_refuses_are_invalid_values(host: Host) -> None:
    calls = "box=(6, 4)", "box=(512, 1)", "strides=(40,)", "box=(16, 4), swizzle=1", "dims=(0, 6)"
    ran = host.run(ENCODE + "".join(f"print(encode({call}))\n" for call in calls), made=made())
    assert ran.out == ["1"] * len(calls)


def test_maps_that_are_not_simulated_are_refused_by_name(host: Host) -> None:
    ran = host.run(ENCODE + "print(encode(kind=11), encode(steps=(2, 1)))", made=made())
    assert (ran.code, ran.out) == (2, ["801 801"])
    assert "cuTensorMapEncodeTiled with elements of this type" in ran.err
