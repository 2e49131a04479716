"""The clock, on programs small enough to work out by hand. Times are in SM cycles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from gpusim.gpu import device
from gpusim.gpu.device import Device
from gpusim.isa.ops import Instruction, Memory, Program
from gpusim.prediction.arithmetic.ticks import TICKS
from gpusim.prediction.clock import multiprocessor
from gpusim.prediction.clock.code_fetch import CodeFetch
from gpusim.prediction.clock.costs import NO_PIPE
from gpusim.prediction.clock.issue import issues
from gpusim.prediction.clock.scheduler import POLICIES
from gpusim.prediction.clock.simulation import Outcome
from gpusim.prediction.clock.simulation import simulate as simulate_blocks
from gpusim.prediction.clock.spans import STALLS, Span, SpanObserver
from gpusim.prediction.clock.step_builder import steps_of
from gpusim.prediction.clock.steps import Action
from gpusim.prediction.clock.units import Units
from gpusim.prediction.memory import (
    Access,
    GlobalMemory,
    MemoryShare,
    Requester,
    Source,
    Sources,
    Stored,
    slowest_excess_cycles,
)
from gpusim.prediction.memory.atomics import AtomicLoad
from gpusim.prediction.memory.hierarchy import Fences
from gpusim.prediction.streams import WarpStream

pytestmark = pytest.mark.usefixtures("both_evaluators")

INT32, FLOAT32 = np.dtype(np.int32), np.dtype(np.float32)
SHARED = Memory("shared", "shared", INT32, size=1024)
GLOBAL = Memory("global", "numbers", INT32)


def plain_device(**latency: float) -> Device:
    """Return an H200 on which everything that a test does not set costs nothing or one cycle."""
    gpu = device.load("h200")
    quick = {"alu": 4, "fma": 4, "imad": 4, "shared_load": 23, "shared_wavefront": 2, "xu": 17}
    nothing = dict.fromkeys(
        (
            *("branch", "control", "block_start", "block_end", "warp_start", "cold_start"),
            *("launch_spread", "launch_last", "l2_places", "dram_deviation"),
        ),
        0,
    )
    given = {"dram": 100, "dram_least": 100, "barrier": 20, "barrier_per_warp": 2, **latency}
    return replace(
        gpu,
        latency_cycles=replace(gpu.latency_cycles, **{**quick, **nothing, **given}),
        bandwidth=replace(gpu.bandwidth, l2_latency_growth=0),
        interval_cycles=replace(
            gpu.interval_cycles,
            **dict.fromkeys(("alu", "fma", "imad", "lsu_scheduler", "store_scheduler", "exit"), 1),
            **dict.fromkeys(("barrier", "block_launch", "block_completion"), 0),
            xu=8,
            xu_dispatch=1,
            imad_wide_dispatch=1,
        ),
    )


def with_intervals(gpu: Device, **cycles: float) -> Device:
    return replace(gpu, interval_cycles=replace(gpu.interval_cycles, **cycles))


def alu(dst: int, *src: int) -> Instruction:
    return Instruction("LOP3", (dst,), src, INT32)


@dataclass
class Ready:
    """A warp as a policy sees it."""

    pipe: int


class Spans(SpanObserver):
    """Keeps all spans."""

    def __init__(self) -> None:
        self.seen: list[Span] = []

    def span(self, span: Span) -> None:
        self.seen.append(span)


KEPT, BACK = {-1: Stored()}, {-1: Stored(written_back=1.0)}
EXIT = Instruction("EXIT")
LOAD = Instruction("LDS", (1,), (0,), INT32, memory=SHARED)
STORE = Instruction("STS", (), (0, 1), INT32, memory=SHARED)
FETCH = Instruction("LDG", (1,), (0,), INT32, memory=GLOBAL)
BARRIER = Instruction("BAR", detail="sync")


def simulate(
    instructions: list[Instruction],
    *,
    gpu: Device | None = None,
    warps: int = 1,
    blocks: int = 1,
    resident: int = 8,
    cost: int = 1,
    bytes_per_cycle: float = 1e9,
    share: MemoryShare | None = None,
    is_on: bool = True,
    is_taken: bool = False,
    lanes: int = 2**32 - 1,
    observers: Sequence[SpanObserver] = (),
) -> Outcome:
    """Simulate blocks of warps that all run `instructions` once, accesses costing `cost`."""
    gpu = gpu or plain_device()
    program = Program("by hand", tuple(instructions), registers=16)
    count = len(instructions)
    accesses = np.array([i.memory is not None for i in instructions])
    stream = WarpStream.of(
        pc=np.arange(count, dtype=np.int32),
        is_on=np.full(count, is_on),
        is_taken=np.array([i.op == "BRA" and is_taken for i in instructions]),
        cost=np.where(accesses, cost, 0).astype(np.int32),
        lines=accesses.astype(np.int32),
        wavefronts=accesses.astype(np.int32),
        fresh=np.where(accesses, cost, 0).astype(np.int32),
        written=np.array([cost if i.op == "STG" else 0 for i in instructions], dtype=np.int32),
        joins=np.zeros(count, dtype=bool),
        gaps=np.zeros(count, dtype=np.int32),
        earlier=np.zeros(count, dtype=np.int32),
        apart=accesses.astype(np.int32),
        behind=np.zeros(count, dtype=np.int32),
        constant=np.full(count, -1, dtype=np.int32),
        lanes=np.full(count, lanes, dtype=np.uint32),
    )
    warp = steps_of(stream, issues(program, gpu), CodeFetch(program, gpu, "warm").of(stream))
    share = share or MemoryShare(
        bytes_per_cycle, bytes_per_cycle, {-1: Sources(Source(1.0, 1.0))}, BACK, 1.0, 1, 1
    )
    work = [[warp] * warps for _ in range(blocks)]
    return simulate_blocks(gpu, share, work, resident, observers)


def test_independent_instructions_issue_one_a_cycle() -> None:
    assert simulate([alu(2, 0), alu(3, 0), alu(4, 0), EXIT]).cycles == 4


def test_a_dependent_instruction_waits_for_the_latency() -> None:
    """Issue at 0 and 4, exit at 5, over at 6."""
    assert simulate([alu(2, 0), alu(3, 2), EXIT]).cycles == 6


def test_two_warps_on_one_scheduler_take_turns() -> None:
    """Four warps have a scheduler each; a fifth shares one: ten slots in all."""
    work = [alu(2, 0), alu(3, 0), alu(4, 0), alu(5, 0), EXIT]
    assert simulate(work, warps=4).cycles == 5
    assert simulate(work, warps=5).cycles == 10


def test_a_warp_that_ends_keeps_its_scheduler() -> None:
    """The second warp of a scheduler begins as the first's exit lets it, six cycles after that."""
    gpu = with_intervals(plain_device(), exit=6)
    work = [alu(2, 0), EXIT]
    assert [simulate(work, gpu=gpu, warps=warps).cycles for warps in (4, 8)] == [2, 2 + 5 + 2]


def fma(dst: int, *src: int, reads: tuple[int, ...] = ()) -> Instruction:
    return Instruction("FFMA", (dst,), src, FLOAT32, bank_reads=reads)


def test_floating_point_waits_where_integers_are_multiplied() -> None:
    """IMAD keeps the multiplier for two cycles: FFMA at 2, exit at 3; before 7.0 FFMA is at 1."""
    work = [Instruction("IMAD", (2,), (0, 1), INT32), fma(3, 1), EXIT]
    gpu = with_intervals(plain_device(), imad=2)
    older = replace(gpu, gpu=replace(gpu.gpu, compute_capability="6.1"))
    assert simulate(work, gpu=gpu).cycles == 4
    assert simulate(work, gpu=older).cycles == 3


