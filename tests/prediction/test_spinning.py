"""Blocks that wait for each other: who waits, how long, and what that makes of a grid's time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import array_spec, cuda, predict
from gpusim.codegen.programs import prepare
from gpusim.errors import NoProgressError, OutOfBoundsError
from gpusim.gpu import device
from gpusim.host.fast import OFF, SWITCH
from gpusim.launch.events import Observer, Steps
from gpusim.launch.grid import ComputeCapability
from gpusim.launch.prepared import Prepared
from gpusim.prediction.arithmetic.ticks import TICKS, ticks
from gpusim.prediction.bounds import SPINNING
from gpusim.prediction.locality.patterns import patterns_of
from gpusim.prediction.predict import predict_prepared
from gpusim.prediction.spinning import CompletionTimes, Grid
from gpusim.prediction.spinning.completion_times import is_even
from gpusim.prediction.spinning.unloaded_timing import unloaded_timings
from gpusim.program.polling import spins
from gpusim.typing import Array

pytestmark = pytest.mark.usefixtures("both_evaluators")


H200 = device.load("h200")
LATENCY = H200.latency_cycles
CC = ComputeCapability(9, 0)


@cuda.jit
def chain(flags, distance):
    """Each block waits for the word of a block before it, and leaves its own."""
    raised, b = cuda.volatile(flags), cuda.blockIdx.x
    if b >= distance:
        while raised[b - distance] == 0:
            pass
    raised[b] = 1


@cuda.jit
def fenced_chain(flags, distance):
    """The same, with a fence before the word."""
    raised, b = cuda.volatile(flags), cuda.blockIdx.x
    if b >= distance:
        while raised[b - distance] == 0:
            pass
    cuda.threadfence()
    raised[b] = 1


@cuda.jit
def meeting(arrived, rounds):
    """All blocks meet at a counter, again and again."""
    seen = cuda.volatile(arrived)
    for r in range(rounds):
        if cuda.threadIdx.x == 0:
            cuda.atomic.add(arrived, 0, 1)
            while seen[0] < (r + 1) * cuda.gridDim.x:
                pass
        cuda.syncthreads()


@cuda.jit
def chain_by_tickets(tickets, flags, numbers, out):
    """Each block draws a ticket, does that block's work, and waits for the ticket before."""
    drawn = cuda.shared.array(1, np.int32)
    lane, raised = cuda.threadIdx.x, cuda.volatile(flags)
    if lane == 0:
        drawn[0] = cuda.atomic.add(tickets, 0, 1)
    cuda.syncthreads()
    ticket = drawn[0]
    number = numbers[32 * ticket + lane]
    if ticket > 0:
        while raised[ticket - 1] == 0:
            pass
    raised[ticket] = 1
    out[32 * ticket + lane] = number


@cuda.jit
def back_and_forth(arrived, x, y):
    """All blocks meet before each reads what the one beside it stored."""
    i, seen = cuda.grid(1), cuda.volatile(arrived)
    y[i] = x[i]
    cuda.threadfence()
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(arrived, 0, 1)
        while seen[0] < cuda.gridDim.x:
            pass
    cuda.syncthreads()
    x[i] = y[(i + 32) % 64]


@cuda.jit
def up_to_a_bound(bound, out):
    i, last = 0, cuda.volatile(bound)
    while i < last[0]:
        i += 1
    out[cuda.grid(1)] = i


@cuda.jit
def from_a_queue(queue, out, n):
    item = cuda.atomic.add(queue, 0, 1)
    while item < n:
        out[item] = 1
        item = cuda.atomic.add(queue, 0, 1)


@cuda.jit
def taking_a_lock(lock, out):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    out[0] += 1
    cuda.threadfence()
    cuda.atomic.exch(lock, 0, 0)


def prepared_of(kernel: cuda.Kernel, blocks: int, *arguments: Any) -> Prepared:
    """Return a launch of blocks of a warp, in the lowering's code."""
    return prepare(kernel[blocks, 32], arguments, CC, code="lowering")


def zeros(count: int) -> Array:
    return np.zeros(count, np.int32)


def ends_of(
    kernel: cuda.Kernel, blocks: int, *arguments: Any, at_once: int = 4224
) -> CompletionTimes:
    """Return when the blocks of a grid end of which so many run at a time."""
    return Grid(prepared_of(kernel, blocks, *arguments), H200, at_once, "warm").run(100_000)


# -- who waits -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "arguments"),
    [(chain, (zeros(2), 1)), (meeting, (zeros(1), 2)), (taking_a_lock, (zeros(1), zeros(1)))],
)
def test_a_loop_that_only_asks_for_a_word_waits_for_another_block(
    kernel: cuda.Kernel, arguments: tuple[Any, ...]
) -> None:
    program = prepared_of(kernel, 2, *arguments).program
    assert len(spins(program)) == 1


