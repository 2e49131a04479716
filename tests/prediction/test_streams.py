"""What streams tell the clock of memory: lines near each other, and what is written."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim import cuda
from gpusim.codegen.programs import prepare
from gpusim.gpu import memory
from gpusim.gpu.device import load
from gpusim.launch.arguments import array_spec
from gpusim.launch.grid import ComputeCapability
from gpusim.prediction.clock.issue import issues
from gpusim.prediction.clock.step_builder import steps_of
from gpusim.prediction.clock.steps import Action
from gpusim.prediction.clock.warp_steps import WarpSteps
from gpusim.prediction.memory import draws
from gpusim.prediction.streams import BlockStream, classify, distances

LANES = np.arange(32)
EVERY = np.ones(32, dtype=bool)
CC = ComputeCapability(9, 0)


def stream_of(kernel: cuda.Kernel, *args: object, grid: int = 4, block: int = 64) -> BlockStream:
    """Return the stream of the blocks, which all do the same."""
    (only,) = classify(prepare(kernel[grid, block], args, CC)).classes
    return only.stream


def warp_steps(kernel: cuda.Kernel, *args: object) -> WarpSteps:
    program = prepare(kernel[4, 64], args, CC).program
    return steps_of(stream_of(kernel, *args).warps[0], issues(program, load("h200")))


@pytest.mark.parametrize(
    ("apart", "lines"),
    [(4, 0), (8, 25), (16, 3 * 25), (128, 31 * 25), (2048, 31 * 60), (8192, 31 * 80)],
)
def test_lines_of_an_access_count_by_how_far_apart_they_are(apart: int, lines: int) -> None:
    found = memory.coalesced(4096 + LANES * apart, EVERY)
    gaps = distances.within(found.ordered)
    assert (int(found.lowest), int(draws.of_further_lines(gaps))) == (32, lines)


def test_an_access_without_a_lane_has_no_line() -> None:
    found = memory.coalesced(LANES * 4096, ~EVERY)
    assert (int(found.lowest), int(distances.within(found.ordered))) == (-1, 0)


def test_a_first_line_counts_for_more_where_both_of_its_halves_are_wanted() -> None:
    assert [draws.of_first_access(sectors, 1) for sectors in (1, 2, 3, 4)] == [100, 100, 120, 120]
    assert draws.of_first_access(32, 32) == 100


def test_the_nearest_load_before_counts_if_it_is_under_way() -> None:
    """Lines 0, 1000, 1004, 4 and 4: that is near the first, and at last the same."""
    packed = distances.to_earlier(np.array([0, -1, 1000, 1004, 4, 4]), np.zeros(6))
    assert [draws.of_another_access(packed[4], np.array(pending)) for pending in (1, 2, 3)] == [
        80,
        80,
        25,
    ]
    assert draws.of_another_access(packed[3], np.array(1)) == 25
    assert draws.of_another_access(packed[5], np.array(1)) == 0


@pytest.mark.parametrize(("block", "apart"), [((64, 1), 2), ((32, 2), 8)])
def test_a_load_says_how_far_that_of_the_next_warp_lies(block: tuple[int, int], apart: int) -> None:
    """Pairs of words: a warp's two lines, and the same of the row below, which lies far away."""

    @cuda.jit
    def kernel(a, out):
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x + 4096 * cuda.threadIdx.y
        out[i] = a[2 * i]

    arrays = array_spec(2**20, "float32"), array_spec(2**20, "float32")
    program = prepare(kernel[4, block], arrays, CC)
    (only,) = classify(program).classes
    is_load = np.array([row.op == "LDG" for row in program.program.instructions])
    found = [warp.apart[is_load[warp.pc]].tolist() for warp in only.stream.warps]
    assert found == [[apart], [apart]]


def test_warps_of_which_none_comes_next_lie_apart() -> None:
    """Of blocks of two warps the first has lines 5 and 7, the second's other warp is off."""
    lowest, none = np.array([[5, 7, 9, -1]]), np.zeros((1, 4), dtype=np.int64)
    assert distances.to_next_warp(lowest, none, np.array([True, False, True])).tolist() == [
        [2, 2, 8, 8]
    ]