def test_two_operands_of_one_bank_are_read_one_after_the_other() -> None:
    """With an ALU of half the rate: LOP3 reads at 0 and 1, FFMA at 2, exit at 3."""
    logic = replace(alu(2, 0), bank_reads=(2, 1))
    gpu = with_intervals(plain_device(), alu=2)
    assert simulate([logic, fma(3, 1), EXIT], gpu=gpu).cycles == 4
    assert simulate([replace(logic, bank_reads=(1, 1)), fma(3, 1), EXIT], gpu=gpu).cycles == 3


def test_an_instruction_of_a_pipe_of_full_rate_may_read_a_cycle_later() -> None:
    """FFMA reads the even bank at 0 and 1, which LOP3 at 1 reads at 2, the odd one at 1 and 2."""
    logic = replace(alu(2, 0), bank_reads=(1, 2))
    gpu = with_intervals(plain_device(), alu=2)
    assert simulate([fma(3, 1, reads=(2, 1)), EXIT], gpu=gpu).cycles == 2
    assert simulate([fma(3, 1, reads=(2, 1)), logic, fma(4, 1), EXIT], gpu=gpu).cycles == 5
    assert simulate([fma(3, 1, reads=(3, 0)), fma(4, 1), EXIT], gpu=gpu).cycles == 4


def test_a_narrow_pipe_spaces_its_instructions() -> None:
    """With a pipe of half the rate: issue at 0, 2 and 4, exit at 5, over at 6."""
    gpu = with_intervals(plain_device(), alu=2)
    assert simulate([alu(2, 0), alu(3, 0), alu(4, 0), EXIT], gpu=gpu).cycles == 6


def test_a_scheduler_of_two_issues_two_independent_instructions_a_cycle() -> None:
    """Issue at 0, 0, 1 and 1, exit at 2, over at 3; a dependent one still waits for its latency."""
    gpu = with_intervals(plain_device(), alu=0.5)
    gpu = replace(gpu, sm=replace(gpu.sm, issue_width=2))
    assert simulate([alu(2, 0), alu(3, 0), alu(4, 0), alu(5, 0), EXIT], gpu=gpu).cycles == 3
    assert simulate([alu(2, 0), alu(3, 2), EXIT], gpu=gpu).cycles == 5.5


@pytest.mark.parametrize(("ways", "latency"), [(1, 23), (2, 25), (4, 29), (8, 37)])
def test_an_n_way_conflict_delays_the_result_by_two_cycles_a_wavefront(
    ways: int, latency: int
) -> None:
    """The A100's published ladder: 23, 25, 29, 37; then the use, and the exit."""
    assert simulate([LOAD, alu(2, 1), EXIT], cost=ways).cycles == latency + 2


def test_without_bank_conflicts_an_n_way_conflict_costs_nothing() -> None:
    gpu = plain_device().without("bank-conflicts")
    assert simulate([LOAD, alu(2, 1), EXIT], cost=8, gpu=gpu).cycles == 25


