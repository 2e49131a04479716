"""Throughput of atomics, by operation and by the addressed words."""

from __future__ import annotations

import numpy as np

from ..bench import Bench
from .probing import DRAM_BYTES, LINE, MB, WARPS, Values, probe

PATTERNS = {  # lanes; words from warp to warp, and from lane to lane
    "a lane of each warp": (1, 1, 0),
    "32 lanes on one word": (32, 1, 0),
    "32 lanes on 32 words": (32, 32, 1),
}
BLOCK = 512
HALVES = 2  # of a line, each a DRAM request
MANY_WORDS = 2**16

KINDS = {  # an operation, and whether its result is used
    "RED.ADD": "ADD, false",
    "RED.MAX": "MAX, false",
    "RED.ADD.F32": "ADD_FLOAT, false",
    "RED.ADD.64": "ADD_LONG, false",
    "RED.ADD.F64": "ADD_DOUBLE, false",
    "ATOM.ADD": "ADD, true",
    "ATOM.EXCH": "EXCHANGE, true",
    "ATOM.CAS": "SWAP, true",
    "ATOM.CAS.64": "SWAP_LONG, true",
    "ATOM.ADD.F32": "ADD_FLOAT, true",
}


def cycles(bench: Bench, kind: str, pattern: str, words: int, apart: int = 8) -> float:
    """Return GPU cycles per warp atomic, on `words` words, `apart` bytes apart."""
    return of_lanes(bench, PATTERNS[pattern], words, apart, kind)


def of_lanes(
    bench: Bench,
    lanes_and_steps: tuple[int, int, int],
    words: int,
    apart: int,
    kind: str = "RED.ADD",
    first: int = 0,
    sms: int | None = None,
) -> float:
    """Return GPU cycles per atomic of some lanes of a warp, with word steps by warp and by lane.

    There are `words` words, `apart` bytes apart, from byte `first` on; on all SMs, or `sms` of
    them.
    """
    lanes, by_warp, by_lane = lanes_and_steps
    blocks = sms or bench.sms
    warps = blocks * BLOCK // 32
    times = [
        bench.time_us(
            bench.probe("atomics", f"spread<{KINDS[kind]}>"),
            np.uint64(int(bench.buffer(DRAM_BYTES)) + first),
            np.uint32(words - 1),
            np.uint32(apart),
            np.uint32(by_warp),
            np.uint32(by_lane),
            np.uint32(warps * by_warp),
            np.int32(lanes),
            np.int32(iterations),
            bench.stamps(1),
            grid=blocks,
            block=BLOCK,
            cold=False,
            repetitions=3,
        )
        for iterations in (8, 40)
    ]
    return (times[1] - times[0]) * bench.clock_mhz / (32 * warps)


@probe()
def atomics_by_words(bench: Bench) -> Values:
    """RED of all SMs by number of words and bytes between them, lanes of a warp on one or more."""
    bench.prepare("atomics", *(f"spread<{kind}>" for kind in KINDS.values()))
    bench.notes["cycles_of_an_atomic_by_words"] = {
        f"{kind}, {pattern}, {apart} bytes apart": {
            words: cycles(bench, kind, pattern, words, apart)
            for words in (1, 2, 4, 8, 32, 256, 1024, MANY_WORDS)
        }
        for kind in ("RED.ADD", "RED.ADD.F32")
        for pattern in PATTERNS
        for apart in (8, 32, 128, 4224)
    }
    return []


@probe("bandwidth.l2_atomic_units", "bandwidth.l2_atomic_answers")
def atomics_at_random(bench: Bench) -> Values:
    """RED of all lanes of all SMs at random in 1 to 65,536 lines: the most in the time of one line.

    Random lines are distributed unevenly over L2 slices, so that some are idle. Likewise ATOM.EXCH.
    """
    lines = (1, 4, 16, 64, 256, 1024, 4096, MANY_WORDS)
    times = {count: _at_random(bench, "ADD, false", count) for count in lines}
    answered = {count: _at_random(bench, "EXCHANGE, true", count) for count in lines}
    bench.notes["cycles_of_an_atomic_at_random_by_lines"] = times
    bench.notes["cycles_of_an_exchange_at_random_by_lines"] = answered
    return [max(1.0, times[1] / max(some[MANY_WORDS], 1e-9)) for some in (times, answered)]


