"""What a barrier orders, in kernels of one block of two or four warps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.advice.barriers import Ordered, UnknownOrder, ordered_by
from gpusim.advice.evidence import Evidence


@cuda.jit
def neighbour(out: Any) -> None:
    s = cuda.shared.array(128, np.int32)
    i = cuda.threadIdx.x
    s[i] = i
    cuda.syncthreads()
    out[i] = s[127 - i]


@cuda.jit
def own_word(out: Any) -> None:
    s = cuda.shared.array(128, np.int32)
    i = cuda.threadIdx.x
    s[i] = i
    cuda.syncthreads()
    out[i] = s[i ^ 1]


@cuda.jit
def twice(out: Any) -> None:
    s = cuda.shared.array(128, np.int32)
    i = cuda.threadIdx.x
    s[i] = i
    cuda.syncthreads()
    cuda.syncthreads()
    out[i] = s[127 - i]


@cuda.jit
def rotated(out: Any) -> None:
    s = cuda.shared.array(128, np.int32)
    i = cuda.threadIdx.x
    s[i] = i
    for _ in range(3):
        cuda.syncthreads()
        value = s[(i + 32) % 128]
        cuda.syncthreads()
        s[i] = value
    out[i] = s[i]


@cuda.jit
def counted(out: Any) -> None:
    s = cuda.shared.array(1, np.int32)
    i = cuda.threadIdx.x
    cuda.atomic.add(s, 0, 1)
    cuda.syncthreads()
    cuda.atomic.add(s, 0, 1)
    out[i] = i


@cuda.jit
def in_global_memory(out: Any) -> None:
    i = cuda.threadIdx.x
    out[i] = i
    cuda.syncthreads()
    out[127 - i] = out[127 - i] + 1


def orders(kernel: Any, line: int, threads: int = 128) -> Ordered | None:
    """What the barriers at a line of a kernel order, lines counted from the kernel's `def`."""
    start = kernel.py_func.__code__.co_firstlineno + 1
    trace = gpusim.trace(kernel[1, threads], np.zeros(128, np.int32))
    found = ordered_by(Evidence(trace), start + line)
    return found and Ordered(found.array, found.line - start, found.later_line - start)


def test_a_barrier_orders_a_store_and_another_warps_load() -> None:
    assert orders(neighbour, 4) == Ordered("s", 3, 5)


def test_a_barrier_between_accesses_of_one_warp_orders_nothing() -> None:
    assert orders(own_word, 4) is None


def test_a_barrier_beside_another_orders_nothing_by_itself() -> None:
    assert orders(twice, 4) is None
    assert orders(twice, 5) is None


def test_barriers_of_a_loop_order_its_iterations() -> None:
    assert orders(rotated, 5) in {Ordered("s", 3, 6), Ordered("s", 8, 6)}
    assert orders(rotated, 7) == Ordered("s", 6, 8)


def test_atomics_need_no_barrier_between_them() -> None:
    assert orders(counted, 4) is None


def test_accesses_to_global_memory_are_ordered_too() -> None:
    assert orders(in_global_memory, 3) == Ordered("out", 2, 4)
    assert orders(in_global_memory, 3, threads=32) is None


def test_of_a_block_with_an_incomplete_log_nothing_is_said() -> None:
    trace = gpusim.trace(neighbour[1, 128], np.zeros(128, np.int32))
    with pytest.raises(UnknownOrder):
        ordered_by(Evidence(replace(trace, is_complete=False)), 4)
