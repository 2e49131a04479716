"""Thread block clusters: where they fit, their barriers, and the ways to a peer's shared memory."""

from __future__ import annotations

import numpy as np

from ..bench import Bench
from .probing import KB, MB, Values, probe

SIZES = (2, 4, 8, 16)
FILE = "clusters"
STAYS = 400_000  # cycles: all that fit have begun long before the first ends
TURN_STAYS, TURNS = 10_000, 128
SHARED = 200 * KB  # of a block that has an SM for itself
SECTOR_BYTES = 32


def _told(
    bench: Bench, expression: str, numbers: int, *arguments: object, blocks: int, grid: int = 0,
    block: int = 32, shared: int = 0,
) -> np.ndarray:  # fmt: skip
    """Return what the blocks of a probe tell; by default it is one cluster."""
    bench.allow_cluster(FILE, expression, blocks)
    return bench.told(
        FILE, expression, numbers, *arguments, grid=grid or blocks, block=block, shared=shared
    )


def _each(
    bench: Bench, expression: str, *arguments: object, blocks: int, block: int = 32, shared: int = 0
) -> float:
    """Return the cycles of a round: the difference of 320 and 64, the least of several."""

    def span(rounds: int) -> float:
        given = np.int32(rounds), *arguments
        begin, end = _told(bench, expression, 2, *given, blocks=blocks, block=block, shared=shared)
        return float(end - begin)

    short, long = (min(span(rounds) for _ in range(3)) for rounds in (64, 320))
    return (long - short) / 256


def _staying(blocks: int) -> str:
    return f"stay<{blocks}>" if blocks > 1 else "stay_alone<long long>"


