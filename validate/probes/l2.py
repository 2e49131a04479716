"""L2: hits on repeated accesses, and copies in its parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpusim.typing import Array

from ..bench import Bench
from .probing import DRAM_BYTES, LINE, MB, Values, in_order, line, probe

BLOCKS, BLOCK = 8, 256  # per SM, enough to saturate its path to the L2
TILE_BYTES = 512  # read by a warp at once, 16 a lane
TILES_OF_A_BLOCK = 32
WARM_PARTS = (12, 18, 24, *range(28, 64, 2), 80, 100, 120)  # sixtieths of the L2
FOUND, LOST = slice(3), slice(-3, None)  # of WARM_PARTS
SWEPT_PLACES = (0, 2**30, 2**31, 3 * 2**30)
STEPS = 64  # loads of a sampling warp
FAR_FRACTION = 0.1  # least fraction of late loads in an L2 with parts; a quarter by chance alone


def swept_us(bench: Bench, bytes_: int, ahead: int) -> float:
    """Return the time of a further sweep over memory by all SMs, each its part of it.

    The median of several places: the distribution over the L2's sets depends on the address.
    """
    return float(np.median([_swept_us(bench, bytes_, ahead, place) for place in SWEPT_PLACES]))


def _swept_us(bench: Bench, bytes_: int, ahead: int, place: int) -> float:
    times = [
        bench.time_us(
            bench.probe("caches", f"strided<{ahead}>"),
            np.uint64(int(bench.buffer(DRAM_BYTES)) + place),
            np.uint64(bytes_ // 4),
            np.uint64(4),
            np.int32(sweeps),
            np.uint32(0),
            bench.stamps(1),
            grid=BLOCKS * bench.sms,
            block=BLOCK,
            repetitions=3,
        )
        for sweeps in (3, 7)
    ]
    return (times[1] - times[0]) / 4


@probe("capacity.l2_kept_fraction", "capacity.l2_lost_fraction")
def l2_reuse(bench: Bench) -> Values:
    """All SMs read memory over and over, one or four loads ahead: GB/s, from L2's to DRAM's.

    The parts of the L2 up to which all lines hit and from which on none: where the line through hit
    ratios 3/4 and 1/4 meets 1 and 0. The mean of both.
    """
    return [float(value) for value in np.mean([_kept(bench, ahead) for ahead in (1, 4)], axis=0)]


def _kept(bench: Bench, ahead: int) -> Values:
    """Return the parts of the L2 up to which all lines hit, and from which on none."""
    size = bench.backend.attribute("L2_CACHE_SIZE") or 0
    times = {part: swept_us(bench, size * part // 60, ahead) for part in (30, *range(36, 66), 90)}
    bench.notes[f"us_of_a_sweep_by_60ths_of_the_l2_{ahead}_ahead"] = times
    hit, miss = times[30] / 30, times[90] / 90
    return in_order(
        [(part / 60, (miss - time / part) / max(miss - hit, 1e-9)) for part, time in times.items()]
    )


@probe("capacity.l2_warm_kept_fraction", "capacity.l2_warm_lost_fraction")
def l2_between_launches(bench: Bench) -> Values:
    """Launches that read, copy or update in place the same memory: us.

    By its size: the parts of the L2 up to which a launch hits on all lines, and from which on none:
    where the line through hit ratios 3/4 and 1/4 meets 1 and 0. The mean of all.
    """
    size = bench.backend.attribute("L2_CACHE_SIZE") or 0
    found: list[Values] = []
    for name, writes, halves in (("read", 0, 1), ("in place", 1, 1), ("copied", 1, 2)):
        times = {p: warm_us(bench, size * p // 60, writes, halves) for p in WARM_PARTS}
        bench.notes[f"us_of_a_launch_by_60ths_of_the_l2_{name}"] = times
        found.append(found_again(times))
    return [float(value) for value in np.mean(found, axis=0)]


def warm_us(bench: Bench, bytes_: int, writes: int, halves: int) -> float:
    """Return the time of a launch over the memory of the launch before.

    It reads the first of `halves` parts, and writes to the last if `writes`.
    """
    memory = bench.buffer(DRAM_BYTES)
    tiles = bytes_ // halves // TILE_BYTES
    return bench.time_us(
        bench.probe("stores", f"turns<1, {writes}, 4>"),
        memory,
        np.uint64(int(memory) + (halves - 1) * tiles * TILE_BYTES),
        np.uint64(tiles),
        bench.stamps(1),
        grid=max(1, tiles // TILES_OF_A_BLOCK),
        block=BLOCK,
        cold=False,
    )


def found_again(times: Mapping[int, float]) -> Values:
    """Return the parts of the L2 up to which all lines hit, and from which on none.

    The first three times are of hits alone, the last three of misses alone.
    """
    parts, us = np.array(list(times), float), np.array(list(times.values()))
    hit, miss = (np.polyval(np.polyfit(parts[k], us[k], 1), parts) for k in (FOUND, LOST))
    found = (miss - us) / np.maximum(miss - hit, 1e-9)
    return in_order(list(zip(parts / 60, found, strict=True))[2:-2])


def sampled(bench: Bench, lines: int, warps: int, apart: int = LINE, offset: int = 0) -> Array:
    """Return the cycles of loads of random single sectors, by warps of as many SMs."""
    told = bench.told(
        "caches",
        "sample<long long>",
        warps * STEPS,
        bench.buffer(DRAM_BYTES),
        np.uint32(lines),
        np.uint64(apart),
        np.uint32(offset),
        np.int32(STEPS),
        grid=warps,
    )
    return told & 0xFFFF_FFFF


def sweep(bench: Bench, count: int, stride: int, grid: int) -> None:
    """Read `count` words, `stride` bytes apart, by `grid` blocks, as the L2's only contents."""
    bench.backend.empty_l2()
    bench.probe("caches", "strided<4>")(
        bench.buffer(DRAM_BYTES), np.uint64(count), np.uint64(stride), np.int32(1), np.uint32(0),
        bench.stamps(1), grid=(grid, 1, 1), block=(1024, 1, 1),
    )  # fmt: skip


