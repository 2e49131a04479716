"""Bulk copies, boxes of tensor maps and mbarriers, by one block."""

from __future__ import annotations

import numpy as np

from gpusim.typing import Array

from ..bench import Bench
from .probing import KB, MB, Values, line, probe

FILE = "bulk"
ROUNDS = 17  # the first copy of a launch is left out
PLACES = 16  # of copies to shared memory, each once before
SIZES = (16, 128, 512, 1 * KB, 2 * KB, 4 * KB, 8 * KB, 16 * KB, 32 * KB, 64 * KB)
# Instructions of a thread, in cycles: from the clock's reading to a copy, and to the next reading.
ASKS, COMMITS = 12, 21


def _of(kernel: str, count: int) -> str:
    """Return a kernel for one copy or several: a loop has instructions of its own."""
    return f"{kernel}<{'true' if count == 1 else 'false'}>"


def _loads(bench: Bench, size: int, count: int = 1, *, cold: bool = False) -> float:
    """Return the cycles of copies of some bytes to shared memory: the mean of several places."""
    rounds = PLACES if cold else 2 * PLACES
    found = [
        _told(
            bench, _of("loads", count), rounds, bench.buffer(64 * MB), np.int32(size),
            np.int32(count), np.int32(rounds), shared=size * count, cold=cold,
        )
        for _ in range(3 if cold else 1)
    ]  # fmt: skip
    return float(np.mean([one[-PLACES:] for one in found]))


def _stores(bench: Bench, size: int, count: int = 1) -> tuple[float, float]:
    """Return the cycles until copies to global memory have been read, and until they are done."""
    found = _told(
        bench, _of("stores", count), 2 * ROUNDS, bench.buffer(64 * MB), np.int32(size),
        np.int32(count), np.int32(ROUNDS), shared=size * count,
    )  # fmt: skip
    read, done = np.median(found.reshape(-1, 2)[1:], axis=0)
    return float(read), float(done)


def _told(
    bench: Bench, kernel: str, numbers: int, *arguments: object, shared: int, cold: bool = False
) -> Array:
    before = bench.backend.empty_l2 if cold else lambda: None
    return bench.told(FILE, kernel, numbers, *arguments, block=1, shared=shared, before=before)


@probe(
    "latency_cycles.bulk_load", "latency_cycles.phase_noticed",
    "bandwidth.bulk_load_bytes_per_cycle", "interval_cycles.bulk_load",
)  # fmt: skip
def bulk_loads(bench: Bench) -> Values:
    """Copies of 16 bytes to 64 KB to shared memory and the wait for them, out of the L2.

    Of 16 bytes less latency_cycles.l2 and the thread's 12 cycles: half before the copy, half after
    its phase. What 64 KB take longer than 32. What each of 48 further copies takes, 64 in flight.
    Also out of DRAM.
    """
    warm = {size: _loads(bench, size) for size in SIZES}
    bench.notes["bulk_loads_warm"] = warm
    bench.notes["bulk_loads_cold"] = {size: _loads(bench, size, cold=True) for size in SIZES}
    half = (warm[16] - bench.known("latency_cycles.l2") - ASKS) / 2
    rate = 32 * KB / max(1.0, warm[64 * KB] - warm[32 * KB])
    further = {
        size: _loads(bench, size, 64) - _loads(bench, size, 16) for size in (16, 256, 1 * KB)
    }
    bench.notes["bulk_loads_48_more"] = further
    return [half, half, rate, further[16] / 48]


@probe(
    "latency_cycles.bulk_store", "bandwidth.bulk_store_bytes_per_cycle",
    "interval_cycles.bulk_store",
)  # fmt: skip
def bulk_stores(bench: Bench) -> Values:
    """Copies of 1 to 64 KB to global memory until they have been read: the line through them.

    Its begin less the thread's 21 cycles, and its slope. What each of 48 further copies of 16 bytes
    takes. Also until they are done.
    """
    found = {size: _stores(bench, size) for size in SIZES}
    bench.notes["bulk_stores_read_and_done"] = found
    begin, byte = line([(size, found[size][0]) for size in SIZES if size >= KB])
    further = _stores(bench, 16, 64)[0] - _stores(bench, 16, 16)[0]
    return [begin - COMMITS, 1 / max(byte, 1e-9), further / 48]


def _box(bench: Bench, columns: int, rows: int) -> list[list[float]]:
    """Return the cycles of a box to shared memory, and from there: the first, then the mean."""
    size = 4 * columns * rows
    box = bench.tensor_map(bench.buffer(64 * MB), (4096, 2048), (columns, rows))
    found = []
    for stores in (0, 1):
        given = box, np.int32(size), np.int32(2 * PLACES), np.int32(stores)
        told = _told(bench, "boxes<long long>", 2 * PLACES, *given, shared=size)
        found.append([float(told[0]), float(np.mean(told[-PLACES:]))])
    return found


@probe("latency_cycles.box_load", "latency_cycles.box_store", "interval_cycles.box_line")
def tensor_copies(bench: Bench) -> Values:
    """Boxes of tensor maps, 1 to 64 rows of 16 to 1,024 bytes, less copies of as many bytes.

    The medians, out of the L2, and until they have been read for their stores. What each of 256
    rows of 16 bytes takes longer than of 64.
    """
    shapes = ((4, 1), (64, 1), (256, 1), (32, 8), (32, 32), (16, 64), (4, 64))
    boxes = {shape: _box(bench, *shape) for shape in (*shapes, (4, 256))}
    plain = {
        shape: [_loads(bench, 4 * columns * rows), _stores(bench, 4 * columns * rows)[0]]
        for shape in shapes
        for columns, rows in [shape]
    }
    bench.notes["boxes_first_mean_and_plain"] = {
        f"{rows} rows of {4 * columns} bytes": [*boxes[columns, rows], plain[columns, rows]]
        for columns, rows in shapes
    }
    loads, stores = (
        float(np.median([boxes[shape][way][1] - plain[shape][way] for shape in shapes]))
        for way in (0, 1)
    )
    return [loads, stores, (boxes[4, 256][0][1] - boxes[4, 64][0][1]) / 192]


@probe("interval_cycles.mbarrier_arrival")
def mbarriers(bench: Bench) -> Values:
    """All threads of a block arrive at an mbarrier and wait: each of 24 warps more than 8."""
    found = {}
    for threads in (1, 32, 256, 1024):
        short, long = (
            bench.span(FILE, "arrivals<long long>", np.int32(rounds), threads=threads)
            for rounds in (64, 320)
        )
        found[threads] = (long - short) / 256
    bench.notes["all_threads_arrive_and_wait"] = found
    return [(found[1024] - found[256]) / 24]
