"""Machine code of compute capability 10.0 and 12.0: rows of their own, and whole kernels."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from sass.rows import pair, worked_out

import gpusim
from gpusim.sass import wheels
from gpusim.sass.decoding import Context, UnknownFormError, micros
from gpusim.sass.decoding.steps import RefusedError
from gpusim.sass.immediates import Disagreement
from gpusim.sass.kernels import CodeFile
from gpusim.sass.listing import row_of_text

U32 = np.uint32
ONES = 0xFFFFFFFF


def words(*values: int) -> Any:
    return np.array([value & ONES for value in values], dtype=U32)


def wide(made: dict[str, Any], name: str = "R0") -> list[int]:
    """Return the numbers of 64 bits, with a sign, in a register and the one after it."""
    upper = f"{name[:-1]}{int(name[-1]) + 1}"
    both = made[name].astype(np.uint64) | made[upper].astype(np.uint64) << np.uint64(32)
    return both.view(np.int64).tolist()


def registers(**values: int) -> dict[str, Any]:
    """Return numbers of 64 bits as pairs of registers; R2=… fills R2 and R3."""
    found = {}
    for name, value in values.items():
        low, high = pair([value], np.int64)
        letters, number = name[:-1], int(name[-1])
        found |= {name: low, f"{letters}{number + 1}": high}
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("IADD.64 R0, R2, R4", (1 << 32) + 4),
        ("IADD.64 R0, -R4, R2", (1 << 32) - 6),
        ("IADD.64 R0, R2, -0x1", (1 << 32) - 2),
        ("SEL.64 R0, R2, R4, PT", (1 << 32) - 1),
        ("SEL.64 R0, R2, -0x100, !PT", -256),
        ("MOV.64 R0, 0x123456789abcdef", 0x123456789ABCDEF),
        ("IMNMX.S64 PT, PT, R0, R2, -0x5, PT, !PT", -5),
        ("IMNMX.U64 PT, PT, R0, R2, -0x5, PT, !PT", (1 << 32) - 1),
        ("IMNMX.S64 PT, PT, R0, R2, R4, !PT, !PT", (1 << 32) - 1),
    ],
)
def test_sums_choices_and_minima_of_64_bits(text: str, expected: int) -> None:
    read = [name for name in ("R2", "R4") if name in text]
    values = registers(R2=(1 << 32) - 1, R4=5)
    kept = {k: v for k, v in values.items() if k in read or f"R{int(k[1:]) - 1}" in read}
    assert wide(worked_out(text, **kept)) == [expected]


def test_comparisons_of_64_bits_have_a_sign_or_none() -> None:
    numbers = registers(R2=-1, R4=1)
    signed = worked_out("ISETP.GT.S64.AND P0, PT, R2, R4, PT", **numbers)
    unsigned = worked_out("ISETP.GT.U64.AND P0, PT, R2, R4, PT", **numbers)
    assert (signed["P0"].tolist(), unsigned["P0"].tolist()) == ([False], [True])
    least = worked_out("ISETP.LT.S64.AND P0, PT, R2, -0x5, PT", **registers(R2=-6))
    assert least["P0"].tolist() == [True]


def test_a_sum_of_two_words_may_give_and_take_a_carry() -> None:
    low = worked_out("IADD R0, P0, R1, R2", R1=words(ONES, 3), R2=words(2, 4))
    assert (low["R0"].tolist(), low["P0"].tolist()) == ([1, 7], [True, False])
    high = worked_out("IADD.X R0, R1, ~R2, P0", R1=words(9), R2=words(4), P0=np.array([True]))
    assert high["R0"].tolist() == [9 - 4]


def test_bytes_are_added_and_compared_four_at_a_time() -> None:
    difference = worked_out("VIADD.U8x4 R0, R1, -R2", R1=words(0x05FF0007), R2=words(0x06010107))
    assert difference["R0"].tolist() == [0xFFFEFF00]
    most = worked_out("VIMNMX.U8x4 R0, R1, R2, !PT", R1=words(0x05FF0007), R2=words(0x06010107))
    assert most["R0"].tolist() == [0x06FF0107]
    least = worked_out("VIMNMX.S8x4 R0, R1, R2, PT", R1=words(0x05FF0007), R2=words(0x06010107))
    assert least["R0"].tolist() == [0x05FF0007]


def test_the_least_of_three_floats_leaves_out_what_is_no_number() -> None:
    numbers = {f"R{n}": np.array([x], np.float32).view(U32) for n, x in ((1, 3), (2, -2), (3, 7))}
    numbers["R2"] = np.array([np.nan], np.float32).view(U32)
    made = worked_out("FMNMX3 R0, |R1|, R2, R3, PT", **numbers)
    assert made["R0"].view(np.float32).tolist() == [3.0]
    made = worked_out("FMNMX3.NAN R0, R1, R2, R3, PT", **numbers)
    assert np.isnan(made["R0"].view(np.float32)).all()


@pytest.mark.parametrize(
    "text",
    [
        "VIMNMX R0, P0, PT, R1, R2, PT",  # what the predicates say is not known
        "IMNMX.U64 PT, PT, R0, R2, R4, PT, P1",
        "UIADD3.64 UR4, UP0, UPT, UR6, UR8, URZ",
        "IADD.64 R0, R2, 0x80000000",
        "CREDUX.SUM UR4, R2",
    ],
)
def test_a_form_whose_meaning_is_not_known_is_refused(text: str) -> None:
    with pytest.raises((UnknownFormError, Disagreement)):
        list(micros(row_of_text(text), 0, Context(0)))


def test_a_number_of_64_bits_must_agree_with_the_instructions_bits() -> None:
    row = dataclasses.replace(row_of_text("MOV.64 R0, 0x5"), bits=6 << 24)
    with pytest.raises(Disagreement, match="0x6"):
        list(micros(row, 0, Context(0)))


KERNELS = r"""
#define _CG_LIMIT_INCLUDED_DEPENDENCIES
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__constant__ int table[4] = {5, 6, 7, 8};
struct Many { int of[50]; };
__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
__global__ void addresses(const __grid_constant__ Many many, int *x, int n) {
  __shared__ int s[33];
  int l[64];
  for (int i = 0; i < 64; i++) l[i * 7 % 64] = i * n;
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  int *from = threadIdx.x % 3 ? s : l;
  const int *more = threadIdx.x % 2 ? table : many.of;
  x[threadIdx.x] = from[(threadIdx.x + 1) % 32] + more[n] + blockDim.x + 7 * gridDim.y;
}
__global__ void shared_atomics(float *x, double *d, unsigned long long *u) {
  __shared__ float s;
  __shared__ double e;
  __shared__ unsigned long long m;
  if (threadIdx.x == 0) s = 0, e = 0, m = 0;
  __syncthreads();
  atomicAdd(&s, (float)threadIdx.x);
  atomicAdd(&e, 2.0 * threadIdx.x);
  atomicMax(&m, u[threadIdx.x]);
  __syncthreads();
  x[threadIdx.x] = s, d[threadIdx.x] = e, u[threadIdx.x] = m;
}
__global__ void votes(int *x, int n) {
  int v = x[threadIdx.x];
  unsigned b = __ballot_sync(~0u, v > n);
  x[threadIdx.x] = __reduce_max_sync(~0u, v) + __reduce_min_sync(~0u, (unsigned)v) +
                   __reduce_add_sync(~0u, v) + __popc(b) + __shfl_xor_sync(~0u, v, 5);
}
__global__ void wide_numbers(long long *x, unsigned long long *u, long long n) {
  long long v = x[threadIdx.x];
  unsigned long long w = u[threadIdx.x];
  x[threadIdx.x] = max(v, n) + min(v, -5ll) + (v > n ? v - 0x123456789ll : -7) + v / n;
  u[threadIdx.x] = w / 10 + (w << n) + (w >> 3) + min(w, 77ull) + __umul64hi(w, w) + __popcll(w);
}
__global__ void tiles_of_warps(int *x) {
  auto tile = cg::tiled_partition<64>(cg::this_thread_block());
  tile.sync();
  x[threadIdx.x] = fibonacci(threadIdx.x % 7) + 100 * tile.meta_group_rank() + tile.thread_rank();
}
__global__ void grid_sync(int *x) {
  x[blockIdx.x * blockDim.x + threadIdx.x] += 3;
  cg::this_grid().sync();
  if (threadIdx.x == 0) x[blockIdx.x] = x[gridDim.x * blockDim.x - 1];
}
__global__ void fewer_registers(float *x, const float *y, float a) {
  float v = fminf(fminf(x[threadIdx.x], y[0]), a);
  x[threadIdx.x] = fmaxf(fmaxf(v, y[1]), floorf(a * 0.5f)) + (float)(int)(a * v);
}
"""


@pytest.fixture(scope="module")
def kernels() -> CodeFile:
    if not wheels.are_there():
        pytest.skip(wheels.INSTALL)
    return gpusim.cuda_source(KERNELS)


def numbers(kind: Any, count: int = 32) -> Any:
    return np.random.default_rng(3).integers(0, 1 << 40, count).astype(kind)


def launches() -> dict[str, tuple[int, int, tuple[Any, ...]]]:
    floats = np.linspace(-3, 3, 32, dtype=np.float32)
    return {
        "addresses": (1, 32, (np.arange(50, dtype=np.int32).tobytes(), numbers(np.int32), 3)),
        "shared_atomics": (
            1, 32, (np.zeros(32, np.float32), np.zeros(32), numbers(np.uint64)),
        ),
        "votes": (1, 32, (numbers(np.int16).astype(np.int32), 11)),
        "wide_numbers": (1, 32, (numbers(np.int64), numbers(np.uint64), np.int64(23))),
        "tiles_of_warps": (1, 128, (np.zeros(128, np.int32),)),
        "grid_sync": (2, 32, (numbers(np.int32, 64),)),
        "fewer_registers": (1, 32, (floats, floats[:2].copy(), np.float32(1.25))),
    }  # fmt: skip


@pytest.mark.parametrize("name", launches())
@pytest.mark.parametrize("cc", ["10.0", "12.0"])
def test_results_are_those_of_the_code_for_an_older_gpu(
    kernels: CodeFile, name: str, cc: str
) -> None:
    grid, block, given = launches()[name]
    left = []
    for generation in ("8.0", cc):
        arguments = [one.copy() if isinstance(one, np.ndarray) else one for one in given]
        made = gpusim.trace(kernels[name][grid, block], *arguments, cc=generation)
        assert made.generator.startswith("NVRTC"), made.generator
        left.append([one for one in arguments if isinstance(one, np.ndarray)])
    assert all(np.array_equal(*pairs) for pairs in zip(*left, strict=True))
    assert any(
        not np.array_equal(was, now)
        for was, now in zip([o for o in given if isinstance(o, np.ndarray)], left[1], strict=True)
    )


def test_a_hopper_kernel_may_move_registers_between_its_warps() -> None:
    """`setmaxnreg` is in sm_90a alone, which is what a device of 9.0 is compiled for."""
    if not wheels.are_there():
        pytest.skip(wheels.INSTALL)
    kernel = gpusim.cuda_source(r"""
        __global__ void __launch_bounds__(384, 1) moved(float *x) {
          if (threadIdx.x < 128) {
            asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
            x[threadIdx.x] += 1;
          } else {
            asm volatile("setmaxnreg.inc.sync.aligned.u32 208;");
            x[threadIdx.x] *= 2;
          }
        }""")["moved"]
    x = np.ones(384, np.float32)
    gpusim.trace(kernel[1, 384], x, cc="9.0")
    assert x.tolist() == [2.0] * 384


TENSOR_MEMORY = r"""
#define FROM(x) "r"((unsigned)__cvta_generic_to_shared(&x))
#define KERNEL(name) __global__ void name(unsigned *x, unsigned long long d)
#define PRODUCT(kind) asm volatile("{ .reg .pred p; setp.ne.u32 p, 1, 0; tcgen05.mma.cta_group::1" \
  ".kind::" kind " [%0], %1, %1, %0, p; }" :: "r"(*x), "l"(d))
