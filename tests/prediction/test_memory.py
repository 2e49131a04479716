"""What one SM has of the memory hierarchy, from the addresses that a grid touches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusim import cuda, predict
from gpusim.codegen.programs import prepare
from gpusim.gpu import device
from gpusim.isa.ops import OPS
from gpusim.launch.arguments import ArraySpec, array_spec
from gpusim.launch.configured import ConfiguredKernel
from gpusim.launch.grid import ComputeCapability, Launch
from gpusim.prediction.locality import patterns
from gpusim.prediction.locality.patterns import Pattern, merged
from gpusim.prediction.locality.pieces import Pieces, pieces_of
from gpusim.prediction.locality.random_access import (
    Asked,
    Rates,
    by_random_access,
    least_rates,
    rates,
)
from gpusim.prediction.locality.sample import Sample, sampled
from gpusim.prediction.locality.schedule import Schedule
from gpusim.prediction.locality.wanted import Wanted
from gpusim.prediction.memory import MemoryShare, memory_share
from gpusim.prediction.memory.dram import Dram
from gpusim.prediction.memory.miss_ratios import Source
from gpusim.prediction.memory.share import l1_left
from gpusim.prediction.streams import classify
from gpusim.prediction.streams.stretches import COLUMNS, Stretches
from gpusim.typing import Array

pytestmark = pytest.mark.usefixtures("both_evaluators")


H200 = device.load("h200")
CC = ComputeCapability(9, 0)
BLOCKS = 528  # four for each SM


@cuda.jit
def read_all(a, out):
    if a[cuda.grid(1)] == 12345:
        out[0] = 1


@cuda.jit
def copy(a, out):
    i = cuda.grid(1)
    out[i] = a[i]


@cuda.jit
def look_up(table, out):
    out[cuda.grid(1)] = table[cuda.threadIdx.x]


def share_of(
    kernel: cuda.Kernel, first: int, *, l2: str = "cold", resident: int = 4, blocks: int = BLOCKS
) -> MemoryShare:
    """Return the share of an SM where blocks of 64 threads run a kernel on so many int32."""
    arrays = array_spec(first, "int32"), array_spec(64 * blocks, "int32")
    return share_from(kernel[blocks, 64], arrays, l2=l2, resident=resident)


def share_from(
    launch: ConfiguredKernel,
    arguments: Sequence[Any],
    *,
    l2: str = "cold",
    resident: int = 4,
    gpu: device.Device = H200,
) -> MemoryShare:
    """Return the share of an SM where so many blocks of a launch run on it at a time."""
    prepared = prepare(launch, arguments, CC)
    return memory_share(prepared, classify(prepared), gpu, resident, l2)


def test_bandwidth_is_shared_by_the_sms_that_have_a_block() -> None:
    cycles_per_us = H200.gpu.sm_clock_mhz
    whole = share_of(copy, 64 * BLOCKS)
    assert whole.sms == 132
    assert whole.dram_bytes_per_cycle == pytest.approx(4580e3 / cycles_per_us / 132)
    assert whole.l2_bytes_per_cycle == pytest.approx(9330e3 / cycles_per_us / 132)
    few = share_of(copy, 64 * 2, blocks=2)
    assert few.sms == 2
    assert few.dram_bytes_per_cycle == few.l2_bytes_per_cycle == 123  # what one SM receives


def test_what_blocks_read_once_comes_from_dram() -> None:
    assert share_of(copy, 64 * BLOCKS).whole.first.l2_miss == 1


def test_what_all_blocks_read_misses_once_and_is_found_by_later_ones() -> None:
    """Each block reads 256 bytes: one of 528 brings them; an SM's four find them but once."""
    share = share_of(look_up, 64)
    (table,) = (s.first for pc, s in share.by_pc.items() if pc >= 0 and s.first.l1_hit)
    assert table.l2_miss < 0.05
    assert table.l1_hit == pytest.approx(3 / 4, abs=0.05)
    assert table.first_l2_miss == 1


@cuda.jit
def by_pairs(a, out):
    i = cuda.blockIdx.y * 64 + cuda.threadIdx.x
    out[2 * i + cuda.blockIdx.x] = a[i]


def found_by_pairs(l2: str) -> Source:
    """Return where blocks find what two side by side read."""
    arrays = array_spec(64 << 13, "int32"), array_spec(64 << 14, "int32")
    return share_from(by_pairs[(2, 1 << 13), 64], arrays, l2=l2).whole.first


def test_what_another_block_began_to_fetch_a_moment_before_is_as_late_as_dram() -> None:
    """The second of two finds all that it reads under way; a table has been there for long."""
    pairs, blocks = found_by_pairs("cold"), 1 << 14
    assert (pairs.l2_miss, pairs.late) == (pytest.approx(0.5, abs=0.05), pytest.approx(1, abs=0.02))
    table = share_of(look_up, 64, blocks=blocks).whole.first
    assert table.late < 0.05


def test_what_a_warm_l2_has_is_not_under_way() -> None:
    assert found_by_pairs("warm").late == 0


@cuda.jit
def spread_out(a, out, step):
    i = cuda.grid(1)
    out[i] = a[step * i]


@pytest.mark.parametrize(
    ("step", "moved"),
    [
        pytest.param(1, 1, id="all of each line"),
        pytest.param(16, 2, id="a word of each 64 bytes: both grains of each line"),
        pytest.param(32, 2, id="a word of each line: a grain of each"),
    ],
)
def test_for_a_sector_dram_moves_a_grain_of_a_whole_line_or_of_a_line_like_its_neighbours(
    step: int, moved: float
) -> None:
    arrays = array_spec(64 * step * BLOCKS, "int32"), array_spec(64 * BLOCKS, "int32")
    share = share_from(spread_out[BLOCKS, 64], (*arrays, np.int32(step)))
    assert share.whole.first.moved == pytest.approx(moved, rel=0.02)


KEPT, LOST = H200.capacity.l2_warm_kept_fraction, H200.capacity.l2_warm_lost_fraction


@pytest.mark.parametrize(
    ("filled", "miss"), [(0.1, 0), (KEPT, 0), ((KEPT + LOST) / 2, 0.5), (LOST, 1), (1, 1)]
)
def test_a_warm_l2_has_what_fills_half_of_it_and_beyond_three_quarters_nothing(
    filled: float, miss: float
) -> None:
    """A block reads 256 bytes and writes 256."""
    blocks = int(filled * H200.capacity.l2_bytes / 512)
    share = share_of(copy, 64 * blocks, l2="warm", blocks=blocks)
    assert share.whole.first.l2_miss == pytest.approx(miss, abs=0.05)


@cuda.jit
def shifted(a, out):
    i = cuda.grid(1)
    out[i] = a[i + 16]


def test_a_line_that_comes_back_lacks_what_nobody_asked_for() -> None:
    """Blocks begin in the middle of lines, of which the block before has just brought the rest.

    67 MB are read and as many written: of what the launch before read nothing is left.
    """
    blocks = 1 << 18
    left = [
        share_of(kernel, 128 * blocks, l2="warm", blocks=blocks).whole.first.l2_miss
        for kernel in (copy, shifted)
    ]
    assert left == pytest.approx([1, 1])


def test_the_l2_keeps_what_was_written_last() -> None:
    """Of what is read and written to fill it twice, what was touched after 0.625 of that is."""
    blocks = 2 * H200.capacity.l2_bytes // 512
    written_back = share_of(copy, 64 * blocks, blocks=blocks).stored[-1].written_back
    assert written_back == pytest.approx(1 - 0.625 / 2, abs=0.02)
    assert share_of(copy, 64 * BLOCKS).stored[-1].written_back == 0


