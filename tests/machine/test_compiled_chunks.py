"""Large arrays are brought to compiled code in chunks, as they are touched: results are equal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from evaluators import COMPILED, HOPPER, Array, Went, agree, evaluated, runs_in

import gpusim
from gpusim import cuda
from gpusim.codegen.programs import prepare
from gpusim.errors import OutOfBoundsError
from gpusim.machine import run
from gpusim.machine.compiled import arrays
from gpusim.machine.compiled.arrays import Chunked
from gpusim.machine.storage import Allocation
from gpusim.sass import wheels

CHUNK = 256  # bytes
needs_compiler = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)


@pytest.fixture
def brought(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """Let all arrays be brought in chunks; return the name and bytes of each copy."""
    found = []
    copied = Allocation.copy_to

    def copy_to(self: Allocation, target: Array, begin: int = 0) -> None:
        found.append((self.name, begin, begin + len(target)))
        copied(self, target, begin)

    monkeypatch.setattr(Allocation, "copy_to", copy_to)
    monkeypatch.setattr(arrays, "CHUNKED", Chunked(CHUNK.bit_length() - 1, 1, 1))
    return found


@cuda.jit
def moved(x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i + 3] = x[2 * i] + x[i]


@cuda.jit
def counted(x, counts):
    i = cuda.grid(1)
    cuda.atomic.add(counts, x[i], 1)


@cuda.jit
def one_of_each_block(x, y):
    if cuda.threadIdx.x == 0:
        y[2000 * cuda.blockIdx.x] = x[3000 * cuda.blockIdx.x + 5]


@cuda.jit
def gathered(x, at, y):
    i = cuda.grid(1)
    y[i] = x[at[i]]


@cuda.jit
def added_here_and_there(x, at, n):
    if cuda.threadIdx.x == 0:
        for k in range(n):
            x[at[k]] += 1


def chunks_of(touched: Iterable[tuple[str, int]]) -> set[tuple[str, int]]:
    """Return where the chunks of some bytes begin, with their arrays' names."""
    return {(name, at // CHUNK * CHUNK) for name, at in touched}


@pytest.mark.usefixtures("brought")
def test_a_chunk_that_was_stored_to_is_not_brought_again_with_those_before_it() -> None:
    """Two chunks are there when chunk 2 is brought, with one more behind it: 3 is there already."""
    at = np.array([3, 0, 1, 2, 3], dtype=np.int64) * (CHUNK // 4)
    agree(added_here_and_there, 1, 32, "lowering", np.arange(1 << 13, dtype=np.int32), at, len(at))


def test_all_that_is_touched_is_there(brought: list[Any]) -> None:
    x, y = np.arange(4096, dtype=np.int32), np.arange(2051, dtype=np.int32)
    agree(moved, 8, 256, "lowering", x, y, 2000)
    agree(counted, 8, 256, "lowering", x % 777, np.arange(1000, dtype=np.int32))
    assert {name for name, _, _ in brought} == {"x", "y", "counts"}


def test_chunks_are_copied_that_are_touched_and_no_others(brought: list[Any]) -> None:
    x, y = np.arange(9000, dtype=np.int32), np.zeros(6000, np.int32)
    agree(one_of_each_block, 3, 32, "lowering", x, y)
    touched = {("x", 4 * (3000 * b + 5)) for b in range(3)} | {("y", 8000 * b) for b in range(3)}
    assert {(name, begin) for name, begin, _ in brought} == chunks_of(touched)
    assert all(end - begin == CHUNK for _, begin, end in brought)


def test_lanes_that_are_far_apart_bring_no_chunks_between_them(brought: list[Any]) -> None:
    at = np.random.default_rng(1).integers(0, 60_000, 32).astype(np.int32)
    x, y = np.arange(60_000, dtype=np.float64), np.zeros(32, np.float64)
    agree(gathered, 1, 32, "lowering", x, at, y)
    found = {(name, begin) for name, begin, _ in brought if name == "x"}
    assert found == chunks_of(("x", 8 * one) for one in at.tolist())


def test_chunks_that_many_calls_ask_for_are_brought_with_all_others(brought: list[Any]) -> None:
    """Calls cost more than bytes: after 32 of them, for 250 chunks, the rest comes at once."""
    x, y = np.arange(8000, dtype=np.float64), np.zeros(128, np.float64)
    at = np.random.default_rng(1).permutation(8000)[:128].astype(np.int32)
    evaluated(gathered, 1, 128, "lowering", (x, at, y))
    of_x = [(begin, end) for name, begin, end in brought if name == "x"]
    assert sum(end - begin for begin, end in of_x) == x.nbytes
    last = of_x[31:]
    assert [begin for begin, _ in last] == sorted(begin for begin, _ in last)


def test_neighbours_of_chunks_that_are_there_come_together(brought: list[Any]) -> None:
    x = np.arange(8192, dtype=np.int32)
    agree(moved, 4, 256, "lowering", x, np.zeros(2051, np.int32), 1024)
    sizes = [(end - begin) // CHUNK for name, begin, end in brought if name == "x"]
    assert max(sizes) > 1


def test_an_index_behind_the_end_of_a_chunked_array_is_a_fault(brought: list[Any]) -> None:
    given = np.arange(4096, dtype=np.int32), np.zeros(2002, np.int32), 2000
    with pytest.raises(OutOfBoundsError, match="2002"):
        agree(moved, 8, 256, "lowering", *given)


@cuda.jit
def stored_and_read(x, same, y):
    i = cuda.grid(1)
    x[i] = 7
    y[i] = same[i]


@pytest.mark.usefixtures("brought")
def test_arrays_that_overlap_are_brought_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    runs_in(monkeypatch, COMPILED)
    x, y, went = np.zeros(512, np.int32), np.zeros(512, np.int32), Went()
    run(prepare(stored_and_read[8, 64], (x, x[:], y), HOPPER), observers=(went,))
    assert went.over
    assert (y == 7).all()


POINTERS = """
struct Node { int value; const Node *next; };
__device__ Node last = {1, nullptr};
__device__ Node first = {3, &last};
__device__ const Node *head = &first;
__global__ void list(int *out) {
  int sum = 0;
  for (const Node *node = head; node; node = node->next) sum = sum * 10 + node->value;
  out[threadIdx.x] = sum;
}
__global__ void either(const int *x, const int *y, int *out) {
  int t = threadIdx.x;
  const int *chosen = t & 1 ? x + t : y + 31 - t;
  out[t] = *chosen;
}
"""


@needs_compiler
@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("list", (), [31] * 32),
        (
            "either",
            (np.arange(400, dtype=np.int32), -np.arange(400, dtype=np.int32)),
            [t if t & 1 else t - 31 for t in range(32)],
        ),
    ],
)
def test_pointers_lead_from_array_to_array(
    name: str,
    given: tuple[Array, ...],
    expected: list[int],
    brought: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs_in(monkeypatch, COMPILED)
    out, went = np.zeros(32, np.int32), Went()
    launched = gpusim.cuda_source(POINTERS)[name][1, 32]
    run(prepare(launched, (*given, out), HOPPER), observers=(went,))
    assert went.over
    assert out.tolist() == expected