def _resident(bench: Bench, blocks: int, block: int, shared: int, most: int) -> int:
    """Return how many blocks of clusters the GPU holds: that begin before any has ended."""
    grid = max(1, most // blocks) * blocks
    told = _told(
        bench, _staying(blocks), 2 * grid, np.int64(STAYS), blocks=blocks, grid=grid,
        block=block, shared=shared,
    ).reshape(-1, 2)  # fmt: skip
    return int(np.count_nonzero(told[:, 0] < told[:, 1].min()))


@probe(
    "cluster.fraction_2", "cluster.fraction_4", "cluster.fraction_8", "cluster.fraction_16"
)  # fmt: skip
def clusters_that_fit(bench: Bench) -> Values:
    """Blocks of 256 threads, eight on an SM: those of clusters that begin before one has ended.

    Over those without clusters. Also one block on an SM.
    """
    bench.prepare(FILE, *map(_staying, (1, *SIZES)))
    found: dict[str, dict[int, int]] = {}
    for name, shared, most in (("eight on an SM", 0, 8), ("one on an SM", SHARED, 1)):
        found[name] = {
            blocks: _resident(bench, blocks, 256, shared, most * bench.sms)
            for blocks in (1, *SIZES)
        }
    bench.notes["blocks_of_clusters_that_fit"] = found
    of_eight = found["eight on an SM"]
    return [of_eight[blocks] / max(1, of_eight[1]) for blocks in SIZES]


def _turn(bench: Bench, blocks: int) -> float:
    """Return the cycles from one wave of blocks to the next, each with an SM for itself."""
    at_once = max(blocks, _resident(bench, blocks, 32, SHARED, bench.sms))
    kernel = bench.allow_cluster(FILE, _staying(blocks), blocks)
    few, many = (
        bench.time_us(
            kernel, bench.stamps(2 * waves * at_once), np.int64(TURN_STAYS), grid=waves * at_once,
            block=32, shared=SHARED, repetitions=5,
        )
        for waves in (16, 16 + TURNS)
    )  # fmt: skip
    return (many - few) * bench.clock_mhz / TURNS


@probe("cluster.turn_2", "cluster.turn_4", "cluster.turn_8", "cluster.turn_16")
def cluster_turns(bench: Bench) -> Values:
    """128 waves of blocks of 10,000 cycles, one on an SM: a wave, less one without clusters."""
    turns = {blocks: _turn(bench, blocks) for blocks in (1, *SIZES)}
    bench.notes["cycles_of_a_wave_of_clusters"] = turns
    return [max(0.0, turns[blocks] - turns[1]) for blocks in SIZES]


@probe("cluster.launch_2", "cluster.launch_4", "cluster.launch_8", "cluster.launch_16")
def cluster_launches(bench: Bench) -> Values:
    """Empty blocks of a warp, 128 and 1,152 for each SM: the time of one in clusters.

    Over the time of one without.
    """
    bench.prepare(FILE, *(f"nothing<{blocks}>" for blocks in SIZES))
    times = {}
    for blocks in (1, *SIZES):
        file, expression = (
            (FILE, f"nothing<{blocks}>") if blocks > 1 else ("launch", "nothing<int>")
        )
        kernel = bench.allow_cluster(file, expression, blocks)
        few, many = (
            bench.time_us(
                kernel, bench.stamps(1), grid=max(16, count * bench.sms // 16 * 16), block=32,
                repetitions=5,
            )
            for count in (128, 1152)
        )  # fmt: skip
        times[blocks] = many - few
    bench.notes["us_of_empty_blocks_in_clusters"] = times
    return [times[blocks] / max(times[1], 1e-9) for blocks in SIZES]


@probe("latency_cycles.cluster_barrier")
def cluster_barriers(bench: Bench) -> Values:
    """Relaxed barriers of a cluster, less those of a block, by 32 to 1,024 threads.

    The median of clusters of 4 and 8.
    """
    kinds = [f"barriers<{blocks}, {kind}>" for blocks in SIZES for kind in ("true", "false")]
    bench.prepare(FILE, *kinds)
    beyond = {
        blocks: [
            _each(bench, f"barriers<{blocks}, true>", blocks=blocks, block=threads)
            - _each(bench, f"barriers<{blocks}, false>", blocks=blocks, block=threads)
            for threads in (32, 128, 256, 512, 1024)
        ]
        for blocks in SIZES
    }
    bench.notes["cluster_barriers_beyond_blocks"] = beyond
    return [float(np.median([*beyond[4], *beyond[8]]))]


@probe("latency_cycles.peer_load")
def peer_loads(bench: Bench) -> Values:
    """A thread and a warp follow places in the next block's shared memory: the mean of all sizes.

    Also in their own, by such an address.
    """
    bench.prepare(FILE, *(f"follow<{blocks}>" for blocks in (1, *SIZES)))
    found = {
        blocks: [
            _each(bench, f"follow<{blocks}>", blocks=blocks, block=threads) for threads in (1, 32)
        ]
        for blocks in (1, *SIZES)
    }
    bench.notes["peer_loads"] = found
    return [float(np.mean([found[blocks] for blocks in SIZES]))]


@probe("interval_cycles.peer_sector", "interval_cycles.peer_atomic_sector")
def peer_rates(bench: Bench) -> Values:
    """Stores of 128 bytes a warp to the next block, by 4 and 32 warps of one: cycles of a sector.

    And atomics of 8 warps of each block at once, on 32 words in a row, of each of their 4 sectors:
    the median of clusters of 2 to 8. Also on words 32 bytes apart.
    """
    stores = [
        _each(bench, f"stores<{blocks}>", blocks=blocks, block=threads, shared=32 * KB)
        / (threads / 8)
        for blocks in (2, 8)
        for threads in (128, 1024)
    ]
    adds = {
        apart: [
            _each(bench, f"adds<{blocks}>", np.int32(apart), blocks=blocks, block=256) / 8
            for blocks in (2, 4, 8)
        ]
        for apart in (1, 8)
    }
    bench.notes["peer_stores_cycles_of_a_sector"] = stores
    bench.notes["peer_atomics_cycles_of_a_warp"] = adds
    return [float(np.mean(stores)), float(np.median(adds[1])) / 4]


@probe("latency_cycles.peer_arrival")
def peer_arrivals(bench: Bench) -> Values:
    """Two blocks let each other go on by st.async: a way, of clusters of all sizes.

    Less the same instructions of a thread that counts the bytes at its own mbarrier, whose latency
    is latency_cycles.shared_atomic. Also by arrivals that release to the cluster.
    """
    kinds = "there_and_back", "arrivals"
    bench.prepare(FILE, *(f"{kind}<{blocks}>" for kind in kinds for blocks in SIZES))
    ways = {
        kind: {
            blocks: _each(bench, f"{kind}<{blocks}>", blocks=blocks, block=1) / 2
            for blocks in SIZES
        }
        for kind in kinds
    }
    alone = _each(bench, "by_itself<long long>", blocks=1, block=1)
    bench.notes["one_way_to_a_peer"] = {**ways, "by itself": alone}
    beyond = float(np.mean([*ways["there_and_back"].values()])) - alone
    return [beyond + bench.known("latency_cycles.shared_atomic")]


@probe("latency_cycles.multicast")
def multicast(bench: Bench) -> Values:
    """The first block copies 1 to 16 KB out of the L2 to all of its cluster, and to itself alone.

    What the copy to all takes longer until it is in the last block: the mean.
    """
    bench.prepare(FILE, *(f"multicast<{blocks}>" for blocks in SIZES))
    found, further = {}, []
    for blocks in SIZES:
        for size in (1, 4, 16):
            whole, own = (
                _told(
                    bench, f"multicast<{blocks}>", 2, bench.buffer(4 * MB), np.int32(size * KB),
                    np.int32(48), np.int32(mask), blocks=blocks, shared=16 * KB,
                ) / 32
                for mask in (2**blocks - 1, 1)
            )  # fmt: skip
            found[f"{blocks} blocks, {size} KB"] = [*whole.tolist(), float(own[0])]
            further.append(float(whole[1] - own[0]))
    bench.notes["multicast_to_first_and_last_block_and_copy"] = found
    return [float(np.mean(further))]
