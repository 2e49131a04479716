"""Atomics of 8 and 16 bits are swaps of a word: they leave the other bytes of the word alone."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import gpusim
from gpusim.sass import wheels
from gpusim.sass.kernels import CubinFile

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

# Operations on w[0], of a type each.
UPDATES = {
    "claim": ("unsigned short", "out[t] = atomicCAS(&w[0], (unsigned short)0, (unsigned short)t)"),
    "half": ("__half", "atomicAdd(&w[0], __half(1.0f))"),
    "byte": ("unsigned char", "cuda::atomic_ref<unsigned char>(w[0]).fetch_add(1)"),
}
TYPES = {"claim": np.uint16, "half": np.float16, "byte": np.uint8}
KERNELS = """
__global__ void {name}_{at}({type} *w, int *out)
{{
    int t = threadIdx.x;
    if (t == 40) w[{at}] = ({type})5;
    else {update};
}}
__global__ void {name}_shared_{at}({type} *w, int *out)
{{
    __shared__ {type} s[2];
    int t = threadIdx.x;
    if (t < 2) s[t] = w[t];
    __syncthreads();
    if (t == 40) s[{at}] = ({type})5;
    else {shared};
    __syncthreads();
    if (t < 2) w[t] = s[t];
}}
"""
LOCKED = """
__global__ void locked(unsigned short *w, int *out)
{
    if (threadIdx.x) return;
    while (atomicCAS(&w[0], (unsigned short)0, (unsigned short)1)) ;
    __threadfence();
    w[1]++;
    __threadfence();
    atomicCAS(&w[0], (unsigned short)1, (unsigned short)0);
}
__global__ void without_fence(unsigned short *w, int *out)
{
    if (threadIdx.x) return;
    while (atomicCAS(&w[0], (unsigned short)0, (unsigned short)1)) ;
    w[1]++;
    atomicCAS(&w[0], (unsigned short)1, (unsigned short)0);
}
"""
HEAD = "#include <cuda_fp16.h>\n#include <cuda/atomic>\n"


@cache
def kernels() -> CubinFile:
    made = (
        KERNELS.format(
            name=name, at=at, type=kind, update=update, shared=update.replace("w[0]", "s[0]")
        )
        for name, (kind, update) in UPDATES.items()
        for at in (0, 1)
    )
    return gpusim.cuda_source(HEAD + LOCKED + "".join(made))


def found(name: str, kind: type, blocks: int = 1) -> set[str]:
    """Return the rules of errors and warnings of a launch of two warps a block."""
    launch = kernels()[name][blocks, 64]
    report = gpusim.check(launch, np.zeros(4, kind), np.zeros(64, np.int32))
    return {one.rule for one in report if one.severity != "note"}


@pytest.mark.parametrize("name", UPDATES)
@pytest.mark.parametrize("memory", ["", "_shared"])
def test_a_narrow_atomic_leaves_its_neighbour_alone(name: str, memory: str) -> None:
    assert found(f"{name}{memory}_1", TYPES[name]) == set()


@pytest.mark.parametrize("name", UPDATES)
@pytest.mark.parametrize("memory", ["", "_shared"])
def test_a_plain_store_to_a_narrow_atomic_is_a_race(name: str, memory: str) -> None:
    assert found(f"{name}{memory}_0", TYPES[name]) & {"shared-race", "global-race"}


def test_a_lock_of_16_bits_orders_the_variable_beside_it() -> None:
    assert found("locked", np.uint16, blocks=3) == set()
    assert "block-race" in found("without_fence", np.uint16, blocks=3)
