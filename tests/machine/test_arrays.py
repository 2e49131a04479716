"""Arrays of several dimensions and with strides: every index is checked against its own axis."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.cuda import Kernel
from gpusim.errors import KernelSourceError, OutOfBoundsError
from gpusim.machine.storage import FIRST_ADDRESS, allocate

both_levels = pytest.mark.parametrize("level", ["O0", "O3"])


@cuda.jit
def doubled(a, b):
    i, j = cuda.grid(2)
    if i < a.shape[0] and j < a.shape[1]:
        b[i, j] = a[i, j] * 2


def counted(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=np.int32).reshape(shape)


@both_levels
@pytest.mark.parametrize(
    ("a", "b"),
    [
        (counted(24, 40).T, np.zeros((40, 24), np.int64)),
        (counted(24, 40), np.zeros((40, 24), np.int32).T),
        (counted(24, 40)[::-2, 3:30:3], np.zeros((30, 30), np.float32)[5:17, ::-1][:, :9]),
        (np.broadcast_to(counted(1, 40), (24, 40)), np.zeros((24, 80))[:, ::2]),
    ],
)
def test_strided_arrays_are_taken_as_they_are(a: Any, b: Any, level: str) -> None:
    """Transposed, reversed, every other one, repeated; nothing else of their memory changes."""
    whole = b if b.base is None else b.base
    kept = int((whole != 0).sum())
    gpusim.trace(doubled[(3, 3), (16, 16)], a, b, level=level)
    assert kept == 0
    assert b.tolist() == (2 * a).tolist()
    assert int((whole != 0).sum()) == int((b != 0).sum())
    b[...] = 0


@both_levels
def test_atomics_and_single_rows_go_by_their_strides(level: str) -> None:
    @cuda.jit
    def kernel(bins, column):
        i = cuda.threadIdx.x
        cuda.atomic.add(bins, column[i], 1)

    bins, table = np.zeros(8, np.int32), counted(4, 4)
    gpusim.trace(kernel[1, 4], bins[::-2], table[:, 0] // 4, level=level)
    assert bins.tolist() == [0, 1, 0, 1, 0, 1, 0, 1]


def test_a_vector_access_needs_elements_side_by_side() -> None:
    @cuda.jit
    def kernel(a, out):
        x, y = cuda.load_vector(a, 0, 2)
        out[0] = x + y

    with pytest.raises(KernelSourceError, match="a has strides"):
        kernel[1, 1](np.zeros(8)[::2], np.zeros(1))


@cuda.jit
def before_its_row(a, out):
    out[0] = a[1, cuda.threadIdx.x - 1]


@cuda.jit
def behind_its_row(a, out):
    out[0] = a[0, cuda.threadIdx.x + 40]


@cuda.jit
def in_shared_memory(a, out):
    tile = cuda.shared.array((4, 8), np.int32)
    tile[1, cuda.threadIdx.x] = a[0, 0]
    out[0] = tile[0, 7]


@cuda.jit
def in_a_cube(a, out):
    cube = cuda.local.array((2, 3, 4), np.int32)
    cube[1, 3, 0] = a[0, 0]
    out[0] = cube[0, 0, 0]


@cuda.jit
def by_an_atomic(a, out):
    cuda.atomic.add(a, (0, cuda.threadIdx.x - 1), 1)


@cuda.jit
def of_an_unsigned(a, out):
    out[0] = a[np.uint32(cuda.threadIdx.x) - 1, 0]


FAULTS = [
    (before_its_row, "a[1, -1] is out of bounds: index -1 along axis 1, where a has 32 elements"),
    (behind_its_row, "a[0, 40] is out of bounds: index 40 along axis 1, where a has 32 elements"),
    (in_shared_memory, "tile[1, 8] is out of bounds: index 8 along axis 1, where tile has 8 e"),
    (in_a_cube, "cube[1, 3, 0] is out of bounds: index 3 along axis 1, where cube has 3 elements"),
    (by_an_atomic, "a[0, -1] is out of bounds: index -1 along axis 1, where a has 32 elements"),
    (of_an_unsigned, "a[4294967295, 0] is out of bounds: index 4294967295 along axis 0, where"),
]


@both_levels
@pytest.mark.parametrize(("kernel", "message"), FAULTS)
def test_an_index_that_leaves_its_axis_is_told_with_axis_index_and_size(
    kernel: Kernel, message: str, level: str
) -> None:
    """All but the last would reach another element of the array."""
    with pytest.raises(OutOfBoundsError, match=rf"^line \d+: {re.escape(message)}") as caught:
        gpusim.trace(kernel[1, 32], counted(4, 32), np.zeros(1, np.int32), level=level)
    assert caught.value.place is not None
    assert caught.value.place.array in ("a", "tile", "cube")


@both_levels
def test_a_strided_index_is_checked_although_memory_goes_on(level: str) -> None:
    @cuda.jit
    def kernel(a, out):
        out[0] = a[cuda.threadIdx.x]

    with pytest.raises(OutOfBoundsError, match=r"a\[4\] .*: index 4 along axis 0, where a has 4"):
        gpusim.trace(kernel[1, 8], counted(16)[::4], np.zeros(1, np.int32), level=level)


def test_checks_of_an_axis_cost_no_instruction() -> None:
    """The same sums over one dimension and over two issue the same loads and stores."""

    @cuda.jit
    def kernel(a, out):
        out[cuda.threadIdx.x] = a[cuda.threadIdx.x, 3]

    trace = gpusim.trace(kernel[1, 32], counted(32, 4), np.zeros(32, np.int32))
    assert trace.counters["global_load_instructions"] == 1
    assert [line for line in trace.lines if line.counters.get("branches")] == []


def offsets(*arrays: Any) -> list[int]:
    """Where arrays begin that are passed together, from the first address on."""
    named = {str(number): array for number, array in enumerate(arrays)}
    return [one.address - FIRST_ADDRESS for one in allocate(named).values()]


def test_views_that_overlap_lie_as_far_apart_as_in_numpy() -> None:
    base = counted(100)
    assert offsets(base, base) == [0, 0]
    assert offsets(base[10:], base[:20], base) == [40, 0, 0]
    assert offsets(base[::2], base[1::2]) == [0, 4]
    assert offsets(base[10:20], base.view(np.int16)[30:]) == [0, 20]


def test_arrays_that_do_not_overlap_lie_apart_and_aligned_to_512_bytes() -> None:
    base = counted(300)
    # 512 and 688 bytes, each with 8192 bytes behind it.
    assert offsets(base[:128], base[128:], counted(1)) == [0, 8704, 17920]
    assert offsets(counted(0), counted(0), gpusim.array_spec(4, np.int32)) == [0, 8704, 17408]
