"""The microbenchmarks: each gives numbers of a device file, and its docstring says how.

None of them is a kernel of the catalogue, nor like one: what a device file gets from here is
as true for kernels that nobody has thought of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .bench import Bench

Values = Sequence[float]

WARPS = 32
DRAM_BYTES = 2**32
L2_PART = 3  # a third of the L2 is sure to stay in it, whichever of its halves holds it


@dataclass(frozen=True)
class Probe:
    """A microbenchmark and the keys of the device file that it measures."""

    name: str
    keys: tuple[str, ...]
    method: str
    measure: Callable[[Bench], Values]


PROBES: list[Probe] = []


def probe(*keys: str) -> Callable[[Callable[[Bench], Values]], Callable[[Bench], Values]]:
    """Enter a function that returns a value for each of the keys, in order."""

    def enter(function: Callable[[Bench], Values]) -> Callable[[Bench], Values]:
        method = " ".join((function.__doc__ or "").split()).rstrip(".")
        PROBES.append(Probe(function.__name__, keys, method, function))
        return function

    return enter


def line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return intercept and slope of the line nearest to points, by least squares."""
    x, y = np.array(points, float).T
    slope, intercept = np.polyfit(x, y, 1)
    return float(intercept), float(slope)


def _chain(bench: Bench, operation: str, threads: int = 32) -> float:
    return bench.step("pipes", f"chain<{operation}, LENGTH>", np.int32(1), threads=threads)


def _flood(bench: Bench, operation: str) -> float:
    """Return cycles for which one warp instruction keeps its scheduler's unit."""
    step = bench.step("pipes", f"flood<{operation}, LENGTH>", np.int32(1), threads=32 * WARPS)
    return step / 4 / (WARPS / 4)


@probe("latency_cycles.alu", "latency_cycles.imad", "latency_cycles.fma", "latency_cycles.fp64")
def latency(bench: Bench) -> Values:
    """One warp, each instruction needing the one before: LOP3, IMAD, FFMA, DFMA."""
    bench.notes["latency_shift"] = _chain(bench, "Shift")
    wanted = ("Logic", "MultiplyAdd", "FloatMultiplyAdd", "DoubleMultiplyAdd")
    return [_chain(bench, operation) for operation in wanted]


@probe("latency_cycles.predicate", "latency_cycles.vote", "latency_cycles.other_pipe")
def between_units(bench: Bench) -> Values:
    """One warp: ISETP and an SHF that it guards, less SHF; ISETP and VOTE; LOP3, IMAD in turn."""
    alu, imad = _chain(bench, "Logic"), _chain(bench, "MultiplyAdd")
    guarded, vote = _chain(bench, "Guard"), _chain(bench, "Vote")
    choice, both = _chain(bench, "Choice"), _chain(bench, "Then<Logic, MultiplyAdd>")
    bench.notes["chains"] = {
        "isetp_guarded_shf": guarded,
        "isetp_sel": choice,
        "isetp_vote": vote,
        "lop3_imad": both,
    }
    return [guarded - alu, vote - (choice - alu), max(0.0, (both - alu - imad) / 2)]


@probe("latency_cycles.xu", "interval_cycles.xu")
def special_functions(bench: Bench) -> Values:
    """MUFU.EX2, each needing the one before, by one warp; four independent chains by 32 warps."""
    return [_chain(bench, "Exponential"), _flood(bench, "Exponential")]


@probe("interval_cycles.alu", "interval_cycles.imad", "interval_cycles.fma", "interval_cycles.fp64")
def throughput(bench: Bench) -> Values:
    """32 warps on one SM, four independent chains each: LOP3, IMAD, FFMA, DFMA."""
    bench.notes["interval_shift"] = _flood(bench, "Shift")
    bench.notes["interval_isetp_sel"] = _flood(bench, "Choice")
    bench.notes["interval_lop3_imad"] = _flood(bench, "Then<Logic, MultiplyAdd>")
    wanted = ("Logic", "MultiplyAdd", "FloatMultiplyAdd", "DoubleMultiplyAdd")
    return [_flood(bench, operation) for operation in wanted]


