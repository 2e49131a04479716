"""Bulk copies (`cp.async.bulk`) and the transactions of mbarriers: they land where they must."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from evaluators import EVALUATORS, agree, evaluated, runs_in

from gpusim.errors import GpusimError, MisalignedError, OutOfBoundsError
from gpusim.sass import wheels
from gpusim.sass.kernels import CodeKernel, CudaSource, cuda_source

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
KERNELS = """
typedef unsigned long long u64;
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void init(u64 *b, int n) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(at(b)), "r"(n) : "memory");
}
__device__ void arrive(u64 *b) {
    asm volatile("{.reg .b64 s; mbarrier.arrive.shared.b64 s, [%0];}" :: "r"(at(b)) : "memory");
}
__device__ void expect(u64 *b, int n) {
    asm volatile("{.reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], %1;}"
                 :: "r"(at(b)), "r"(n) : "memory");
}
__device__ void wait(u64 *b, int parity) {
    asm volatile("{.reg .pred p; L: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;"
                 "@p bra D; bra L; D:}" :: "r"(at(b)), "r"(parity) : "memory");
}
__device__ void load(void *to, const void *from, int bytes, u64 *b) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1], %2, [%3];"
                 :: "r"(at(to)), "l"(from), "r"(bytes), "r"(at(b)) : "memory");
}
__device__ void save(void *to, const void *from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 :: "l"(to), "r"(at(from)), "r"(bytes) : "memory");
}
#define COMMIT asm volatile("cp.async.bulk.commit_group;" ::: "memory")
#define AWAIT(n) asm volatile("cp.async.bulk.wait_group " #n ";" ::: "memory")
#define FENCE asm volatile("fence.proxy.async.shared::cta;" ::: "memory")

