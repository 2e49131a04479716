"""DRAM by pattern: places at random, strides, and words of many pages."""

from __future__ import annotations

import numpy as np

from ..bench import Bench
from .l2 import BLOCK, BLOCKS
from .probing import DRAM_BYTES, KB, LINE, MB, Values, probe

SCATTERED_MB = 1024  # an L2 holds a few hundredths of it
# Kernels of random accesses: their file, and the lanes of an access.
AT_RANDOM = {
    "gather<8>": ("memory", 1),
    "gather_lines<8>": ("caches", 32),
    "scatter<8>": ("stores", 8),
}


def _gathered(bench: Bench, expression: str, size_mb: int, unit: int) -> float:
    """Return the rate of random accesses of `unit` bytes by all SMs to `size_mb` MB, per ns."""
    file, lanes = AT_RANDOM[expression]
    times = [
        bench.time_us(
            bench.probe(file, expression),
            bench.buffer(DRAM_BYTES),
            np.uint32(size_mb * MB // unit - 1),
            np.int32(iterations),
            bench.stamps(1),
            grid=BLOCKS * bench.sms,
            block=BLOCK,
            cold=False,
            repetitions=3,
        )
        for iterations in (8, 40)
    ]
    accesses = 32 * 8 * BLOCKS * bench.sms * BLOCK // lanes
    return accesses / max(times[1] - times[0], 1e-9) / 1000


@probe("bandwidth.dram_scattered_gbps", "bandwidth.dram_scattered_lines_gbps")
def scattered(bench: Bench) -> Values:
    """All SMs load words, and lines, at random places of 1 GB, eight ahead: DRAM's read rate.

    A word comes with its grain. L2 hits are left out: it holds half its size of randomly read data,
    because of copies in its parts or of half-filled lines.
    """
    notes = {}
    for name, expression, unit in (
        ("words", "gather<8>", 32),
        ("lines", "gather_lines<8>", LINE),
    ):
        notes[name] = {
            size: _gathered(bench, expression, size, unit)
            for size in (8, 32, 64, 128, 256, 512, SCATTERED_MB, 4096)
        }
    bench.notes["loads_at_random_per_ns_by_mb"] = notes
    missed = 1 - (bench.backend.attribute("L2_CACHE_SIZE") or 0) / (SCATTERED_MB * MB) / 2
    grain = bench.known("bandwidth.dram_grain_bytes")
    most = bench.known("bandwidth.dram_gbps")
    words, lines = (notes[name][SCATTERED_MB] for name in ("words", "lines"))
    return [min(most, words * grain * missed), min(most, lines * LINE * missed)]


@probe("bandwidth.dram_scattered_writes_gbps")
def scattered_stores(bench: Bench) -> Values:
    """All SMs store sectors at random places of 1 GB: DRAM's write rate, a grain for each sector.

    Sectors of a line that the L2 writes together are left out: it holds half its size of them.
    """
    notes = {size: _gathered(bench, "scatter<8>", size, 32) for size in (256, SCATTERED_MB)}
    bench.notes["stores_at_random_per_ns_by_mb"] = notes
    missed = 1 - (bench.backend.attribute("L2_CACHE_SIZE") or 0) / (SCATTERED_MB * MB) / 2
    written = notes[SCATTERED_MB] * bench.known("bandwidth.dram_grain_bytes") * missed
    return [min(bench.known("bandwidth.dram_gbps"), written)]


@probe()
def pages(bench: Bench) -> Values:
    """A thread cycles through distant places that are in the L2: cycles per step by their number.

    Misses of the SM's translation caches would show here.
    """
    memory = bench.buffer(2 * DRAM_BYTES)
    notes = {}
    for apart in (4 * KB, 64 * KB, 2 * MB):
        for nodes in (16, 256, 2048, 4096, 65536):
            steps = min(nodes, 4096)
            if nodes * apart <= 2 * DRAM_BYTES:
                begin, end = bench.told(
                    "caches", "tour<L2>", 2, memory, np.uint32(nodes), np.uint64(apart),
                    np.int32(nodes), np.int32(steps), np.uint32(0), block=1,
                ).tolist()  # fmt: skip
                notes[f"{nodes} places, {apart} bytes apart"] = (end - begin) / steps
    bench.notes["cycles_of_a_step_around_places"] = notes
    return []


@probe()
def joined(bench: Bench) -> Values:
    """Warps of one SM, and of all, load the same lines out of DRAM at a time: cycles of a load."""
    lines = 1024
    notes = {}
    for where in ("L2", "L1"):
        for blocks in (1, 2, 8, 66, bench.sms):
            for warps in (1, 8, 32):
                told = bench.told(
                    "caches", f"together<{where}>", blocks * warps, bench.buffer(DRAM_BYTES),
                    np.int32(lines), np.uint32(4096 + LINE), grid=blocks, block=32 * warps,
                    before=bench.backend.empty_l2,
                )  # fmt: skip
                name = f"{blocks} blocks of {warps} warps, as far as {where}"
                notes[name] = float(told.mean()) / lines
    bench.notes["cycles_of_loading_the_same"] = notes
    return []
