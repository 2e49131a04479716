"""Shared memory: latency, wavefronts, the queue before it, atomics."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..bench import Bench
from .probing import WARPS, Values, line, probe, waiting_when_held_up


@probe("latency_cycles.shared_load", "latency_cycles.shared_wavefront")
def shared_latency(bench: Bench) -> Values:
    """One warp follows addresses in shared memory; lanes 1 to 32 words apart, line through all."""
    times = {
        stride: bench.step("shared", "load_chain<LENGTH>", np.int32(stride))
        for stride in (1, 2, 4, 8, 16, 32)
    }
    bench.notes["shared_load_latency_by_wavefronts"] = times
    bench.notes["shared_store_then_load"] = bench.step(
        "shared", "store_load_chain<LENGTH>", np.int32(1)
    )
    _, slope = line([(float(k), v) for k, v in times.items()])
    return [times[1], slope]


def _shared_flood(
    bench: Bench, name: str, stride: int, schedulers: int, warps: int = WARPS
) -> float:
    """Return SM cycles per access of a warp; `warps` is the number for all schedulers."""
    step = bench.step(
        "shared",
        f"{name}<LENGTH>",
        np.int32(stride),
        np.int32(schedulers),
        threads=32 * warps,
        lengths=(2, 4),
    )
    return step / 8 / max(1, warps / 4 * schedulers)


@probe(
    "interval_cycles.lsu_scheduler", "interval_cycles.lsu_sm", "interval_cycles.shared_wavefront"
)
def shared_throughput(bench: Bench) -> Values:
    """Independent loads from shared memory: by 8 warps of a scheduler, by 32 of all.

    The last is the slope over wavefronts a load.
    """
    one = _shared_flood(bench, "load_flood", 1, 1)
    by_ways = {ways: _shared_flood(bench, "load_flood", ways, 4) for ways in (1, 2, 4, 8, 16, 32)}
    bench.notes["shared_load_interval_by_wavefronts"] = by_ways
    bench.notes["shared_load_interval_two_schedulers"] = _shared_flood(bench, "load_flood", 1, 2)
    _, slope = line([(float(k), v) for k, v in by_ways.items() if k > 1])
    return [one, by_ways[1], slope]


@probe("interval_cycles.shared_store_conflict", "interval_cycles.store_scheduler")
def stores(bench: Bench) -> Values:
    """Stores to shared memory by 32 warps, lanes 1 to 32 words apart: slope; by one scheduler."""
    by_ways = {ways: _shared_flood(bench, "store_flood", ways, 4) for ways in (1, 2, 4, 8, 16, 32)}
    bench.notes["shared_store_interval_by_wavefronts"] = by_ways
    bench.notes["shared_store_interval_by_wavefronts_one_warp"] = {
        ways: _shared_flood(bench, "store_flood", ways, 1, warps=1) for ways in (1, 2, 4, 8, 16, 32)
    }
    _, slope = line([(float(k), v) for k, v in by_ways.items()])
    return [slope, _shared_flood(bench, "store_flood", 1, 1)]


@probe("queue.lsu_depth")
def queue_depth(bench: Bench) -> Values:
    """A warp on each scheduler issues stores of 32 wavefronts in a row: number of queued ones."""
    notes: dict[str, Any] = {}
    for name, loads, count in (("stores", "false", 80), ("loads", "true", 40)):
        kernel = bench.probe("shared", f"queue<{count}, {loads}>")
        for warps in (1, 4, 8):
            memory = bench.stamps((2 + count) * warps)
            kernel(memory, grid=(1, 1, 1), block=(32 * warps, 1, 1))
            cycles = bench.read(memory, (2 + count) * warps)[2 * warps :].reshape(warps, count)
            waiting = [waiting_when_held_up(row.tolist()) for row in cycles]
            notes[f"{name} by {warps} warps"] = {
                "waiting_when_held_up": waiting,
                "cycle_after_each_of_the_first_warp": cycles[0].tolist(),
            }
    bench.notes["queue"] = notes
    return [float(np.median(notes["stores by 4 warps"]["waiting_when_held_up"]))]


@probe("interval_cycles.barrier", "interval_cycles.barrier_per_warp")
def barriers_among_accesses(bench: Bench) -> Values:
    """64 warps of an SM load from shared memory, store twice and meet: the barrier's added time.

    Blocks of 4 warps that load four times, for one block: the first. The slope over blocks of 4, 16
    and 32 warps that load 16 times.
    """
    added = {
        (loads, warps): _meeting(bench, loads, warps)
        for loads in (4, 16)
        for warps in (2, 4, 8, 16, 32)
    }
    bench.notes["cycles_that_a_barrier_adds_by_loads_and_warps"] = {
        f"{loads} loads, blocks of {warps} warps": cycles
        for (loads, warps), cycles in added.items()
    }
    slope = line([(float(warps), added[16, warps]) for warps in (4, 16, 32)])[1]
    return [max(0.01, added[4, 4]), max(0.01, slope)]


def _meeting(bench: Bench, loads: int, warps: int) -> float:
    """Return SM cycles added by a barrier, with 64 warps in blocks of `warps` warps."""
    blocks = 64 // warps * bench.sms
    spans = {}
    for meets in ("true", "false"):
        ends = []
        for iterations in (32, 96):
            told = bench.told(
                "shared", f"busy<{loads}, {meets}>", 2 * blocks, np.int32(iterations),
                grid=blocks, block=32 * warps,
            ).reshape(blocks, 2)  # fmt: skip
            ends.append(float(np.median(told[:, 1] - told[:, 0])))
        spans[meets] = (ends[1] - ends[0]) / 64
    return (spans["true"] - spans["false"]) / (64 // warps)


@probe("latency_cycles.shared_atomic", "interval_cycles.shared_atomic_pass")
def shared_atomics(bench: Bench) -> Values:
    """ATOMS.ADD of one lane, each needing the one before; of more lanes on one word, the slope."""
    times = {
        lanes: bench.step("shared", "atomic_chain<LENGTH>", np.int32(lanes), np.int32(0))
        for lanes in (1, 2, 4, 8, 16, 32)
    }
    bench.notes["shared_atomic_by_lanes"] = times
    return [times[1], line([(float(k), v) for k, v in times.items()])[1]]
