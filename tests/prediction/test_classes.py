"""Classes of blocks: edges along the axes of a grid, and samples of blocks that all differ."""

from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.codegen.programs import prepare
from gpusim.cuda import Kernel
from gpusim.launch.arguments import array_spec
from gpusim.launch.grid import ComputeCapability
from gpusim.prediction.streams import Classes, classify
from gpusim.prediction.streams.cells import Cells, strata
from gpusim.prediction.workload import Counted, representatives

Size = int | tuple[int, ...]


CC = ComputeCapability(9, 0)


def classes_of(kernel: Kernel, grid: Size, block: Size, *args: object) -> Classes:
    return classify(prepare(kernel[grid, block], args, CC))


def instructions_of(found: Classes) -> int:
    return sum(one.blocks * one.stream.instructions for one in found.classes)


def counted(kernel: Kernel, grid: Size, block: Size, *args: object) -> int:
    """Return the instructions of all blocks, each of which is run."""
    return int(gpusim.trace(kernel[grid, block], *args).counters["instructions"])


@cuda.jit
def inside(out, width, height, depth):
    x, y, z = cuda.grid(3)
    if x > 0 and y > 0 and z > 0 and x < width - 1 and y < height - 1 and z < depth - 1:
        out[(z * height + y) * width + x] = 1


def test_edges_of_three_axes_are_products_of_ranges() -> None:
    """9 x 8 x 7 blocks of 8 x 2 x 2 threads; (1 + 7 + 1) x (1 + 6 + 1) x (1 + 5 + 1) of them."""
    size = 72, 16, 14
    out = array_spec(72 * 16 * 14, "int32")
    found = classes_of(inside, (9, 8, 7), (8, 2, 2), out, *size)
    zeros = np.zeros(72 * 16 * 14, np.int32)
    assert not found.is_sampled
    assert found.probed < 9 * 8 * 7 / 4
    assert max(one.blocks for one in found.classes) == 7 * 6 * 5
    assert sum(one.blocks for one in found.classes) == 9 * 8 * 7
    assert instructions_of(found) == counted(inside, (9, 8, 7), (8, 2, 2), zeros, *size)


@cuda.jit
def rounds_of_columns(out):
    total = 0
    for k in range(cuda.blockIdx.y % 2 * 40):
        total += k * k % 7
    out[cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x] = total


def test_blocks_that_differ_by_turns_are_sampled_and_not_taken_for_ranges() -> None:
    grid, size = (64, 64), 64 * 64
    found = classes_of(rounds_of_columns, grid, 32, array_spec(size, "int32"))
    whole = counted(rounds_of_columns, grid, 32, np.zeros(size, np.int32))
    assert found.is_sampled
    assert instructions_of(found) == pytest.approx(whole, rel=4 * found.sampling_error)
    assert 0 < found.sampling_error < 0.15


@cuda.jit
def rounds_of_elements(often, out):
    total = 0
    for k in range(often[cuda.blockIdx.x]):
        total += k * k % 7
    out[cuda.blockIdx.x] = total


def test_more_blocks_are_run_where_they_differ_more() -> None:
    rng = np.random.default_rng(1)
    few, many = rng.integers(30, 34, 4096), rng.integers(0, 64, 4096)
    found = []
    for often in (few, many):
        arguments = often.astype(np.int32), np.zeros(4096, np.int32)
        found.append(classes_of(rounds_of_elements, 4096, 32, *arguments))
        whole = counted(rounds_of_elements, 4096, 32, *arguments)
        error = found[-1].sampling_error
        assert instructions_of(found[-1]) == pytest.approx(whole, rel=4 * error)
    assert 2 * found[0].probed < found[1].probed


def test_small_grids_are_run_whole_where_all_blocks_differ() -> None:
    often = np.arange(200, dtype=np.int32)
    found = classes_of(rounds_of_elements, 200, 32, often, np.zeros(200, np.int32))
    assert (len(found.classes), found.is_sampled, found.sampling_error) == (200, False, 0.0)


def test_grids_of_which_a_sample_would_be_more_than_all_blocks_are_run_whole() -> None:
    often = np.zeros(300, dtype=np.int32)
    often[::7] = 100
    found = classes_of(rounds_of_elements, 300, 32, often, np.zeros(300, np.int32))
    assert (found.probed, found.is_sampled, found.sampling_error) == (300, False, 0.0)


def test_where_an_sm_gets_too_many_different_blocks_those_about_the_mean_stand_for_others() -> None:
    """Six blocks with 1 to 6 rounds: three may be played, each for two."""
    often = np.arange(1, 7, dtype=np.int32)
    found = classes_of(rounds_of_elements, 6, 32, often, np.zeros(6, np.int32))
    streams = [one.stream for one in found.classes]
    each = sum(stream.steps(32) for stream in streams) / 6
    own, steps = [(stream, 1) for stream in streams], 3.5 * each
    assert numbers_played(own, resident=5, steps=steps) == [0, 0, 2, 2, 4, 4]
    assert numbers_played(own[1:4], resident=1, steps=steps) == [0, 1, 2]


