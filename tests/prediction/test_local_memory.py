"""Arrays of a thread's own: where their words come from once all resident threads have too many."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim import cuda, predict
from gpusim.launch.arguments import array_spec
from gpusim.prediction.records import Prediction

pytestmark = pytest.mark.usefixtures("both_evaluators")

SMS, THREADS = 132, 2048  # of an H200; threads that run on each at a time


@cuda.jit
def reversed_own(out, words):
    """Each thread stores so many words of its own, then adds them up from the last to the first."""
    own = cuda.local.array(256, np.float32)
    i = cuda.grid(1)
    for k in range(words):
        own[k] = i + k
    total = np.float32(0)
    for k in range(words):
        total += own[words - 1 - k]
    out[i] = total


def predicted(words: int, waves: int = 1) -> Prediction:
    blocks = waves * SMS * THREADS // 256
    launch = reversed_own[blocks, 256]
    out = array_spec(256 * blocks, "float32")
    return predict(launch, out, np.int32(words), device="h200", code="lowering")


def test_what_the_l1_holds_of_all_threads_rows_is_found_there() -> None:
    """16 words of each of 2,048 threads are 128 KB."""
    fetches = predicted(16).traffic.fetches
    assert sum(one.sectors for one in fetches) == 16 * SMS * THREADS * 4 // 32
    assert {one.l1 for one in fetches} == {1.0}


def test_what_it_does_not_hold_comes_out_of_l2_and_dram() -> None:
    """80 words are 640 KB an SM, 86 MB in all: what was stored last is found most."""
    first, *_, last = (one.l1 for one in predicted(80).traffic.fetches)
    assert first > last
    assert 0.3 < last < first < 0.6
    assert predicted(80).traffic.dram_bytes > 20e6


def test_blocks_have_again_what_blocks_before_them_had() -> None:
    """8 words of all threads that run at a time are 9 MB, which stay in the L2 until the end.

    Each of 16 waves stores them anew, and four bytes a thread that nobody stores to again.
    """
    traffic = predicted(8, waves=16).traffic
    assert traffic.written_bytes == 16 * (8 + 1) * 4 * SMS * THREADS
    assert traffic.written_back_bytes < 16 * 4 * SMS * THREADS
    assert traffic.dram_bytes == 0


def test_own_arrays_are_no_bytes_that_a_launch_has_to_move() -> None:
    assert predicted(80).traffic.compulsory_bytes == 4 * SMS * THREADS
