"""Accesses by generic address in compiled code: each lane's address names its memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from evaluators import COMPILED, HOPPER, INTERPRETED, agree, evaluated, runs_in

from gpusim import machine
from gpusim.codegen.programs import prepare
from gpusim.cuda import Kernel
from gpusim.errors import KernelFault
from gpusim.machine.compiled import arrays
from gpusim.machine.compiled.arrays import Chunked
from gpusim.prediction.streams.recorder import Recorder
from gpusim.sass import wheels
from gpusim.sass.kernels import cuda_source

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
I32 = np.int32
# Lanes load from and store to global, shared and local memory, by one instruction each.
SOURCE = """
template<class T> __device__ __noinline__ void moved(T *to, const T *from) { *to = *from; }
__device__ __noinline__ int added(int *to, int by) { return atomicAdd(to, by); }
__global__ void mixed(const int *x, int *y, int *old) {
    __shared__ __align__(16) int s[128], counts[4];
    __align__(16) int own[4] = {7, 8, 9, 10};
    int t = threadIdx.x, i = blockIdx.x * 32 + t;
    for (int k = 0; k < 4; k++) s[4 * t + k] = 100 * (4 * t + k);
    if (t < 4) counts[t] = 0;
    __syncthreads();
    const int *from = t % 3 == 0 ? x + 4 * i : t % 3 == 1 ? s + 4 * t : own;
    int *to = t % 2 ? y + 4 * i : own;
    moved((int4 *)to, (const int4 *)from);
    moved((short *)(t % 2 ? to + 1 : s + 4 * t + 1), (const short *)(from + 2));
    moved((char *)(t % 5 ? (char *)(y + 4 * i) + 3 : (char *)own + 3), (const char *)from);
    old[i] = added(t % 4 ? counts + t % 4 : y + 4 * i + 3, t);
    __syncthreads();
    y[4 * i + 2] += own[0] + s[4 * t + 1] + counts[t % 4];
}
__global__ void copied(const int *x, int *y, int at) {
    moved(y + threadIdx.x, x + at + threadIdx.x);
}
"""


def arguments() -> tuple[Any, ...]:
    return np.arange(256, dtype=I32), np.zeros(256, I32), np.zeros(64, I32)


def kernel(name: str) -> Kernel:
    return cuda_source(SOURCE)[name]


def test_lanes_access_the_memory_that_their_address_names() -> None:
    """Lane 1 moves s[4:8] to y[4:8], and 400 % 256 to byte 3 of y[4]; lane 3 moves x[12:16]."""
    given, _, went = evaluated(kernel("mixed"), 2, 32, "nvcc", arguments())
    assert went
    y = given[1]
    assert y[4:6].tolist() == [400 + (144 << 24) - (1 << 32), 600]
    assert y[12] == 12 + (12 << 24)
    agree(kernel("mixed"), 2, 32, "nvcc", *arguments())


def test_arrays_that_are_brought_in_chunks_come_as_lanes_touch_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arrays, "CHUNKED", Chunked(6, 1, 1))
    agree(kernel("mixed"), 2, 32, "nvcc", *arguments())


def test_their_steps_are_recorded_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = []
    for evaluator in (INTERPRETED, COMPILED):
        runs_in(monkeypatch, evaluator)
        prepared = prepare(kernel("mixed")[2, 32], arguments(), HOPPER)
        recorder = Recorder(prepared)
        machine.run(prepared, observers=(recorder,))
        keys.append({block: one.key for block, one in recorder.streams.items()})
    assert keys[0] == keys[1]


@pytest.mark.parametrize("at", [250, 1 << 20])
def test_an_address_in_no_array_is_told_with_its_array(at: int) -> None:
    """The first lane beyond 256 elements reads x[256]."""
    first = max(at, 256)
    with pytest.raises(KernelFault, match=rf"x\[{first}\] is out of bounds: x has 256 elements"):
        evaluated(kernel("copied"), 1, 32, "nvcc", (*arguments()[:2], at))