@pytest.mark.parametrize(
    ("kernel", "arguments"),
    [(up_to_a_bound, (zeros(1), zeros(64))), (from_a_queue, (zeros(1), zeros(9), 9))],
)
def test_a_loop_that_gets_on_by_itself_waits_for_nobody(
    kernel: cuda.Kernel, arguments: tuple[Any, ...]
) -> None:
    prepared = prepared_of(kernel, 2, *arguments)
    assert spins(prepared.program) == frozenset()
    assert SPINNING not in [bound.name for bound in predict_prepared(prepared, H200).bounds]


# -- how long --------------------------------------------------------------------------


def test_a_chain_takes_the_way_of_a_word_for_each_block() -> None:
    """What a block does between seeing a word and leaving its own comes to it."""
    step = ends_of(chain, 256, zeros(256), 1).cycles_a_block
    assert LATENCY.flag <= step <= LATENCY.flag + 80


def test_a_fence_before_the_word_takes_its_time_as_well() -> None:
    """With the two instructions that stand behind a fence, four slots."""
    bare = ends_of(chain, 256, zeros(256), 1).cycles_a_block
    fenced = ends_of(fenced_chain, 256, zeros(256), 1).cycles_a_block
    assert fenced - bare == pytest.approx(LATENCY.fenced_flag - LATENCY.flag, abs=5)


def test_blocks_that_wait_for_one_further_back_go_on_side_by_side() -> None:
    step = ends_of(chain, 512, zeros(512), 1).cycles_a_block
    fourth = ends_of(chain, 512, zeros(512), 4).cycles_a_block
    assert fourth == pytest.approx(step / 4, rel=0.02)


def test_what_a_kernel_stored_comes_from_where_it_lies_and_what_it_only_reads_from_near() -> None:
    """Another SM has stored it, so that no part of the L2 but one has it."""
    prepared = prepared_of(chain_by_tickets, 2, zeros(1), zeros(2), zeros(64), zeros(64))
    found = {
        row.memory.name: pace.latency
        for row, pace in zip(
            prepared.program.instructions,
            unloaded_timings(prepared.program, H200, "warm"),
            strict=True,
        )
        if row.memory is not None and row.is_load
    }
    near, far = ticks(LATENCY.l2), ticks(LATENCY.l2 + LATENCY.l2_far / 2)
    assert (found["numbers"], found["flags"]) == (near, far)
    swapped = prepared_of(back_and_forth, 2, zeros(1), zeros(64), zeros(64))
    assert {
        pace.latency
        for row, pace in zip(
            swapped.program.instructions,
            unloaded_timings(swapped.program, H200, "warm"),
            strict=True,
        )
        if row.is_load and row.memory is not None and row.memory.name in "xy"
    } == {far}


class Listening(Observer):
    """Keeps the columns that it hears of."""

    def __init__(self) -> None:
        self.heard: list[Steps] = []
        self.ended: list[int] = []

    def compiled_steps(self, steps: Steps) -> None:
        self.heard.append(steps)

    def batch_end(self, blocks: Array) -> None:
        self.ended += blocks.tolist()


def test_watched_blocks_are_told_of_as_a_batch_of_their_own() -> None:
    """Blocks 1 and 3 of 4, with a warp each, of which the first never waits."""
    listening = Listening()
    prepared = prepared_of(chain, 4, zeros(4), 2)
    grid = Grid(prepared, H200, 4224, "warm", watched=(1, 3), observers=(listening,))
    grid.run(100_000)
    (steps,) = listening.heard
    assert steps.placement.blocks.tolist() == listening.ended == grid.ended == [1, 3]
    polls = spins(prepared.program)
    assert [any(np.isin(steps.pc[steps.row == row], [*polls])) for row in (0, 1)] == [False, True]


def test_a_poll_in_vain_is_parked_and_not_counted() -> None:
    """The last of 64 blocks waits for all others, and polls three times: twice before it parks."""
    listening = Listening()
    prepared = prepared_of(chain, 64, zeros(64), 1)
    Grid(prepared, H200, 64, "warm", watched=(63,), observers=(listening,)).run(100_000)
    polls = np.isin(listening.heard[0].pc, [*spins(prepared.program)])
    assert polls.sum() == 3


def test_interpreted_warps_run_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = chain_by_tickets, 8, zeros(1), zeros(8), zeros(256), zeros(256)
    compiled = ends_of(*launch).at.tolist()
    monkeypatch.setenv(SWITCH, OFF)
    assert ends_of(*launch).at.tolist() == compiled


def test_warps_beyond_two_gigabytes_of_arrays_run_alike() -> None:
    """Their addresses, those of records and of the array behind the large one are above 2^31."""
    heard, ends = [], []
    for numbers in (zeros(256), array_spec(1 << 29, np.int32)):
        listening = Listening()
        prepared = prepared_of(chain_by_tickets, 8, zeros(1), zeros(8), numbers, zeros(256))
        grid = Grid(prepared, H200, 8, "cold", watched=(3,), observers=(listening,))
        ends.append(grid.run(100_000).at.tolist())
        heard += listening.heard
    near, far = heard
    assert ends[0] == ends[1]
    assert near.pc.tolist() == far.pc.tolist()
    *before, stored = (far.accesses.first - near.accesses.first).tolist()
    assert not any(before)
    assert stored == 4 * ((1 << 29) - 256)


