"""L1: hits on repeated accesses, and the effect of stores and fences."""

from __future__ import annotations

import numpy as np

from gpusim.launch.grid import ComputeCapability
from gpusim.prediction.memory.share import l1_left
from gpusim.typing import Array

from ..bench import Bench
from .probing import DRAM_BYTES, KB, LINE, WARPS, Values, in_order, probe

HIT_CYCLES = 150  # a load below this time is an L1 hit
ROUNDS = 4  # the last one counts
AT_RANDOM_KB = 512  # twice the size of an L1: the hit ratio gives its size

ACTIONS = (
    "NOTHING",
    "STORE_LINE",
    "STORE_WORD",
    "STORE_OTHER_SECTOR",
    "RED",
    "ATOM",
    "LOAD_PAST_L1",
    "LOAD_VOLATILE",
    "LOAD_ACQUIRE",
    "FENCE",
    "BARRIER",
    "STORE_FIRST",
)


def found(
    bench: Bench,
    kilobytes: int,
    order: str = "IN_TURN",
    warps: int = WARPS,
    shared: int = 0,
    rounds: int = ROUNDS,
) -> float:
    """Return the L1 hit ratio of a block's repeated accesses to `kilobytes` KB."""
    rows = bench.told(
        "caches",
        f"reuse<{order}>",
        4 * warps,
        bench.buffer(DRAM_BYTES),
        np.uint32(kilobytes * KB // LINE),
        np.uint32(LINE),
        np.int32(rounds),
        np.uint32(HIT_CYCLES),
        block=32 * warps,
        shared=shared * KB,
    ).reshape(warps, 4)
    hits, _, misses, _ = rows.sum(axis=0).tolist()
    return float(hits / max(1, hits + misses))


@probe("capacity.l1_kept_fraction", "capacity.l1_lost_fraction")
def l1_reuse(bench: Bench) -> Values:
    """32 warps load lines in turn, over and over: the part of the L1 up to which all lines hit.

    And the part from which on none hits: where the line through hit ratios 3/4 and 1/4 meets 1 and
    0. The size of the L1 is from hits at random places of 512 KB.
    """
    size = AT_RANDOM_KB * found(bench, AT_RANDOM_KB, "AT_RANDOM")
    by_size = {kb: found(bench, kb) for kb in range(128, 385, 8)}
    bench.notes["l1_kb_by_what_is_found_at_random"] = size
    bench.notes["l1_hits_by_kb_gone_over_in_turn"] = by_size
    return in_order([(kb / max(size, 1.0), hit) for kb, hit in by_size.items()])


LANES_KB = (64, 96, 128, 160, 192, 224, 256, 288, 320, 384, 448, 512, 768, 1024)
LANES_STEPS = 256


def found_among_lanes(bench: Bench, kilobytes: int, warps: int) -> float:
    """Return the L1 hit ratio of a warp among others with a line for each lane."""
    few, all_ = bench.told(
        "caches", "among_lanes<L1>", 2, bench.buffer(DRAM_BYTES), np.uint32(kilobytes * KB // LINE),
        np.int32(LANES_STEPS * (WARPS // warps)), np.uint32(HIT_CYCLES), block=32 * warps,
    ).tolist()  # fmt: skip
    return float(few / max(1, all_))


@probe("capacity.l1_random_kept_fraction", "capacity.l1_random_lost_fraction")
def l1_at_random(bench: Bench) -> Values:
    """Lanes of 31 warps load words of 64 to 1024 KB at random, a line each: hits of a last warp.

    The reuse distances, as parts of the L1, up to which all lines hit and from which on none, by
    the best fit. The size of the L1 is from hits at random places of 512 KB by warps that load
    whole lines. Also among fewer warps, and of whole lines.
    """
    size = AT_RANDOM_KB * found(bench, AT_RANDOM_KB, "AT_RANDOM")
    notes: dict[str, dict[int, float]] = {
        f"among {warps - 1} warps": {kb: found_among_lanes(bench, kb, warps) for kb in LANES_KB}
        for warps in (2, 4, 8, 16, WARPS)
    }
    notes["whole lines"] = {kb: found(bench, kb, "AT_RANDOM", rounds=16) for kb in LANES_KB}
    bench.notes["l1_hits_by_kb_loaded_at_random"] = notes
    hits = list(notes[f"among {WARPS - 1} warps"].values())
    return edges_at_random(np.array(LANES_KB) / max(size, 1.0), np.array(hits))


def edges_at_random(parts: Array, hits: Array) -> Values:
    """Return the reuse distances, as parts of a cache, up to which all hit and from which on none.

    `hits` are hit ratios at random places in areas of `parts` of it. The reuse distance is uniform
    over the area.
    """
    edges = [(k / 100, w / 100) for k in range(20, 105, 5) for w in range(5, 205, 5)]
    since = parts[:, None] * (np.arange(200) + 0.5) / 200

    def off(edge: tuple[float, float]) -> float:
        kept, wide = edge
        expected = 1 - np.clip((since - kept) / wide, 0, 1).mean(axis=1)
        return float(((expected - hits) ** 2).sum())

    kept, wide = min(edges, key=off)
    return [kept, kept + wide]


@probe("capacity.l1_without_lines_bytes")
def l1_beside_shared_memory(bench: Bench) -> Values:
    """Blocks of a warp and of 32 load lines at random out of 512 KB: the L1's size by hits.

    By the block's shared memory. The driver divides the SM's memory so that shared memory, and 1 KB
    for each block, suffices for the most blocks an SM can hold. The L1's mean difference to the
    rest, to 4 KB.
    """
    most = (bench.backend.attribute("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR") or 0) // KB
    notes: dict[int, dict[int, float]] = {}
    lacking = []
    for warps in (1, WARPS):
        notes[warps] = {}
        for room in (0, 1, 8, 16, 32, 48, 64, 96, 100, 128, 160, 192, 200, 224):
            if room < max(most, 1):
                held = AT_RANDOM_KB * found(bench, AT_RANDOM_KB, "AT_RANDOM", warps, room)
                notes[warps][room] = held
                lacking.append(_left_kb(bench, warps, room, most) - held)
    bench.notes["l1_kb_by_warps_and_kb_of_shared_memory"] = notes
    return [max(0.0, 4 * KB * round(float(np.mean(lacking)) / 4))]


def _left_kb(bench: Bench, warps: int, room: int, most: int) -> float:
    """Return the KB of an SM's memory left for the L1 by blocks with this shared memory.

    The memory is the next multiple of 32 KB above the maximum of shared memory, as on all GPUs from
    compute capability 7.0 on.
    """
    threads = bench.backend.attribute("MAX_THREADS_PER_MULTIPROCESSOR") or 0
    blocks = bench.backend.attribute("MAX_BLOCKS_PER_MULTIPROCESSOR") or 0
    resident = min(blocks, threads // (32 * warps), most // (room + 1))
    shared = resident * (room + 1) * KB
    cc = ComputeCapability.parse(bench.backend.compute_capability)
    return l1_left((most // 32 + 1) * 32 * KB, shared, 0, cc) / KB


@probe()
def l1_after_others(bench: Bench) -> Values:
    """A warp loads a sector present in L1, after an event: cycles before and after it."""
    bench.prepare("caches", *(f"after<{action}>" for action in ACTIONS))
    notes = {}
    for action in ACTIONS:
        told = bench.told("caches", f"after<{action}>", 2, bench.buffer(DRAM_BYTES), np.int32(64))
        notes[action] = [cycles / 64 for cycles in told.tolist()]
    bench.notes["l1_load_before_and_after"] = notes
    return []
