"""The clock, on programs small enough to work out by hand. Times are in SM cycles."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from gpusim import device
from gpusim.device import Device
from gpusim.isa import Instruction, Memory, Program
from gpusim.streams import WarpStream
from gpusim.timing.clock import STALLS, Outcome, Share, Span, StreamingMultiprocessor, WarpPlan
from gpusim.timing.costs import instruction_costs, segments

INT32 = np.dtype(np.int32)
SHARED = Memory("shared", "shared", INT32, size=1024)
GLOBAL = Memory("global", "numbers", INT32)


def plain_device(**latency: float) -> Device:
    """Return an H200 on which everything that a test does not set costs nothing or one cycle."""
    gpu = device.load("h200")
    quick = {"alu": 4, "fma": 4, "imad": 4, "shared_load": 23, "shared_wavefront": 2, "branch": 0}
    nothing = {"block_start": 0, "block_end": 0, "barrier": 20, "barrier_per_warp": 2}
    return replace(
        gpu,
        latency_cycles=replace(gpu.latency_cycles, **{**quick, **nothing, **latency}),
        interval_cycles=replace(
            gpu.interval_cycles, alu=1, fma=1, imad=1, lsu_scheduler=1, block_launch=0
        ),
    )


def add(dst: int, *src: int) -> Instruction:
    return Instruction("IADD3", (dst,), src, INT32)


EXIT = Instruction("EXIT")
LOAD = Instruction("LDS", (1,), (0,), INT32, memory=SHARED)
STORE = Instruction("STS", (), (0, 1), INT32, memory=SHARED)
FETCH = Instruction("LDG", (1,), (0,), INT32, memory=GLOBAL)
BARRIER = Instruction("BAR", detail="sync")


def play(
    instructions: list[Instruction],
    *,
    gpu: Device | None = None,
    warps: int = 1,
    blocks: int = 1,
    resident: int = 8,
    cost: int = 1,
    bytes_per_cycle: float = 1e9,
    listener: object = None,
) -> Outcome:
    """Play blocks of warps that all run `instructions` once, accesses costing `cost`."""
    gpu = gpu or plain_device()
    program = Program("by hand", tuple(instructions), registers=16)
    count = len(instructions)
    accesses = np.array([i.memory is not None for i in instructions])
    stream = WarpStream(
        pc=np.arange(count, dtype=np.int32),
        is_on=np.ones(count, dtype=bool),
        is_taken=np.zeros(count, dtype=bool),
        cost=np.where(accesses, cost, 0).astype(np.int32),
        lines=accesses.astype(np.int32),
        fresh=np.where(accesses, cost, 0).astype(np.int32),
        joins=np.zeros(count, dtype=bool),
        lanes=np.full(count, 2**32 - 1, dtype=np.uint32),
    )
    made, tags = segments(stream, program, instruction_costs(program, gpu), gpu)
    plan = WarpPlan(made, tags)
    share = Share(bytes_per_cycle, bytes_per_cycle, 1.0, 1.0, 1)
    plans = [[plan] * warps for _ in range(blocks)]
    sm = StreamingMultiprocessor(gpu, share, plans, resident, listener)  # type: ignore[arg-type]
    return sm.play()


def test_independent_instructions_issue_one_a_cycle() -> None:
    assert play([add(2, 0), add(3, 0), add(4, 0), EXIT]).cycles == 4


def test_a_dependent_instruction_waits_for_the_latency() -> None:
    """Issue at 0 and 4, exit at 5, over at 6."""
    assert play([add(2, 0), add(3, 2), EXIT]).cycles == 6


def test_two_warps_on_one_scheduler_take_turns() -> None:
    """Four warps have a scheduler each; a fifth shares one: ten slots in all."""
    work = [add(2, 0), add(3, 0), add(4, 0), add(5, 0), EXIT]
    assert play(work, warps=4).cycles == 5
    assert play(work, warps=5).cycles == 10


def test_a_narrow_pipe_spaces_its_instructions() -> None:
    """With a pipe of half the rate: issue at 0, 2 and 4, exit at 5, over at 6."""
    gpu = plain_device()
    gpu = replace(gpu, interval_cycles=replace(gpu.interval_cycles, alu=2))
    assert play([add(2, 0), add(3, 0), add(4, 0), EXIT], gpu=gpu).cycles == 6


@pytest.mark.parametrize(("ways", "latency"), [(1, 23), (2, 25), (4, 29), (8, 37)])
def test_an_n_way_conflict_delays_the_result_by_two_cycles_a_wavefront(
    ways: int, latency: int
) -> None:
    """The A100's published ladder: 23, 25, 29, 37; then the use, and the exit."""
    assert play([LOAD, add(2, 1), EXIT], cost=ways).cycles == latency + 2