# -- the whole grid --------------------------------------------------------------------


def test_a_chain_goes_on_as_its_last_blocks_did() -> None:
    """Blocks end every 10 cycles: 100 of them 960 cycles after the fourth."""
    ends = np.array([40, 50, 60, 70]) * TICKS
    assert CompletionTimes(ends, 100, 50).cycles_a_block == 10
    assert CompletionTimes(ends, 100, 50).cycles == 70 + 96 * 10


def test_blocks_that_begin_and_end_together_are_told_from_a_chain() -> None:
    """Four at a time for 100 cycles, which is 25 for each."""
    ends = np.repeat([100, 200, 300], 4) * TICKS
    assert CompletionTimes(ends, 40, 4).cycles_a_block == 25
    assert CompletionTimes(ends, 40, 4).cycles == 300 + 28 * 25
    assert not is_even(ends[:8].tolist())
    assert is_even(list(range(0, 640, 10)))


def test_a_chain_binds_a_prediction() -> None:
    few, many = (
        predict(chain[blocks, 32], zeros(blocks), 1, device=H200, code="lowering")
        for blocks in (512, 1024)
    )
    assert many.limiter.name == "spinning"
    assert many.cycles == pytest.approx(many.limiter.time_us * H200.gpu.sm_clock_mhz)
    step = ends_of(chain, 512, zeros(512), 1).cycles_a_block
    assert (many.cycles - few.cycles) / 512 == pytest.approx(step, rel=0.001)


def test_blocks_draw_tickets_in_their_order() -> None:
    """So each block's numbers are its own, and all come from DRAM: 256 blocks, 4 sectors each."""
    states = zeros(1), zeros(256)
    launch = chain_by_tickets[256, 32]
    made = predict(launch, *states, zeros(8192), zeros(8192), device="h200", code="lowering")
    (read,) = [one for one in made.traffic.fetches if one.array == "numbers"]
    assert (read.sectors, read.dram, read.reuse_distance_bytes) == (1024, 1.0, None)


def test_blocks_that_meet_at_a_counter_take_a_words_way_for_each_round() -> None:
    """Of 132 blocks the last one's addition is served 131 times 1.44 cycles after the first."""
    arguments = (zeros(1), 2), (zeros(1), 10)
    few, many = (predict(meeting[132, 32], *one, device=H200, code="lowering") for one in arguments)
    a_round = (many.cycles - few.cycles) / 8
    least = LATENCY.flag + 131 * H200.interval_cycles.global_atomic_same_address
    assert least <= a_round <= 1.5 * least


def test_more_blocks_than_a_gpu_holds_never_meet() -> None:
    held = 132 * 32
    with pytest.raises(NoProgressError, match="wait for words that no running block"):
        predict(meeting[held + 1, 32], zeros(1), 2, device=H200, code="lowering")


@cuda.jit
def chain_beyond_its_array(flags):
    raised, b = cuda.volatile(flags), cuda.blockIdx.x
    if b > 0:
        while raised[b - 1] == 0:
            pass
    raised[b] = 1


def test_a_fault_is_told_with_its_line_and_thread() -> None:
    with pytest.raises(OutOfBoundsError, match=r"flags\[8\] is out of bounds.*block 8, thread 0"):
        predict(chain_beyond_its_array[9, 1], zeros(8), device=H200, code="lowering")


@cuda.jit
def polled_by_atomics(flags):
    """Each block waits for the word before its own by atomics."""
    b = cuda.blockIdx.x
    if b > 0:
        while cuda.atomic.or_(flags, b - 1, 0) == 0:
            pass
    cuda.atomic.exch(flags, b, 1)


def test_the_atomics_of_a_wave_without_sampled_blocks_are_those_of_the_nearest() -> None:
    """Their addresses say how many run at once, or each would wait for all others."""
    launch = polled_by_atomics[200, 32]
    made = predict(launch, np.zeros(200, np.int32), device="gtx1650", code="lowering")
    patterns = patterns_of(made.prepared, made.classes, 2)
    touched = sorted(made.classes.touched or ())
    wave = range(121, 123)  # about the place of the executed neighbours
    assert touched
    assert not set(touched) & set(wave)
    assert patterns.together == (min(touched, key=lambda block: abs(block - wave[1])),)


def test_locks_are_handed_on() -> None:
    out = zeros(1)
    made = predict(taking_a_lock[64, 1], zeros(1), out, device=H200, code="lowering")
    assert out[0] == 0  # predictions leave arrays alone
    assert made.limiter.name == "spinning"
    assert made.cycles > 63 * LATENCY.fenced_flag
