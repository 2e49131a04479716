"""Stores: contiguous, scattered, alternating with loads, in a row, and the last of a launch."""

from __future__ import annotations

import numpy as np

from ..bench import Bench
from .l2 import BLOCK, BLOCKS, TILE_BYTES
from .probing import DRAM_BYTES, LINE, MB, WARPS, Values, line, probe, waiting_when_held_up

BURST = 48  # requests of a warp
LAUNCHES = 21  # in a row, less one
WAITS = range(4000, 4432, 54)  # cycles
ENDS = ("NOTHING", "STORE", "STORE_TWICE", "RED", "ATOM", "LOAD", "STORE_FENCE")


def _filled_us(bench: Bench, width: int, count: int, stride: int) -> list[float]:
    """Return the time of the first and of a later round of stores to `count` places, in us."""
    times = [
        bench.time_us(
            bench.probe("stores", f"fill<{width}>"),
            bench.buffer(DRAM_BYTES),
            np.uint64(count),
            np.uint64(stride),
            np.int32(iterations),
            grid=BLOCKS * bench.sms,
            block=BLOCK,
            repetitions=3,
        )
        for iterations in (1, 3, 7)
    ]
    return [times[0], (times[2] - times[1]) / 4]


@probe("bandwidth.l2_whole_stores_per_cycle")
def fills(bench: Bench) -> Values:
    """All SMs store 4, 8 or 16 bytes a lane, contiguously, over 4 to 512 MB: us, first and again.

    The best rate within four fifths of the L2: lines and sectors a cycle.
    """
    notes = {
        4 * width: {
            size: _filled_us(bench, width, size * MB // (4 * width), 4 * width)
            for size in (4, 16, 32, 48, 64, 128, 512)
        }
        for width in (1, 2, 4)
    }
    bench.notes["us_of_filling_by_bytes_a_lane_and_mb"] = notes
    held = 0.8 * (bench.backend.attribute("L2_CACHE_SIZE") or 0)
    lines_per_us = [
        size * MB / LINE / max(again, 1e-9)
        for times in notes.values()
        for size, (_, again) in times.items()
        if size * MB <= max(held, 4 * MB)
    ]
    return [5 * max(lines_per_us) / bench.clock_mhz]


@probe()
def halves_of_sectors(bench: Bench) -> Values:
    """32 warps of an SM store one half of 32 sectors, then the other half, or half of others.

    The merging of halves within the SM does not show in the time of an SM or of all: Nsight Compute
    counts it.
    """
    notes: dict[str, float] = {}
    for blocks in (1, bench.sms):
        for name, is_same in (("the same", "true"), ("others", "false")):
            spans = []
            for iterations in (32, 96):
                told = bench.told(
                    "stores", f"halves<{is_same}>", 2 * blocks * WARPS, bench.buffer(DRAM_BYTES),
                    np.int32(iterations), grid=blocks, block=32 * WARPS,
                ).reshape(blocks, WARPS, 2)  # fmt: skip
                spans.append(float(np.mean(np.ptp(told, axis=(1, 2)))))
            notes[f"{name}, {blocks} SMs"] = (spans[1] - spans[0]) / 64 / WARPS
    bench.notes["cycles_of_storing_two_halves_of_sectors"] = notes
    return []


@probe()
def words_here_and_there(bench: Bench) -> Values:
    """All SMs store 4 bytes per stride, over 16 MB and over 512 MB: us, first and again.

    DRAM reads partially stored sectors.
    """
    bench.notes["us_of_storing_words_by_mb_and_bytes_between"] = {
        size: {
            stride: _filled_us(bench, 1, size * MB // stride, stride)
            for stride in (4, 8, 32, 64, 128, 256, 1024)
        }
        for size in (16, 512)
    }
    return []


def _turns_us(bench: Bench, reads: int, writes: int, width: int, size: int, place: int) -> float:
    """Return the time to move `size` bytes alternately, with rows read and rows written, in us.

    Written rows lie `place` bytes after those read.
    """
    memory = bench.buffer(2 * DRAM_BYTES)
    tiles = size // (128 * width * (reads + writes))
    return bench.time_us(
        bench.probe("stores", f"turns<{reads}, {writes}, {width}>"),
        memory,
        np.uint64(int(memory) + place),
        np.uint64(tiles),
        bench.stamps(1),
        grid=BLOCKS * bench.sms,
        block=BLOCK,
        repetitions=5,
    )


@probe("bandwidth.dram_write_alone_factor")
def turns(bench: Bench) -> Values:
    """All SMs read 0 to 8 rows of 512 bytes and write the rest of 8, through 1 GB and through 2.

    The time of writing only, relative to reading only. Also elsewhere and in place, and by rows of
    128 bytes.
    """
    notes: dict[str, float] = {}
    for reads, writes, width in (
        *((reads, 8 - reads, 4) for reads in (8, 7, 6, 4, 2, 0)),
        (4, 4, 1),
        (1, 1, 1),
        (1, 1, 4),
    ):
        for name, place in (("elsewhere", DRAM_BYTES), ("in place", 0)):
            if name == "elsewhere" or reads == writes:
                few, many = (
                    _turns_us(bench, reads, writes, width, size * 1024 * MB, place)
                    for size in (1, 2)
                )
                row = f"{reads} rows read, {writes} written, {4 * width} bytes a lane, {name}"
                notes[row] = 1024 * MB / max(many - few, 1e-9) / 1000
    bench.notes["gbps_of_reading_and_writing_in_turn"] = notes
    reading = notes["8 rows read, 0 written, 16 bytes a lane, elsewhere"]
    writing = notes["0 rows read, 8 written, 16 bytes a lane, elsewhere"]
    return [max(1.0, reading / writing)]


NEAR_MB = range(4, 15)  # resident in the near part of the L2, with as much beside it


@probe("bandwidth.l2_store_part_factor")
def stores_beside_loads(bench: Bench) -> Values:
    """All SMs read, store, update in place and copy 4 to 14 MB that are near in the L2: us a MB.

    An update occupies the L2's parts as long as a read and a part of a store: its excess over a
    read, relative to a store. The mean of updates in place and copies.
    """
    ways = {"read": (1, 0, 0), "stored": (0, 1, 0), "in place": (1, 1, 0), "copied": (1, 1, 64)}
    notes = {name: _near_us_a_mb(bench, *way) for name, way in ways.items()}
    bench.notes["us_a_mb_of_what_lies_near_in_the_l2"] = notes
    both = float(np.mean([notes["in place"], notes["copied"]]))
    return [max(0.0, (both - notes["read"]) / max(notes["stored"], 1e-9))]


def _near_us_a_mb(bench: Bench, reads: int, writes: int, apart_mb: int) -> float:
    """Return the time of all SMs per megabyte, with the same assignment as in the last launch.

    They write `apart_mb` MB after the places read.
    """
    memory = bench.buffer(DRAM_BYTES)
    times = [
        bench.time_us(
            bench.probe("stores", f"turns<{reads}, {writes}, 4>"),
            memory,
            np.uint64(int(memory) + apart_mb * MB),
            np.uint64(size * MB // TILE_BYTES),
            bench.stamps(1),
            grid=BLOCKS * bench.sms,
            block=BLOCK,
            cold=False,
        )
        for size in NEAR_MB
    ]
    return line(list(zip(NEAR_MB, times, strict=True)))[1]


def under_way(
    bench: Bench, kind: str, lanes: int, apart: tuple[int, int, int], blocks: int, warps: int
) -> float:
    """Return the number of an SM's requests in flight when its warps first stall.

    They send `kind` in a row; `apart` is in bytes, from warp to warp, lane and request.
    """
    by_warp, by_lane, step = apart
    told = bench.told(
        "stores",
        f"burst<{kind}, {step}, {BURST}>",
        BURST * blocks * warps,
        bench.buffer(DRAM_BYTES),
        np.uint32(by_warp),
        np.uint32(by_lane),
        np.int32(lanes),
        grid=blocks,
        block=32 * warps,
    )
    return waiting_when_held_up(np.sort(told[: BURST * warps]).tolist())


@probe("queue.atomic_depth", "queue.store_depth")
def requests_in_a_row(bench: Bench) -> Values:
    """16 warps of an SM send in a row RED by 32 lanes to one word, or stores to 32 lines each.

    The number in flight when they stall, less the capacity of their schedulers' queues. The word is
    shared by 16 sending SMs.
    """
    spread = (BURST * 4096, 128, 4096)
    cases = {
        "RED, 32 lanes on one word": ("SEND_RED", 32, (0, 0, 0), 16),
        "RED, a lane": ("SEND_RED", 1, (0, 0, 0), 16),
        "RED.F32, 32 lanes on one word": ("SEND_RED_FLOAT", 32, (0, 0, 0), 16),
        "RED, 32 lines": ("SEND_RED", 32, spread, 1),
        "stores, 32 lines": ("SEND_STORE", 32, spread, 1),
    }
    notes = {
        name: {warps: under_way(bench, *case, warps) for warps in (1, 4, 16)}
        for name, case in cases.items()
    }
    bench.notes["requests_under_way_when_held_up_by_warps"] = notes
    queued = 4 * bench.known("queue.lsu_depth")
    wanted = (notes["RED, 32 lanes on one word"][16], notes["stores, 32 lines"][16])
    return [max(1.0, sent - queued) for sent in wanted]


@probe("latency_cycles.last_store")
def ends(bench: Bench) -> Values:
    """Blocks of 1024 threads wait and end, on each SM, 21 launches less one: a store's added time.

    The mean of waits 54 cycles apart, because an H200 only detects the end of a launch every 0.22
    us. Also two stores, atomics, a load, and a fence behind a store.
    """
    bench.prepare("stores", *(f"ended<{end}>" for end in ENDS))
    notes = {}
    for end in ENDS:
        notes[end] = float(np.mean([_ended(bench, end, wait) for wait in WAITS]))
    bench.notes["cycles_of_a_launch_by_its_end"] = notes
    return [max(0.0, notes["STORE"] - notes["NOTHING"])]


def _ended(bench: Bench, end: str, wait: int) -> float:
    """Return the cycles of a launch with blocks that wait for some cycles and end like this."""
    times = [
        bench.time_us(
            bench.probe("stores", f"ended<{end}>"),
            bench.buffer(DRAM_BYTES),
            np.int32(wait),
            bench.stamps(1),
            grid=bench.sms,
            block=1024,
            cold=False,
            launches=launches,
            repetitions=7,
        )
        for launches in (1, LAUNCHES)
    ]
    return (times[1] - times[0]) / (LAUNCHES - 1) * bench.clock_mhz