extern "C" __global__ void pipeline(const int *x, int *out, int tiles) {
    __shared__ alignas(16) int tile[2][64];
    __shared__ u64 full[2];
    int t = threadIdx.x, sum = 0;
    if (t == 0) { init(&full[0], 1); init(&full[1], 1); }
    __syncthreads();
    const int *from = x + blockIdx.x * tiles * 64;
    if (t == 0) for (int s = 0; s < 2; s++) {
        expect(&full[s], 256);
        load(tile[s], from + s * 64, 256, &full[s]);
    }
    for (int k = 0; k < tiles; k++) {
        int s = k % 2;
        wait(&full[s], k / 2 % 2);
        sum += (k + 1) * tile[s][t];
        __syncthreads();
        if (t == 0 && k + 2 < tiles) {
            expect(&full[s], 256);
            load(tile[s], from + (k + 2) * 64, 256, &full[s]);
        }
    }
    out[blockIdx.x * 64 + t] = sum;
}
// Several lanes of a warp copy: a uniform instruction runs for one of them at a time.
extern "C" __global__ void by_lanes(const int *x, int *out) {
    __shared__ alignas(16) int tile[64];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) { init(&full, 4); FENCE; }
    __syncthreads();
    if (t % 16 == 0) { expect(&full, 64); load(tile + t, x + 48 - t, 64, &full); }
    wait(&full, 0);
    out[t] = tile[t];
}
// One warp brings tiles, the others take them: they hand back each stage by a barrier of its own.
extern "C" __global__ void specialised(const int *x, int *out, int tiles) {
    __shared__ alignas(16) int tile[3][64];
    __shared__ u64 full[3], empty[3];
    int t = threadIdx.x;
    if (t == 0) for (int s = 0; s < 3; s++) { init(&full[s], 1); init(&empty[s], 64); }
    __syncthreads();
    if (t < 32) {
        if (t == 0) for (int k = 0; k < tiles; k++) {
            int s = k % 3;
            if (k >= 3) wait(&empty[s], (k / 3 - 1) % 2);
            expect(&full[s], 256);
            load(tile[s], x + k * 64, 128, &full[s]);
            load(tile[s] + 32, x + k * 64 + 32, 128, &full[s]);
        }
    } else {
        int sum = 0;
        for (int k = 0; k < tiles; k++) {
            int s = k % 3;
            wait(&full[s], k / 3 % 2);
            sum += (k + 1) * tile[s][t - 32];
            arrive(&empty[s]);
        }
        out[t - 32] = sum;
    }
}
// Groups of stores: what a group holds is there once all but the last ones are awaited.
extern "C" __global__ void groups(const int *x, int *out, int *seen) {
    __shared__ alignas(16) int tile[64];
    int t = threadIdx.x;
    tile[t] = x[t];
    FENCE;
    __syncthreads();
    if (t == 0) {
        save(out, tile, 64); COMMIT;
        save(out + 16, tile + 16, 64); save(out + 32, tile + 32, 64); COMMIT;
        save(out + 48, tile + 48, 64);
        seen[0] = *(volatile int *)&out[0];
        AWAIT(1);
        seen[1] = *(volatile int *)&out[0]; seen[2] = *(volatile int *)&out[16];
        COMMIT; AWAIT(0);
        seen[3] = *(volatile int *)&out[63];
    }
}
extern "C" __global__ void unawaited(const int *x, int *out) {
    __shared__ alignas(16) int tile[32];
    __shared__ u64 bar;
    int t = threadIdx.x;
    tile[t] = -1;
    if (t == 0) init(&bar, 1);
    FENCE;
    __syncthreads();
    if (t == 0) { expect(&bar, 128); load(tile, x, 128, &bar); }
    __syncwarp();
    out[t] = *(volatile int *)&tile[t];
    wait(&bar, 0);
    out[32 + t] = tile[t];
}
extern "C" __global__ void counted(const int *x, int *out, int bytes, int skip) {
    __shared__ alignas(16) int tile[32];
    __shared__ u64 bar;
    if (threadIdx.x == 0) init(&bar, 1);
    __syncthreads();
    if (threadIdx.x == 0) { expect(&bar, bytes); load(tile, x + skip, 128, &bar); }
    wait(&bar, 0);
    out[threadIdx.x] = tile[threadIdx.x];
}
// Each block of a cluster loads a tile of its own, and adds up the other's to it.
extern "C" __global__ void __cluster_dims__(2, 1, 1) exchanged(const int *x, int *out) {
    __shared__ alignas(16) int tile[64];
    __shared__ u64 bar;
    unsigned t = threadIdx.x, rank, other;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (t == 0) {
        init(&bar, 1);
        expect(&bar, 256);
        load(tile, x + blockIdx.x * 64, 256, &bar);
    }
    __syncthreads();
    wait(&bar, 0);
#define MEET asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" \\
                          ::: "memory")
    MEET;
    asm volatile("{.reg .b32 a; mapa.shared::cluster.u32 a, %1, %2;"
                 "ld.shared::cluster.u32 %0, [a];}"
                 : "=r"(other) : "r"(at(&tile[63 - t])), "r"(rank ^ 1) : "memory");
    out[blockIdx.x * 64 + t] = tile[t] + 1000 * other;
    MEET;
}
// Transactions by hand; a phase ends when they and the arrivals have come, in any order.
extern "C" __global__ void transactions(int *out) {
    __shared__ u64 bar;
    unsigned a = at(&bar), done;
    init(&bar, 2);
#define TX(what, n) asm volatile("mbarrier." what "_tx.relaxed.cta.shared::cta.b64 [%0], %1;" \\
                                 :: "r"(a), "r"(n) : "memory")