def test_without_bank_conflicts_an_n_way_conflict_costs_nothing() -> None:
    gpu = plain_device().without("bank-conflicts")
    assert play([LOAD, add(2, 1), EXIT], cost=8, gpu=gpu).cycles == 25


@pytest.mark.parametrize("warps", [1, 4, 32])
def test_a_barrier_costs_a_fixed_part_and_one_for_each_warp(warps: int) -> None:
    """W warps of a block come w at a time; the barrier takes them in 2 cycles each, then 20."""
    per_scheduler = -(-warps // 4)
    cycles = play([BARRIER, EXIT], warps=warps).cycles
    assert cycles == 1 + 2 * warps + 20 + per_scheduler


def test_without_barriers_no_warp_waits_for_another() -> None:
    gpu = plain_device().without("barriers")
    assert play([BARRIER, EXIT], warps=4, gpu=gpu).cycles == 2


def test_a_copy_is_bound_by_bandwidth() -> None:
    """1,000 blocks of a warp fetch 128 bytes each at 16 bytes a cycle: 8,000 cycles and a tail."""
    gpu = plain_device(l1=20, l2=50, dram=100)
    cycles = play(
        [FETCH, add(2, 1), EXIT], gpu=gpu, blocks=1000, resident=32, cost=4, bytes_per_cycle=16
    ).cycles
    assert 8000 <= cycles <= 8000 * 1.2


def test_a_grid_of_tiny_blocks_is_bound_by_the_launch_rate() -> None:
    gpu = plain_device()
    gpu = replace(gpu, interval_cycles=replace(gpu.interval_cycles, block_launch=100))
    assert play([add(2, 0), EXIT], gpu=gpu, blocks=50, resident=32).cycles == 49 * 100 + 2


def test_blocks_wait_for_room() -> None:
    gpu = plain_device(block_end=10)
    assert play([add(2, 0), EXIT], gpu=gpu, blocks=3, resident=1).cycles == 3 * (2 + 10)


MIXED = [LOAD, add(2, 1), STORE, BARRIER, FETCH, add(3, 1), add(4, 3), BARRIER, EXIT]


def test_the_spans_of_a_warp_tile_its_life() -> None:
    spans: list[Span] = []

    class Listener:
        def span(self, span: Span) -> None:
            spans.append(span)

    play(MIXED, warps=6, blocks=3, resident=2, listener=Listener())
    lives: dict[tuple[int, int], list[Span]] = {}
    for span in spans:
        lives.setdefault((span.block, span.warp), []).append(span)
    assert len(lives) == 18
    for life in lives.values():
        for one, following in pairwise(life):
            assert one.end == following.start
            assert one.reason in STALLS


def test_stalls_add_up_to_all_warp_cycles_and_so_do_lines() -> None:
    spans: list[Span] = []

    class Listener:
        def span(self, span: Span) -> None:
            spans.append(span)

    outcome = play(MIXED, warps=6, blocks=3, resident=2, listener=Listener())
    lived = sum(span.end - span.start for span in spans)
    assert sum(outcome.stalls) / 16 == lived
    assert sum(outcome.by_pc.values()) == sum(outcome.stalls)
    assert outcome.instructions == 6 * 3 * len(MIXED)


def test_the_same_input_gives_the_same_time() -> None:
    assert play(MIXED, warps=7, blocks=9) == play(MIXED, warps=7, blocks=9)