@probe("latency_cycles.special_register", "latency_cycles.constant")
def registers_and_constants(bench: Bench) -> Values:
    """One warp: S2R behind an ISETP, less what that takes to guard; LDC by LDC, less an IMAD."""
    guard = _chain(bench, "Guard") - _chain(bench, "Logic")
    constant = bench.step("pipes", "constants<LENGTH>", np.int32(0))
    return [_chain(bench, "SpecialRegister") - guard, constant - _chain(bench, "MultiplyAdd")]


@probe("latency_cycles.branch")
def taken_branch(bench: Bench) -> Values:
    """One warp: loops of 32, 64, 128 independent FFMA; a turn's cycles beyond them, less 3.

    The 3 are the loop's own addition, comparison and branch. A chain of dependent FFMA beside it
    shows how much of the loss other waiting hides.
    """

    def turn(expression: str) -> float:
        times = [
            bench.span("pipes", expression, np.int32(rounds), np.int32(1)) for rounds in (100, 300)
        ]
        return (times[1] - times[0]) / 200

    lengths = (8, 16, 32)
    loops = {4 * k: turn(f"flood<FloatMultiplyAdd, {k}>") for k in lengths}
    bench.notes["loop_of_independent_ffma"] = loops
    bench.notes["loop_of_dependent_ffma"] = {
        k: turn(f"chain<FloatMultiplyAdd, {k}>") for k in lengths
    }
    beyond, _ = line([(float(k), cycles) for k, cycles in loops.items()])
    return [max(0.0, beyond - 3)]


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
    """Return cycles of the SM for one access of a warp; `warps` are those of all schedulers."""
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


@probe("interval_cycles.shared_store_conflict")
def store_conflicts(bench: Bench) -> Values:
    """Stores to shared memory by 32 warps, lanes 1 to 32 words apart: the slope."""
    by_ways = {ways: _shared_flood(bench, "store_flood", ways, 4) for ways in (1, 2, 4, 8, 16, 32)}
    bench.notes["shared_store_interval_by_wavefronts"] = by_ways
    bench.notes["shared_store_interval_by_wavefronts_one_warp"] = {
        ways: _shared_flood(bench, "store_flood", ways, 1, warps=1) for ways in (1, 2, 4, 8, 16, 32)
    }
    bench.notes["shared_store_interval_one_scheduler"] = _shared_flood(bench, "store_flood", 1, 1)
    return [line([(float(k), v) for k, v in by_ways.items()])[1]]


@probe("queue.lsu_depth")
def queue_depth(bench: Bench) -> Values:
    """A warp on each scheduler issues stores of 32 wavefronts in a row: how many wait unserved."""
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


