"""Global memory: latencies and bandwidths of L1, L2 and DRAM, stores, atomics."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..bench import Bench
from .probing import DRAM_BYTES, WARPS, Values, probe

BELOW_SATURATION = 0.9  # of the bandwidth; above it requests queue, which is simulated


@probe("latency_cycles.l1", "latency_cycles.l2", "latency_cycles.dram")
def memory_latency(bench: Bench) -> Values:
    """One thread chases pointers in random order: 8 KB in L1; 8 MB past the L1; 16 MB in DRAM.

    For the last the L2 was emptied before.
    """

    def pursued(where: str, nodes: int, apart: int, before: int, cold: bool) -> float:
        memory = bench.buffer(nodes * apart)
        first = bench.ring(memory, nodes, apart)
        steps = nodes - nodes % 16
        cycles = bench.span(
            "memory",
            f"pursue<{where}>",
            np.uint64(first),
            np.int32(before),
            np.int32(steps),
            threads=1,
            before=bench.backend.empty_l2 if cold else lambda: None,
        )
        return cycles / steps

    bench.notes["l2_latency_by_bytes"] = {
        size: pursued("L2", size // 128, 128, size // 128, False)
        for size in (2**16, 2**18, 2**20, 2**23, 2**24)
    }
    bench.notes["dram_latency_by_bytes"] = {
        size: pursued("L2", size // 4096, 4096, 0, True) for size in (2**22, 2**24, 2**26)
    }
    return [
        pursued("L1", 64, 128, 64, False),
        bench.notes["l2_latency_by_bytes"][2**23],
        bench.notes["dram_latency_by_bytes"][2**24],
    ]


@probe("bandwidth.dram_gbps")
def dram_bandwidth(bench: Bench) -> Values:
    """Reading 4 GiB less reading 1 GiB, 16 bytes a thread at a time, the best of several grids."""
    memory = bench.buffer(DRAM_BYTES)
    never = bench.stamps(1)
    rates = {}
    for ahead in (1, 2, 4, 8):
        kernel = bench.probe("memory", f"stream<{ahead}>")
        for blocks, block in ((2, 1024), (4, 512), (8, 256), (32, 256)):
            times = [
                bench.time_us(
                    kernel, memory, np.uint64(size // 16), np.int32(1), never,
                    grid=blocks * bench.sms, block=block, repetitions=5,
                )
                for size in (DRAM_BYTES // 4, DRAM_BYTES)
            ]  # fmt: skip
            rates[f"{ahead} ahead, {blocks} blocks of {block} an SM"] = (
                DRAM_BYTES * 3 / 4 / (times[1] - times[0]) / 1000
            )
    bench.notes["dram_gbps"] = rates
    return [max(rates.values())]


@probe("bandwidth.l2_gbps", "bandwidth.l2_to_sm_bytes_per_cycle")
def l2_bandwidth(bench: Bench) -> Values:
    """Reading 24 MiB past the L1 over and over, by all SMs; 1 MiB by one."""
    size = 24 * 2**20
    memory = bench.buffer(DRAM_BYTES)
    never = bench.stamps(1)
    rates: dict[str, dict[str, float]] = {"all": {}, "one": {}}
    for ahead in (1, 2, 4):
        kernel = bench.probe("memory", f"stream<{ahead}>")
        for blocks, block in ((2, 1024), (4, 512), (8, 256)):
            name = f"{ahead} ahead, {blocks} blocks of {block} an SM"
            times = [
                bench.time_us(
                    kernel, memory, np.uint64(size // 16), np.int32(iterations), never,
                    grid=blocks * bench.sms, block=block, cold=False, repetitions=5,
                )
                for iterations in (4, 36)
            ]  # fmt: skip
            if 2 * ahead * blocks * block * bench.sms <= size // 16:
                rates["all"][name] = 32 * size / (times[1] - times[0]) / 1000
            part = 2**20
            times = [
                bench.time_us(
                    kernel, memory, np.uint64(part // 16), np.int32(iterations), never,
                    grid=1, block=block, cold=False, repetitions=5,
                )
                for iterations in (2, 10)
            ]  # fmt: skip
            rates["one"][f"{ahead} ahead, a block of {block}"] = (
                8 * part / (times[1] - times[0]) / bench.clock_mhz
            )
    bench.notes["l2_gbps"] = rates
    return [max(rates["all"].values()), max(rates["one"].values())]


@probe("bandwidth.l2_request_bytes")
def l2_requests(bench: Bench) -> Values:
    """All lanes of all SMs read a word at random in 8 MiB of the L2: its share of the bandwidth."""
    grid, block = 8 * bench.sms, 256
    rate = 64 * 4 * grid * block / max(_gathering_us(bench, grid, block, 64), 1e-9) / 1000
    bench.notes["l2_words_at_random_per_ns"] = rate
    return [max(32.0, bench.known("bandwidth.l2_gbps") / rate)]


@probe("interval_cycles.l1_miss_line")
def lines_past_the_l1(bench: Bench) -> Values:
    """All lanes of one SM's warps read words at random in 8 MiB of the L2: cycles for a line."""
    block = 1024
    return [_gathering_us(bench, 1, block, 256) * bench.clock_mhz / (256 * 4 * block)]


