"""Clocks of a whole grid as trees: what a join knows, what it shares, and what a chain costs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusim.checking.element_access import BLOCK_SHIFT, ElementAccess
from gpusim.checking.known_times import KnownTimes, ReleasedTimes, of_thread
from gpusim.checking.releases import FlagAccess, FlagPair, Releases

THREADS = [
    block << BLOCK_SHIFT | thread
    for block in (0, 1, 255, 256, 70_000)
    for thread in (0, 1, 31, 32, 1023)
]


def times(barrier: int, met: int, now: int, thread: int) -> KnownTimes:
    return of_thread(thread, barrier + met + now, barrier + met, barrier, {}, {})


threads = st.sampled_from(THREADS)
numbers = st.integers(0, 9)
several = st.lists(st.tuples(numbers, numbers, numbers, threads), min_size=1, max_size=5)


def joined(found: list[tuple[int, int, int, int]]) -> KnownTimes:
    every = times(*found[0])
    for one in found[1:]:
        every = every.join(times(*one))
    return every


def test_a_thread_knows_itself_until_now_and_others_until_barriers() -> None:
    found = of_thread(3 << BLOCK_SHIFT | 40, 9, 7, 4, {9: 8}, {2: 6})
    of_lane = {8: 9, 9: 8, 10: 7}  # itself, a lane that it met, its warp
    of_block = {64: 6, 96: 4}  # a warp that it heard of, the block
    for thread, time in {**{32 + lane: t for lane, t in of_lane.items()}, **of_block}.items():
        assert found.until(3 << BLOCK_SHIFT | thread) == time
    assert found.until(2 << BLOCK_SHIFT | 40) == 0


@given(several, several, threads)
def test_a_join_knows_of_each_thread_what_either_does(
    some: list[tuple[int, int, int, int]], others: list[tuple[int, int, int, int]], thread: int
) -> None:
    one, other = joined(some), joined(others)
    assert one.join(other).until(thread) == max(one.until(thread), other.until(thread))
    both = one.join(other)
    assert both.join(one) is both
    assert one.join(both) is both


def test_a_later_state_of_a_flag_is_known_to_include_an_earlier_one() -> None:
    flag = ReleasedTimes()
    for block in range(3):
        flag.join(times(1, 1, 1, block << BLOCK_SHIFT))
    earlier = flag.known
    flag.join(times(1, 1, 1, 3 << BLOCK_SHIFT))
    later = flag.known
    assert earlier is not None
    assert later is not None
    assert earlier.join(later) is later
    assert later.join(earlier) is later


def touch(time: int, block: int, element: int) -> ElementAccess:
    one = np.array([block << BLOCK_SHIFT])
    zero = np.int64(0)
    return ElementAccess(time, np.array([element]), one, zero, zero, None, lambda: np.zeros((1, 1)))


def nodes_made(blocks: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many nodes a chain takes: each block waits for the one before, and goes on."""
    made = 0
    begin = KnownTimes.__init__

    def counted(self: KnownTimes, *given: object) -> None:
        nonlocal made
        made += 1
        begin(self, *given)  # type: ignore[arg-type]

    releases = Releases()
    with monkeypatch.context() as patch:
        patch.setattr(KnownTimes, "__init__", counted)
        for block in range(blocks):
            time = 8 * block
            if block:
                releases.visit(touch(time + 1, block, block - 1), FlagAccess(True, False))
                releases.fence(touch(time + 2, block, 0), "device")
            releases.fence(touch(time + 4, block, 0), "device")
            releases.visit(touch(time + 5, block, block), FlagAccess(False, True))
    last = touch(8 * blocks, blocks - 1, 0)
    pair = FlagPair(False, False, False, False)
    every = np.arange(blocks - 1) << BLOCK_SHIFT
    begun = 8 * np.arange(blocks - 1)
    there = ElementAccess(
        last.time,
        np.zeros(blocks - 1, np.int64),
        np.repeat(last.thread, blocks - 1),
        last.barrier,
        last.warp_sync,
        None,
        last.values,
    )
    assert releases.orders(every, begun + 3, there, pair).all()  # of all blocks before it
    assert not releases.orders(every, begun + 5, there, pair).any()  # behind their fences
    return made


def test_a_chain_of_blocks_takes_as_long_for_each_link(monkeypatch: pytest.MonkeyPatch) -> None:
    assert nodes_made(128, monkeypatch) <= 2.2 * nodes_made(64, monkeypatch)


def by(time: int, threads: list[int], barrier: int = 0) -> ElementAccess:
    """Return an access of threads to one element, behind a barrier."""
    count = len(threads)
    who, at = np.array(threads, np.int64), np.zeros(count, np.int64)
    before = np.full(count, barrier, np.int64)
    return ElementAccess(time, at, who, before, before, None, lambda: np.zeros((1, count)))


@pytest.mark.parametrize("is_one_step", [True, False])
@pytest.mark.parametrize("barrier", [0, 3])
def test_a_fence_of_a_block_hands_on_what_its_threads_know_behind_a_barrier(
    barrier: int, is_one_step: bool
) -> None:
    """64 threads access at 1 and fence at 2; thread 5 releases at 4, and another block acquires."""
    releases, mine, other = Releases(), list(range(64)), 1 << BLOCK_SHIFT
    for some in [mine] if is_one_step else [[one] for one in mine]:
        releases.fence(by(2, some), "device")
    releases.visit(by(4, [5], barrier), FlagAccess(False, True))
    releases.visit(by(5, [other]), FlagAccess(True, False))
    releases.fence(by(6, [other]), "device")
    there = by(7, [other] * 64)
    pair = FlagPair(False, False, False, False)
    for time, is_known in ((1, True), (3, False)):
        known = releases.orders(np.array(mine), np.full(64, time), there, pair)
        handed_on = mine if barrier else [5]
        assert np.flatnonzero(known).tolist() == (handed_on if is_known else [])
