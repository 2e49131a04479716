"""Objects of `cuda::atomic` never race with themselves, in any scope and order."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.sass import compiler, wheels
from gpusim.sass.kernels import CubinFile

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

# Orders of loads, of stores, and of read-modify-write operations.
ORDERS = (
    ("relaxed", "relaxed", "relaxed"),
    ("acquire", "release", "acq_rel"),
    ("seq_cst", "seq_cst", "seq_cst"),
)
OBJECTS = {
    "object": "cuda::atomic<int> &a = *reinterpret_cast<cuda::atomic<int> *>(x);",
    "reference": "cuda::atomic_ref<int> a(*x);",
    "standard": "cuda::std::atomic_ref<int> a(*x);",
    "device": "cuda::atomic_ref<int, cuda::thread_scope_device> a(*x);",
    "shared": """__shared__ cuda::atomic<int> a;
        if (threadIdx.x == 0) new (&a) cuda::atomic<int>(0);
        __syncthreads();""",
}
HEAD = "#include <cuda/atomic>\n#include <cuda/std/atomic>\n#include <new>\n"
KERNEL = """__global__ void {name}(int *x, int *out) {{
    {declared}
    int i = blockIdx.x * blockDim.x + threadIdx.x, expected = 3;
    if (a.load(cuda::memory_order_{load}) < 5) a.store(1, cuda::memory_order_{store});
    a.store(threadIdx.x & 3, cuda::memory_order_{store});
    a.fetch_add(1, cuda::memory_order_{update});
    a.compare_exchange_strong(expected, 4, cuda::memory_order_{update});
    out[i] = a.load(cuda::memory_order_{load}) + expected;
}}
"""
OTHERS = """
__global__ void with_plain(int *x, int *out) {
    cuda::atomic_ref<int> a(x[0]);
    if (threadIdx.x == 0) a.store(blockIdx.x, cuda::memory_order_relaxed);
    out[blockIdx.x * blockDim.x + threadIdx.x] = x[0];
}
__global__ void of_block_scope(int *x, int *out) {
    cuda::atomic_ref<int, cuda::thread_scope_block> a(x[0]);
    a.store(threadIdx.x, cuda::memory_order_relaxed);
}
__global__ void of_volatile(volatile int *x, int *out) {
    if (x[0] < 5) x[0] = threadIdx.x;
    out[blockIdx.x * blockDim.x + threadIdx.x] = x[0];
}
"""
NAMES = [f"{name}_{orders[0]}" for name in OBJECTS for orders in ORDERS]


@cache
def kernels() -> Any:
    texts = [
        KERNEL.format(
            name=f"{name}_{load}", declared=declared, load=load, store=store, update=update
        )
        for name, declared in OBJECTS.items()
        for load, store, update in ORDERS
    ]
    opened = [OPENED.format(order=order) for order in ("release", "relaxed")]
    return gpusim.cuda_source(HEAD + "".join((*texts, OTHERS, *opened)))


def found(kernel: Any, blocks: int = 2, threads: int = 64) -> list[tuple[str, str]]:
    arrays = np.zeros(8, np.int32), np.zeros(blocks * threads, np.int32)
    return [(one.rule, one.array) for one in gpusim.check(kernel[blocks, threads], *arrays)]


@pytest.mark.parametrize("name", NAMES)
def test_an_atomic_object_is_clean_in_any_order(name: str) -> None:
    assert found(kernels()[name]) == []


def test_a_cubin_has_the_orders_of_the_ptx_that_it_keeps() -> None:
    text = """#include <cuda/atomic>
    extern "C" __global__ void k(int *x, int *out) {
        cuda::atomic_ref<int>(x[0]).store(threadIdx.x);
    }
    """
    made = compiler.compiled(text, "source.cu", [], "sm_90")
    assert found(CubinFile(made.cubin, "source.cubin")["k"]) == []


def test_a_volatile_counter_is_not_an_atomic() -> None:
    """Its accesses have the machine code of relaxed ones of system scope."""
    assert ("block-race", "x") in found(kernels()["of_volatile"])


def test_a_plain_access_races_with_an_atomic_object() -> None:
    assert ("block-race", "x") in found(kernels()["with_plain"])


def test_stores_of_block_scope_race_between_blocks_in_one_instruction() -> None:
    kernel = kernels()["of_block_scope"]
    assert found(kernel, blocks=2) == [("block-race", "x")]
    assert found(kernel, blocks=1) == []


OPENED = """
__global__ void opened_{order}(unsigned *st, int *a, int *b) {{
    if (threadIdx.x) return;
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> count(st[0]), gate(st[1]);
    a[blockIdx.x] = 7;
    if (count.fetch_add(1, cuda::memory_order_acq_rel) == 2)
        gate.store(1, cuda::memory_order_{order});
    else
        while (gate.load(cuda::memory_order_acquire) == 0) {{ }}
    b[blockIdx.x] = a[(blockIdx.x + 1) % 3];
}}
"""


@pytest.mark.parametrize(("order", "races"), [("release", 0), ("relaxed", 1)])
def test_what_the_last_block_has_acquired_it_must_release(order: str, races: int) -> None:
    """The fence of its counter comes before the others' arrivals that it acquires."""
    arrays = np.zeros(2, np.uint32), np.zeros(3, np.int32), np.zeros(3, np.int32)
    errors = gpusim.check(kernels()[f"opened_{order}"][3, 32], *arrays).errors
    assert [(one.rule, one.array) for one in errors] == [("block-race", "a")] * races
