"""Bulk copies between the blocks of a cluster, arrivals at their mbarriers, and reductions."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluators import EVALUATORS, runs_in

import gpusim
from gpusim.sass import wheels
from gpusim.sass.kernels import CodeFile, cuda_source

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
INCLUDES = [str(Path(__file__).parents[2] / "validate" / "bulk")]
KERNELS = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include "bulk.cuh"
#define RANK(n) unsigned n; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(n))
#define MEET asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" \\
                          ::: "memory")
__device__ unsigned peer(const void *p) {
    unsigned r;
    RANK(own);
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(at(p)), "r"(own ^ 1));
    return r;
}
#define KERNEL(name, n, arrivals, bytes, ...) \\
extern "C" __global__ void __cluster_dims__(2, 1, 1) name(const int *x, int *out) { \\
    __shared__ alignas(16) int tile[64], got[n]; \\
    __shared__ u64 bar; \\
    int t = threadIdx.x, v = x[blockIdx.x * 64 + t]; \\
    tile[t] = v; \\
    for (int i = t; i < n; i += 64) got[i] = 0; \\
    FENCE; \\
    if (t == 0) { \\
        init(&bar, arrivals); \\
        if (bytes) expect(&bar, bytes); \\
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); \\
    } \\
    MEET; \\
    __VA_ARGS__; \\
    wait(&bar, 0); \\
    for (int i = t; i < n; i += 64) out[blockIdx.x * n + i] = got[i]; \\
    MEET; \\
}
KERNEL(multicast, 64, 1, 256, RANK(rank); if (t == 0 && rank == 0)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1], %2, [%3], %4;" :: "r"(at(got)), "l"(x), "r"(256),
                 "r"(at(&bar)), "h"((unsigned short)3) : "memory"))
KERNEL(to_peer, 64, 1, 256, if (t == 0)
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
                 " [%0], [%1], %2, [%3];" :: "r"(peer(got)), "r"(at(tile)), "r"(256),
                 "r"(peer(&bar)) : "memory"))
KERNEL(arrivals, 64, 64, 0,
    asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(peer(&got[t])), "r"(v) : "memory");
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
                 :: "r"(peer(&bar)) : "memory"))
KERNEL(stores, 64, 1, 256,
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];"
                 :: "r"(peer(&got[t])), "r"(v), "r"(peer(&bar)) : "memory"))
KERNEL(wide_stores, 256, 1, 1024,
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.u32"
                 " [%0], {%1, %2, %3, %4}, [%5];" :: "r"(peer(&got[4 * t])), "r"(v), "r"(v + 1),
                 "r"(v + 2), "r"(v + 3), "r"(peer(&bar)) : "memory"))
KERNEL(additions, 4, 1, 256,
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32"
                 " [%0], %1, [%2];" :: "r"(peer(&got[t % 4])), "r"(v), "r"(peer(&bar)) : "memory"))
#define REDUCED(name, op, T) extern "C" __global__ void name(T *y) { \\
    __shared__ alignas(16) T tile[64]; \\
    int t = threadIdx.x; \\
    tile[t] = (T)(t % 7); \\
    FENCE; \\
    __syncthreads(); \\
    if (t == 0) { \\
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." op " [%0], [%1], %2;" \\
                     :: "l"(y), "r"(at(tile)), "r"((int)(64 * sizeof(T))) : "memory"); \\
        COMMIT; \\
        AWAIT(0); \\
    } \\
}
REDUCED(add_u32, "add.u32", unsigned)
REDUCED(add_s32, "add.s32", int)
REDUCED(add_u64, "add.u64", u64)
REDUCED(inc_u32, "inc.u32", unsigned)
REDUCED(dec_u32, "dec.u32", unsigned)
REDUCED(min_u32, "min.u32", unsigned)
REDUCED(min_s32, "min.s32", int)
REDUCED(max_u64, "max.u64", u64)
REDUCED(max_s64, "max.s64", long long)
REDUCED(and_b32, "and.b32", unsigned)
REDUCED(or_b64, "or.b64", u64)
REDUCED(xor_b32, "xor.b32", unsigned)
REDUCED(add_f32, "add.f32", float)
REDUCED(add_f64, "add.f64", double)
REDUCED(add_f16, "add.noftz.f16", __half)
REDUCED(min_f16, "min.f16", __half)
REDUCED(add_bf16, "add.noftz.bf16", __nv_bfloat16)
REDUCED(max_bf16, "max.bf16", __nv_bfloat16)
"""
X = np.arange(1, 257, dtype=np.int32)
PEERS = X.reshape(2, 2, 64)[:, ::-1].reshape(-1)  # what the other block of a cluster has
RESULTS = {
    "multicast": np.tile(X[:64], 4),
    "to_peer": PEERS,
    "arrivals": PEERS,
    "stores": PEERS,
    "wide_stores": (PEERS[:, None] + np.arange(4)).reshape(-1),
    "additions": PEERS.reshape(4, 16, 4).sum(axis=1).reshape(-1),
}


@cache
def source() -> CodeFile:
    """Return the file of the kernels."""
    return cuda_source(KERNELS, includes=INCLUDES)


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("name", RESULTS)
def test_a_block_gets_what_others_of_its_cluster_send(
    name: str, evaluator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its mbarrier counts their arrivals and bytes: two clusters of two blocks."""
    runs_in(monkeypatch, evaluator)
    out = np.zeros(len(RESULTS[name]), np.int32)
    source()[name][4, 64](X.copy(), out)
    assert out.tolist() == RESULTS[name].tolist()


@pytest.mark.parametrize("name", RESULTS)
def test_a_check_accuses_no_kernel_that_waits_for_its_peers(name: str) -> None:
    """What they send is there once the phase is over."""
    out = np.zeros(len(RESULTS[name]), np.int32)
    assert not gpusim.check(source()[name][4, 64], X.copy(), out).errors


TYPES = {
    "u32": np.uint32, "s32": np.int32, "u64": np.uint64, "s64": np.int64, "b32": np.uint32,
    "b64": np.uint64, "f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": np.uint16,
}  # fmt: skip
GIVEN, BEFORE = np.arange(64) % 7, np.arange(64) % 5 + 1
COMBINED: dict[str, Any] = {
    "add": BEFORE + GIVEN,
    "min": np.minimum(BEFORE, GIVEN),
    "max": np.maximum(BEFORE, GIVEN),
    "inc": np.where(BEFORE >= GIVEN, 0, BEFORE + 1),
    "dec": np.where(BEFORE > GIVEN, GIVEN, BEFORE - 1),
    "and": BEFORE & GIVEN,
    "or": BEFORE | GIVEN,
    "xor": BEFORE ^ GIVEN,
}


@pytest.mark.parametrize("name", re.findall(r"^REDUCED\((\w+),", KERNELS, re.MULTILINE))
def test_a_reduction_in_bulk_combines_elements_with_those_there(name: str) -> None:
    """Small integers in each type, which all of them have."""
    operation, kind = name.split("_")
    is_bf16 = kind == "bf16"
    y = BEFORE.astype(np.float32).view(np.uint32) >> 16 if is_bf16 else BEFORE
    y = y.astype(TYPES[kind])
    source()[name][1, 64](y)
    found = (y.astype(np.uint32) << 16).view(np.float32) if is_bf16 else y
    assert found.tolist() == COMBINED[operation].tolist()
