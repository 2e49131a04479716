"""Orders by one flag are found without clocks: what each side needs, and what is left to clocks."""

from __future__ import annotations

from cProfile import Profile
from pathlib import Path

import numpy as np
import pytest

import gpusim
from gpusim.checking.clock_rows import BARRIER, KEY, PAIRS, PLACE, THREAD, TIME, WARP_SYNC
from gpusim.checking.element_access import BLOCK_SHIFT
from gpusim.checking.handovers import Handovers
from gpusim.checking.ledger import Ledger
from gpusim.checking.releases import LastLoads
from gpusim.sass import wheels
from gpusim.typing import Array

SENDER, RECEIVER, FLAG = 3 << BLOCK_SHIFT | 1, 7 << BLOCK_SHIFT | 40, 99


def at(thread: int, time: int, place: int = FLAG, barrier: int = 0, warp_sync: int = 0) -> Array:
    row = np.zeros((1, PAIRS), dtype=np.int64)
    row[0, [KEY, THREAD, TIME, PLACE]] = thread >> BLOCK_SHIFT, thread, time, place
    row[0, [BARRIER, WARP_SYNC]] = barrier, warp_sync
    return row


def sent(*left_out: str, place: int = FLAG) -> Handovers:
    """A fence at 10, a store to the flag at 11; a load of it at 20, and a fence at 21."""
    made = Handovers()
    steps = {
        "release": lambda: made.fence(at(SENDER, 10, barrier=5)),
        "store": lambda: made.release(at(SENDER, 11), with_itself=False),
        "load": lambda: made.acquire(at(RECEIVER, 20, place), is_complete=False),
        "acquire": lambda: made.fence(at(RECEIVER, 21)),
    }
    for name, step in steps.items():
        if name not in left_out:
            step()
    return made


def knows(made: Handovers, thread: int, time: int, now: Array) -> bool:
    return bool(made.order(np.array([thread]), np.array([time]), now)[0])


def test_a_handover_orders_what_came_before_the_senders_fence() -> None:
    made = sent()
    assert knows(made, SENDER, 10, at(RECEIVER, 22))
    assert not knows(made, SENDER, 11, at(RECEIVER, 22))  # the store comes after the fence
    # Other threads of the sender's block until the barrier at 5, none of other blocks.
    assert knows(made, SENDER + 64, 5, at(RECEIVER, 22))
    assert not knows(made, SENDER + 64, 6, at(RECEIVER, 22))
    assert not knows(made, SENDER + (1 << BLOCK_SHIFT), 5, at(RECEIVER, 22))


def test_a_handover_reaches_the_threads_that_have_met_the_receiver_since_its_fence() -> None:
    made = sent()
    assert not knows(made, SENDER, 10, at(RECEIVER, 20))
    assert knows(made, SENDER, 10, at(RECEIVER + 64, 30, barrier=21))
    assert not knows(made, SENDER, 10, at(RECEIVER + 64, 30, barrier=20))
    assert knows(made, SENDER, 10, at(RECEIVER + 1, 30, warp_sync=21))


@pytest.mark.parametrize("missing", ["release", "store", "load", "acquire"])
def test_without_one_of_its_four_steps_there_is_no_handover(missing: str) -> None:
    assert not knows(sent(missing), SENDER, 10, at(RECEIVER, 22))


def test_a_load_of_another_flag_is_no_handover() -> None:
    assert not knows(sent(place=FLAG + 1), SENDER, 10, at(RECEIVER, 22))


def test_a_store_that_releases_hands_over_its_own_time() -> None:
    made = sent("store", "load", "acquire")
    made.release(at(SENDER, 11), with_itself=True)
    made.acquire(at(RECEIVER, 20), is_complete=True)
    assert knows(made, SENDER, 11, at(RECEIVER, 22))


def test_a_thread_finds_a_flag_unchanged_until_the_next_release() -> None:
    loads, thread, place = LastLoads(), np.array([5, 6]), np.array([7, 8])
    assert loads.exchange(thread, place, np.array([3, 4])).tolist() == [0, 0]
    assert loads.exchange(thread, place[::-1], np.array([4, 3])).tolist() == [0, 0]
    assert loads.exchange(thread, place, np.array([9, 4])).tolist() == [3, 4]
    assert loads.exchange(np.arange(5, 205), np.full(200, 7), np.full(200, 9))[0] == 9


def test_rows_of_a_ledger_are_found_whatever_was_added_between() -> None:
    ledger, rng = Ledger(), np.random.default_rng(3)
    held = np.zeros((0, 2), dtype=np.int64)
    for count in (1, 5, 2, 70_000, 3):
        rows = rng.integers(0, 50_000, (count, 2))
        ledger.add(rows)
        held = np.concatenate([held, rows])
        keys = rng.integers(0, 60_000, 20)
        entries, found = ledger.find(keys)
        assert sorted(map(tuple, found)) == sorted(
            tuple(row) for key in keys for row in held[held[:, 0] == key]
        )
        assert (keys[entries] == found[:, 0]).all()


WALK = """__global__ void k(int *value, volatile int *flag, int *out) {
    if (threadIdx.x) return;
    int b = blockIdx.x, sum = 0;
    value[b] = b + 1;
    __threadfence();
    flag[b] = 1;
    for (int j = b - 1; j >= 0; j--) {
        while (flag[j] == 0) {}
        __threadfence();
        sum += value[j];
    }
    out[b] = sum;
}
"""


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_a_walk_over_all_flags_joins_no_clocks() -> None:
    walk = gpusim.cuda_source(WALK)["k"]
    arrays = [np.zeros(40, np.int32) for _ in range(3)]
    with Profile() as calls:
        assert len(gpusim.check(walk[40, 32], *arrays)) == 0
    ran = {
        Path(one.code.co_filename).stem for one in calls.getstats() if not isinstance(one.code, str)
    }
    assert "handovers" in ran
    assert "known_times" not in ran