@pytest.mark.parametrize(
    ("filled", "written_back"), [(0.3, 0), (0.43, 0.052 / 0.43 / 4), (1, 1 - 0.43)]
)
def test_stores_alone_leave_43_hundredths_of_the_l2_unwritten(
    filled: float, written_back: float
) -> None:
    """From 0.8 to 1.2 times as much on they are written; a block stores 256 bytes."""
    blocks = int(filled * H200.capacity.l2_bytes / 256)
    arrays = (array_spec(64 * blocks, "int32"), np.int32(1))
    stored = share_from(mark[blocks, 64], arrays).stored[-1]
    assert stored.written_back == pytest.approx(written_back, abs=0.03)


@cuda.jit
def word_by_word(out):
    i = cuda.grid(1)
    lines = cuda.gridDim.x * 2  # of 32 words
    out[i % lines * 32 + i // lines] = 1


def test_words_of_the_same_lines_do_not_drive_each_other_out() -> None:
    """32 times over 17 MB, each time a word of each line: nearly all is still in the L2."""
    blocks = 32 * 2**17 // 64
    stored = share_from(word_by_word[blocks, 64], (array_spec(64 * blocks, "int32"),)).stored[-1]
    assert stored.written_back < 0.1


def test_what_a_launch_leaves_unwritten_the_next_one_on_a_warm_l2_writes() -> None:
    blocks = 2 * H200.capacity.l2_bytes // 512
    assert share_of(copy, 64 * blocks, l2="warm", blocks=blocks).stored[-1].written_back == 1
    assert share_of(copy, 64 * BLOCKS, l2="warm").stored[-1].written_back == 0


def test_the_sm_with_the_last_blocks_has_what_the_others_leave() -> None:
    """Of 132 SMs 12 have a block more than the others: their last one has all the bandwidth."""
    share = share_of(copy, 64 * 540, blocks=540)
    assert share.busiest == 12
    assert share.gain(5, 4) == 1
    assert share.gain(1, 4) == 11


# -- laws ------------------------------------------------------------------------------------


@cuda.jit
def blend(table, a, out):
    i = cuda.grid(1)
    out[i] = a[i] + table[cuda.threadIdx.x] + a[i + 32]


def time_of(*arrays: Any) -> float:
    return predict(blend[BLOCKS, 64], *arrays, device="h200", code="lowering").time_us


def specs(factor: int = 1) -> list[ArraySpec]:
    sizes = 64, 64 * BLOCKS + 32, 64 * BLOCKS
    return [array_spec(factor * size, "int32") for size in sizes]


def test_a_time_does_not_change_when_arrays_are_declared_a_thousand_times_larger() -> None:
    assert time_of(*specs(1000)) == time_of(*specs())


def test_a_time_does_not_change_when_arrays_are_parts_of_one() -> None:
    """At offsets of 256 bytes, in any order."""
    whole = np.zeros(4 * 64 * BLOCKS, np.int32)
    apart = 64 * BLOCKS + 64
    for order in itertools.permutations(range(3)):
        parts = [
            whole[place * apart :][: spec.size] for place, spec in zip(order, specs(), strict=True)
        ]
        assert time_of(*parts) == time_of(*specs())


@cuda.jit
def again(a, out, n):
    """Each block goes over n elements of its own twice."""
    total = 0
    for i in range(cuda.threadIdx.x, n, 64):
        total += a[cuda.blockIdx.x * n + i]
    for i in range(cuda.threadIdx.x, n, 64):
        total += a[cuda.blockIdx.x * n + i]
    out[cuda.grid(1)] = total


def found_again(n: int, blocks: int, gpu: device.Device = H200) -> list[float]:
    """Return which part of what blocks read again loads find in the L1, by instruction."""
    arrays = array_spec(n * blocks, "int32"), array_spec(64 * blocks, "int32")
    share = share_from(again[blocks, 64], (*arrays, np.int32(n)), gpu=gpu)
    second = [
        s.again
        for pc, s in share.by_pc.items()
        if pc >= 0 and not math.isinf(s.reuse_distance_bytes)
    ]
    return [one.l1_hit for one in second]


@pytest.mark.parametrize(("kilobytes", "kept"), [(16, 1), (48, 1), (96, 0)])
def test_what_a_block_reads_again_is_in_the_l1_as_far_as_that_has_room(
    kilobytes: int, kept: float
) -> None:
    """Four blocks of an SM with 228 KB of L1: three quarters of 96 KB are gone when read again."""
    found = found_again(kilobytes * 256, BLOCKS)
    assert found == pytest.approx([kept] * len(found), abs=0.1)


@pytest.mark.parametrize(
    ("resident", "kilobytes", "kept", "lost"),
    [(1, 240, 0.828, 1.06), (4, 60, 0.904, 1.18), (16, 14.5, 0.98, 1.3)],
)
def test_few_warps_that_go_over_all_of_an_l1_lose_more_of_it(
    resident: int, kilobytes: float, kept: float, lost: float
) -> None:
    """Rows of blocks of two warps fill the L1 together: 2, 8 or 32 warps go over them in turn.

    Half as many warps lose them 0.038 of the L1 earlier, and have none left 0.06 earlier.
    """
    n, blocks = round(kilobytes * 256), resident * H200.gpu.sms
    arrays = array_spec(n * blocks, "int32"), array_spec(64 * blocks, "int32")
    share = share_from(again[blocks, 64], (*arrays, np.int32(n)), resident=resident)
    second = [
        s.again
        for pc, s in share.by_pc.items()
        if pc >= 0 and not math.isinf(s.reuse_distance_bytes)
    ]
    found = 1 - (1 - kept) / (lost - kept)
    assert np.mean([one.l1_hit for one in second]) == pytest.approx(found, abs=0.04)


@cuda.jit
def again_and_stored(a, out, n):
    """Each block goes over n elements of its own twice, and stores as many the second time."""
    total = 0
    for i in range(cuda.threadIdx.x, n, 64):
        total += a[cuda.blockIdx.x * n + i]
    for i in range(cuda.threadIdx.x, n, 64):
        out[cuda.blockIdx.x * n + i] = total + a[cuda.blockIdx.x * n + i]


def test_blocks_that_begin_together_lose_lines_when_they_store_most() -> None:
    """Four rows of 36 KB: 144 of 240 KB at first, and 288 with all that has been stored at last.

    What lies between on the mean, 216 KB, would leave all of it there.
    """
    n = 36 * 256
    arrays = array_spec(n * BLOCKS, "int32"), array_spec(n * BLOCKS, "int32")
    share = share_from(again_and_stored[BLOCKS, 64], (*arrays, np.int32(n)))
    second = [
        s.again
        for pc, s in share.by_pc.items()
        if pc >= 0 and not math.isinf(s.reuse_distance_bytes)
    ]
    parts = 144 / 240 * (1 + (np.arange(1000) + 0.5) / 1000)
    kept, lost = 0.98 - 2 * 0.038, 1.3 - 2 * 0.06  # by 8 warps in place of 32
    found = 1 - np.clip((parts - kept) / (lost - kept), 0, 1).mean()
    assert found == pytest.approx(0.737, abs=0.001)
    assert np.mean([one.l1_hit for one in second]) == pytest.approx(found, abs=0.02)


@cuda.jit
def again_and_long_after(a, out, n, turns):
    """Each block goes over n elements of its own twice, and works on without any."""
    total = 0
    for i in range(cuda.threadIdx.x, n, 64):
        total += a[cuda.blockIdx.x * n + i]
    for i in range(cuda.threadIdx.x, n, 64):
        total += a[cuda.blockIdx.x * n + i]
    for i in range(turns):
        total = total * 3 + i
        cuda.syncthreads()
    out[cuda.grid(1)] = total


@pytest.mark.parametrize(
    ("kilobytes", "in_l1", "in_l2"), [(16, 1.0, 1.0), (80, 0.0, 1.0), (300, 0.0, 0.0)]
)
def test_rows_read_twice_at_the_beginning_of_a_long_life_are_as_far_apart_as_any(
    kilobytes: int, in_l1: float, in_l2: float
) -> None:
    """Four rows an SM, of 240 KB, and 528 of 60 MB: what comes between is all of the rows.

    That the two passes are a small part of the block's steps does not matter.
    """
    n, blocks = kilobytes * 256, 4 * H200.gpu.sms
    arrays = array_spec(n * blocks, "int32"), array_spec(64 * blocks, "int32")
    launch = again_and_long_after[blocks, 64]
    share = share_from(launch, (*arrays, np.int32(n), np.int32(20_000)))
    second = [
        s.again
        for pc, s in share.by_pc.items()
        if pc >= 0 and not math.isinf(s.reuse_distance_bytes)
    ]
    assert np.mean([one.l1_hit for one in second]) == pytest.approx(in_l1, abs=0.05)
    if not in_l1:
        assert np.mean([1 - one.l2_miss for one in second]) == pytest.approx(in_l2, abs=0.05)


@cuda.jit
def second_reads(visits, x, out, words):
    i = cuda.grid(1)
    if cuda.atomic.add(visits, i % words, 1) == 1:
        out[i] = x[i]


def test_what_a_block_touches_is_known_where_it_goes_by_what_atomics_of_others_left() -> None:
    """The second of two threads at a word reads: 20 of 40 blocks do, 64 words or 8 sectors each."""
    words = 32 * 40
    given = np.zeros(words, np.int32), np.zeros(64 * 40, np.int32), np.zeros(64 * 40, np.int32)
    prepared = prepare(second_reads[40, 64], (*given, words), CC, code="lowering")
    share = memory_share(prepared, classify(prepared), H200, 4, "cold")
    assert share.whole.missed == pytest.approx(20 * 8, rel=1e-6)


@cuda.jit
def looks_again(x, out):
    i = cuda.grid(1)
    first = x[i]
    out[i] = first + x[i ^ 1]


@cuda.jit
def looks_again_behind_a_fence(x, out):
    i = cuda.grid(1)
    first = x[i]
    cuda.threadfence()
    out[i] = first + x[i ^ 1]


@cuda.jit
def looks_again_behind_a_fence_of_the_block(x, out):
    i = cuda.grid(1)
    first = x[i]
    cuda.threadfence_block()
    out[i] = first + x[i ^ 1]


@cuda.jit
def looks_again_at_what_it_updated(x, out):
    i = cuda.grid(1)
    first = x[i]
    cuda.atomic.add(x, i, 1)
    out[i] = first + x[i ^ 1]


@pytest.mark.parametrize(
    ("kernel", "hit"),
    [
        (looks_again, 1.0),
        (looks_again_behind_a_fence, 0.0),
        (looks_again_behind_a_fence_of_the_block, 1.0),
        (looks_again_at_what_it_updated, 0.0),
    ],
)
def test_fences_and_atomics_take_lines_out_of_the_l1(kernel: cuda.Kernel, hit: float) -> None:
    arrays = array_spec(64 * BLOCKS, "int32"), array_spec(64 * BLOCKS, "int32")
    share = share_from(kernel[BLOCKS, 64], arrays)
    second = max(share.by_pc)
    assert share.by_pc[second].again.l1_hit == hit


def test_sectors_of_one_line_that_a_warp_touches_at_once_take_its_room_once() -> None:
    """Lanes 64 bytes apart touch two sectors of each line; later ones are touches of their own."""
    columns = dict.fromkeys(COLUMNS, np.zeros(5, dtype=np.int64))
    columns |= {"time": np.array([0, 0, 0, 0, 1]), "begin": np.array([192, 0, 64, 128, 64])}
    columns["end"] = columns["begin"] + np.array([192, 4, 4, 4, 4])
    pattern = Pattern(Stretches(**columns, steps=2), (0, 0, 0), ((0, 0),))
    schedule = Schedule(Launch.of(1, 32), 1, 1, 64, 0.0)
    sample = sampled((pattern,), schedule.launch, 64)
    lines = {(begin, place): float(part) for begin, place, part in zip(
        sample.begin.tolist(), sample.place.tolist(), sample.lines, strict=True)}  # fmt: skip
    apart = {(0, 0.0): 0.5, (64, 0.0): 0.5, (128, 0.0): 0.5, (64, 0.5): 1}
    whole = {(192, 0.0): 0.25, (224, 0.0): 0.25}  # half of the first line, shared with the fourth
    whole |= {(256 + 32 * k, 0.0): 0.25 for k in range(4)}
    assert lines == apart | whole


@cuda.jit
def with_partner(a, out, apart):
    i = cuda.grid(1)
    out[i] = a[i] + a[i ^ apart]


def test_what_partners_by_exclusive_or_read_comes_from_dram_once() -> None:
    """Blocks 16 apart read each other's elements, 2 MB in all."""
    blocks = 8192
    arrays = array_spec(64 * blocks, "int32"), array_spec(64 * blocks, "int32")
    launch = with_partner[blocks, 64]
    found = predict(launch, *arrays, np.int32(1024), device="h200", code="lowering").traffic
    assert found.moved_bytes == pytest.approx(4 * 64 * blocks)


@cuda.jit
def around(a, out, flags):
    """Adds what lies a block before and behind, around the ends; a flag adds one."""
    i = cuda.grid(1)
    n = cuda.gridDim.x * cuda.blockDim.x
    out[i] = a[(i + 64) % n] + a[(i + n - 64) % n]
    if flags[i] > 0:
        out[i] += 1


def test_what_goes_around_the_ends_of_an_array_comes_from_dram_once() -> None:
    """Which blocks do the same depends on data: some are run, two of which stand at the ends."""
    blocks = 8192
    arrays = (np.zeros(64 * blocks, dtype=np.int32) for _ in range(3))
    read = counted(around, blocks, *arrays)["dram__bytes_read.sum"]
    assert read == pytest.approx(2 * 4 * 64 * blocks, rel=1e-3)


def at_addresses(begins: list[int]) -> Stretches:
    """Return stretches of 32 bytes, touched one after the other."""
    columns = dict.fromkeys(COLUMNS, np.zeros(len(begins), dtype=np.int64))
    columns |= {"begin": np.array(begins), "end": np.array(begins) + 32}
    return Stretches(**columns, steps=1)


def test_what_classes_of_blocks_touch_alike_stands_once() -> None:
    """Four by two blocks: those of the edges show no move along x, those between have it."""
    between = Pattern(at_addresses([0, 64]), (128, 4096, 0), ((1, 2), (5, 6)))
    left = Pattern(at_addresses([0]), (0, 4096, 0), ((0, 0), (4, 4)))
    right = Pattern(at_addresses([384]), (0, 4096, 0), ((3, 3), (7, 7)))
    found = merged((between, left, right), Launch.of((4, 2), 32))
    rows = {one.ranges: (one.stretches.begin.tolist(), one.moves) for one in found}
    everywhere = (0, 0), (1, 2), (3, 3), (4, 4), (5, 6), (7, 7)
    moves = (128, 4096, 0)
    assert rows == {everywhere: ([0], moves), ((1, 2), (5, 6)): ([64], moves)}


def test_a_sector_stands_for_what_the_stretch_touches_of_its_own_grain() -> None:
    """From 28 to 132: a sector alone in its grain counts the whole, of two each the half."""
    columns = dict.fromkeys(COLUMNS, np.zeros(1, dtype=np.int64))
    columns |= {"begin": np.array([28]), "end": np.array([132])}
    pattern = Pattern(Stretches(**columns, steps=1), (0, 0, 0), ((0, 0),))
    sample = sampled((pattern,), Launch.of(1, 32), 64)
    grains = dict(zip(sample.begin.tolist(), sample.grains.tolist(), strict=True))
    assert grains == {0: 1 / 2, 32: 1 / 2, 64: 1 / 2, 96: 1 / 2, 128: 1}


@pytest.mark.parametrize(
    ("blocks", "shared_kb", "found_kb"),
    [
        (2, 0, 240.25), (2, 8, 218.25), (2, 16, 185.125), (2, 32, 148.25), (2, 48, 145.375),
        (2, 64, 113.875), (2, 96, 51.125), (2, 100, 19.375), (1, 128, 113.125), (1, 160, 81.0),
        (1, 192, 50.5), (1, 224, 19.5), (32, 0, 219.75), (32, 1, 187.75),
    ],
)  # fmt: skip
def test_an_l1_holds_what_shared_memory_leaves_but_for_8_kb(
    blocks: int, shared_kb: int, found_kb: float
) -> None:
    """Of 256 KB, as loads at random found it on an H200; blocks have a kilobyte each besides."""
    held = l1_left(256 << 10, blocks * (shared_kb + 1) << 10, 8 << 10, CC)
    assert held / 1024 == pytest.approx(found_kb, abs=4.5)


@cuda.jit
def update(counts, width):
    cuda.atomic.add(counts, cuda.grid(1) * width, 1)


@pytest.mark.parametrize(("width", "units"), [(0, 1), (64, 40)])
def test_atomics_go_on_at_as_many_units_as_their_places_have(width: int, units: int) -> None:
    """On one word one after the other; 256 bytes apart at as many as there are."""
    arrays = (array_spec(max(1, 64 * BLOCKS * width), "int32"), np.int32(width))
    share = share_from(update[BLOCKS, 64], arrays)
    found = next(iter(share.atomics.values())).at_once
    assert found == 1 if units == 1 else units < found <= H200.bandwidth.l2_atomic_units


@pytest.mark.parametrize(("megabytes", "evicted"), [(16, 0.42), (64, 0.42), (128, 0.58 * 60 / 128)])
def test_what_is_read_evicts_lines_that_were_stored_before(megabytes: int, evicted: float) -> None:
    """Of 60 MB 34.8 are to be written back: 0.42 of what is read, until none are left."""
    blocks = megabytes * 1024
    arrays = (np.zeros(256 * blocks, np.float32), np.zeros(1, np.float32))
    cold, dirty = (share_from(read_all[blocks, 256], arrays, l2=l2) for l2 in ("cold", "dirty"))
    assert cold.evicted == 0
    assert dirty.evicted == pytest.approx(evicted, rel=0.02)


def test_stores_evict_some_of_the_lines_stored_before_at_no_cost() -> None:
    """A copy of 256 MB: half of them make room for what is read, half for what is stored."""
    arrays = (array_spec(2**26, "float32"), array_spec(2**26, "float32"))
    cold, dirty = (share_from(copy[2**18, 256], arrays, l2=l2) for l2 in ("cold", "dirty"))
    assert dirty.evicted == pytest.approx(0.58 * 60 / 512, rel=0.01)
    assert dirty.stored == cold.stored


def test_evicted_sectors_are_written_beside_the_reads_and_load_dram_as_writes() -> None:
    """Half a sector is written for each that is read: 1.5 times the time of DRAM."""
    cold = share_of(copy, 64 * BLOCKS)
    alone, beside = Dram(H200, cold), Dram(H200, replace(cold, evicted=0.5))
    for one in (alone, beside):
        one.read(100, 1.0, 0)
    assert beside.free == pytest.approx(1.5 * alone.free, rel=1e-3)
    written = Dram(H200, cold)
    written.read(100, 1.0, 0)
    written.write(50, 0)
    assert beside.loaded == pytest.approx(written.loaded, rel=1e-3)


@cuda.jit
def copy_eight(x, y):
    first = cuda.blockIdx.x * 2048 + cuda.threadIdx.x
    a, b, c, d = x[first], x[first + 256], x[first + 512], x[first + 768]
    e, f, g, h = x[first + 1024], x[first + 1280], x[first + 1536], x[first + 1792]
    y[first], y[first + 256], y[first + 512], y[first + 768] = a, b, c, d
    y[first + 1024], y[first + 1280], y[first + 1536], y[first + 1792] = e, f, g, h


def test_evicted_sectors_pass_the_l2_like_stored_ones() -> None:
    """A copy of 16 MB behind zeros, limited by the L2: 12.5 us on an H200, 10.6 without it."""
    arrays = (array_spec(2**22, "float32"), array_spec(2**22, "float32"))
    made = predict(copy_eight[2**11, 256], *arrays, device="h200", l2="dirty")
    assert made.time_us == pytest.approx(12.5, rel=0.05)


@cuda.jit
def scatter(x, mask, lanes):
    at = cuda.grid(1) // lanes
    at = (at ^ (at >> 16)) * np.uint32(0x85EBCA6B)
    at = (at ^ (at >> 13)) * np.uint32(0xC2B2AE35)
    x[((at ^ (at >> 16)) & mask) * lanes + cuda.threadIdx.x % lanes] = 1


@pytest.mark.parametrize(
    ("lanes", "sectors"), [(8, 2 * 4580 / 1900 / 1.07), (16, 4580 / 1900 / 1.07), (32, 4580 / 4280)]
)
def test_a_write_at_a_random_place_takes_a_grain_of_its_own_and_longer_than_a_read(
    lanes: int, sectors: float
) -> None:
    """An H200 writes 32, 64 and 128 bytes at random places of 1 GB in 34, 37 and 45 ps each."""
    words = 2**28
    arrays = (array_spec(words, "int32"), np.uint32(words // lanes - 1), np.uint32(lanes))
    share = share_from(scatter[2**17, 256], arrays)
    assert share.written(-1).moved == pytest.approx(sectors, rel=0.06)


def test_sectors_of_a_line_stored_while_the_l2_has_it_are_written_together() -> None:
    """4 million sectors at random: in 1 GB each is alone, in 32 MB most have others beside them."""
    moved = []
    for words in (2**23, 2**28):
        arrays = (array_spec(words, "int32"), np.uint32(words // 8 - 1), np.uint32(8))
        moved.append(share_from(scatter[2**17, 256], arrays).written(-1).moved)
    assert moved[0] < 0.7 * moved[1]


def test_what_atomics_update_comes_out_of_dram_where_the_l2_lacks_it() -> None:
    """A word of each 256 bytes: grains of two sectors, alone; none of 8 MB in a warm L2."""
    arrays = (array_spec(64 * BLOCKS * 64, "int32"), np.int32(64))
    cold, warm = (share_from(update[BLOCKS, 64], arrays, l2=l2) for l2 in ("cold", "warm"))
    (pc,) = cold.atomics
    assert cold.written(pc).read_first == pytest.approx(2 * 4580 / 2700, rel=0.01)
    assert cold.written(pc).written_back == 0
    assert warm.written(pc).read_first == 0


def test_what_atomics_update_goes_back_to_dram_in_grains() -> None:
    """A word of each 256 bytes of 1 GB: two sectors are read for it alone, and two written.

    Of 512 MB of lines all but the last 0.625 of an L2 of 60.
    """
    blocks = 64 * 1024
    arrays = (array_spec(64 * blocks * 64, "int32"), np.int32(64))
    share = share_from(update[blocks, 64], arrays)
    (pc,) = share.atomics
    assert share.written(pc).written_back == pytest.approx(1 - 0.625 * 60 / 512, abs=0.01)
    assert share.written(pc).read_first == pytest.approx(2 * 4580 / 2700, rel=0.01)
    assert share.written(pc).moved == pytest.approx(2 * 4580 / 1900 / 1.07, rel=0.01)


@cuda.jit
def reach(targets, levels, marks):
    target = targets[cuda.grid(1)]
    if levels[target] < 1:
        marks[target] = 1


@pytest.mark.parametrize(("is_same", "copied"), [(True, 1 / 3), (False, 0.0)])
def test_lines_that_all_sms_load_and_store_at_random_are_copied_in_the_other_part(
    is_same: bool, copied: float
) -> None:
    """A load for each store: of three last touches one is a load by an SM of the other part."""
    targets = np.random.default_rng(1).integers(0, 2**18, 64 * BLOCKS).astype(np.int32)
    levels, marks = np.zeros(2**18, np.int32), np.zeros(2**18, np.int32)
    share = share_from(reach[BLOCKS, 64], (targets, levels, levels if is_same else marks))
    assert share.stored[-1].copied == pytest.approx(copied, abs=0.03)
    if is_same:
        assert share.stored[-1].among == pytest.approx(2**18 * 4 / 128, rel=0.05)


@cuda.jit
def lessen(rows, limits):
    i = cuda.grid(1)
    if rows[i] > limits[i % 1024]:
        rows[i] = limits[i % 1024]


def test_lines_that_are_stored_to_once_each_are_among_all_of_their_array() -> None:
    """Data say of which words; two blocks of 16 have a line, so that some loads are by others."""
    rows = np.random.default_rng(1).integers(0, 2, 16 * BLOCKS).astype(np.int32)
    share = share_from(lessen[BLOCKS, 16], (rows, np.zeros(1024, np.int32)))
    assert share.stored[-1].copied > 0
    assert share.stored[-1].among == pytest.approx(BLOCKS / 2, rel=0.1)


@cuda.jit
def double_parts(x):
    t, block = cuda.threadIdx.x, cuda.blockIdx.x
    i = (block // 4 * 8 + t // 8) * 32 + block % 4 * 8 + t % 8
    x[i] = x[i] * 2


def test_lines_that_adjacent_blocks_change_in_parts_are_those_of_all_blocks() -> None:
    """Four blocks of 64 change a quarter of each of their eight lines."""
    share = share_from(double_parts[BLOCKS, 64], (array_spec(64 * BLOCKS, "int32"),))
    assert share.stored[-1].copied > 0
    assert share.stored[-1].among == pytest.approx(2 * BLOCKS, rel=0.05)


@cuda.jit
def count_in_turn(counts, words):
    cuda.atomic.add(counts, cuda.grid(1) % words, 1)


@cuda.jit
def take_in_turn(counts, words):
    counts[words] = cuda.atomic.add(counts, cuda.grid(1) % words, 1)


def at_a_time(kernel: cuda.Kernel, words: int) -> float:
    """Return how many passes go on where all lanes update so many words side by side in turn."""
    arrays = (array_spec(words + 1, "int32"), np.int32(words))
    share = share_from(kernel[BLOCKS, 64], arrays)
    (found,) = share.atomics.values()
    return found.at_once


@cuda.jit
def count_marks(marks, counts):
    cuda.atomic.add(counts, marks[cuda.grid(1)], 1)


def test_atomics_are_spread_as_those_of_all_blocks_that_run_together() -> None:
    """Each 32 blocks count at a place of their own: one or two of those side by side, 17 in all.

    Of two words one in 17 is the same: 1 / (1 / 77.7 + 2 / 17) units are busy.
    """
    marks = np.repeat(64 * np.random.default_rng(1).permutation(17)[np.arange(BLOCKS) // 32], 64)
    arrays = marks.astype(np.int32), array_spec(64 * 17, "int32")
    share = share_from(count_marks[BLOCKS, 64], arrays)
    (found,) = share.atomics.values()
    assert found.at_once == pytest.approx(7.66, rel=0.35)


@pytest.mark.parametrize(
    ("words", "measured"), [(64, 1.0), (128, 1.99), (256, 2.8), (512, 3.23), (1024, 6.46)]
)
def test_few_places_side_by_side_have_units_of_their_own(words: int, measured: float) -> None:
    """RED by warps on lines in turn, by passes of 4.65 cycles a line, on an H200."""
    assert at_a_time(count_in_turn, words) == pytest.approx(measured, rel=0.2)


@cuda.jit
def add_by_blocks(sums, words, apart):
    cuda.atomic.add(sums, cuda.blockIdx.x % words * apart, np.float32(1))


@cuda.jit
def add_to_two(sums, others, at):
    cuda.atomic.add(sums, 0, 1)
    cuda.atomic.add(others, at + cuda.grid(1), 1)
    cuda.atomic.add(sums, 1, 1)


def test_atomics_on_one_array_wait_for_each_other_and_not_for_those_on_another() -> None:
    """The first and the last have a sector in common; the second has none with either."""
    arrays = (array_spec(2, "int32"), array_spec(64 * BLOCKS, "int32"), np.int32(0))
    loads = share_from(add_to_two[BLOCKS, 64], arrays).atomics
    first, second, last = (loads[pc].group for pc in sorted(loads))
    assert first == last != second


@cuda.jit
def add_to_own(sums):
    cuda.atomic.add(sums, cuda.blockIdx.x, np.float32(1))


@pytest.mark.parametrize(
    ("words", "apart", "same"), [(1, 1, 1), (8, 1, 1), (2, 8, 1 / 2), (64, 1, 1 / 8), (8, 64, 1)]
)
def test_floats_of_one_sector_follow_each_other_in_a_unit(
    words: int, apart: int, same: float
) -> None:
    """Blocks add to words of one sector, of 2 or 8 sectors of 256 bytes, or of 8 units."""
    arrays = (array_spec(words * apart, "float32"), np.int32(words), np.int32(apart))
    (found,) = share_from(add_by_blocks[BLOCKS, 32], arrays).atomics.values()
    assert found.same_sector == pytest.approx(same, abs=0.07)


def test_places_that_move_with_the_blocks_are_those_of_a_whole_wave() -> None:
    """2,112 blocks at a time, a word each: 33 units, of two words one in 33 has the same."""
    blocks = 8448
    arrays = (array_spec(blocks, "float32"),)
    share = share_from(add_to_own[blocks, 128], arrays, resident=16)
    (found,) = share.atomics.values()
    assert found.at_once == pytest.approx(1 / (1 / 77.7 + 2 / 33), rel=0.05)


def test_old_values_are_given_back_by_fewer_units() -> None:
    """57.6 in place of 77.7; 528 blocks update 528 places, of which two have one unit."""
    arrays = (array_spec(2**17 + 1, "int32"), np.int32(2**17))
    taken, given = (share_from(k[BLOCKS, 64], arrays) for k in (count_in_turn, take_in_turn))
    for share in (taken, given):
        (found,) = share.atomics.values()
        assert found.at_once == pytest.approx(1 / (1 / 77.7 + 2 / 528), rel=0.01)
    assert not taken.answering
    assert list(given.answering.values()) == [pytest.approx(1 / 57.6 - 1 / 77.7)]


@cuda.jit
def mark(out, apart):
    out[cuda.grid(1) * apart] = 1


@cuda.jit
def fold(out):
    i = cuda.grid(1)
    whole = cuda.gridDim.x * 8
    out[i % whole * 8 + i // whole] = 1


@pytest.mark.parametrize(("apart", "blocks", "reads"), [(1, 528, 0), (8, 528, 0), (8, 16384, 0.79)])
def test_what_is_written_in_part_is_read_when_much_of_it_came_since(
    apart: int, blocks: int, reads: float
) -> None:
    """A word of each sector: of 34 MB all but a ninth of the L2, and written then."""
    arrays = (array_spec(64 * blocks * apart, "int32"), np.int32(apart))
    stored = share_from(mark[blocks, 64], arrays).stored[-1]
    assert stored.read_first == pytest.approx(reads, abs=0.03)
    assert stored.written_back == pytest.approx(reads, abs=0.05)


def test_words_of_a_sector_that_blocks_far_apart_store_are_written_together() -> None:
    """Eight times over 1 MB, each time a word of each sector: nothing has left the L2."""
    arrays = (array_spec(8 * 64 * BLOCKS, "int32"),)
    stored = share_from(fold[8 * BLOCKS, 64], arrays).stored[-1]
    assert stored.written_back == stored.read_first == 0


@cuda.jit
def lower(ways, limits):
    i = cuda.grid(1)
    if limits[i] < ways[i]:
        ways[i] = limits[i]


def test_what_data_say_is_stored_to_was_loaded_before_by_rule() -> None:
    """One word of each sector, of 67 MB: the L2 has what the same lanes have just loaded."""
    words = 256 * 65_536
    limits = np.where(np.random.default_rng(0).random(words) < 1 / 8, -1, 1).astype(np.int32)
    share = share_from(lower[65_536, 256], (np.zeros(words, np.int32), limits))
    assert share.stored[-1].read_first == pytest.approx(0, abs=0.01)
    assert share.whole.fetched == pytest.approx(2 * words / 8, rel=0.01)


@cuda.jit
def follow(table, out, steps):
    i = cuda.grid(1)
    place = i * 61 % 65_536
    for _ in range(steps):
        place = table[place]
    out[i] = place


@cuda.jit
def seek(table, out, steps):
    i = cuda.grid(1)
    low = np.int32(0)
    half = np.int32(32_768)
    for _ in range(steps):
        if table[low + half] <= i * 61:
            low += half
        half = half // 2
    out[i] = low


def first_of(kernel: cuda.Kernel, table: Array) -> Source:
    """Return where the first 64 blocks find what they are led to by data in sixteen steps."""
    arrays = (table.astype(np.int32), array_spec(64 * 256, "int32"), np.int32(16))
    return share_from(kernel[64, 256], arrays, resident=8).whole.first


def test_chains_of_lanes_wait_for_dram_in_their_first_steps_and_searches_in_all() -> None:
    """Chains at random have brought the table by then; a level of a tree all come to at once.

    What all lanes of a warp find or do not find is not drawn for each of their lines.
    """
    chains = first_of(follow, np.random.default_rng(0).permutation(65_536))
    searches = first_of(seek, np.arange(65_536))
    assert chains.first_l2_miss < 0.2
    assert chains.first_apart < 0.5
    assert searches.first_l2_miss > 0.5


@cuda.jit
def gather_once(table, places, out):
    i = cuda.grid(1)
    out[i] = table[places[i]]


def test_fewer_blocks_are_run_to_see_what_they_touch_where_they_do_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """24 neighbours and 40 spread over the grid, or 2 and 4."""
    places = np.random.default_rng(0).integers(0, 4096, 256 * 512).astype(np.int32)
    table, out = np.zeros(4096, np.int32), np.zeros(256 * 512, np.int32)
    prepared = prepare(gather_once[512, 256], (table, places, out), CC)
    classes = classify(prepared)
    many = patterns.patterns_of(prepared, classes, 512)
    assert (len(many.neighbours), len(many.spread)) == (24, 40)
    kept = sum(one.blocks * one.stream.kept for one in classes.classes) / 512
    monkeypatch.setattr(patterns, "MOST_INSTRUCTIONS", 63 * kept)
    few = patterns.patterns_of(prepared, classes, 512)
    assert (len(few.neighbours), len(few.spread)) == (2, 4)


def test_what_the_first_blocks_brought_is_not_under_way_for_those_behind_them() -> None:
    """16 KB by 16 waves of blocks, each with one gather: fifteen find it in L1 and L2."""
    blocks = 16 * 1056
    places = np.random.default_rng(0).integers(0, 4096, 256 * blocks).astype(np.int32)
    arrays = array_spec(4096, "float32"), places, array_spec(256 * blocks, "float32")
    share = share_from(gather_once[blocks, 256], arrays, resident=8)
    gathered = max((one.first for one in share.by_pc.values()), key=lambda first: first.l1_hit)
    assert gathered.l1_hit > 0.9
    assert gathered.late < 0.02


@cuda.jit
def walk_lists(starts, ends, lists, out):
    i = cuda.grid(1)
    total = np.int32(0)
    for k in range(starts[i], ends[i]):
        total += lists[k]
    out[i] = total


@pytest.mark.parametrize("longest", [32, 40, 64])
def test_lists_of_lanes_come_from_dram_once(longest: int) -> None:
    """A lane reads eight words of a sector one after the other; the first of them misses."""
    lengths = np.random.default_rng(longest).integers(longest // 2, longest, 64 * BLOCKS)
    ends = np.cumsum(lengths, dtype=np.int32)
    arrays = ends - lengths.astype(np.int32), ends, array_spec(int(ends[-1]), "int32")
    share = share_from(walk_lists[BLOCKS, 64], (*arrays, array_spec(64 * BLOCKS, "int32")))
    moved = sum(one.dram_bytes for pc, one in share.by_pc.items() if pc >= 0)
    assert moved == pytest.approx(4 * (int(ends[-1]) + 2 * 64 * BLOCKS), rel=0.05)


def touching(sectors: dict[int, list[int]]) -> Stretches:
    """Return a stretch for each sector that instructions touch."""
    pc = np.repeat(list(sectors), [len(one) for one in sectors.values()])
    begin = 32 * np.concatenate([np.array(one) for one in sectors.values()])
    columns = dict.fromkeys(COLUMNS, np.zeros(len(pc), dtype=np.int64))
    columns |= {"pc": pc, "begin": begin, "end": begin + 4}
    return Stretches(**columns, steps=1)


def test_pieces_are_touched_as_often_as_there_are_too_few_of_them() -> None:
    """Eight blocks touch eight of sixteen sectors each: every one four times, thrice again."""
    single = {0: touching({0: [*range(8)]}), 1: touching({0: [*range(8, 16)]})}
    found = pieces_of(single, (0, 1))
    assert least_rates(found, found, np.zeros(1), 8).tolist() == [(1 - 1 / 4) * 8 / 16]
    assert least_rates(found, found, np.zeros(1), 2).tolist() == [0]
    alike = pieces_of({0: single[0], 1: single[0]}, (0, 1))  # neighbours have all in common
    assert least_rates(found, alike, np.zeros(1), 8).tolist() == [(1 - 1 / 2) * 4 / 16]


def test_a_piece_counts_once_for_each_block_and_once_for_each_instruction_of_it() -> None:
    """Sector 2 is touched by both blocks, in the first by two instructions."""
    found = pieces_of({3: touching({5: [2, 1], 9: [2]}), 8: touching({5: [2]})}, (3, 8))
    assert found.touching(np.array([0, 1, 2])).tolist() == [0, 1, 2]
    assert {pc: one.tolist() for pc, one in found.in_others.items()} == {5: [1, 2, 0], 9: [0, 1, 0]}
    assert (found.extents, found.different) == ({5: 2, 9: 1}, {5: 2, 9: 1})
    once = found.once()
    assert list(zip(once.piece, once.pc, once.block, strict=True)) == [
        (1, 5, 0),
        (2, 5, 0),
        (2, 5, 1),
    ]
    lines = found.of_size(128)
    assert list(zip(lines.piece, lines.pc, lines.block, strict=True)) == [
        (0, 5, 0),
        (0, 5, 1),
        (0, 9, 0),
    ]


KEYS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 40)), min_size=1)


@given(KEYS)
def test_pieces_of_any_size_are_those_of_each_block_and_instruction(
    touches: list[tuple[int, int, int]],
) -> None:
    """Lines hold four sectors; once means by the first instruction of each block."""
    by_block: dict[int, dict[int, list[int]]] = {block: {} for block in range(3)}
    for block, pc, sector in touches:
        by_block[block].setdefault(pc, []).append(sector)
    none = touching({0: [0]}).at(slice(0, 0))
    single = {block: touching(pcs) if pcs else none for block, pcs in by_block.items()}
    found = pieces_of(single, (0, 1, 2))
    for size, sectors in ((32, 1), (64, 2), (128, 4)):
        some = found.of_size(size)
        expected = sorted({(sector // sectors, pc, block) for block, pc, sector in touches})
        assert list(zip(some.piece, some.pc, some.block, strict=True)) == expected
        once = some.once()
        first = {(piece, block): pc for piece, pc, block in reversed(expected)}
        assert list(zip(once.piece, once.pc, once.block, strict=True)) == sorted(
            (piece, pc, block) for (piece, block), pc in first.items()
        )
        for pc, extent in some.extents.items():
            mine = [piece for piece, other, _ in expected if other == pc]
            assert extent == mine[-1] - mine[0] + 1
        order = some.at(some.by_block)
        assert list(zip(order.block, order.pc, order.piece, strict=True)) == sorted(
            (block, pc, piece) for piece, pc, block in expected
        )


def test_what_many_blocks_touch_says_nothing_of_what_another_instruction_streams() -> None:
    """Of forty blocks each has sectors of its own, and two in five of what they gather from."""
    random = np.random.default_rng(0)
    gathered = random.random((40, 4096)) < 0.4
    single = {
        block: touching({7: [10**6 + block], 9: np.flatnonzero(mine).tolist()})
        for block, mine in enumerate(gathered)
    }
    spread = pieces_of(single, tuple(range(40)))
    pcs, pieces = np.repeat([7, 9], [1, 4096]), np.array([10**6 + 40, *range(4096)])
    found = rates_of(spread, pcs, pieces)
    assert found.mean[0] == 0
    assert found.mean[1:].mean() == pytest.approx(0.4, abs=0.01)


def rates_of(spread: Pieces, pcs: Array, pieces: Array, touches: float = 1.0) -> Rates:
    """Return how often blocks touch pieces, asked by one that is none of those that were run."""
    none = np.zeros(len(pcs))
    return rates(spread, Asked(pcs, pieces, none > 0, none + touches), none)


def test_an_instruction_that_makes_few_of_the_touches_finds_as_much_as_others_do() -> None:
    """Sixteen of them make a touch of each block at random: one by each is no more likely."""
    random = np.random.default_rng(0)
    single = {
        block: touching({pc: random.integers(0, 20_000, 64).tolist() for pc in range(16)})
        for block in range(40)
    }
    spread = pieces_of(single, tuple(range(40)))
    seldom = 1 - (1 - 1 / 20_000) ** 1024
    for pc in (0, 7):
        found = rates_of(spread, np.full(1, pc), np.full(1, 10**6))  # none has touched it
        assert found.mean[0] == pytest.approx(seldom, rel=0.1)


def test_of_what_nobody_was_seen_to_touch_some_is_never_touched_again() -> None:
    """Rows by the fourth power of a number at random, of which few are most of what is touched."""
    random = np.random.default_rng(0)

    def rows(blocks: int) -> Array:
        return np.asarray((1e6 * random.random((blocks, 64)) ** 4).astype(int))

    single = {block: touching({0: one.tolist()}) for block, one in enumerate(rows(40))}
    found = rates_of(pieces_of(single, tuple(range(40))), np.zeros(1), np.full(1, 10**7))
    draws = (np.arange(1000) + 0.5) / 1000
    one = Rates(*(np.repeat(column, 1000) for column in vars(found).values()))
    seen = np.concatenate([touched.begin // 32 for touched in single.values()])
    asked = rows(1000)[:, 0]
    new = np.mean(~np.isin(asked[~np.isin(asked, seen)], rows(400)))
    assert np.mean(one.blocks_ago(draws) > 400) == pytest.approx(new, abs=0.05)  # 0.85


def test_a_line_that_is_touched_keeps_what_it_holds() -> None:
    """Four sectors, each as likely: all times up to the same one are short if it is found.

    One line of which half are shorter: 1/4 1/2 / (1 - 3/4 1/2) of the longest are so.
    """
    none, half = np.zeros(1), np.full(1, 0.5)
    line, sector = (Rates(np.full(1, rate), none, none, half) for rate in (0.04, 0.01))
    assert sector.longest(np.full(1, 0.2), line)[0] == pytest.approx(0.5, rel=0.02)


def ago_by_chance(place: Array, draw: Array) -> Array:
    """Return how long ago its SM touched a piece that half of the blocks touch, eight of each SM.

    They begin together.
    """
    columns = {n: np.zeros(len(place)) for n in Sample.__dataclass_fields__}
    columns |= {"place": place, "draw": draw}
    together = Schedule(Launch.of(1056, 32), 1056, 132, 64, 0.0)
    half = Rates(np.full(len(place), 0.5), *np.zeros((2, len(place))), np.ones(len(place)))
    wanted = Wanted(place, place + 32, place, np.zeros(len(place)), 132)
    return place - by_random_access(half, half, Sample(**columns), together, wanted, 1e-8)


def test_blocks_that_run_together_touch_pieces_at_any_time_of_their_lives() -> None:
    """One block, two and nine blocks ago, of eight; a step of half a life lies between touches."""
    draw = 1 - np.array([0.5, 0.25, 1 / 512])
    lasts = 1 + 0.5 * (1 - 1 / 512)
    ago = ago_by_chance(np.array([0.0, 0.5, 1.0]), draw)
    assert ago.tolist() == pytest.approx([lasts / 8, 2 * lasts / 8, np.inf])
    ago = ago_by_chance(np.full(3, 0.5), draw)
    assert ago.tolist() == pytest.approx([0, 0, np.inf], abs=1e-3)  # all blocks at once


def test_writing_takes_dram_longer_as_soon_as_a_little_is_read_beside_it() -> None:
    """A word is read for each that is written, or none."""
    assert share_of(copy, 64 * BLOCKS).write_factor == H200.bandwidth.dram_write_factor
    arrays = (array_spec(64 * BLOCKS, "int32"), np.int32(1))
    alone = share_from(mark[BLOCKS, 64], arrays).write_factor
    assert alone == H200.bandwidth.dram_write_alone_factor


@cuda.jit
def increase(a, n):
    a[cuda.grid(1)] += n


@cuda.jit
def pairs(values, out):
    i = cuda.grid(1)
    out[i] = values[i] + values[i + 64]


def test_only_what_another_sm_touched_last_lies_far() -> None:
    """Rows that do not fit the L1 are found near; rows that two SMs read, far for a quarter.

    What all have read is near, for far loads bring copies.
    """
    n = 96 * 256
    arrays = array_spec(n * BLOCKS, "int32"), array_spec(64 * BLOCKS, "int32")
    share = share_from(again[BLOCKS, 64], (*arrays, np.int32(n)))
    assert all(one.again.far == 0 for one in share.by_pc.values())
    assert share_of(pairs, 64 * (BLOCKS + 1)).whole.first.far == pytest.approx(
        H200.capacity.l2_far_fraction, rel=0.3
    )
    assert share_of(look_up, 64).whole.first.far == pytest.approx(0, abs=0.01)


def test_the_next_launch_has_blocks_that_begin_together_on_the_same_sms() -> None:
    """What these touched is near; of more blocks others have it, one in four far."""
    for blocks, far in ((BLOCKS, 0), (2 * BLOCKS, H200.capacity.l2_far_fraction)):
        share = share_of(copy, 64 * blocks, l2="warm", blocks=blocks)
        assert share.whole.first.far == pytest.approx(far)


def test_stores_take_the_copies_away_that_loads_have_made() -> None:
    """Of what is changed in place as much lies far as of what one load before has brought."""
    blocks = 2 * BLOCKS
    arrays = array_spec(64 * blocks, "int32"), np.int32(1)
    share = share_from(increase[blocks, 64], arrays, l2="warm")
    assert share.whole.first.far == pytest.approx(H200.capacity.l2_far_fraction)


def test_the_l2_looks_up_half_of_what_comes_from_dram_in_its_other_part_too() -> None:
    whole = share_of(copy, 64 * BLOCKS).whole
    assert whole.looked_up == pytest.approx(1.5 * whole.missed)


@cuda.jit
def double(a):
    a[cuda.grid(1)] *= 2


@cuda.jit
def add_up(a, total):
    cuda.atomic.add(total, 0, a[cuda.grid(1)] + a[cuda.grid(1) ^ 1])


def counted(kernel: cuda.Kernel, blocks: int, *arguments: Any) -> dict[str, float]:
    """Return what Nsight Compute counts of the memory of a launch, as far as it is predicted."""
    launch = kernel[blocks, 64]
    return predict(launch, *arguments, device="h200", code="lowering").traffic.counters


@pytest.mark.parametrize(
    ("kernel", "found"),
    [
        pytest.param(double, 1 / 2, id="stores to what was loaded"),
        pytest.param(copy, 0, id="stores elsewhere"),
        pytest.param(spread_out, 0, id="loads of a word of each sector"),
        pytest.param(add_up, 4 / 9, id="an atomic beside four sectors that are loaded twice"),
    ],
)
def test_the_l1s_hit_rate_has_stores_and_atomics_as_well(kernel: cuda.Kernel, found: float) -> None:
    more = (np.int32(8),) if kernel is spread_out else ()
    count = 1 if kernel is double else 2
    arrays = [array_spec(64 * BLOCKS * 8, "int32") for _ in range(count)]
    rate = counted(kernel, BLOCKS, *arrays, *more)["l1tex__t_sector_hit_rate.pct"]
    assert rate == pytest.approx(100 * found, abs=0.1)


def test_dram_reads_sectors_that_are_stored_in_part_and_grains_that_are_updated() -> None:
    """A word of each sector of 34 MB, of which the L2 keeps a ninth; one of each 256 bytes."""
    blocks = 16384
    stored = counted(mark, blocks, array_spec(64 * blocks * 8, "int32"), np.int32(8))
    kept = H200.capacity.l2_bytes / 9
    assert stored["dram__bytes_read.sum"] == pytest.approx(64 * blocks * 32 - kept, rel=0.05)
    updated = counted(update, BLOCKS, array_spec(64 * BLOCKS * 64, "int32"), np.int32(64))
    assert updated["dram__bytes_read.sum"] == pytest.approx(64 * BLOCKS * 64, rel=1e-2)


@cuda.jit
def numbered(out):
    out[cuda.grid(1)] = cuda.grid(1)


@pytest.mark.parametrize(("l2", "out_of_dram"), [("cold", 1), ("warm", 0)])
def test_a_launch_reads_its_code_and_what_else_it_needs(l2: str, out_of_dram: int) -> None:
    """It loads nothing; of its code, 16 bytes an instruction, DRAM reads whole pieces of 256."""
    found = predict(numbered[1, 64], array_spec(64, "int32"), device="h200", l2=l2, code="lowering")
    code = 16 * sum(OPS[one.op].issued for one in found.prepared.program.instructions)
    counters = found.traffic.counters
    assert counters["dram__bytes_read.sum"] == out_of_dram * (2560 + 256 * -(-code // 256))
    assert counters["lts__t_sectors_op_read.sum"] == pytest.approx(900 + 8.8 * code / 32)


@cuda.jit
def sum_of_all_before(a, out):
    i = cuda.grid(1)
    total = np.int32(0)
    for j in range(cuda.blockIdx.x * cuda.blockDim.x):
        total += a[j]
    out[i] = total + a[i]


def test_what_blocks_touch_at_the_end_of_lives_of_any_length_was_not_there_before() -> None:
    """All go through the numbers side by side: each waits for what DRAM brings in that step."""
    arrays = array_spec(64 * 132, "int32"), array_spec(64 * 132, "int32")
    share = share_from(sum_of_all_before[132, 64], arrays)
    before = [one.first for pc, one in share.by_pc.items() if pc >= 0 and one.missed > 10_000]
    assert max(one.first_l2_miss for one in before) > 0.5


@cuda.jit
def look_up_at_first(places, table, out):
    i = cuda.grid(1)
    if cuda.blockIdx.x < 100:
        out[i] = table[places[i]]


def test_what_no_block_in_the_middle_looks_up_is_predicted_too() -> None:
    places = np.random.default_rng(2).integers(0, 64 * BLOCKS, 64 * BLOCKS, dtype=np.int32)
    arrays = places, *(array_spec(64 * BLOCKS, "int32") for _ in range(2))
    share = share_from(look_up_at_first[BLOCKS, 64], arrays)
    looked_up = [one for pc, one in share.by_pc.items() if pc >= 0 and one.missed > 3000]
    assert looked_up


def test_atomics_of_blocks_that_each_have_places_of_their_own_keep_all_units_busy() -> None:
    """As of a sparse matrix's elements, in the order of rows; no place is asked for by two."""
    rng = np.random.default_rng(3)
    marks = (64 * np.arange(BLOCKS)[:, None] + rng.integers(0, 64, (BLOCKS, 64))).reshape(-1)
    arrays = marks.astype(np.int32), array_spec(64 * BLOCKS, "int32")
    share = share_from(count_marks[BLOCKS, 64], arrays)
    (found,) = share.atomics.values()
    assert found.at_once == pytest.approx(H200.bandwidth.l2_atomic_units)


@cuda.jit
def gathers_of_first_blocks(order, x, out, busy):
    if cuda.blockIdx.x < busy:
        i = cuda.grid(1)
        out[i] = x[order[i]]


def test_neighbours_are_blocks_that_make_accesses_where_some_do() -> None:
    """Of 1,024 blocks the first 256 gather: the neighbours are the last of these, not idle ones."""
    order = np.random.default_rng(3).permutation(2**16).astype(np.int32)
    arrays = (order, array_spec(2**16, "float32"), array_spec(2**16, "float32"), np.int32(256))
    prepared = prepare(gathers_of_first_blocks[1024, 256], arrays, CC, code="lowering")
    found = patterns.patterns_of(prepared, classify(prepared), 512)
    assert sum(len(found.single[block]) > 0 for block in found.neighbours) >= 12