def _gathering_us(bench: Bench, grid: int, block: int, iterations: int) -> float:
    """Return the time of `iterations` more, each of four words a lane at random in 8 MiB."""
    memory = bench.buffer(DRAM_BYTES)
    never = bench.stamps(1)
    times = [
        bench.time_us(
            bench.probe("memory", "gather<4>"),
            memory, np.uint32(2**18 - 1), np.int32(count), never,
            grid=grid, block=block, cold=False, repetitions=5,
        )
        for count in (16, 16 + iterations)
    ]  # fmt: skip
    return times[1] - times[0]


@probe("bandwidth.dram_grain_bytes")
def dram_grain(bench: Bench) -> Values:
    """Reading one sector of 32 bytes in 32, 64 or 128: other sectors of a grain cost no time."""
    memory = bench.buffer(DRAM_BYTES)
    never = bench.stamps(1)
    times = {}
    for stride in (8, 16, 32):
        threads = DRAM_BYTES // 4 // stride
        times[4 * stride] = bench.time_us(
            bench.probe("memory", f"sparse<{stride}>"), memory, np.uint64(threads), never,
            grid=16 * bench.sms, block=256, repetitions=5,
        )  # fmt: skip
    bench.notes["time_us_of_4_gib_one_sector_in"] = times
    return [64 if times[64] > 0.8 * times[32] else 32]


@probe(
    "bandwidth.dram_write_factor",
    "bandwidth.dram_latency_growth",
    "bandwidth.dram_latency_growth_by_writes",
)
def loaded_latency(bench: Bench) -> Values:
    """One thread chases pointers while all SMs read with pauses: latency over utilisation^3.

    Then half of their accesses are writes. The cost of writes over reads follows from the highest
    rates; the thread's additional latency is related to the utilisation by writes.
    """
    reading, mixed = _points(bench, 0), _points(bench, 4)
    bench.notes["dram_latency_by_gbps"] = reading
    bench.notes["dram_latency_by_gbps_of_reading_and_writing"] = mixed
    factor = write_factor(reading, mixed)
    by_all = growth(reading)
    return [factor, by_all, growth_by_writes(mixed, factor, by_all)]


def write_factor(
    reading: Sequence[tuple[float, float]], mixed: Sequence[tuple[float, float]]
) -> float:
    """Return DRAM's time to write, relative to reading as much; points are (rate, latency).

    From the highest rate of reading alone, and of reading as much as is written.
    """
    (read, _), (both, _) = max(reading), max(mixed)
    return max(1.0, 2 * read / both - 1)