def test_warps_whose_lanes_are_far_from_each_other_lie_apart() -> None:
    """Their lowest lines are neighbours; the first warp's other line is 1 MB away."""
    found = memory.coalesced(
        np.stack([4096 + LANES // 31 * 2**20, 4224 + LANES]), np.stack([EVERY, EVERY])
    )
    gaps = distances.within(found.ordered)
    assert distances.to_next_warp(found.lowest, gaps, np.array([True])).tolist() == [8, 1]


def test_loads_from_two_arrays_have_latencies_of_their_own() -> None:
    @cuda.jit
    def kernel(a, b, out):
        i = cuda.grid(1)
        out[i] = a[i] + a[i + 64] + b[i]

    arrays = [array_spec(2**20, "float32") for _ in range(3)]
    found = warp_steps(kernel, *arrays)
    found_draws = [step.access.draws for step in found.steps if step.action is Action.GLOBAL_LOAD]
    assert found_draws == pytest.approx([1.2, 1.45, 2.25])


def test_loads_that_were_waited_for_do_not_count() -> None:
    @cuda.jit
    def kernel(a, out):
        i = cuda.grid(1)
        out[i] = a[a[i]]

    numbers = np.arange(256, dtype=np.int32)
    found = warp_steps(kernel, numbers, array_spec(256, "int32"))
    found_draws = [step.access.draws for step in found.steps if step.action is Action.GLOBAL_LOAD]
    assert found_draws == [1.2, 1.2]


def test_loads_of_what_is_under_way_pend_until_it_was_waited_for() -> None:
    """The second of a pair pends on the first one's line; behind a wait it does not."""

    @cuda.jit
    def kernel(a, out):
        i = cuda.grid(1)
        first = a[i + 32] + a[i + 33]
        out[i] = a[i + 34 + first]

    numbers = np.zeros(512, dtype=np.int32)
    found = warp_steps(kernel, numbers, array_spec(256, "int32"))
    pends = [step.access.pends for step in found.steps if step.action is Action.GLOBAL_LOAD]
    assert pends == [False, True, False]


def test_what_is_read_and_then_written_counts_as_both() -> None:
    @cuda.jit
    def kernel(a):
        i = cuda.grid(1)
        a[i] = a[i] + 1

    stream = stream_of(kernel, array_spec(256, "int32"))
    assert (stream.read_sectors, stream.written_sectors, stream.fresh_sectors) == (8, 8, 8)


def test_what_is_written_twice_counts_once() -> None:
    @cuda.jit
    def kernel(a):
        i = cuda.grid(1)
        a[i] = 1
        cuda.syncthreads()
        a[i] = 2

    stream = stream_of(kernel, array_spec(256, "int32"))
    assert (stream.read_sectors, stream.written_sectors, stream.fresh_sectors) == (0, 8, 8)


@pytest.mark.parametrize(("apart", "passes"), [(1, 1), (32, 32), (33, 8)])
def test_loads_pass_the_data_stage_by_banks_and_stores_by_lines(apart: int, passes: int) -> None:
    @cuda.jit
    def kernel(a, out):
        i = cuda.threadIdx.x * apart
        out[i] = a[i]

    arrays = array_spec(64 * apart, "int32"), array_spec(64 * apart, "int32")
    stream = stream_of(kernel, *arrays).warps[0]
    lines = min(32, apart)
    asked = stream.lines == lines
    assert stream.lines[asked].tolist() == [lines, lines]
    assert stream.wavefronts[asked].tolist() == [passes, lines]


@pytest.mark.parametrize(
    ("dtype", "apart", "major", "stored", "passes"),
    [
        ("int32", 0, 9, (4, 1, 1), 1),
        ("float64", 0, 9, (8, 2, 2), 2),
        ("int32", 1, 9, (32, 32, 32), 8),
        ("int32", 0, 3, (0, 0, 1), 1),
    ],
)
def test_local_memory_is_asked_for_sectors_and_lines_as_global_memory_is(
    dtype: str, apart: int, major: int, stored: tuple[int, int, int], passes: int
) -> None:
    """Sectors, lines and wavefronts of a store; of a load, which has four tags in a wavefront.

    Before compute capability 7.0 both stay in the L1.

    Lanes that index alike share a line for each word; 33 words apart, each has a line of its own.
    """

    @cuda.jit
    def kernel(values, at, further):
        row = cuda.local.array(64, dtype)
        i = cuda.threadIdx.x % 32 * apart + at
        row[i] = values[cuda.grid(1)]
        values[cuda.grid(1)] = row[i + further]

    arguments = array_spec(256, dtype), np.int32(3), np.int32(1)
    cc = ComputeCapability(major, 0)
    prepared = prepare(kernel[4, 64], arguments, cc, code="lowering")
    stream = classify(prepared).classes[0].stream.warps[0]
    ops = np.array([row.op for row in prepared.program.instructions])[stream.pc]
    asked = np.stack([stream.cost, stream.lines, stream.wavefronts], axis=1)
    assert asked[ops == "STL"].tolist() == [list(stored)]
    assert asked[ops == "LDL"].tolist() == [[stored[0], stored[1] if major > 6 else 0, passes]]
    assert stream.written[ops == "STL"].tolist() == [stored[0]]
    assert not stream.fresh[ops == "LDL"].any()


@pytest.mark.parametrize(("dtype", "passes"), [("int32", 1), ("float32", 32)])
def test_integers_of_a_warp_on_one_address_are_added_up_before(dtype: str, passes: int) -> None:
    @cuda.jit
    def kernel(out):
        cuda.atomic.add(out, 0, 1)

    stream = stream_of(kernel, array_spec(1, dtype)).warps[0]
    assert (stream.cost.max(), stream.lines.max()) == (passes, 1)


def test_atomics_on_words_of_a_line_come_to_its_sectors() -> None:
    @cuda.jit
    def kernel(out):
        cuda.atomic.add(out, cuda.threadIdx.x % 32, cuda.threadIdx.x)

    stream = stream_of(kernel, array_spec(32, "int32")).warps[0]
    assert (stream.cost.max(), stream.lines.max()) == (4, 4)


@cuda.jit
def sum_by_last(x, partials, arrived, out):
    is_last = cuda.shared.array(1, np.int32)
    if cuda.threadIdx.x == 0:
        partials[cuda.blockIdx.x] = x[cuda.blockIdx.x * 64]
        cuda.threadfence()
        is_last[0] = cuda.atomic.add(arrived, 0, 1) == cuda.gridDim.x - 1
    cuda.syncthreads()
    if is_last[0]:
        total = np.float32(0)
        for k in range(cuda.threadIdx.x, cuda.gridDim.x, 64):
            total += partials[k]
        out[cuda.threadIdx.x] = total


@cuda.jit
def keep(x, kept, count):
    i = cuda.grid(1)
    if x[i] > 0:
        kept[cuda.atomic.add(count, 0, 1)] = x[i]


def test_the_block_that_comes_last_does_what_it_does_then() -> None:
    """Each of 64 threads adds up 4 of 256 sums; the arrays stay as they are."""
    x, partials = np.ones(64 * 256, dtype=np.float32), np.zeros(256, dtype=np.float32)
    arrived, out = np.zeros(1, dtype=np.int32), np.zeros(64, dtype=np.float32)
    prepared = prepare(sum_by_last[256, 64], (x, partials, arrived, out), CC)
    found = classify(prepared)
    assert [one.ranges for one in found.classes] == [((0, 254),), ((255, 255),)]
    others, last = (one.stream.instructions for one in found.classes)
    assert last > others + 2 * 4
    assert not arrived.any()
    assert not partials.any()


def test_a_counter_of_places_is_none_of_blocks() -> None:
    x, count = np.ones(64 * 8, dtype=np.float32), np.zeros(1, dtype=np.int32)
    prepared = prepare(keep[8, 64], (x, np.zeros(64 * 8, dtype=np.float32), count), CC)
    assert len(classify(prepared).classes) == 1