def test_an_sm_whose_blocks_begin_together_ends_with_the_longest_which_is_played_itself() -> None:
    """Rounds are 10, 20 ... 50 and 200: of blocks that all begin at once 200 is not the mean's."""
    often = np.array([10, 20, 30, 40, 50, 200], np.int32)
    found = classes_of(rounds_of_elements, 6, 32, often, np.zeros(6, np.int32))
    own = [(one.stream, 1) for one in found.classes]
    assert numbers_played(own, resident=6, steps=1) == [2, 2, 2, 2, 2, 5]
    assert numbers_played(own, resident=5, steps=1) == [4, 4, 4, 4, 4, 4]


def numbers_played(own: list[Counted], resident: int, steps: float) -> list[int]:
    """Return for each of an SM's blocks, by their places among these, the one that is played."""
    streams = [stream for stream, _ in own]
    played = representatives(own, 32, resident, steps)
    return [streams.index(played[id(stream)]) for stream in streams]


def test_a_sample_has_a_block_of_each_cell_and_keeps_it_when_cells_are_halved() -> None:
    parts = strata((7, 50, 3))
    for _ in range(4):
        finer = parts.halved()
        cells = finer.cells.of(finer.chosen.ravel())
        assert len(set(zip(*map(np.ndarray.tolist, cells), strict=True))) == len(finer)
        assert set(parts.chosen.ravel().tolist()) <= set(finer.chosen.ravel().tolist())
        parts = finer
    assert len(parts) == 96


def test_what_lies_in_line_has_no_error_and_what_does_not_has_one() -> None:
    """Out of line by 6 in four of four places: 6 * 6 / 6 = 6 a cell, of 6 cells in 24 blocks."""
    parts = strata((24, 1, 1))
    assert parts.standard_error(np.arange(6.0).reshape(1, 1, 6)) == 0.0
    zigzag = np.array([0.0, 3.0, 0.0, 3.0, 0.0, 3.0]).reshape(1, 1, 6)
    assert parts.standard_error(zigzag) == pytest.approx((6 / 6 * 18 / 24) ** 0.5 / 1.5)


def test_values_of_boxes_come_in_the_order_of_block_numbers() -> None:
    """A grid of 4 by 2 blocks in four boxes, of which the left ones are alike."""
    cells = Cells((4, 2, 1), ((0, 2), (0, 1), (0,)))
    found = Cells.in_order(*cells.merged(np.array([[[5, 6], [5, 7]]])), most=4)
    assert found is not None
    assert [part.tolist() for part in found] == [[0, 2, 4, 6], [5, 6, 5, 7]]
    assert cells.in_order(np.array([[[5, 6], [5, 7]]]), most=3) is None
    whole, same = cells.merged(np.full((1, 2, 2), 8))
    assert (whole.begins, same.tolist()) == (((0,), (0,), (0,)), [[[8]]])


@cuda.jit
def second_comes_on(visits, out, words):
    i = cuda.grid(1)
    if cuda.atomic.add(visits, i % words, 1) == 1:
        total = 0
        for k in range(i % 40):
            total += k * k % 7
        out[i] = total


@pytest.mark.parametrize(("blocks", "error"), [(40, 0.0), (1600, 0.02)])
def test_blocks_find_what_atomics_of_blocks_before_them_left(blocks: int, error: float) -> None:
    """Of two threads that come to a word the second goes on: those of the grid's later half."""

    def given() -> tuple[object, ...]:
        return np.zeros(32 * blocks, np.int32), np.zeros(64 * blocks, np.int32), 32 * blocks

    found = classes_of(second_comes_on, blocks, 64, *given())
    whole = counted(second_comes_on, blocks, 64, *given())
    assert instructions_of(found) == pytest.approx(whole, rel=error, abs=0)


@cuda.jit
def halves(visits, words):
    node = words - 1 + cuda.grid(1) // 2
    while node >= 0 and cuda.atomic.add(visits, node, 1) == 1:
        node = (node + 1) // 2 - 1


def test_the_last_block_ends_what_all_others_have_begun() -> None:
    """Two come to each node of a tree, the second goes on: one of 2^14 threads up all 14 levels."""
    prepared = prepare(halves[256, 64], (np.zeros(2**14, np.int32), 2**13), CC)
    atomic = next(pc for pc, row in enumerate(prepared.program.instructions) if row.memory)
    found = classify(prepared)
    levels = [int(warp.times[warp.pc == atomic].sum()) for warp in found.of(255).warps]
    assert found.classes[-1].ranges == ((255, 255),)
    assert max(levels) == 14


COUNTED_IN_BYTES = """
__global__ void take(char *bytes, unsigned *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = atomicAdd((unsigned *)(bytes + i / 64 * 4), 1u);
}
"""


def test_words_that_are_counted_in_an_array_of_bytes_are_no_counters_of_all_blocks() -> None:
    """512 blocks, more than a byte can count, each on a word of its own: all do the same."""
    arrays = np.zeros(4 * 512, np.uint8), np.zeros(64 * 512, np.uint32)
    found = classes_of(gpusim.cuda_source(COUNTED_IN_BYTES)["take"], 512, 64, *arrays)
    assert {one.stream.instructions for one in found.classes} == {found.of(0).instructions}
