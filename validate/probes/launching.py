"""Launch costs: blocks on an SM, kernels on the GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..bench import Bench
from .probing import WARPS, Values, probe

# Time of an empty block launched alone.
BLOCK_ALONE = (
    "latency_cycles.block_start",
    "latency_cycles.block_end",
)
BESIDE_FFMA = 3  # instructions of a warp: it loads two constants and compares
SCHEDULERS = 4  # of an SM with FFMA at full rate
STAMPS_CYCLES = 30  # added by clock reads to the gap between two blocks
START_PART = 0.64  # of that gap; the rest passes before a place is free


@probe("interval_cycles.block_completion")
def block_completion(bench: Bench) -> Values:
    """Empty blocks of 32 to 1024 threads: the least time per block and SM."""
    kernel = bench.probe("launch", "nothing<int>")
    found = {}
    for block in (32, 64, 128, 256, 512, 1024):
        few, many = 256 * bench.sms, 2304 * bench.sms
        times = [
            bench.time_us(kernel, bench.stamps(1), grid=grid, block=block, repetitions=7)
            for grid in (few, many)
        ]
        found[block] = (times[1] - times[0]) * bench.clock_mhz / 2048
    bench.notes["block_completion_by_threads"] = found
    return [found[64]]


@probe("latency_cycles.block_start", "latency_cycles.block_end")
def block_turn(bench: Bench) -> Values:
    """Blocks that fill an SM each: from a last cycle to the next block's first, 64 to 36."""
    notes: dict[str, Any] = {}
    alone = [(f"alone, {block} threads", block, 200 * 1024, 5000) for block in (32, 1024)]
    full = [
        (f"full SM, {block} threads, {stays} cycles each", block, 0, stays)
        for block in (64, 128, 256, 512, 1024)
        for stays in (20000, 500)
    ]
    for name, block, shared, stays in (*alone, *full):
        stamps = _stays(bench, block, shared, stays, (40 if shared else 200) * bench.sms)
        gaps, spacing = _gaps(stamps)
        here = stamps[stamps[:, 0] == stamps[0, 0]]
        here = here[np.argsort(here[:, 1])][:80]
        notes[name] = {
            "gap_median": float(np.median(gaps)) if gaps else None,
            "gap_tenth": float(np.quantile(gaps, 0.1)) if gaps else None,
            "first_blocks_apart": float(np.median(spacing)) if spacing else None,
            "begins_on_one_sm": (here[:, 1] - here[0, 1]).tolist(),
            "ends_on_one_sm": (here[:, 3] - here[0, 1]).tolist(),
            "blocks_on_one_sm": [int(np.flatnonzero((stamps == row).all(1))[0]) for row in here],
        }
    bench.notes["block_turn"] = notes
    gap = max(0.0, notes["alone, 32 threads"]["gap_median"] - STAMPS_CYCLES)
    return [START_PART * gap, (1 - START_PART) * gap]


@probe("interval_cycles.exit")
def ends_of_warps(bench: Bench) -> Values:
    """Blocks of 1024 threads, 64 and 256 FFMA each: scheduler cycles per warp, beyond these.

    And beyond the three other instructions of a warp.
    """
    warps, beyond = WARPS // SCHEDULERS, {}
    for count in (64, 256):
        kernel = bench.probe("launch", f"works<{count}>")
        times = [
            bench.time_us(
                kernel,
                bench.stamps(1),
                np.float32(1),
                grid=blocks * bench.sms,
                block=32 * WARPS,
                repetitions=7,
            )
            for blocks in (64, 192)
        ]
        cycles = (times[1] - times[0]) * bench.clock_mhz / 128
        beyond[count] = cycles / warps - count - BESIDE_FFMA
    bench.notes["cycles_of_a_warp_beyond_its_ffma"] = beyond
    return [max(1.0, float(np.mean(list(beyond.values()))))]


