"""Blocks that wait for each other: who waits, how long, and what that makes of a grid's time."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from gpusim import cuda, predict
from gpusim.codegen.programs import prepare
from gpusim.errors import NoProgressError
from gpusim.gpu import device
from gpusim.isa.ops import Instruction
from gpusim.launch.events import Observer, Placement, Step
from gpusim.launch.grid import ComputeCapability
from gpusim.launch.prepared import Prepared
from gpusim.machine.state import Batch
from gpusim.machine.storage import FIRST_ADDRESS, allocate
from gpusim.prediction.arithmetic.ticks import TICKS, ticks
from gpusim.prediction.bounds import SPINNING
from gpusim.prediction.clock.event_queue import NEVER
from gpusim.prediction.locality.patterns import patterns_of
from gpusim.prediction.predict import predict_prepared
from gpusim.prediction.spinning import CompletionTimes, Grid
from gpusim.prediction.spinning import grid as grid_module
from gpusim.prediction.spinning.completion_times import is_even
from gpusim.prediction.spinning.grid import Focus
from gpusim.prediction.spinning.interpreter import PacedInterpreter
from gpusim.prediction.spinning.unloaded_timing import unloaded_timings
from gpusim.prediction.spinning.words import Lines, Words
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
def moved(x, y):
    y[cuda.grid(1)] = x[cuda.grid(1)]


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


def test_atomics_on_one_word_are_served_one_after_the_other() -> None:
    words, here = Words(apart=23), np.zeros((3, 32), np.int64)
    here[2] = 8
    one_lane = np.broadcast_to(np.arange(32) == 0, (3, 32))
    served = words.served(here, one_lane, np.array([100, 90, 95]))
    assert served.tolist() == [113, 90, 95]
    assert words.served(here[:1], np.ones((1, 32), bool), np.array([0])).tolist() == [136]
    assert words.served(here[:1], one_lane[:1], np.array([0])).tolist() == [136 + 32 * 23]
    assert words.found(here, one_lane, np.array([900, 800, 800]), 7).tolist() == [900, 902, 800]


def test_a_warp_that_waits_is_woken_by_the_last_write_of_its_word_alone() -> None:
    woken: list[tuple[list[int], int]] = []
    words, lane = Words(apart=23), np.arange(32) == 0
    here = np.where(lane, [[64], [68]], 0)
    words.park(
        lambda rows, at: woken.append((rows.tolist(), at)),
        np.array([5, 9]),
        here,
        np.broadcast_to(lane, (2, 32)),
    )
    words.written(np.array([72]), np.array([10]))
    assert woken == []
    words.written(np.array([64, 64, 72]), np.array([20, 30, 40]))
    words.written(np.array([64]), np.array([50]))
    assert woken == [([5], 30)]
    words.written(np.array([68]), np.array([60]))
    assert woken == [([5], 30), ([9], 60)]


def test_a_line_comes_out_of_dram_once() -> None:
    """A warp that touches a new line and an old one waits for the new one."""
    lines, on = Lines(allocate({"x": zeros(1024)}).values()), np.ones((2, 32), bool)
    near = FIRST_ADDRESS + 4 * np.arange(64).reshape(2, 32)
    assert lines.first(near, on).tolist() == [True, True]
    assert lines.first(near + 64, on).tolist() == [False, True]
    assert lines.first(near + 128, ~on).tolist() == [False, False]
    assert lines.first(near + 192, on).tolist() == [False, True]


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


def test_warps_run_together_what_nobody_sees_whenever_they_come_there() -> None:
    """The second block begins a thousand cycles late: it runs no row that the first has not."""
    together, apart = (executed(begin) for begin in (0, ticks(1000)))
    assert together == apart


def executed(begin: int) -> int:
    """Return how many rows are run for two blocks, of which one begins at a time."""
    grid = Grid(prepared_of(moved, 2, zeros(64), zeros(64)), H200, 2, "warm")
    grid._add(2, NEVER)
    (one,) = grid._running
    one.start(0, 0)
    one.start(1, begin)
    while len(one.batch.splits):
        one.run_next()
    return one.context.executed


def test_watched_blocks_of_a_batch_are_told_of_as_a_batch_of_their_own() -> None:
    """Blocks 5 and 7 of 4 to 7, with two warps each; rows 2 and 3 are block 5's."""
    heard: list[Step] = []
    focus = Focus({5, 7, 9}, (Listening(heard),))
    blocks, lanes = np.arange(4, 8), np.arange(4)[:, None, None] * np.ones((4, 2, 32), int)
    folded, unfolded = (Placement(blocks, 2, folded=one) for one in (True, False))
    everyone = np.ones((1, 2, 32), bool)
    row = Instruction("LDG")
    focus.step(Step(0, row, folded, np.arange(2), everyone, everyone, lanes))
    focus.step(Step(1, row, unfolded, np.array([1, 3]), everyone, everyone, lanes[1:2]))
    focus.step(Step(2, row, unfolded, np.array([0, 4]), everyone, everyone))
    first, second = heard
    assert first.placement.blocks.tolist() == [5, 7]
    assert first.placement.folded
    assert first.addresses is not None
    assert second.addresses is not None
    assert first.addresses[:, 0, 0].tolist() == [1, 3]
    assert (second.placement.blocks.tolist(), second.rows.tolist()) == ([5, 7], [1])
    assert second.addresses.shape == second.active.shape == (1, 1, 32)


class Listening(Observer):
    """Keeps the steps that it hears of."""

    def __init__(self, heard: list[Step]) -> None:
        self._heard = heard

    def step(self, step: Step) -> None:
        self._heard.append(step)


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


def test_a_batch_that_has_ended_is_let_go_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its registers do not wait for a collection of garbage."""
    batches: list[weakref.ref[Batch]] = []

    class Noted(PacedInterpreter):
        def __init__(self, batch: Batch, *others: Any) -> None:
            super().__init__(batch, *others)
            batches.append(weakref.ref(batch))

    monkeypatch.setattr(grid_module, "PacedInterpreter", Noted)
    gc.disable()
    try:
        grid = Grid(prepared_of(meeting, 64, zeros(1), 8), H200, 4224, "warm")
        grid.run(100_000)
        assert [one() for one in batches] == [None]
    finally:
        gc.enable()


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