KERNEL(alloc) {
  __shared__ unsigned s;
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" :: FROM(s));
}
KERNEL(relinquish) {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
}
KERNEL(halves) { PRODUCT("f16"); }
KERNEL(bytes) { PRODUCT("f8f6f4"); }
KERNEL(integers) { PRODUCT("i8"); }
KERNEL(load) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(*x) : "r"((unsigned)d));
}
KERNEL(store) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" :: "r"((unsigned)d), "r"(*x));
}
KERNEL(commit) {
  __shared__ unsigned long long b;
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
               :: FROM(b));
}
KERNEL(copy) {
  asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;" :: "r"(*x), "l"(d));
}
"""


@pytest.mark.parametrize(
    ("name", "mnemonic"),
    [
        ("alloc", "UTCATOMSWS"),
        ("relinquish", "UVIRTCOUNT"),
        ("halves", "UTCHMMA"),
        ("bytes", "UTCQMMA"),
        ("integers", "UTCIMMA"),
        ("load", "LDTM"),
        ("store", "STTM"),
        ("commit", "UTCBAR"),
        ("copy", "UTCCP"),
    ],
)
def test_tensor_memory_is_refused_by_its_name(name: str, mnemonic: str) -> None:
    if not wheels.are_there():
        pytest.skip(wheels.INSTALL)
    kernel = gpusim.cuda_source(TENSOR_MEMORY)[name]
    says = rf"tensor memory and its matrix products \(tcgen05\) are not simulated \({mnemonic}"
    with pytest.raises(RefusedError, match=says):
        gpusim.trace(kernel[1, 32], np.zeros(4, np.uint32), np.uint64(0), cc="10.0")