@probe("interval_cycles.block_launch")
def first_fill(bench: Bench) -> Values:
    """32 blocks of 64 threads per SM that stay resident, behind other work: first to last start.

    The median of all SMs, and of 9 launches.
    """
    notes = {}
    for block in (64, 128, 256, 512, 1024):
        blocks = min(32, 2048 // block) * bench.sms
        launches = [_stays(bench, block, 0, 100_000, blocks) for _ in range(9)]
        notes[block] = [
            float(np.median([_mean_gap(stamps, sm) for sm in np.unique(stamps[:, 0])]))
            for stamps in launches
        ]
    bench.notes["first_blocks_apart_by_threads_and_launch"] = notes
    return [float(np.median(notes[64]))]


def _mean_gap(stamps: Any, sm: int) -> float:
    begins = stamps[stamps[:, 0] == sm, 1]
    return float(np.ptp(begins)) / max(1, len(begins) - 1)


@probe("latency_cycles.warp_start")
def warps_of_a_block(bench: Bench) -> Values:
    """Later blocks of 1024 threads: from the first warp's first cycle to the last warp's."""
    blocks, warps = 8 * bench.sms, 32
    memory = bench.stamps(2 * blocks * warps)
    bench.probe("launch", "begin<long long>")(
        memory, np.int64(2000), grid=(blocks, 1, 1), block=(32 * warps, 1, 1)
    )
    stamps = bench.read(memory, 2 * blocks * warps).reshape(blocks, warps, 2)
    spans = np.ptp(stamps[blocks // 2 :, :, 1], axis=1)
    return [float(np.median(spans)) / (warps - 1)]


@probe("latency_cycles.cold_start")
def first_blocks(bench: Bench) -> Values:
    """Blocks of 256 threads until their warps have sent a load: one an SM, less later ones of many.

    Behind a read that empties the L2: a launch's code and arguments are not yet in an SM's caches.
    """
    kernel = bench.probe("launch", "brief<long long>")
    block, warps, many = 256, 256 // 32, 320 * bench.sms
    words = bench.buffer(4 * block * many)
    found: dict[str, list[float]] = {"first": [], "later": []}
    for name, blocks in (("first", bench.sms), ("later", many)):
        numbers, count = 2 * blocks * warps, np.int32(block * blocks)
        for _ in range(15):
            memory = bench.stamps(numbers + 1)
            never = np.uint64(int(memory) + 8 * numbers)
            launch = partial(
                kernel, memory, words, count, never, grid=(blocks, 1, 1), block=(block, 1, 1)
            )
            bench.backend.timed(bench.backend.empty_l2, launch, 1)
            stamps = bench.read(memory, numbers).reshape(blocks, warps, 2)[-bench.sms :]
            sent = stamps[:, :, 1].mean(axis=1) - stamps[:, :, 0].min(axis=1)
            found[name].append(float(sent.mean()))
    bench.notes["first_blocks_and_later_ones"] = found
    return [max(0.0, float(np.median(found["first"]) - np.median(found["later"])))]


@probe("latency_cycles.launch_spread")
def first_blocks_of_all(bench: Bench) -> Values:
    """A block of 128 threads on each SM: the mean of their starts less the first, of 400 launches.

    On the GPU's own clock; the mean of many removes its granularity.
    """
    kernel = bench.probe("launch", "when<long long>")
    later = _begins(bench, kernel, 128, bench.backend.empty_l2, 400).mean(axis=1)
    bench.notes["first_blocks_later_ns"] = later.tolist()
    return [float(later.mean()) * bench.clock_mhz / 1000]


@probe("latency_cycles.launch_last")
def last_blocks_of_all(bench: Bench) -> Values:
    """A block of 256 threads on each SM copies a word a thread: its last start less the first.

    The mean of 60 launches, each behind another copy of the same data.
    """
    kernel, block = bench.probe("launch", "when_copying<long long>"), 256
    words, copied = (bench.buffer(4 * block * bench.sms) for _ in range(2))
    last = _begins(bench, partial(kernel, words, copied), block, lambda: None).max(axis=1)
    bench.notes["last_blocks_later_ns"] = last.tolist()
    return [float(last.mean()) * bench.clock_mhz / 1000]


def _begins(
    bench: Bench, kernel: Any, block: int, before: Callable[[], None], launches: int = 60
) -> Any:
    """Return the start of each SM's block, in ns after the first, for each launch."""
    begins = []
    for _ in range(launches):
        memory = bench.stamps(bench.sms)
        launch = partial(kernel, memory, grid=(bench.sms, 1, 1), block=(block, 1, 1))
        bench.backend.timed(before, launch, 1)
        stamps = bench.read(memory, bench.sms)
        begins.append(stamps - stamps.min())
    return np.array(begins, dtype=float)


def _stays(bench: Bench, block: int, shared: int, stays: int, blocks: int) -> Any:
    """Return (SM, first cycle, cycle with parameter, last cycle) of each block."""
    kernel = bench.probe("launch", "stay<long long>")
    if shared:
        attribute = bench.driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
        kernel.set_attribute(attribute, shared)
    memory = bench.stamps(4 * blocks)
    launch = partial(
        kernel, memory, np.int64(stays), grid=(blocks, 1, 1), block=(block, 1, 1), shared=shared
    )
    with bench.backend.naming("stay"):
        bench.backend.timed(bench.backend.empty_l2, launch, 1)
        return bench.read(memory, 4 * blocks).reshape(blocks, 4)


def _gaps(stamps: Any) -> tuple[list[float], list[float]]:
    """Return gaps from a free place to the next block's start, and spacings of first starts."""
    gaps: list[float] = []
    spacing: list[float] = []
    for sm in np.unique(stamps[:, 0]):
        here = stamps[stamps[:, 0] == sm]
        here = here[np.argsort(here[:, 1])]
        first_end = here[:, 3].min()
        first = here[here[:, 1] < first_end]
        spacing += [float(d) for d in np.diff(first[:, 1])]
        ends = np.sort(here[:, 3])
        later = here[here[:, 1] >= first_end]
        gaps += [float(begin - ends[k]) for k, begin in enumerate(later[:, 1]) if k < len(ends)]
    return gaps, spacing


@probe("host.launch_overhead_us", "host.pass_gap_us")
def launches(bench: Bench) -> Values:
    """An empty kernel behind other work, between events, less the time of its blocks.

    A block of 64 threads on each SM, and eight: the mean, because an H200 only detects the end of a
    launch every 0.22 us. The gap: 11 in a row less 1, less the time of their blocks.
    """
    kernel = bench.probe("launch", "nothing<int>")
    memory = bench.stamps(1)
    found = {}
    for cold in (True, False):
        for grid in (1, bench.sms, 8 * bench.sms):
            times = {
                k: bench.time_us(
                    kernel, memory, grid=grid, block=64, cold=cold, launches=k, repetitions=31
                )
                for k in (1, 2, 3, 11)
            }
            found[f"{'cold' if cold else 'warm'}, {grid} blocks"] = times
    bench.notes["empty_kernels_us"] = found
    own = bench.known(*BLOCK_ALONE) / bench.clock_mhz
    further = bench.known("interval_cycles.block_completion") / bench.clock_mhz
    seen = [
        (blocks, found[f"{l2}, {blocks * bench.sms} blocks"])
        for blocks in (1, 8)
        for l2 in ("cold", "warm")
    ]
    alone = [(blocks, times[1]) for blocks, times in seen]
    in_a_row = [(blocks, (times[11] - times[1]) / 10) for blocks, times in seen]
    return [beside_blocks(times, own, further) for times in (alone, in_a_row)]


def beside_blocks(times: Sequence[tuple[int, float]], own: float, further: float) -> float:
    """Return the mean time of launches without their blocks; `times` are (blocks per SM, us).

    The first block takes `own`, each further one the interval between block ends.
    """
    beside = [time - own - (blocks - 1) * further for blocks, time in times]
    return max(0.0, float(np.mean(beside)))


@probe("host.dependent_spared_us", "host.triggered_spared_us")
def programmatic_pairs(bench: Bench) -> Values:
    """Eleven launches in a row, of 20,000 cycles after their wait for the one before: us of a gap.

    What programmatic dependence spares of it: the mean of 128 and 1,056 blocks of 128 threads. And
    with a trigger at the start of every second launch.
    """
    found: dict[str, list[float]] = {}
    for name, second in (("without a trigger", "false"), ("every second triggers", "true")):
        kernels = [f"depends<{second}>", "depends<false>"]
        for grid in (128, 1056):
            usual, dependent = (
                bench.row_us(
                    "launch", kernels, 0, 20_000, launches=11, is_programmatic=way, grid=grid,
                    block=128,
                )
                for way in (False, True)
            )  # fmt: skip
            found.setdefault(name, []).append((usual - dependent) / 10)
    bench.notes["spared_by_programmatic_dependence_us"] = found
    without, half = (float(np.mean(of)) for of in found.values())
    return [without, 2 * half - without]
