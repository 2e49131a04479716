"""A block's steps: who runs what, in which barrier interval, and what shared memory then holds."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpusim
from gpusim import catalogue, cuda
from gpusim.tracing.block_steps import BlockSteps


def steps_of(configured: Any, *arguments: Any, block: int = 0, most: int = 4000) -> BlockSteps:
    kept = BlockSteps(block, most)
    gpusim.trace(configured, *arguments, observers=[kept])
    return kept


def contents(kept: BlockSteps) -> dict[int, float]:
    """What shared memory holds at the end, by the first byte of each element."""
    return {w.address: w.value for step in kept.steps for w in step.written}


def test_the_changes_of_a_reduction_end_in_its_result() -> None:
    """Element 0 of each block is the sum of its numbers; the elements before are as NumPy says."""
    call = catalogue.find("reduce2").call(catalogue.sample(256, "int32"), block=64)
    for block in range(4):
        kept = steps_of(call.configured, *call.arguments, block=block)
        numbers = call.data[64 * block : 64 * block + 64].astype(np.int64)
        first = {}
        for step in kept.steps:
            first |= {w.address: w.value for w in step.written if w.address not in first}
        assert [first[4 * k] for k in range(64)] == numbers.tolist()
        assert contents(kept)[0] == numbers.sum() == call.result[block]
        assert kept.is_complete


def test_intervals_count_the_barriers_that_the_block_has_passed() -> None:
    """reduce2 of 64 threads has one barrier after loading and one in each of 6 iterations."""
    call = catalogue.find("reduce2").call(catalogue.sample(128, "int32"), block=64)
    kept = steps_of(call.configured, *call.arguments)
    assert [step.interval for step in kept.steps] == sorted(step.interval for step in kept.steps)
    assert kept.steps[-1].interval == 7
    assert kept.program is not None
    ops = [kept.program.instructions[step.pc].op for step in kept.steps]
    assert ops.count("BAR") == 7
    assert ops[-1] == "EXIT"


def test_lanes_are_on_where_their_guard_is_true() -> None:
    """The store of reduce2 is made by 32, 16, 8, 4, 2, 1 lanes, all 64 being active."""
    call = catalogue.find("reduce2").call(catalogue.sample(128, "int32"), block=64)
    kept = steps_of(call.configured, *call.arguments)
    assert kept.program is not None
    stores = [s for s in kept.steps if kept.program.instructions[s.pc].op == "STS"]
    assert [step.lanes_on for step in stores] == [64, 32, 16, 8, 4, 2, 1]
    assert {sum(sum(w.active) for w in step.warps) for step in stores} == {64}
    places = [a for part in stores[2].warps for a in part.addresses or () if a >= 0]
    assert places == [4 * 4 * lane for lane in range(16)]


def test_an_atomic_leaves_the_sum_of_all_lanes() -> None:
    @cuda.jit
    def count(target: Any) -> None:
        sums = cuda.shared.array(2, np.int32)
        if cuda.threadIdx.x < 2:
            sums[cuda.threadIdx.x] = 10
        cuda.syncthreads()
        cuda.atomic.add(sums, cuda.threadIdx.x % 2, cuda.threadIdx.x)
        cuda.syncthreads()
        target[cuda.threadIdx.x] = sums[cuda.threadIdx.x % 2]

    target = np.zeros(64, np.int32)
    kept = steps_of(count[1, 64], target)
    even, odd = 10 + sum(range(0, 64, 2)), 10 + sum(range(1, 64, 2))
    assert target[:2].tolist() == [even, odd]
    assert contents(kept) == {0: even, 4: odd}


def test_blocks_that_go_different_ways_have_steps_of_their_own() -> None:
    @cuda.jit
    def some(target: Any) -> None:
        place = cuda.shared.array(32, np.int32)
        if cuda.blockIdx.x == 1:
            place[cuda.threadIdx.x] = cuda.threadIdx.x * 3
            target[cuda.threadIdx.x] = place[31 - cuda.threadIdx.x]

    target = np.zeros(32, np.int32)
    assert contents(steps_of(some[2, 32], target, block=0)) == {}
    found = contents(steps_of(some[2, 32], target, block=1))
    assert found == {4 * k: 3 * k for k in range(32)}


def test_a_long_block_is_cut_and_says_so() -> None:
    call = catalogue.find("reduce2").call(catalogue.sample(128, "int32"), block=64)
    kept = steps_of(call.configured, *call.arguments, most=10)
    assert len(kept.steps) == 10
    assert not kept.is_complete