@probe("bandwidth.l2_atomic_places_a_unit", "bandwidth.l2_atomics_in_a_kilobyte")
def atomics_in_few_places(bench: Bench) -> Values:
    """RED by a lane of each warp of all SMs on 32 words 4224 bytes apart, by all on lines in turn.

    The mean number of 32 places per unit, from the time of one word. The number of units of 8
    lines, by their beginning, a multiple of 512 bytes as of arrays: the geometric mean, from the
    time of whole sectors.
    """
    lane, row = (1, 1, 0), (32, 32, 1)
    alone, sector = of_lanes(bench, lane, 1, 4), of_lanes(bench, (8, 0, 1), 8, 4)
    apart = {words: alone / of_lanes(bench, lane, words, 4224) for words in (8, 16, 32, 64)}
    in_a_row = [
        4 * sector / of_lanes(bench, row, 8 * LINE // 4, 4, first=place * (2**15 + 512))
        for place in range(16)
    ]
    bench.notes["units_at_work_by_words_4224_bytes_apart"] = apart
    bench.notes["units_at_work_in_8_lines_by_where_they_begin"] = in_a_row
    units = bench.known("bandwidth.l2_atomic_units")
    places = 32 * (1 / max(apart[32], 1e-9) - 1 / units)
    mean = float(np.exp(np.mean(np.log(in_a_row))))
    return [min(32.0, max(1.0, places)), min(8.0, max(1.0, mean))]


@probe("interval_cycles.global_atomic_whole_sector")
def atomics_on_whole_sectors(bench: Bench) -> Values:
    """RED by 8 lanes of each warp on the 8 words of a sector, over 2, 4 and 6 lanes.

    Also by the lanes of a warp of one SM on 4 to 32 adjacent sectors, and on as many lines.
    """
    by_lanes = {n: of_lanes(bench, (n, 0, 1), 8, 4) for n in range(1, 9)}
    beside = {n: of_lanes(bench, (32, 32, 1), 2**20, n, sms=1) for n in (4, 8, 16, 32)}
    apart = {n: of_lanes(bench, (n, 32, 1), MANY_WORDS, 4224, sms=1) for n in (1, 8, 16, 32)}
    bench.notes["cycles_of_an_atomic_by_words_of_a_sector"] = by_lanes
    bench.notes["cycles_of_an_atomic_of_one_sm_by_sectors"] = beside
    bench.notes["cycles_of_an_atomic_of_one_sm_by_lines"] = apart
    part = by_lanes[8] / max(float(np.mean([by_lanes[n] for n in (2, 4, 6)])), 1e-9)
    return [min(1.0, max(0.01, part))]


@probe("interval_cycles.global_atomic_read", "interval_cycles.global_atomic_miss")
def atomics_among_loads(bench: Bench) -> Values:
    """RED of all lanes of all SMs at random in 65,536 lines, beside 0 to 4 rows of loads each time.

    The additional time per loaded line, out of 8 MB, and the further time per half line out of 4
    GB: relative to the time of an atomic.
    """
    notes = {
        (rows, size): _among_loads(bench, rows, size)
        for size in (8 * MB, DRAM_BYTES)
        for rows in (0, 1, 2, 4)
    }
    bench.notes["cycles_of_an_atomic_of_32_lanes_among_loads"] = {
        f"{rows} rows of {size // MB} MB": cycles for (rows, size), cycles in notes.items()
    }
    alone = notes[0, 8 * MB] / 32
    read, missed = (
        (notes[4, size] - notes[0, size]) / 4 / max(alone, 1e-9) for size in (8 * MB, DRAM_BYTES)
    )
    return [max(0.0, read), max(0.0, (missed - read) / HALVES)]


def _among_loads(bench: Bench, rows: int, size: int) -> float:
    """Return GPU cycles per warp for its atomics and the loads of rows beside them."""
    memory = int(bench.buffer(2 * DRAM_BYTES))
    times = [
        bench.time_us(
            bench.probe("atomics", f"among_loads<{rows}>"),
            np.uint64(memory),
            np.uint32(MANY_WORDS - 1),
            np.uint64(memory + DRAM_BYTES),
            np.uint32(size // LINE - 1),
            np.int32(iterations),
            bench.stamps(1),
            grid=bench.sms,
            block=2 * BLOCK,
            cold=False,
            repetitions=3,
        )
        for iterations in (16, 80)
    ]
    return (times[1] - times[0]) * bench.clock_mhz / (64 * bench.sms * 2 * BLOCK / 32)


def _at_random(bench: Bench, kind: str, places: int, apart: int = LINE) -> float:
    """Return GPU cycles per atomic of one lane, at places `apart` bytes apart."""
    times = [
        bench.time_us(
            bench.probe("atomics", f"at_random<{kind}>"),
            bench.buffer(DRAM_BYTES),
            np.uint32(places - 1),
            np.uint32(apart),
            np.int32(iterations),
            bench.stamps(1),
            grid=bench.sms,
            block=BLOCK,
            cold=False,
            repetitions=3,
        )
        for iterations in (8, 40)
    ]
    return (times[1] - times[0]) * bench.clock_mhz / (32 * bench.sms * BLOCK)


@probe()
def atomics_by_operation(bench: Bench) -> Values:
    """RED and ATOM of all SMs by operation, on one word, on 32 and on 65,536."""
    bench.notes["cycles_of_an_atomic_by_operation"] = {
        f"{kind}, {pattern}": {
            words: cycles(bench, kind, pattern, words) for words in (1, 32, MANY_WORDS)
        }
        for kind in KINDS
        for pattern in PATTERNS
    }
    return []


@probe()
def atomics_on_two_arrays(bench: Bench) -> Values:
    """RED of all SMs at random on words of one array, of another, and on both in turn.

    GPU cycles per warp, by operation, lanes, and the numbers of words.
    """
    bench.prepare("atomics", *(f"two_arrays<{kind}>" for kind in ("ADD", "ADD_FLOAT")))
    bench.notes["cycles_of_atomics_on_two_arrays"] = {
        f"{kind}, {lanes} lanes, {first} and {second} words": _on_two(
            bench, kind, lanes, first, second
        )
        for kind in ("ADD", "ADD_FLOAT")
        for lanes in (1, 32)
        for first in (0, 2, 128, MANY_WORDS)
        for second in (1, 2, 128, MANY_WORDS)
    }
    return []


def _on_two(bench: Bench, kind: str, lanes: int, first: int, second: int) -> float:
    """Return GPU cycles per warp for an atomic on each array; of no words, for the other alone."""
    memory = int(bench.buffer(DRAM_BYTES))
    times = [
        bench.time_us(
            bench.probe("atomics", f"two_arrays<{kind}>"),
            np.uint64(memory if first else 0),
            np.uint32(max(first, 1) - 1),
            np.uint64(memory + 8 * MB + 768),
            np.uint32(second - 1),
            np.int32(lanes),
            np.int32(iterations),
            grid=bench.sms,
            block=BLOCK,
            cold=False,
            repetitions=3,
        )
        for iterations in (8, 40)
    ]
    return (times[1] - times[0]) * bench.clock_mhz / (32 * bench.sms * BLOCK / 32)


@probe()
def atomics_by_bins(bench: Bench) -> Values:
    """RED of all lanes of all SMs at random on 2^10 to 2^26 adjacent words: GPU cycles per lane."""
    bench.notes["cycles_of_an_atomic_at_random_by_adjacent_words"] = {
        f"{kind}, {2**bits} words": _at_random(bench, f"{kind}, {answer}", 2**bits, 4)
        for kind, answer in (("ADD", "false"), ("ADD_FLOAT", "false"), ("ADD", "true"))
        for bits in range(5, 27)
    }
    return []


SHARED_KINDS = {
    "ATOMS.ADD": "ADD, false",
    "ATOMS.ADD, result used": "ADD, true",
    "ATOMS.MAX": "MAX, false",
    "ATOMS.EXCH": "EXCHANGE, true",
    "ATOMS.CAS": "SWAP, true",
    "add of a float": "ADD_FLOAT, false",
    "add of 64 bits": "ADD_LONG, false",
    "add of a double": "ADD_DOUBLE, false",
    "ATOMS.CAS.64": "SWAP_LONG, true",
}


@probe("interval_cycles.shared_swap_pass")
def atomics_in_shared_memory(bench: Bench) -> Values:
    """Atomics in shared memory by operation, by one warp and by 32: lanes on one word, and strides.

    The slope of compare-and-swap by one warp, over the number of lanes on one word.
    """
    bench.prepare("atomics", *(f"in_shared<{kind}>" for kind in SHARED_KINDS.values()))
    places = ((1, 0), (2, 0), (8, 0), (32, 0), (32, 1), (32, 2), (32, 32))
    notes = {
        f"{name}, {warps} warps": {
            f"{lanes} lanes, {stride} words apart": _in_shared(bench, kind, warps, lanes, stride)
            for lanes, stride in places
        }
        for name, kind in SHARED_KINDS.items()
        for warps in (1, 4, WARPS)
    }
    bench.notes["cycles_of_an_atomic_in_shared_memory"] = notes
    alone = notes["ATOMS.CAS, 1 warps"]
    return [max(0.01, (alone["32 lanes, 0 words apart"] - alone["2 lanes, 0 words apart"]) / 30)]


def _in_shared(bench: Bench, kind: str, warps: int, lanes: int, stride: int) -> float:
    """Return SM cycles per warp atomic."""
    spans = [
        bench.span(
            "atomics",
            f"in_shared<{kind}>",
            np.int32(iterations),
            np.int32(stride),
            np.int32(lanes),
            threads=32 * warps,
        )
        for iterations in (32, 96)
    ]
    return (spans[1] - spans[0]) / 64 / warps
