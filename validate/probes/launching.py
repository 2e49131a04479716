"""What launching costs: blocks on an SM, kernels on the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..bench import Bench
from .probing import Values, probe


@probe("interval_cycles.block_launch")
def block_launch(bench: Bench) -> Values:
    """Blocks of 32 to 1024 threads without work: the least time a block, per SM."""
    kernel = bench.probe("launch", "nothing<int>")
    found = {}
    for block in (32, 64, 128, 256, 512, 1024):
        few, many = 256 * bench.sms, 2304 * bench.sms
        times = [
            bench.time_us(kernel, bench.stamps(1), grid=grid, block=block, repetitions=7)
            for grid in (few, many)
        ]
        found[block] = (times[1] - times[0]) * bench.clock_mhz / 2048
    bench.notes["block_launch_by_threads"] = found
    return [found[64]]


@probe("latency_cycles.block_start", "latency_cycles.block_end")
def block_turn(bench: Bench) -> Values:
    """Blocks that fill an SM each: from a last cycle to the next block's first, 30 for the end."""
    notes: dict[str, Any] = {}
    alone = [(f"alone, {block} threads", block, 200 * 1024, 5000) for block in (32, 1024)]
    full = [
        (f"full SM, {block} threads, {stays} cycles each", block, 0, stays)
        for block in (64, 128, 256, 512, 1024)
        for stays in (20000, 500)
    ]
    for name, block, shared, stays in (*alone, *full):
        told = _stays(bench, block, shared, stays, (40 if shared else 200) * bench.sms)
        gaps, spacing = _gaps(told)
        here = told[told[:, 0] == told[0, 0]]
        here = here[np.argsort(here[:, 1])][:80]
        notes[name] = {
            "gap_median": float(np.median(gaps)) if gaps else None,
            "gap_tenth": float(np.quantile(gaps, 0.1)) if gaps else None,
            "first_blocks_apart": float(np.median(spacing)) if spacing else None,
            "begins_on_one_sm": (here[:, 1] - here[0, 1]).tolist(),
            "ends_on_one_sm": (here[:, 3] - here[0, 1]).tolist(),
            "blocks_on_one_sm": [int(np.flatnonzero((told == row).all(1))[0]) for row in here],
        }
    bench.notes["block_turn"] = notes
    gap = notes["alone, 32 threads"]["gap_median"]
    return [max(0.0, gap - 30), 30]


def _stays(bench: Bench, block: int, shared: int, stays: int, blocks: int) -> Any:
    """Return (SM, first cycle, cycle with parameter, last cycle) of each block."""
    kernel = bench.probe("launch", "stay<long long>")
    if shared:
        attribute = bench.driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
        kernel.set_attribute(attribute, shared)
    memory = bench.stamps(4 * blocks)
    with bench.backend.naming("stay"):
        kernel(
            memory, np.int64(stays), grid=(blocks, 1, 1), block=(block, 1, 1), shared=shared
        )  # fmt: skip
        return bench.read(memory, 4 * blocks).reshape(blocks, 4)


def _gaps(told: Any) -> tuple[list[float], list[float]]:
    """Return from when a place was free to the next block's begin, and first begins apart."""
    gaps: list[float] = []
    spacing: list[float] = []
    for sm in np.unique(told[:, 0]):
        here = told[told[:, 0] == sm]
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
    """A kernel without work behind other work, event to event; 11 in a row less 1, less a block."""
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
    alone = found["cold, 1 blocks"]
    own = 300 / bench.clock_mhz
    warm = found["warm, 1 blocks"]
    return [alone[1], max(0.0, (warm[11] - warm[1]) / 10 - own)]