@probe("capacity.l2_parts", "latency_cycles.l2_far")
def l2_copies(bench: Bench) -> Values:
    """One SM reads 4 MB; then a warp of it, and of each SM, load sectors of that at random.

    A tenth or more of the others' loads are later than nearly all of its own if the L2 has two
    parts with copies: the mean additional latency.
    """
    cycles: dict[str, Any] = {}
    for name, warps in (("own", 1), ("all", bench.sms)):
        sweep(bench, MB, 4, 1)
        cycles[name] = sampled(bench, 4 * MB // LINE, warps).astype(float)
    late = cycles["all"] > 1.15 * float(np.percentile(cycles["own"], 95))
    bench.notes["cycles_of_what_one_sm_brought"] = {
        name: {p: float(np.percentile(found, p)) for p in (1, 25, 50, 70, 75, 80, 90, 99)}
        for name, found in cycles.items()
    }
    bench.notes["fraction_of_late_loads"] = float(late.mean())
    if not FAR_FRACTION < late.mean() < 0.5:
        return [1, 0.0]
    return [2, float(cycles["all"][late].mean() - cycles["all"][~late].mean())]


FEW_LINES = 1024  # loaded by all SMs repeatedly
TOUCHES_AT_ONCE = 8  # steps of all SMs whose loads are averaged


@probe("capacity.l2_far_fraction", "capacity.l2_far_touches")
def l2_copies_by_touches(bench: Bench) -> Values:
    """One SM reads 128 KB; then a warp of each loads sectors of that at random, 64 in a row.

    The fraction of late loads, by the number of loads of a line since: an exponential decay, its
    initial value and the number of loads for a factor of e.
    """
    sweep(bench, FEW_LINES * LINE // 4, 4, 1)
    own = sampled(bench, FEW_LINES, 1).astype(float)
    runs = []
    for _ in range(8):
        sweep(bench, FEW_LINES * LINE // 4, 4, 1)
        runs.append(sampled(bench, FEW_LINES, bench.sms).astype(float).reshape(bench.sms, STEPS))
    is_late = np.array(runs) > 1.15 * float(np.percentile(own, 95))
    late = is_late.reshape(len(runs) * bench.sms, -1, TOUCHES_AT_ONCE).mean(axis=(0, 2))
    middles = (np.arange(len(late)) + 0.5) * TOUCHES_AT_ONCE * bench.sms / FEW_LINES
    bench.notes["fraction_of_late_loads_by_touches"] = dict(
        zip(middles.tolist(), late.tolist(), strict=True)
    )
    points = [(t, float(np.log(f))) for t, f in zip(middles, late, strict=True) if f > 0.01]
    if len(points) < 2:
        return [0.0, 1.0]
    begin, slope = line(points)
    return [min(1.0, float(np.exp(begin))), min(1000.0, max(0.01, -1 / min(slope, -1e-3)))]


@probe("latency_cycles.l2_places")
def l2_lines_at_once(bench: Bench) -> Values:
    """A warp loads words of 1, 2 and 4 lines at once, at random of 128 KB that its SM has read.

    The maximum of n uniform latencies is (n - 1) / (n + 1) of the way from the mean to the latest:
    that distance.
    """
    sweep(bench, FEW_LINES * LINE // 4, 4, 1)
    notes = {}
    for count in (1, 2, 4, 8, 16, 32):
        told = bench.told(
            "caches", "at_once<L2>", 16 * STEPS, bench.buffer(DRAM_BYTES), np.uint32(FEW_LINES),
            np.uint32(count), np.int32(16 * STEPS),
        )  # fmt: skip
        notes[count] = float(np.mean(told))
    bench.notes["cycles_of_a_load_by_lines_at_once"] = notes
    return [max(0.0, line([((n - 1) / (n + 1), notes[n]) for n in (1, 2, 4)])[1])]


@probe()
def l2_grains(bench: Bench) -> Values:
    """All SMs read a word every 4 KB: the other sectors fetched with it, of the line and beyond.

    By offset, the median time of random loads beside the words read.
    """
    notes = {}
    for offset in (0, 32, 64, 96, 128, 256):
        sweep(bench, 4096, 4096, bench.sms)
        cycles = sampled(bench, 4096, 4, 4096, offset)
        notes[offset] = float(np.median(cycles))
    bench.notes["cycles_by_offset_from_what_was_read"] = notes
    return []