@pytest.mark.parametrize("warps", [1, 4, 32])
def test_a_barrier_costs_a_fixed_part_and_one_for_each_warp(warps: int) -> None:
    """W warps of a block come w at a time; the barrier takes them in 2 cycles each, then 20."""
    per_scheduler = -(-warps // 4)
    cycles = simulate([BARRIER, EXIT], warps=warps).cycles
    assert cycles == 1 + 2 * warps + 20 + per_scheduler


def test_without_barriers_no_warp_waits_for_another() -> None:
    gpu = plain_device().without("barriers")
    assert simulate([BARRIER, EXIT], warps=4, gpu=gpu).cycles == 2


def test_a_copy_is_bound_by_bandwidth() -> None:
    """1,000 blocks of a warp fetch 128 bytes each at 16 bytes a cycle: 8,000 cycles and a tail."""
    gpu = plain_device(l1=20, l2=50, dram=100)
    cycles = simulate(
        [FETCH, alu(2, 1), EXIT], gpu=gpu, blocks=1000, resident=32, cost=4, bytes_per_cycle=16
    ).cycles
    assert 8000 <= cycles <= 8000 * 1.2


def test_a_grid_of_tiny_blocks_is_bound_by_the_launch_rate() -> None:
    gpu = with_intervals(plain_device(), block_launch=100)
    assert simulate([alu(2, 0), EXIT], gpu=gpu, blocks=50, resident=32).cycles == 49 * 100 + 2


def test_a_grid_of_tiny_blocks_is_bound_by_the_rate_at_which_blocks_end() -> None:
    gpu = with_intervals(plain_device(block_end=10), block_completion=100)
    assert simulate([alu(2, 0), EXIT], gpu=gpu, blocks=50, resident=32).cycles == 2 + 10 + 49 * 100


def test_the_warps_of_a_block_start_one_by_one() -> None:
    """The last of 4 warps 3 x 5 later."""
    gpu = plain_device(warp_start=5)
    assert simulate([alu(2, 0), EXIT], gpu=gpu, warps=4).cycles == 3 * 5 + 2


def test_what_an_sm_reads_first_in_a_launch_comes_later() -> None:
    """30 cycles, in which other warps start that have it then; a later block reads it in 10."""
    gpu = plain_device(cold_start=30, warp_start=5, special_register=10)
    work = [Instruction("S2R", (2,), (), INT32), alu(3, 2), EXIT]
    one = simulate(work, gpu=gpu).cycles
    assert one == 30 + 10 + 2
    assert simulate(work, gpu=gpu, warps=4).cycles == one
    assert simulate(work, gpu=gpu, blocks=2, resident=1).cycles == one + 10 + 2


def test_an_access_without_a_lane_takes_its_turn_and_its_latency() -> None:
    assert simulate([LOAD, alu(2, 1), EXIT], cost=8, is_on=False).cycles == 23 + 2


@pytest.mark.parametrize("ways", [1, 4, 32])
def test_accesses_of_a_warp_pass_the_data_stage_one_after_the_other(ways: int) -> None:
    """A load begins when the store before it is through: two cycles for each wavefront."""
    assert simulate([STORE, LOAD, alu(2, 1), EXIT], cost=ways).cycles == (
        2 * ways + 23 + 2 * (ways - 1) + 2
    )


@pytest.mark.parametrize(("warps", "turns"), [(1, 1), (2, 1), (3, 2), (4, 2)])
def test_two_warps_take_turns_in_the_data_stage(warps: int, turns: int) -> None:
    """Loads of 16 wavefronts: two at a time go through in 32 cycles, wavefront by wavefront."""
    assert simulate([LOAD, alu(2, 1), EXIT], cost=16, warps=warps).cycles == (
        32 * (turns - 1) + 23 + 2 * 15 + 2
    )


def test_an_access_keeps_the_port_for_each_register_that_it_reads() -> None:
    """At two cycles each: an address, of global memory two registers, and what is stored."""
    gpu = with_intervals(plain_device(), lsu_scheduler=2, store_scheduler=4)
    double = np.dtype(np.float64)
    far, near = replace(GLOBAL, dtype=double), replace(SHARED, dtype=double)
    four = replace(SHARED, count=4)
    read = {
        LOAD: 1,
        replace(LOAD, dst=(1, 2, 3, 4), memory=four): 1,
        STORE: 2,
        replace(STORE, memory=near): 3,
        replace(STORE, src=(0, 1, 2, 3, 4), memory=four): 5,
        FETCH: 2,
        Instruction("STG", (), (0, 1), INT32, memory=GLOBAL): 3,
        Instruction("STG", (), (0, 1), double, memory=far): 4,
        Instruction("ATOMS", (1,), (0, 2), INT32, detail="add", memory=SHARED): 2,
    }
    program = Program("by hand", (*read, EXIT), registers=16)
    ports = [issue.port for issue in issues(program, gpu)]
    assert ports[:-1] == [2 * TICKS * registers for registers in read.values()]


def test_a_wide_load_is_there_a_cycle_later_for_each_further_register() -> None:
    wide = replace(LOAD, dst=(1, 2, 3, 4), memory=replace(SHARED, count=4))
    narrow = simulate([LOAD, alu(5, 1), EXIT], cost=4).cycles
    assert simulate([wide, alu(5, 1), EXIT], cost=4).cycles == narrow + 3


def test_a_special_function_is_ready_late_and_the_unit_takes_one_in_eight_cycles() -> None:
    """Two of one warp: issued at 0 and 1, served at 0 and 8, the second known at 25."""
    special = [Instruction("MUFU", (k,), (0,), INT32) for k in (2, 3)]
    assert simulate([special[0], alu(4, 2), EXIT]).cycles == 17 + 2
    assert simulate([*special, alu(4, 3), EXIT]).cycles == 8 + 17 + 2


def test_barriers_and_special_registers_share_the_address_unit() -> None:
    """Eight warps ask at 0 and 1 for a register that takes 25; the last is served at 14."""
    gpu = with_intervals(plain_device(special_register=25), adu=2)
    work = [Instruction("S2R", (1,), (), INT32), alu(2, 1), EXIT]
    assert simulate(work, gpu=gpu).cycles == 25 + 2
    assert simulate(work, gpu=gpu, warps=8).cycles == 14 + 25 + 2


def test_two_instructions_behind_a_barrier_are_issued_before_the_warp_is_held() -> None:
    """The result of the one behind is ready when the barrier opens: the use waits no longer."""
    behind = simulate([BARRIER, alu(2, 0), alu(3, 2), alu(4, 3), EXIT]).cycles
    bare = simulate([BARRIER, EXIT]).cycles
    assert behind == bare + 1  # the third addition


def test_a_taken_branch_costs_more_than_one_that_is_not() -> None:
    gpu = plain_device(branch=9, control=4)
    work = [Instruction("BRA", target=1), alu(2, 0), EXIT]
    assert simulate(work, gpu=gpu, is_taken=False).cycles == 1 + 4 + 2
    assert simulate(work, gpu=gpu, is_taken=True).cycles == 1 + 9 + 2


def test_a_predicate_is_later_known_to_a_guard_than_to_a_choice() -> None:
    compare = Instruction("ISETP", (2,), (0, 1), INT32)
    choose = Instruction("SEL", (3,), (2, 0, 1), INT32)
    guarded = replace(alu(3, 0), guard=2)
    gpu = plain_device(predicate=13)
    assert simulate([compare, choose, EXIT], gpu=gpu).cycles == 4 + 2
    assert simulate([compare, guarded, EXIT], gpu=gpu).cycles == 13 + 2


def test_the_last_blocks_share_what_the_other_sms_leave() -> None:
    """Of 10 SMs one gets a second block: while that runs alone it has ten times its share."""
    share = MemoryShare(1, 1, {-1: Sources(Source(1.0, 1.0))}, BACK, 1.0, 10, 1)
    assert share.gain(left=2, resident=1) == 1
    assert share.gain(left=1, resident=1) == 10
    gpu = replace(
        plain_device(), bandwidth=replace(plain_device().bandwidth, l2_whole_stores_per_cycle=1e9)
    )
    work = [FETCH, alu(2, 1), EXIT]
    both = simulate(work, gpu=gpu, blocks=2, resident=1, cost=4, share=share).cycles
    alike = simulate(
        work, gpu=gpu, blocks=2, resident=1, cost=4, share=replace(share, busiest=10)
    ).cycles
    assert both < alike


def test_latencies_of_dram_spread_around_their_mean() -> None:
    """Blocks one after the other: their mean is the mean, though none need have it."""
    gpu = plain_device(l2=50, dram=600, dram_least=500)
    blocks = 400
    cycles = simulate([FETCH, alu(2, 1), EXIT], gpu=gpu, blocks=blocks, resident=1).cycles
    assert cycles / blocks == pytest.approx(602, rel=0.02)


def test_the_slowest_of_all_sms_waits_longer_than_the_one_that_is_simulated() -> None:
    """Gamma laws of 4 and of 1, at 1 - 1/8 and 1 - 1/1056: 6.32, 13.13 and ln 132 apart."""
    gpu = plain_device(dram_deviation=100)
    share = MemoryShare(1e9, 1e9, {-1: Sources(Source(1.0, 1.0))}, BACK, 1.0, 132, 132)
    excess = slowest_excess_cycles(gpu, share, simulated=(4, 8), whole=(4, 1056))
    assert excess == pytest.approx(100 * (13.13 - 6.32), rel=0.02)
    one = slowest_excess_cycles(gpu, share, simulated=(1, 8), whole=(1, 1056))
    assert one == pytest.approx(100 * np.log(132), rel=0.04)
    near = replace(share, by_pc={-1: Sources(Source(0.5, 0.5))})
    assert slowest_excess_cycles(gpu, near, (4, 8), (4, 1056)) == pytest.approx(excess / 2)


def test_fetches_that_are_not_played_spread_warps_further() -> None:
    """Of 4 fetches one is simulated: 6.32 - 4 against ln 8 - 1 above the mean are missing."""
    gpu = plain_device(dram_deviation=100)
    share = MemoryShare(1e9, 1e9, {-1: Sources(Source(1.0, 1.0))}, BACK, 1.0, 132, 132)
    all_played, one_played = (slowest_excess_cycles(gpu, share, (k, 8), (4, 1056)) for k in (4, 1))
    missing = (6.32 - 4) - (np.log(8) - 1)
    assert one_played - all_played == pytest.approx(100 * missing, rel=0.05)


def test_stores_go_packet_by_packet_and_a_launch_ends_when_they_have_arrived() -> None:
    """Ten stores of a line and four sectors: the last begins 9 x 5 later, and takes an L2 trip."""
    gpu = with_intervals(plain_device(last_store=50), store_packet=1)
    gpu = replace(gpu, bandwidth=replace(gpu.bandwidth, l2_whole_stores_per_cycle=1e9))
    send = Instruction("STG", (), (0, 1), INT32, memory=GLOBAL)
    assert simulate([*[send] * 10, EXIT], gpu=gpu, cost=4).cycles == 9 * 5 + 50


@pytest.mark.parametrize(
    ("far", "cycles"),
    [(0.0, 0.68 * 10 * 10 + 1 + 50), (1.0, 10 * 10 + 2.25 * 10 + 50 + 25)],
)
def test_a_load_waits_in_the_l2_for_the_stores_before_it(far: float, cycles: float) -> None:
    """Ten of a line and four sectors, five packets at two cycles each, all in the L2 at once.

    They keep the part in which they end for two thirds of that. A load of what lies near takes a
    cycle behind them; what lies far passes as all stores do, and takes 2 1/4 times as long as one.
    """
    gpu = plain_device(l2=50, l2_far=25)
    gpu = replace(gpu, bandwidth=replace(gpu.bandwidth, l2_whole_stores_per_cycle=0.5))
    source = Source(0.0, 0.0, far=far)
    units = Units(gpu, MemoryShare(1e9, 128.0, {-1: Sources(source)}, KEPT, 1, 1, 1))
    store = Access(cost=4, lines=1, is_whole=True)
    for _ in range(10):
        units.serve(Action.GLOBAL_STORE, store, Requester(0, 0), 0, 0)
    load = Access(4, 4, lines=1)
    there, _ = units.serve(Action.GLOBAL_LOAD, load, Requester(0, 1), 0, 0)
    assert there == pytest.approx(cycles * TICKS, abs=10)


@pytest.mark.parametrize(("loads", "longer"), [(1, 0), (25, 0.5 / 8), (50, 0.5), (200, 0.5)])
def test_the_l2_answers_later_the_busier_it_is(loads: int, longer: float) -> None:
    """A load takes it 2 cycles of the 100 that one waits: half of that time and all of it."""
    gpu = plain_device(l2=100)
    gpu = replace(gpu, bandwidth=replace(gpu.bandwidth, l2_latency_growth=0.5))
    near = {-1: Sources(Source(0.0, 0.0))}
    memory = GlobalMemory(gpu, MemoryShare(1e9, 64.0, near, KEPT, 1, 1, 1))
    for number in range(loads):
        there, _ = memory.load(Access(4, 4, lines=1), Requester(0, number), 0)
    busy = 2 * loads
    assert there / TICKS == pytest.approx(busy + 100 * (1 + longer), rel=0.02)


@pytest.mark.parametrize(("stores", "longer"), [(0, 0), (5, 0.049), (200, 0.7)])
def test_the_l2_answers_later_the_more_is_stored(stores: int, longer: float) -> None:
    """Stores begin 10 cycles apart, and count for less and less over the 100 that a load waits.

    So 5 of them keep the L2 busy for 0.413 of that, many for all of it: by the third power, and 1.4
    times as much as loads would.
    """
    waits = []
    for growth in (0.0, 0.5):
        gpu = plain_device(l2=100)
        gpu = replace(gpu, bandwidth=replace(gpu.bandwidth, l2_latency_growth=growth))
        gpu = replace(gpu, bandwidth=replace(gpu.bandwidth, l2_whole_stores_per_cycle=0.5))
        near = {-1: Sources(Source(0.0, 0.0))}
        memory = GlobalMemory(gpu, MemoryShare(1e9, 1e9, near, KEPT, 1, 1, 1))
        for _ in range(stores):
            memory.store(Access(4, lines=1, is_whole=True), 0)
        there, _ = memory.load(Access(4, 4, lines=1), Requester(0, 0), 0)
        waits.append(there / TICKS)
    assert waits[1] - waits[0] == pytest.approx(100 * longer, abs=1)


def test_lines_of_the_l2_are_earlier_or_later_by_their_places() -> None:
    """Single lines lie evenly from 27 cycles before the mean to 27 behind it."""
    gpu = plain_device(l2=300, l2_places=27)
    units = Units(gpu, MemoryShare(1e9, 1e9, {-1: Sources(Source(0.0, 0.0))}, KEPT, 1, 1, 1))
    took = []
    for n in range(1000):
        at = 10**6 * n
        there, _ = units.serve(Action.GLOBAL_LOAD, Access(4, 4, lines=1), Requester(n, 0), at, at)
        took.append((there - at) / TICKS)
    assert np.quantile(took, [0, 0.25, 0.5, 0.75, 1]) == pytest.approx(
        [273, 286.5, 300, 313.5, 327], abs=1
    )


@pytest.mark.parametrize(("l1_hit", "begins"), [(0.0, [0, 0, 64, 64]), (1.0, [0, 0, 16, 16])])
def test_lines_that_the_l1_lacks_go_to_the_l2_one_a_cycle(l1_hit: float, begins: list[int]) -> None:
    """Loads of 32 lines in 8 passes: each keeps one of two slots for twice as long."""
    share = MemoryShare(1e9, 1e9, {-1: Sources(Source(0.0, 0.0, l1_hit))}, KEPT, 1.0, 1, 1)
    units = Units(plain_device(), share)
    load = Access(32, 32, lines=32, wavefronts=8)
    served = [
        units.serve(Action.GLOBAL_LOAD, load, Requester(0, warp), 0, 0)[1] for warp in range(4)
    ]
    assert served == [cycles * TICKS for cycles in begins]


def test_stores_of_parts_of_sectors_are_taken_more_slowly() -> None:
    """Half of the lanes store a word: ten times five packets of ten cycles, not of one."""
    rates = {"l2_whole_stores_per_cycle": 1e9, "l2_stores_per_cycle": 0.1}
    gpu = with_intervals(plain_device(last_store=50), store_packet=1)
    gpu = replace(gpu, bandwidth=replace(gpu.bandwidth, **rates))
    work = [*[Instruction("STG", (), (0, 1), INT32, memory=GLOBAL)] * 10, EXIT]
    assert simulate(work, gpu=gpu, cost=4).cycles == 9 * 5 + 50
    assert simulate(work, gpu=gpu, cost=4, lanes=2**16 - 1).cycles == 9 * 5 * 10 + 50


def test_what_comes_out_of_dram_takes_the_l2_as_long_as_a_store() -> None:
    gpu = plain_device(dram=100)
    gpu = replace(gpu, bandwidth=replace(gpu.bandwidth, l2_whole_stores_per_cycle=0.5))
    share = MemoryShare(1e9, 1e9, {-1: Sources(Source(1.0))}, KEPT, 1, 1, 1)
    units = Units(gpu, share)
    there, _ = units.serve(Action.GLOBAL_LOAD, Access(4, 4, lines=1), Requester(0, 1), 0, 0)
    assert there == (10 + 100) * TICKS


def fence_device(**latencies: float) -> Device:
    """Return a device whose fences take 30 cycles alone, 100 behind a line, 160 behind many."""
    times = {"fence": 30, "fence_of_one_line": 100, "fence_of_many_lines": 160, "fence_overlap": 20}
    return plain_device(**times, **latencies)


def test_a_fence_waits_for_what_was_sent_before_it() -> None:
    """A compiler writes ERRBAR behind it, which takes no time; nor does one within the block."""
    gpu = fence_device(last_store=0)
    send = Instruction("STG", (), (0, 1), INT32, memory=GLOBAL)
    fence, behind = Instruction("MEMBAR", detail="gpu"), Instruction("ERRBAR", detail="block")
    plain = simulate([send, behind, behind, EXIT], gpu=gpu).cycles
    one = simulate([send, fence, behind, EXIT], gpu=gpu)
    assert one.cycles == plain + 100 - 1
    again = simulate([send, fence, fence, behind, EXIT], gpu=gpu)
    assert again.cycles == one.cycles + 30  # nothing was sent between them
    assert simulate([fence, EXIT], gpu=gpu).cycles == simulate([behind, EXIT], gpu=gpu).cycles + 29
    within = Instruction("MEMBAR", detail="block")
    assert simulate([send, within, behind, EXIT], gpu=gpu).cycles == plain


def test_a_fence_is_waited_for_where_a_result_from_before_it_is_read_next() -> None:
    """The result is there after 23 cycles, the fence after 100, wherever it is read behind it."""
    gpu = fence_device(last_store=0)
    send = Instruction("STG", (), (5, 6), INT32, memory=GLOBAL)
    fence = Instruction("MEMBAR", detail="gpu")
    read_next = simulate([send, LOAD, fence, alu(2, 1), EXIT], gpu=gpu)
    read_later = simulate([send, LOAD, fence, alu(2, 0), alu(3, 1), EXIT], gpu=gpu)
    assert read_next.cycles == read_later.cycles - 1
    assert read_next.cycles > 100


@pytest.mark.parametrize(
    ("lines", "at", "done"),
    [
        (1, 0, [100]),
        (3, 0, [130]),  # half of the way from one to many
        (1, 10, [100, 110]),  # so soon after the first: together
        (1, 11, [100, 180]),  # begins 20 before the first is through
        (1, 90, [100, 190]),  # does not wait any more
    ],
)
def test_fences_wait_together_or_one_after_the_other(lines: int, at: int, done: list[int]) -> None:
    fences = Fences(fence_device())
    times = [0, at][: len(done)]
    assert [fences.passed(lines, 0, t * TICKS) for t in times] == [t * TICKS for t in done]


def test_a_third_fence_joins_the_second_that_waits_for_the_first() -> None:
    fences = Fences(fence_device())
    assert [fences.passed(1, 0, t * TICKS) for t in (0, 30, 60)] == [
        100 * TICKS, 180 * TICKS, 180 * TICKS
    ]  # fmt: skip


@pytest.mark.parametrize(("dtype", "of_a_lane"), [("int32", 2), ("float32", 3)])
def test_atomics_of_lanes_on_one_word_go_one_after_the_other(dtype: str, of_a_lane: int) -> None:
    gpu = with_intervals(
        plain_device(global_atomic=100),
        global_atomic_same_address=2,
        global_atomic_float_same_address=3,
    )
    memory = Memory("global", "sum", np.dtype(dtype))
    atomic = Instruction("RED", (), (0, 1), memory.dtype, memory=memory)
    made = simulate([*[atomic] * 10, EXIT], gpu=gpu, cost=32)
    assert made.cycles == 10 * 32 * of_a_lane


def test_an_atomic_on_all_words_of_a_sector_takes_a_fifth_less() -> None:
    """A lane on each word of a sector; of a line that has four of them each pass counts alone."""
    gpu = with_intervals(plain_device(global_atomic=100), global_atomic_same_address=10)
    wide = Memory("global", "sums", INT32)
    row = Instruction("RED", (), (0, 1), INT32, memory=wide)
    made = simulate([*[row] * 10, EXIT], gpu=gpu, lanes=2**8 - 1)
    assert made.cycles == 10 * 10 * 0.8
    assert simulate([*[row] * 10, EXIT], gpu=gpu, lanes=2**4 - 1).cycles == 10 * 10


def test_atomics_on_what_the_l2_lacks_wait_for_dram() -> None:
    """A byte a cycle: for each of ten sectors DRAM moves two of 32 bytes, and one goes back."""
    gpu = with_intervals(plain_device(global_atomic=10), global_atomic_same_address=1)
    stored = {-1: Stored(written_back=1.0, read_first=2.0)}
    share = MemoryShare(1, 1, {-1: Sources(Source(0.0))}, stored, 1.0, 1, 1)
    atomic = Instruction("RED", (), (0, 1), INT32, memory=GLOBAL)
    assert simulate([*[atomic] * 10, EXIT], gpu=gpu, share=share).cycles == 10 * 3 * 32


FAST_STORES = {"l2_stores_per_cycle": 1e4, "l2_whole_stores_per_cycle": 1e4}


def test_what_is_read_beside_atomics_takes_their_units_too() -> None:
    """Of two units each line takes one for a fifth of a pass, a grain out of DRAM for 0.3 more.

    So it does for atomics on one word, whose unit looks up as much as others.
    """
    parts = {"global_atomic_read": 0.2, "global_atomic_miss": 0.3}
    gpu = plain_device(global_atomic=10)
    gpu = with_intervals(gpu, global_atomic_same_address=100, **parts)
    gpu = replace(gpu, bandwidth=replace(gpu.bandwidth, l2_atomic_units=2))
    atomic = Instruction("RED", (), (0, 1), INT32, memory=GLOBAL)
    load = Instruction("LDG", (2,), (0,), INT32, memory=GLOBAL)
    both = dict.fromkeys(range(4), AtomicLoad(2.0))
    for miss, part in ((0.0, 0.2), (1.0, 0.5)):
        share = MemoryShare(
            1e9, 1e9, {-1: Sources(Source(miss, miss))}, BACK, 1.0, 1, 1, atomics=both
        )
        made = simulate([atomic, load, atomic, EXIT], gpu=gpu, share=share)
        assert made.cycles == 2 * 100 / 2 + 100 / 2 * part
        one_word = replace(share, atomics=dict.fromkeys(range(4), AtomicLoad(1.0)))
        made = simulate([atomic, load, atomic, EXIT], gpu=gpu, share=one_word)
        assert made.cycles == 2 * 100 + 100 / 2 * part


@pytest.mark.parametrize(("groups", "cycles"), [((0, 0, 0), 300), ((0, 0, 1), 200)])
def test_atomics_on_different_words_are_updated_side_by_side(
    groups: tuple[int, int, int], cycles: int
) -> None:
    """Three passes of 100 cycles, one after the other on one word; the third free on another."""
    gpu = with_intervals(plain_device(global_atomic=10), global_atomic_same_address=100)
    atomic = Instruction("RED", (), (0, 1), INT32, memory=GLOBAL)
    loads = {pc: AtomicLoad(1.0, 1.0, group) for pc, group in enumerate(groups)}
    share = MemoryShare(1e9, 1e9, {-1: Sources(Source(0.0))}, BACK, 1.0, 1, 1, atomics=loads)
    made = simulate([atomic, atomic, atomic, EXIT], gpu=gpu, share=share)
    assert made.cycles == pytest.approx(cycles, abs=5)


def test_loads_go_on_beside_atomics_whose_old_values_take_longest() -> None:
    """Of two units a value keeps one for a pass longer: a line is looked up meanwhile."""
    gpu = with_intervals(
        plain_device(global_atomic=10), global_atomic_same_address=100, global_atomic_read=0.5
    )
    gpu = replace(gpu, bandwidth=replace(gpu.bandwidth, l2_atomic_units=2))
    atomic = Instruction("ATOM", (3,), (0, 1), INT32, memory=GLOBAL)
    load = Instruction("LDG", (2,), (0,), INT32, memory=GLOBAL)
    share = MemoryShare(
        1e9, 1e9, {-1: Sources(Source(0.0, 0.0))}, BACK, 1.0, 1, 1,
        atomics=dict.fromkeys(range(4), AtomicLoad(2.0)), answering=dict.fromkeys(range(4), 0.5),
    )  # fmt: skip
    made = simulate([atomic, load, atomic, EXIT], gpu=gpu, share=share)
    assert made.cycles == 2 * 100


@pytest.mark.parametrize(("among", "met"), [(1, 1.0), (1e12, 0.0)])
def test_a_copy_of_a_line_is_given_up_for_long_where_stores_to_the_line_meet(
    among: float, met: float
) -> None:
    """By 1000 SMs, of which each takes the L2 for 0.39 cycles; of many lines none is stored to."""
    gpu = replace(plain_device(), bandwidth=replace(plain_device().bandwidth, **FAST_STORES))
    row = Instruction("STG", (), (0, 1), INT32, memory=GLOBAL)
    cycles = []
    for copied in (0.0, 0.5):
        stored = {-1: Stored(copied=copied, among=among)}
        share = MemoryShare(1e9, 1e9, {-1: Sources(Source(0.0))}, stored, 1.0, 1000, 1000)
        cycles.append(simulate([*[row] * 10, EXIT], gpu=gpu, share=share).cycles)
    assert cycles[1] - cycles[0] == pytest.approx(9 * 0.5 * 390 * met, abs=20)


@pytest.mark.parametrize(("operation", "takes"), [("add", 2), ("cas", 4)])
def test_a_pass_of_compare_and_swap_in_shared_memory_has_a_length_of_its_own(
    operation: str, takes: int
) -> None:
    """Of 32 lanes on one word 31 come behind the first."""
    gpu = with_intervals(plain_device(shared_atomic=40), shared_atomic_pass=2, shared_swap_pass=4)
    atomic = Instruction("ATOMS", (1,), (0, 1, 1), INT32, operation, memory=SHARED)
    work = [atomic, alu(2, 1), EXIT]
    assert simulate(work, gpu=gpu, cost=32).cycles == 40 + 31 * takes + 2
    assert simulate(work, gpu=gpu.without("atomics"), cost=32).cycles == 40 + 2


def test_atomics_on_many_lines_go_on_at_the_same_time() -> None:
    gpu = with_intervals(plain_device(global_atomic=100), global_atomic_same_address=2)
    share = MemoryShare(
        1e9,
        1e9,
        {-1: Sources(Source(1.0))},
        BACK,
        1.0,
        1,
        1,
        atomics=dict.fromkeys(range(10), AtomicLoad(4.0)),
    )
    atomic = Instruction("RED", (), (0, 1), INT32, memory=Memory("global", "sum", INT32))
    made = simulate([*[atomic] * 10, EXIT], gpu=gpu, cost=32, share=share)
    assert made.cycles == 10 * 32 * 2 / 4


def test_a_round_robin_serves_warps_in_turn_and_a_greedy_scheduler_the_one_before() -> None:
    """Warps 1, 2 and 4 are ready; the pipe that 2 needs is free at 10 only."""
    free_at = [0] * NO_PIPE + [0, 10]
    ready = [(1, Ready(NO_PIPE)), (2, Ready(NO_PIPE + 1)), (4, Ready(NO_PIPE))]

    def chosen(policy: str, now: int) -> list[int]:
        return [POLICIES[policy](ready, last, free_at, now) for last in (1, 2, 4, 7)]  # type: ignore[arg-type]

    assert chosen("greedy-then-oldest", 10) == [0, 1, 2, 0]
    assert chosen("greedy-then-oldest", 9) == [0, 0, 2, 0]
    assert chosen("greedy-then-youngest", 10) == [0, 1, 2, 2]
    assert chosen("loose-round-robin", 10) == [1, 2, 0, 0]
    assert chosen("loose-round-robin", 9) == [2, 2, 0, 0]


def test_a_policy_decides_who_is_served_first() -> None:
    """Two warps on each scheduler, four instructions each: in turn, or one to its end."""
    served: dict[str, list[int]] = {}
    for policy in POLICIES:
        noted = Spans()
        gpu = plain_device()
        gpu = replace(gpu, sm=replace(gpu.sm, policy=policy))
        simulate([alu(2, 0), alu(3, 0), alu(4, 0), EXIT], warps=8, gpu=gpu, observers=[noted])
        mine = [s for s in noted.seen if s.warp in (0, 4) and s.reason == "selected"]
        served[policy] = [s.warp for s in sorted(mine, key=lambda s: s.start)]
    assert served["greedy-then-oldest"] == [0, 0, 0, 0, 4, 4, 4, 4]
    assert served["greedy-then-youngest"] == [4, 4, 4, 4, 0, 0, 0, 0]
    assert served["loose-round-robin"] == [0, 4, 0, 4, 0, 4, 0, 4]


def test_a_warp_whose_pipe_is_busy_is_passed_over() -> None:
    """The second warp's turn is at 1, but the ALU is free at 2: the first goes on meanwhile.

    A0 at 0, F0 at 1, A4 at 2, exit 0 at 3, F4 at 4, exit 4 at 5, over at 6.
    """
    gpu = with_intervals(plain_device(), alu=2)
    gpu = replace(gpu, sm=replace(gpu.sm, policy="loose-round-robin"))
    work = [alu(2, 0), Instruction("FFMA", (3,), (0,), INT32), EXIT]
    assert simulate(work, warps=5, gpu=gpu).cycles == 6


def test_what_a_warp_waits_for_together_is_there_together() -> None:
    """Two loads in a row have one latency, drawn for both; one after the other, one each."""
    requester, other = Requester(3, 1), Requester(3, 1)
    gpu = plain_device(dram=600, dram_least=300)
    units = Units(gpu, MemoryShare(1e9, 1e9, {-1: Sources(Source(1.0, 1.0))}, BACK, 1.0, 1, 1))
    access = Access(cost=4, fresh=4, lines=1)
    together = [units.serve(Action.GLOBAL_LOAD, access, requester, 0, 0)[0] for _ in range(2)]
    one = units.serve(Action.GLOBAL_LOAD, access, other, 0, 0)[0]
    other.wait()
    two = units.serve(Action.GLOBAL_LOAD, access, other, 0, 0)[0]
    assert together[0] <= together[1] < 1.2 * together[0]
    assert abs(two - one) > abs(together[1] - together[0])


def test_no_more_loads_wait_for_the_l2_than_an_sm_has_room_for() -> None:
    """Of three the last begins when the first is there; one that the L1 serves at once."""
    gpu = plain_device(dram=600, dram_least=600, l1=35)
    gpu = replace(gpu, queue=replace(gpu.queue, load_depth=2))
    units = Units(gpu, MemoryShare(1e9, 1e9, {-1: Sources(Source(1.0, 1.0))}, BACK, 1.0, 1, 1))

    def served(access: Access, warp: int, at: int) -> tuple[int, int]:
        there, begin = units.serve(Action.GLOBAL_LOAD, access, Requester(1, warp), at * TICKS, 0)
        return begin // TICKS, there // TICKS

    fetch, hit = Access(4, 4, lines=1, wavefronts=1), Access(4, 0, lines=1, wavefronts=1)
    begun = [served(fetch, warp, warp * 100) for warp in range(3)]
    assert begun == [(0, 600), (100, 700), (600, 1200)]
    assert served(hit, 3, 300) == (300, 335)


def test_what_the_warp_has_under_way_takes_room_as_well() -> None:
    """The second load of a line waits for the first one's fetch, a third has no room until then."""
    gpu = plain_device(dram=600, dram_least=600, l1=35)
    gpu = replace(gpu, queue=replace(gpu.queue, load_depth=2))
    units = Units(gpu, MemoryShare(1e9, 1e9, {-1: Sources(Source(1.0, 1.0))}, BACK, 1.0, 1, 1))
    warp, again = Requester(1, 0), Access(4, 0, lines=1, wavefronts=1, pends=True)
    accesses = [Access(4, 4, lines=1, wavefronts=1), again, again]
    served = [units.serve(Action.GLOBAL_LOAD, one, warp, 0, 0) for one in accesses]
    assert [there // TICKS for there, _ in served] == [600, 600, 635]


def test_warps_of_a_block_wait_for_lines_near_each_other_almost_equally_long() -> None:
    """Within 2 KB a fifth of what lies above the least is a warp's own; 64 KB apart all is."""
    units = Units(
        plain_device(dram=600, dram_least=300),
        MemoryShare(1e9, 1e9, {-1: Sources(Source(1.0, 1.0))}, BACK, 1.0, 1, 1),
    )
    near, far = Access(4, 4, lines=1, apart=1), Access(4, 4, lines=1, apart=512)
    load = partial(units.serve, Action.GLOBAL_LOAD)

    def apart(access: Access) -> int:
        times = [load(access, Requester(5, warp), 10**9, 0)[0] for warp in range(16)]
        return max(times) - min(times)

    assert 0 < apart(near) < 0.4 * apart(far)


def test_loads_wait_longer_while_dram_writes() -> None:
    """A store that keeps DRAM for half a latency: half a latency longer, where growth is 1."""
    gpu = plain_device(dram=600, dram_least=600)
    gpu = replace(gpu, bandwidth=replace(gpu.bandwidth, dram_latency_growth_by_writes=1.0))
    written = 32 * 10 / 300  # bytes a cycle such that ten sectors take 300 cycles
    load, store = Access(1, 1, lines=1), Access(10, written=10, lines=10)

    def latency(share: MemoryShare) -> int:
        units = Units(gpu, share)
        units.serve(Action.GLOBAL_STORE, store, Requester(0, 0), 0, 0)
        return units.serve(Action.GLOBAL_LOAD, load, Requester(0, 1), 0, 0)[0]

    kept = latency(MemoryShare(written, 1e9, {-1: Sources(Source(1.0, 1.0))}, KEPT, 1.0, 1, 1))
    back = latency(MemoryShare(written, 1e9, {-1: Sources(Source(1.0, 1.0))}, BACK, 1.0, 1, 1))
    assert back - kept == pytest.approx(TICKS * (300 + 300), rel=0.1)


def test_the_last_of_several_loads_waits_longer_in_the_queue_of_a_busy_dram() -> None:
    """Of eight draws the last, where the latency of an idle DRAM is the same for all."""
    gpu = plain_device(dram=600, dram_least=600)
    gpu = replace(gpu, bandwidth=replace(gpu.bandwidth, dram_latency_growth=1.0))
    share = MemoryShare(2.0, 1e9, {-1: Sources(Source(1.0))}, KEPT, 1.0, 1, 1)

    def latency(draws: float) -> float:
        units = Units(gpu, share)
        times = []
        for number in range(100):
            load = Access(8, 8, lines=2, draws=draws)
            there, begin = units.serve(Action.GLOBAL_LOAD, load, Requester(number, 0), 0, 0)
            times.append(there - begin)
        return float(np.mean(times))

    assert latency(8.0) - latency(1.0) > 0.4 * 600 * TICKS


@pytest.mark.parametrize(
    ("source", "lines", "cycles"),
    [
        (Source(0.0, 0.0, far=0.25), 1, 300 + 100 / 4),
        (Source(0.0, 0.0, far=0.25), 8, 300 + 27 * 7 / 9 + 100 * (1 - 0.75**8)),
        (Source(0.0, 0.0, 0.5, 0.5), 3, 40 / 8 + (300 + 27 * 2 / 4) * 7 / 8),
        (Source(0.5, 0.5), 2, (300 + 27 / 3) / 4 + 1000 * 3 / 4),
    ],
)
def test_a_gather_is_as_late_as_the_last_of_its_lines(
    source: Source, lines: int, cycles: float
) -> None:
    """A quarter far: nine in ten of eight lines. One in eight has all of three lines in the L1."""
    gpu = plain_device(l1=40, l2=300, l2_far=100, l2_places=27, dram=1000, dram_least=1000)
    units = Units(gpu, MemoryShare(1e9, 1e9, {-1: Sources(source)}, BACK, 1.0, 1, 1))
    gather = Access(lines, lines, lines=lines, places=float(lines))
    served = [
        units.serve(Action.GLOBAL_LOAD, gather, Requester(n, 0), 10**6 * n, 10**6 * n)
        for n in range(1000)
    ]
    latency = np.mean([there - begun for there, begun in served]) / TICKS
    assert latency == pytest.approx(cycles, rel=0.02)


def test_a_load_does_not_wait_for_the_stores_of_other_schedulers() -> None:
    """The way to the L2 takes five cycles a store. 20 may wait for it, the next 16 keep back."""
    gpu = plain_device(l1=35)
    gpu = replace(gpu, queue=replace(gpu.queue, store_depth=20))
    share = MemoryShare(1e9, 1e9, {-1: Sources(Source(1.0, 1.0))}, BACK, 1.0, 1, 1)
    units = Units(gpu, share)
    hit, store = Access(cost=4, lines=1), Access(cost=4, lines=1)
    begun = 0
    for number in range(20 + 16):
        assert begun < 36 * TICKS or number > 20
        _, begun = units.serve(Action.GLOBAL_STORE, store, Requester(0, number), 0, begun)
    of_others = units.serve(Action.GLOBAL_LOAD, hit, Requester(0, 1), 0, 0)[1]
    own = units.serve(Action.GLOBAL_LOAD, hit, Requester(0, 2), 0, begun)[1]
    assert own == begun == 15 * 5 * TICKS
    assert of_others <= 36 * TICKS


def test_lines_found_in_the_l1_cost_the_passes_that_look_them_up() -> None:
    """Two slots of the data stage take turns. A result is two cycles later for each pass more."""
    units = Units(
        plain_device(l1=35), MemoryShare(1e9, 1e9, {-1: Sources(Source(1.0, 1.0))}, BACK, 1.0, 1, 1)
    )
    gather = Access(cost=32, lines=32, wavefronts=8)
    served = [
        units.serve(Action.GLOBAL_LOAD, gather, Requester(0, warp), 0, 0) for warp in range(4)
    ]
    assert [begun // TICKS for _, begun in served] == [0, 0, 16, 16]
    assert [(there - begun) // TICKS for there, begun in served] == [35 + 2 * 7] * 4


def test_special_registers_do_not_wait_for_constants() -> None:
    """Eight of each at once: two cycles for one of either kind."""
    units = Units(
        plain_device(), MemoryShare(1e9, 1e9, {-1: Sources(Source(1.0, 1.0))}, BACK, 1.0, 1, 1)
    )
    registers, constants = (
        [units.serve(action, Access(10, lines=1), Requester(0, 0), 0, 0)[0] for _ in range(8)]
        for action in (Action.SPECIAL_REGISTER, Action.CONSTANT)
    )
    assert registers == constants == [10 + 2 * k * TICKS for k in range(8)]


def test_constants_that_lanes_disagree_about_are_served_one_after_the_other() -> None:
    """Three constants keep the unit for six cycles, and a warp gets one in eleven."""
    units = Units(
        plain_device(), MemoryShare(1e9, 1e9, {-1: Sources(Source(1.0, 1.0))}, BACK, 1.0, 1, 1)
    )
    found = [
        units.serve(Action.CONSTANT, Access(10, lines=3), Requester(0, 0), 0, 0) for _ in range(2)
    ]
    assert found == [(10 + 22 * TICKS, 0), (10 + (6 + 22) * TICKS, 6 * TICKS)]
    warp = Requester(0, 1)
    again = [units.serve(Action.CONSTANT, Access(10, lines=1), warp, 999, 0) for _ in range(2)]
    assert [there - 999 for there, _ in again] == [10, 10 + 11 * TICKS]


def test_many_warps_of_different_blocks_are_counted_twice_as_fast() -> None:
    """Queues of six at four schedulers hold up to 48 cycles of them; what comes then is quick."""
    units = Units(
        plain_device(), MemoryShare(1e9, 1e9, {-1: Sources(Source(1.0, 1.0))}, BACK, 1.0, 1, 1)
    )
    counted = [0, *(units.arrive(0, again=False) // TICKS for _ in range(40))]
    assert [b - a for a, b in pairwise(counted)] == [2] * 25 + [1] * 15
    assert units.arrive(0, again=True) // TICKS == counted[-1] + 2


def test_a_barrier_keeps_the_data_stage_for_each_warp() -> None:
    """Half a cycle for each, three cycles at least."""
    gpu = with_intervals(plain_device(), barrier=3, barrier_per_warp=0.5)
    share = MemoryShare(1e9, 1e9, {-1: Sources(Source(1.0, 1.0))}, BACK, 1.0, 1, 1)
    for warps, cycles in ((2, 3), (32, 16)):
        units = Units(gpu, share)
        units.release(0, warps)
        begun = units.serve(Action.SHARED_LOAD, Access(1), Requester(0, 0), 0, 0)[1]
        assert begun == cycles * TICKS


def test_a_wait_counted_by_the_compiler_comes_after_an_unexpected_one_as_well() -> None:
    """A branch that needs a predicate 13 cycles later, with a wait for a load between them."""
    gpu = plain_device(predicate=13)
    decide = Instruction("ISETP", (7,), (0, 0), INT32, detail="lt")
    leave = replace(EXIT, guard=7)
    alone = simulate([decide, leave, EXIT], gpu=gpu).cycles
    behind = simulate([LOAD, decide, alu(2, 1), leave, EXIT], gpu=gpu).cycles
    assert alone == 13 + 2
    assert behind == 23 + 12 + 2


def test_a_line_of_which_little_is_wanted_takes_the_l2_as_long_as_a_request() -> None:
    """At 56 bytes a cycle: 32 sectors in 32 lines keep it for 32 cycles, in 8 lines for 18."""
    units = Units(
        plain_device(l2=200),
        MemoryShare(1e9, 56.0, {-1: Sources(Source(0.0, 0.0))}, BACK, 1.0, 1, 1),
    )
    load = partial(units.serve, Action.GLOBAL_LOAD)
    apart = Access(32, 32, lines=32)
    first = load(apart, Requester(0, 0), 10_000 * TICKS, 0)[0]
    second = load(apart, Requester(0, 1), 10_000 * TICKS, 0)[0]
    assert second - first == pytest.approx(32 * TICKS, rel=0.1)
    together = Access(32, 32, lines=8)
    third = load(together, Requester(0, 2), 10_000 * TICKS, 0)[0]
    assert third - second == pytest.approx(32 * 32 / 56 * TICKS, rel=0.1)


def test_lines_whose_sectors_are_there_are_not_asked_of_the_l2() -> None:
    """Of 32 lines two are fresh, at 56 bytes a cycle: a cycle for each."""
    share = MemoryShare(1e9, 56.0, {-1: Sources(Source(0.0, 0.0))}, BACK, 1.0, 1, 1)
    units = Units(plain_device(l2=200), share)
    load = partial(units.serve, Action.GLOBAL_LOAD)
    few = Access(32, 2, lines=32, wavefronts=1)
    first, second = (load(few, Requester(0, warp), 10_000 * TICKS, 0)[0] for warp in range(2))
    assert second - first == pytest.approx(2 * TICKS, abs=TICKS)


def test_of_a_request_those_lines_draw_a_latency_that_come_out_of_dram() -> None:
    """Sixteen draw, or few of them: the last of sixteen comes later."""
    gpu = plain_device(l2=1, dram=600, dram_least=500)

    def mean(missing: float) -> float:
        share = MemoryShare(1e9, 1e9, {-1: Sources(Source(missing, missing))}, BACK, 1.0, 1, 1)
        load = partial(Units(gpu, share).serve, Action.GLOBAL_LOAD)
        access = Access(16, 16, lines=16, wavefronts=1, draws=16.0)
        times = [load(access, Requester(warp, 0), warp * 10**6, 0)[0] for warp in range(256)]
        late = [there - warp * 10**6 for warp, there in enumerate(times)]
        return float(np.mean([cycles / TICKS for cycles in late if cycles > 400 * TICKS]))

    assert mean(1.0) - 500 > 3 * 100
    assert mean(0.03) - 500 < 2 * 100


def test_what_earlier_blocks_brought_into_the_l1_is_near() -> None:
    """Half of a table's sectors: every second fetch of a later block, none of a first one."""
    table = Source(0.0, 1.0, l1_hit=0.5)
    share = MemoryShare(1e9, 1e9, {-1: Sources(Source(1.0)), 7: Sources(table)}, BACK, 1.0, 1, 1)
    units = Units(plain_device(l1=30, l2=200, dram=600, dram_least=600), share)
    access = Access(1, 1, lines=1, pc=7)

    def latencies(*, is_first: bool) -> list[int]:
        warps = [Requester(0, warp, is_first) for warp in range(8)]
        load = partial(units.serve, Action.GLOBAL_LOAD)
        later = 0 if is_first else 10**8
        times = [load(access, warp, later + k * 10**6, 0) for k, warp in enumerate(warps)]
        return sorted((there - begin) // TICKS for there, begin in times)

    assert set(latencies(is_first=True)) == {600}
    assert latencies(is_first=False) == [30] * 4 + [200] * 4


def test_blocks_wait_for_room() -> None:
    gpu = plain_device(block_end=10)
    assert simulate([alu(2, 0), EXIT], gpu=gpu, blocks=3, resident=1).cycles == 3 * (2 + 10)


MIXED = [LOAD, alu(2, 1), STORE, BARRIER, FETCH, alu(3, 1), alu(4, 3), BARRIER, EXIT]


def test_the_spans_of_a_warp_tile_its_life() -> None:
    noted = Spans()
    simulate(MIXED, warps=6, blocks=3, resident=2, observers=[noted])
    lives: dict[tuple[int, int], list[Span]] = {}
    for span in noted.seen:
        lives.setdefault((span.block, span.warp), []).append(span)
    assert len(lives) == 18
    for life in lives.values():
        for one, following in pairwise(life):
            assert one.end == following.start
            assert one.reason in STALLS


def test_stalls_add_up_to_all_warp_cycles_and_so_do_lines() -> None:
    noted = Spans()
    outcome = simulate(MIXED, warps=6, blocks=3, resident=2, observers=[noted])
    lived = sum(span.end - span.start for span in noted.seen)
    assert sum(outcome.stalls) / 16 == lived
    assert sum(outcome.by_pc.values()) == sum(outcome.stalls)
    assert outcome.instructions == 6 * 3 * len(MIXED)


def test_an_outcome_that_is_kept_has_its_sums_and_few_steps() -> None:
    when_asked, at_once = (simulate(MIXED, warps=6, blocks=3) for _ in range(2))
    when_asked.let_go()
    at_once.let_go(most_steps=1)
    assert when_asked.runs
    assert not at_once.runs
    assert sums(at_once) == sums(when_asked)


def sums(outcome: Outcome) -> list[object]:
    reasons = {pc: ticks.tolist() for pc, ticks in outcome.reasons.items()}
    return [outcome, outcome.stalls, outcome.by_pc, reasons]


def test_ticks_by_pc_and_by_step_have_the_same_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warps without extrapolated iterations share a table by pc; so does the order of its pcs."""
    by_pc = simulate(MIXED, warps=6, blocks=3)
    assert len({id(runs.spent) for runs in by_pc.runs}) == 1
    monkeypatch.setattr(multiprocessor, "by_pc_if_exact", lambda _: None)
    by_step = simulate(MIXED, warps=6, blocks=3)
    assert not any(runs.by_pc for runs in by_step.runs)
    assert sums(by_pc) == sums(by_step)
    assert list(by_pc.by_pc) == list(by_step.by_pc)


class Moments(SpanObserver):
    """Keeps what happens to blocks, in order, with the cycle."""

    def __init__(self) -> None:
        self.log: list[tuple[str, int, float]] = []

    def begin(self, blocks: int) -> None:
        self.log = [("begin", blocks, 0)]

    def block_started(self, block: int, cycle: float) -> None:
        self.log.append(("start", block, cycle))

    def barrier_opened(self, block: int, cycle: float) -> None:
        self.log.append(("open", block, cycle))

    def block_ended(self, block: int, cycle: float) -> None:
        self.log.append(("end", block, cycle))

    def end(self, cycles: float) -> None:
        self.log.append(("all", -1, cycles))


def test_observers_see_blocks_start_meet_and_end() -> None:
    """A warp comes to its barrier at 1, is counted in 2, and waits 20 more; exit at 23."""
    moments = Moments()
    simulate([BARRIER, EXIT], blocks=2, resident=1, observers=[moments])
    assert moments.log == [
        ("begin", 2, 0),
        *(("start", 0, 0), ("open", 0, 23), ("end", 0, 24)),
        *(("start", 1, 24), ("open", 1, 47), ("end", 1, 48)),
        ("all", -1, 48),
    ]


def test_an_observer_that_overrides_nothing_changes_nothing() -> None:
    watched = simulate(MIXED, warps=6, blocks=3, observers=[SpanObserver()])
    assert sums(watched) == sums(simulate(MIXED, warps=6, blocks=3))


def test_the_same_input_gives_the_same_time() -> None:
    first, second = (simulate(MIXED, warps=7, blocks=9) for _ in range(2))
    assert sums(first) == sums(second)
