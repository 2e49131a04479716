"""Atomics of 8 and 16 bits are swaps of a word: they leave the other bytes of the word alone."""

from __future__ import annotations

import re
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
# The atomics are of each thread's own element; the array may begin in the middle of a word.
ENDS = """
__global__ void end_{name}({type} *w, int *out, int n)
{{
    int t = threadIdx.x;
    if (t < n) {own};
}}
"""
LOADS = """
__global__ void byte_loaded_{at}(unsigned char *w, int *out)
{{
    int t = threadIdx.x;
    if (t == 40) w[{at}] = 5;
    else out[t] = cuda::atomic_ref<unsigned char>(w[2]).load();
}}
__global__ void shared_byte_loaded_{at}(unsigned char *w, int *out)
{{
    __shared__ unsigned char s[4];
    int t = threadIdx.x;
    if (t < 4) s[t] = w[t];
    __syncthreads();
    if (t == 40) s[{at}] = 5;
    else out[t] = cuda::atomic_ref<unsigned char>(s[2]).load();
    __syncthreads();
    if (t < 4) w[t] = s[t];
}}
"""
END_LOADED = """
__global__ void end_loaded(unsigned char *w, int *out, int n)
{
    int t = threadIdx.x;
    if (t < n) out[t] = cuda::atomic_ref<unsigned char>(w[t]).load();
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
    ends = (
        ENDS.format(name=name, type=kind, own=update.replace("w[0]", "w[t]"))
        for name, (kind, update) in UPDATES.items()
    )
    loads = (LOADS.format(at=at) for at in (2, 3))
    return gpusim.cuda_source(HEAD + LOCKED + END_LOADED + "".join((*made, *ends, *loads)))


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


@pytest.mark.parametrize("fast", ["0", "1"])
@pytest.mark.parametrize("name", ["claim", "half", "byte"])
@pytest.mark.parametrize("elements", [1, 33, 34])
def test_a_narrow_atomic_on_the_last_element_is_within_bounds(
    name: str, elements: int, fast: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUSIM_FAST", fast)
    every, out = np.zeros(elements + 2, TYPES[name]), np.zeros(64, np.int32)
    w = every[1:-1]
    launch = kernels()[f"end_{name}"][1, 64]
    assert not gpusim.check(launch, w.copy(), out, elements)
    launch(w, out, elements)
    expected = np.arange(elements) if name == "claim" else np.ones(elements)
    assert every.tolist() == [0, *expected.tolist(), 0]


@pytest.mark.parametrize("name", ["claim", "half", "byte", "loaded"])
@pytest.mark.parametrize("elements", [32, 33, 34])
def test_a_narrow_atomic_behind_the_array_is_out_of_bounds(name: str, elements: int) -> None:
    w, out = np.zeros(elements, TYPES.get(name, np.uint8)), np.zeros(64, np.int32)
    (error,) = gpusim.check(kernels()[f"end_{name}"][1, 64], w, out, elements + 1).errors
    assert error.rule == "bounds"
    assert re.search(rf"(w\[{elements}\]|byte {elements} of w) is out of bounds", error.message)


@pytest.mark.parametrize("elements", [1, 33, 34])
def test_an_atomic_load_of_the_last_byte_is_within_bounds(elements: int) -> None:
    w, out = np.arange(elements, dtype=np.uint8), np.zeros(64, np.int32)
    launch = kernels()["end_loaded"][1, 64]
    assert not gpusim.check(launch, w, out, elements)
    launch(w, out, elements)
    assert out[:elements].tolist() == list(range(elements))


@pytest.mark.parametrize("memory", ["", "shared_"])
def test_an_atomic_load_of_a_byte_leaves_its_neighbour_alone(memory: str) -> None:
    assert found(f"{memory}byte_loaded_3", np.uint8) == set()
    assert found(f"{memory}byte_loaded_2", np.uint8) & {"shared-race", "global-race"}