#define SEE(i) asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0;" \\
                            "selp.u32 %0, 1, 0, p;}" \\
                            : "=r"(done) : "r"(a) : "memory"); out[i] = done
    TX("complete", 32); SEE(0);
    arrive(&bar); SEE(1);
    expect(&bar, 48); SEE(2);
    TX("complete", 15); SEE(3);
    TX("complete", 1); SEE(4);
}
"""


@cache
def source() -> CudaSource:
    """Return the file of the kernels."""
    return cuda_source(KERNELS)


def kernel(name: str) -> CodeKernel:
    """Return one of the kernels."""
    return source()[name]


X = np.arange(1, 1 + 2 * 7 * 64, dtype=np.int32)
TILES = X.reshape(2, 7, 64)
WEIGHTS = np.arange(1, 8)[:, None]
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "pipeline": (X, np.zeros(128, np.int32), 7),
    "specialised": (X, np.zeros(64, np.int32), 7),
    "by_lanes": (X[:64].copy(), np.zeros(64, np.int32)),
    "groups": (X[:64].copy(), np.zeros(64, np.int32), np.zeros(4, np.int32)),
    "unawaited": (X[:32].copy(), np.zeros(64, np.int32)),
    "transactions": (np.zeros(5, np.int32),),
    "exchanged": (X[:256].copy(), np.zeros(256, np.int32)),
}
LAUNCHES = {
    "pipeline": (2, 64), "specialised": (1, 96), "by_lanes": (1, 64), "groups": (1, 64),
    "unawaited": (1, 32),
    "transactions": (1, 1), "exchanged": (4, 64),
}  # fmt: skip
RESULTS = {
    "pipeline": (TILES * WEIGHTS).sum(axis=1).reshape(-1),
    "specialised": (TILES[0] * WEIGHTS).sum(axis=0),
    "by_lanes": X[:64].reshape(4, 16)[::-1].reshape(-1),
    "unawaited": np.concatenate([np.full(32, -1), X[:32]]),
    "transactions": [0, 0, 0, 0, 1],
    "exchanged": X[:256] + 1000 * X[:256].reshape(2, 2, 64)[:, ::-1, ::-1].reshape(-1),
}


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("name", RESULTS)
def test_a_copy_is_there_once_its_phase_has_ended(name: str, evaluator: str) -> None:
    """Not before: what is read behind its start alone is what was there."""
    given, _, went = evaluated(kernel(name), *LAUNCHES[name], "nvcc", ARGUMENTS[name], evaluator)
    result = given[0] if name == "transactions" else given[1]
    assert result.tolist() == list(RESULTS[name])
    assert went


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_a_store_is_there_once_its_group_is_awaited(evaluator: str) -> None:
    """All but the last group of two, then both; the last copy is of none until it is committed."""
    (x, out, seen), *_ = evaluated(kernel("groups"), 1, 64, "nvcc", ARGUMENTS["groups"], evaluator)
    np.testing.assert_array_equal(out, x)
    assert seen.tolist() == [0, x[0], 0, x[63]]


def test_bulk_copies_run_alike_in_compiled_code_and_in_numpy() -> None:
    """Results and counters are the same."""
    for name, (grid, block) in LAUNCHES.items():
        agree(kernel(name), grid, block, "nvcc", *ARGUMENTS[name])


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_a_copy_outside_its_array_or_misaligned_is_a_fault(
    evaluator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """128 bytes from the fifth of 32 integers on; or from the second on, no multiple of 16."""
    runs_in(monkeypatch, evaluator)
    out = np.zeros(32, np.int32)
    for skip, error in ((4, OutOfBoundsError), (1, MisalignedError)):
        with pytest.raises(error, match="a bulk copy of 128 bytes at address"):
            kernel("counted")[1, 32](X[:32].copy(), out, 128, skip)


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_a_phase_that_expects_more_bytes_than_come_never_ends(
    evaluator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 256 expected bytes 128 come."""
    runs_in(monkeypatch, evaluator)
    with pytest.raises(GpusimError, match="livelock: blocks 0 to 0 spin"):
        kernel("counted")[1, 32](X[:32].copy(), np.zeros(32, np.int32), 256, 0)