def _points(bench: Bench, stores: int) -> list[tuple[float, float]]:
    """Return (GB/s, latency) at several loads; `stores` of eight accesses are stores."""
    nodes, apart, warps = 2048, 4096, 2 * bench.sms * 16
    points = []
    for pause in (200_000, 40_000, 20_000, 12_000, 8_000, 6_000, 4_000, 3_000, 2_000, 1_000, 0):
        memory = bench.buffer(DRAM_BYTES)
        first = bench.ring(memory, nodes, apart)
        words = int(memory) + nodes * apart
        found = []
        for _ in range(3):
            stamps = bench.stamps(8 + 2 * warps)
            bench.backend.empty_l2()
            bench.probe("memory", f"loaded<200000, {stores}>")(
                stamps, np.uint64(first), np.int32(nodes), np.uint64(words),
                np.uint64((DRAM_BYTES - nodes * apart) // 32), np.int32(pause),
                np.uint64(int(stamps) + 16), np.uint64(int(stamps) + 16),
                grid=(2 * bench.sms + 1, 1, 1), block=(512, 1, 1),
            )  # fmt: skip
            numbers = bench.read(stamps, 8 + 2 * warps)
            each = numbers[3 : 3 + 2 * warps].reshape(warps, 2)
            rate = float((each[:, 0] * 512 / np.maximum(each[:, 1], 1)).sum())
            found.append((float(numbers[1] - numbers[0]) / nodes, rate * bench.clock_mhz / 1000))
        cycles, gbps = sorted(found)[1]
        points.append((gbps, cycles))
    return points


def growth(points: Sequence[tuple[float, float]]) -> float:
    """Return g of: loaded latency = idle latency * (1 + g u^3), the best fit to (rate, latency).

    The first point is idle; u is the rate over the highest one. Points close to that are left out.
    """
    most = max(rate for rate, _ in points)
    idle = points[0][1]
    held = [points[0], *(point for point in points[1:] if point[0] < BELOW_SATURATION * most)]
    powers = [((rate / most) ** 3, latency / idle - 1) for rate, latency in held]
    return max(0.0, sum(u * g for u, g in powers) / sum(u * u for u, _ in powers))


def growth_by_writes(points: Sequence[tuple[float, float]], factor: float, by_all: float) -> float:
    """Return h of: loaded latency = idle latency * (1 + g u^3 + h w), g being `by_all`.

    As much is written as read, at `factor` times the cost: w is the utilisation by writes. The
    first point is idle; h is the best fit to the points well below the highest rate.
    """
    most, idle = max(rate for rate, _ in points), points[0][1]
    pairs = []
    for rate, latency in points[1:]:
        used = rate / most
        if used < BELOW_SATURATION:
            pairs.append((used * factor / (1 + factor), latency / idle - 1 - by_all * used**3))
    if not pairs:
        return 0.0
    return max(0.0, sum(w * more for w, more in pairs) / sum(w * w for w, _ in pairs))


@probe("latency_cycles.dram_least")
def spread_of_latency(bench: Bench) -> Values:
    """A warp per place for two on each SM loads lines at random places out of idle DRAM.

    The mean by pointers, less the standard deviation of these loads: an exponential distribution.
    """
    steps, blocks = 64, 2 * bench.sms
    lines = 2**19
    memory = bench.buffer(128 * lines)
    stamps = bench.stamps(blocks * steps // 2)
    bench.backend.empty_l2()
    bench.probe("memory", f"scattered<{steps}>")(
        stamps, memory, np.uint32(lines - 1), grid=(blocks, 1, 1), block=(32, 1, 1)
    )
    cycles = bench.read(stamps, blocks * steps // 2).view(np.int32).astype(float)
    bench.notes["cycles_of_scattered_loads"] = {
        "mean": float(cycles.mean()),
        "standard_deviation": float(cycles.std()),
        "by_percent": {p: float(np.percentile(cycles, p)) for p in (1, 5, 25, 50, 75, 95, 99)},
    }
    return [bench.known("latency_cycles.dram") - float(cycles.std())]


@probe("latency_cycles.dram_deviation")
def spread_of_sums(bench: Bench) -> Values:
    """16 warps of each SM load lines in order out of DRAM, 64 one after the other.

    The standard deviation of these sums over the root of 64.
    """
    steps, block, blocks = 64, 128, 4 * bench.sms
    warps = blocks * block // 32
    memory = bench.buffer(128 * warps * steps)
    found = []
    for _ in range(5):
        stamps = bench.stamps(warps)
        bench.backend.empty_l2()
        bench.probe("memory", f"in_order<{steps}>")(
            stamps, memory, grid=(blocks, 1, 1), block=(block, 1, 1)
        )
        found.append(float(bench.read(stamps, warps).std()) / math.sqrt(steps))
    bench.notes["deviation_of_loads_in_order"] = found
    return [float(np.median(found))]


@probe("interval_cycles.store_packet")
def store_packets(bench: Bench) -> Values:
    """32 warps of one SM store words to 32 lines each: cycles for a line and a sector, halved."""
    memory = bench.buffer(DRAM_BYTES)

    def stored(stride: int) -> float:
        times = [
            bench.span("memory", f"write<{stride}>", memory, np.int32(iterations), threads=1024)
            for iterations in (64, 192)
        ]
        return (times[1] - times[0]) / (128 * 8 * WARPS)

    bench.notes["cycles_of_a_store_of_one_line"] = stored(1)
    return [stored(32) / (32 * 2)]


@probe("bandwidth.l2_stores_per_cycle")
def stores_to_l2(bench: Bench) -> Values:
    """All SMs store 8 bytes a lane, 16 apart, into 17 MB: lines and sectors a cycle at best."""
    kernel = bench.probe("memory", "spread<4>")
    memory = bench.buffer(DRAM_BYTES)
    rates = {}
    for block in (256, 1024):
        grid = 2048 // block * bench.sms
        times = [
            bench.time_us(
                kernel,
                memory,
                np.int32(iterations),
                grid=grid,
                block=block,
                cold=False,
                repetitions=5,
            )
            for iterations in (16, 80)
        ]
        lines = 64 * 4 * grid * block * 16 / 128
        rates[block] = 5 * lines / ((times[1] - times[0]) * bench.clock_mhz)
    bench.notes["stores_per_cycle_by_block"] = rates
    return [max(rates.values())]


@probe()
def l1_throughput(bench: Bench) -> Values:
    """32 warps of one SM load lines that are in L1, 4 and 16 bytes a lane."""
    memory = bench.buffer(2**20)
    for width in (1, 4):
        times = [
            bench.span("memory", f"hits<{width}>", memory, np.int32(iterations), threads=1024)
            for iterations in (16, 80)
        ]
        bench.notes[f"cycles_of_an_l1_load_of_{4 * width}_bytes_a_lane"] = (times[1] - times[0]) / (
            64 * 8 * WARPS
        )
    return []


@probe(
    "latency_cycles.global_atomic",
    "interval_cycles.global_atomic_same_address",
    "interval_cycles.global_atomic_float_same_address",
)
def global_atomics(bench: Bench) -> Values:
    """ATOMG of one thread, each needing the one before, the mean of 31 places in the L2.

    RED of all SMs on one word: integers by a lane of each warp, floats by all.
    """
    start = int(bench.buffer(2**20))
    places = [start + place * (2**15 + 128) for place in range(31)]

    def latency(place: int) -> float:
        times = [
            bench.span(
                "memory", "atomic_chain<int>", np.uint64(place), np.int32(iterations), np.int32(0),
                threads=1,
            )
            for iterations in (64, 192)
        ]  # fmt: skip
        return (times[1] - times[0]) / 128

    by_place = [latency(place) for place in places]
    bench.notes["global_atomic_by_place"] = by_place
    found = [float(np.mean(by_place))]  # half are near and half far
    memory = bench.stamps(2)
    for expression, lanes in (("atomic_flood<int, 1>", 1), ("atomic_flood<float, 32>", 32)):
        kernel = bench.probe("memory", expression)
        spent = [
            bench.time_us(
                kernel, memory, np.int32(iterations), np.int32(0),
                grid=bench.sms, block=512, cold=False, repetitions=5,
            )
            for iterations in (16, 80)
        ]  # fmt: skip
        operations = 64 * bench.sms * 16 * lanes
        found.append((spent[1] - spent[0]) * bench.clock_mhz / operations)
    return found
