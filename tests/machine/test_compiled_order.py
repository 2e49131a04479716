"""Warps of compiled code take turns as in NumPy's machine where their order shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from evaluators import COMPILED, INTERPRETED, Array, agree, evaluated, runs_in

from gpusim import cuda, machine
from gpusim.codegen.programs import prepare
from gpusim.errors import NoProgressError
from gpusim.machine.compiled import modules
from gpusim.machine.warps import turns


@cuda.jit
def chained(x, sums, flags):
    """Each block adds to the sum of the one before, which it waits for."""
    i = cuda.grid(1)
    b = cuda.blockIdx.x
    if cuda.threadIdx.x == 0:
        before = 0
        if b > 0:
            while cuda.atomic.add(flags, b - 1, 0) == 0:
                pass
            before = sums[b - 1]
        sums[b] = before + x[i]
        cuda.threadfence()
        cuda.atomic.add(flags, b, 1)


@cuda.jit
def locked(x, lock, total, order):
    """Threads take a lock; who had it when is written down."""
    i = cuda.grid(1)
    done = False
    while not done:
        if cuda.atomic.cas(lock, 0, 0, 1) == 0:
            order[total[0]] = i
            total[0] += 1
            x[i] += total[0]
            cuda.threadfence()
            cuda.atomic.exch(lock, 0, 0)
            done = True


@cuda.jit
def swapped_sums(x, sums, tries):
    """Sums by compare-and-swap; each thread counts its tries."""
    i = cuda.grid(1)
    place = i % 3
    old = sums[place]
    count = 1
    while True:
        found = cuda.atomic.cas(sums, place, old, old + x[i])
        if found == old:
            break
        old = found
        count += 1
    tries[i] = count


@cuda.jit
def several_tickets(x, counter, out):
    """Two atomics give the places of what lanes of several paths find."""
    i = cuda.grid(1)
    for k in range(x[i] % 5):
        if (x[i] + k) % 3 == 0:
            out[cuda.atomic.add(counter, 0, 1)] = i
        else:
            out[cuda.atomic.add(counter, 0, 2)] = -i


@cuda.jit
def tickets_of_blocks(x, counter, out):
    """Tickets in shared memory between barriers, some threads having left."""
    mine = cuda.shared.array(2, np.int32)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    if t < 2:
        mine[t] = 0
    cuda.syncthreads()
    if x[i] % 7 == 0:
        return
    for k in range(x[i] % 4):
        out[i] += cuda.atomic.add(mine, k % 2, x[i])
    cuda.syncthreads()
    if x[i] % 3 == 0:
        out[i] += cuda.atomic.exch(mine, 1, i) + cuda.atomic.add(counter, 0, mine[0])


@cuda.jit
def together_by_turns(x, counter, out):
    """Lanes meet at a warp's barrier between tickets that they take apart."""
    i = cuda.grid(1)
    for k in range(3):
        if (x[i] >> k) % 2 == 0:
            out[i] += cuda.atomic.add(counter, 0, k)
        cuda.syncwarp()
        out[i] += cuda.shfl_xor_sync(0xFFFFFFFF, out[i], 1)
        if x[i] % 5 > k:
            out[i] ^= cuda.atomic.max(counter, 0, x[i])


@cuda.jit
def waits_for_nobody(flags):
    while cuda.atomic.add(flags, 0, 0) == 0:
        pass
    flags[1] = 1


def whole(size: int) -> Array:
    """Return positive whole numbers without structure."""
    return np.random.default_rng(2).integers(1, 1000, size).astype(np.int32)


def zeros(*sizes: int) -> tuple[Array, ...]:
    """Return arrays of zeros."""
    return tuple(np.zeros(size, np.int32) for size in sizes)


LAUNCHES: dict[str, Callable[[], tuple[Any, ...]]] = {
    "chained": lambda: (chained, 24, 32, whole(24 * 32), *zeros(24, 24)),
    "locked": lambda: (locked, 3, 64, whole(192), *zeros(1, 1, 192)),
    "swapped": lambda: (swapped_sums, 2, 96, whole(192), *zeros(3, 192)),
    "swapped by large blocks": lambda: (swapped_sums, 2, 320, whole(640), *zeros(3, 640)),
    "several tickets": lambda: (several_tickets, 5, 96, whole(480), *zeros(1, 4000)),
    "tickets of blocks": lambda: (tickets_of_blocks, 5, 80, whole(400), *zeros(1, 400)),
    "together by turns": lambda: (together_by_turns, 3, 64, whole(192), *zeros(1, 192)),
}


@pytest.mark.parametrize("name", LAUNCHES)
def test_turns_leave_the_same_bytes_and_counts(name: str) -> None:
    kernel, grid, block, *arguments = LAUNCHES[name]()
    agree(kernel, grid, block, "lowering", *arguments)


@pytest.fixture
def _chunks_of_two_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "chunk_blocks", lambda program, launch: 2)


@pytest.mark.usefixtures("_chunks_of_two_blocks")
@pytest.mark.parametrize("name", ["chained", "several tickets", "tickets of blocks"])
def test_chunks_of_blocks_follow_one_another(name: str) -> None:
    kernel, grid, block, *arguments = LAUNCHES[name]()
    agree(kernel, grid, block, "lowering", *arguments)


@pytest.mark.usefixtures("_chunks_of_two_blocks")
def test_a_chunk_that_others_join_is_numpys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "QUANTUM", 60)
    kernel, grid, block, *arguments = LAUNCHES["several tickets"]()
    given = tuple(arguments)
    numpys, counted, _ = evaluated(kernel, grid, block, "lowering", given, INTERPRETED)
    found, sums, went = evaluated(kernel, grid, block, "lowering", given)
    assert not went
    np.testing.assert_array_equal(numpys[2], found[2])
    np.testing.assert_array_equal(counted.by_pc, sums.by_pc)


def test_a_program_that_turned_out_to_need_turns_begins_with_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel, grid, block, *arguments = LAUNCHES["several tickets"]()
    runs_in(monkeypatch, COMPILED)
    orders = []
    for _ in range(2):
        modules.forget()  # only the disk knows it
        machine.run(prepare(kernel[grid, block], list(arguments), machine.DEFAULT_CC))
        orders += [one.made.shared.in_order for one in modules._kept.values()]
    assert orders
    assert all(orders)


def test_threads_that_wait_for_ever_are_told_as_by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MOST_IDLE", 1 << 12)
    runs_in(monkeypatch, COMPILED)
    prepared = prepare(waits_for_nobody[1, 32], list(zeros(2)), machine.DEFAULT_CC)
    with pytest.raises(NoProgressError, match="livelock"):
        machine.run(prepared)