def waiting_when_held_up(cycles: Sequence[float]) -> float:
    """Return how many accesses wait when a warp that issues them in a row is first held up.

    `cycles` are those after each access. They are held up from where they are issued no faster
    than they are served; what has been served until then no longer waits.
    """
    apart = np.diff(np.array(cycles, float))
    served = float(np.median(apart[-len(apart) // 4 :]))
    quick = float(np.min(apart))
    late = np.flatnonzero(apart > (quick + served) / 2)
    issued = int(late[0]) + 1 if len(late) else len(cycles)
    return max(1.0, issued - (cycles[issued - 1] - cycles[0]) / max(served, 1.0))


@probe("latency_cycles.barrier", "latency_cycles.barrier_per_warp")
def barriers(bench: Bench) -> Values:
    """One block meets at barriers without work between: the line through 2 to 32 warps."""
    times = {w: _chain(bench, "Barrier", 32 * w) for w in (1, 2, 4, 8, 12, 16, 24, 32)}
    bench.notes["barrier_by_warps"] = times
    bench.notes["barrier_of_several_blocks_on_an_sm"] = {
        f"{blocks} blocks of {warps} warps": _meetings(bench, blocks, warps)
        for blocks, warps in ((1, 8), (2, 8), (4, 8), (8, 8), (32, 2), (16, 4), (2, 32), (4, 16))
    }
    return line([(float(w), t) for w, t in times.items() if w > 1])


def _meetings(bench: Bench, blocks: int, warps: int) -> float:
    """Return cycles of a barrier where each SM holds so many blocks of so many warps."""
    kernel = bench.probe("launch", "meet<long long>")
    grid = blocks * bench.sms
    spans = []
    for rounds in (8, 24):
        memory = bench.stamps(4 * grid)
        kernel(memory, np.int32(rounds), grid=(grid, 1, 1), block=(32 * warps, 1, 1))
        told = bench.read(memory, 4 * grid).reshape(grid, 4)
        spans.append(float(np.median(told[:, 3] - told[:, 1])))
    return (spans[1] - spans[0]) / (16 * 32)


@probe("latency_cycles.shuffle", "interval_cycles.shuffle")
def shuffles(bench: Bench) -> Values:
    """SHFL by one warp, each needing the one before; independent ones by 32 warps, per SM."""
    return [_chain(bench, "Shuffle"), _flood(bench, "Shuffle") / 4]


@probe("latency_cycles.shared_atomic", "interval_cycles.shared_atomic_pass")
def shared_atomics(bench: Bench) -> Values:
    """ATOMS.ADD of one lane, each needing the one before; of more lanes on one word, the slope."""
    times = {
        lanes: bench.step("shared", "atomic_chain<LENGTH>", np.int32(lanes), np.int32(0))
        for lanes in (1, 2, 4, 8, 16, 32)
    }
    bench.notes["shared_atomic_by_lanes"] = times
    return [times[1], line([(float(k), v) for k, v in times.items()])[1]]


@probe("latency_cycles.l1", "latency_cycles.l2", "latency_cycles.dram")
def memory_latency(bench: Bench) -> Values:
    """One thread follows pointers in random order: 8 KB in L1; 8 MB past the L1; 16 MB in DRAM.

    For the last the L2 was emptied before.
    """

    def pursued(where: str, nodes: int, apart: int, before: int, cold: bool) -> float:
        memory = bench.room(nodes * apart)
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
    memory = bench.room(DRAM_BYTES)
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
    memory = bench.room(DRAM_BYTES)
    never = bench.stamps(1)
    rates: dict[str, dict[str, float]] = {"all": {}, "one": {}}
    for ahead in (1, 2, 4):
        kernel = bench.probe("memory", f"stream<{ahead}>")
        for blocks, block in ((2, 1024), (4, 512), (8, 256)):
            name = f"{ahead} ahead, {blocks} blocks of {block} an SM"
            times = [
                bench.time_us(
                    kernel, memory, np.uint64(size // 16), np.int32(rounds), never,
                    grid=blocks * bench.sms, block=block, cold=False, repetitions=5,
                )
                for rounds in (4, 36)
            ]  # fmt: skip
            if 2 * ahead * blocks * block * bench.sms <= size // 16:
                rates["all"][name] = 32 * size / (times[1] - times[0]) / 1000
            part = 2**20
            times = [
                bench.time_us(
                    kernel, memory, np.uint64(part // 16), np.int32(rounds), never,
                    grid=1, block=block, cold=False, repetitions=5,
                )
                for rounds in (2, 10)
            ]  # fmt: skip
            rates["one"][f"{ahead} ahead, a block of {block}"] = (
                8 * part / (times[1] - times[0]) / bench.clock_mhz
            )
    bench.notes["l2_gbps"] = rates
    return [max(rates["all"].values()), max(rates["one"].values())]


@probe("bandwidth.dram_grain_bytes")
def dram_grain(bench: Bench) -> Values:
    """Reading one sector of 32 bytes in 32, 64 or 128: what comes along costs no more time."""
    memory = bench.room(DRAM_BYTES)
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


@probe("bandwidth.dram_latency_growth")
def loaded_latency(bench: Bench) -> Values:
    """One thread follows pointers while all SMs read with pauses: over utilisation squared."""
    nodes, apart, warps = 2048, 4096, 2 * bench.sms * 16
    points = []
    for pause in (200_000, 40_000, 20_000, 12_000, 8_000, 6_000, 4_000, 3_000, 2_000, 1_000, 0):
        memory = bench.room(DRAM_BYTES)
        first = bench.ring(memory, nodes, apart)
        words = int(memory) + nodes * apart
        found = []
        for _ in range(3):
            told = bench.stamps(8 + 2 * warps)
            bench.backend.empty_l2()
            bench.probe("memory", "loaded<200000>")(
                told, np.uint64(first), np.int32(nodes), np.uint64(words),
                np.uint64((DRAM_BYTES - nodes * apart) // 16), np.int32(pause),
                np.uint64(int(told) + 16), np.uint64(int(told) + 16),
                grid=(2 * bench.sms + 1, 1, 1), block=(512, 1, 1),
            )  # fmt: skip
            numbers = bench.read(told, 8 + 2 * warps)
            each = numbers[3 : 3 + 2 * warps].reshape(warps, 2)
            rate = float((each[:, 0] * 512 / np.maximum(each[:, 1], 1)).sum())
            found.append((float(numbers[1] - numbers[0]) / nodes, rate * bench.clock_mhz / 1000))
        cycles, gbps = sorted(found)[1]
        points.append((gbps, cycles))
    bench.notes["dram_latency_by_gbps"] = points
    most = max(rate for rate, _ in points)
    idle = points[0][1]
    squares = [((rate / most) ** 2, cycles / idle - 1) for rate, cycles in points]
    return [max(0.0, sum(u * g for u, g in squares) / sum(u * u for u, _ in squares))]


@probe("interval_cycles.store_packet")
def store_packets(bench: Bench) -> Values:
    """32 warps of one SM store words to global memory, a line a warp: cycles a line."""
    memory = bench.room(DRAM_BYTES)

    def lines(stride: int) -> float:
        times = [
            bench.span("memory", f"write<{stride}>", memory, np.int32(rounds), threads=1024)
            for rounds in (64, 192)
        ]
        return (times[1] - times[0]) / (128 * 8 * WARPS)

    bench.notes["cycles_of_a_store_of_32_lines"] = lines(32)
    return [lines(1)]


@probe()
def l1_throughput(bench: Bench) -> Values:
    """32 warps of one SM load lines that are in L1, 4 and 16 bytes a lane."""
    memory = bench.room(2**20)
    for width in (1, 4):
        times = [
            bench.span("memory", f"hits<{width}>", memory, np.int32(rounds), threads=1024)
            for rounds in (16, 80)
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
    """ATOMG of one thread, each needing the one before, the median of 31 places in the L2.

    RED of all SMs on one word: integers by a lane of each warp, floats by all.
    """
    room = int(bench.room(2**20))
    places = [room + place * (2**15 + 128) for place in range(31)]

    def latency(place: int) -> float:
        times = [
            bench.span(
                "memory", "atomic_chain<int>", np.uint64(place), np.int32(rounds), np.int32(0),
                threads=1,
            )
            for rounds in (64, 192)
        ]  # fmt: skip
        return (times[1] - times[0]) / 128

    by_place = [latency(place) for place in places]
    bench.notes["global_atomic_by_place"] = by_place
    found = [float(np.median(by_place))]
    memory = bench.stamps(2)
    for expression, lanes in (("atomic_flood<int, 1>", 1), ("atomic_flood<float, 32>", 32)):
        kernel = bench.probe("memory", expression)
        spent = [
            bench.time_us(
                kernel, memory, np.int32(rounds), np.int32(0),
                grid=bench.sms, block=512, cold=False, repetitions=5,
            )
            for rounds in (16, 80)
        ]  # fmt: skip
        operations = 64 * bench.sms * 16 * lanes
        found.append((spent[1] - spent[0]) * bench.clock_mhz / operations)
    return found


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


@probe()
def instruction_fetch(bench: Bench) -> Values:
    """One warp runs code that was never run, after the L2 was emptied and after it was not."""
    found = {}
    for length in (32, 64, 128, 256, 512, 1024, 2048):
        expression = f"straight<{length}>"
        arguments = (np.int32(1), np.int32(1))
        cold = bench.spans("pipes", expression, *arguments, before=bench.backend.empty_l2)
        found[length] = {"emptied": cold, "not": bench.spans("pipes", expression, *arguments)}
    bench.notes["straight_code"] = found
    return []
