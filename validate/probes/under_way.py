"""Loads in flight: their maximum per SM, and the latency of a busy L2."""

from __future__ import annotations

import numpy as np

from ..bench import Bench
from .probing import DRAM_BYTES, LINE, MB, Values, probe, through_nought

IN_A_ROW = (1, 6, 12, 24)  # loads of a warp, as many registers
BLOCKS = 2  # per SM, filling it


def _in_a_row(bench: Bench, count: int, warps: int, rounds: tuple[tuple[int, int], ...]) -> float:
    """Return the cycles of `count` loads from a line by each of an SM's warps, with a wait.

    The difference of two launches, given by lines per warp, and passes through others' lines.
    """
    times = [
        bench.time_us(
            bench.probe("caches", f"loads_in_a_row<{count}>"),
            bench.buffer(DRAM_BYTES),
            np.int32(lines),
            np.int32(ways),
            bench.stamps(1),
            grid=BLOCKS * bench.sms,
            block=32 * warps // BLOCKS,
            cold=ways == 1,
            repetitions=5,
        )
        for lines, ways in rounds
    ]
    done = [lines * ways for lines, ways in rounds]
    return (times[1] - times[0]) * bench.clock_mhz / (done[1] - done[0])


FROM = {"DRAM": ((8, 1), (40, 1)), "L2": ((16, 2), (16, 6))}


@probe("queue.load_depth")
def loads_in_a_row(bench: Bench) -> Values:
    """64 warps of each SM load 24 times each from a line, again and again, out of DRAM.

    The number of the SM's loads served in the time of one load each. Also by fewer warps, with
    fewer loads, and out of the L2.
    """
    notes = {
        where: {
            warps: {count: _in_a_row(bench, count, warps, rounds) for count in IN_A_ROW}
            for warps in (16, 32, 48, 64)
        }
        for where, rounds in FROM.items()
    }
    bench.notes["cycles_of_loads_in_a_row_by_warps_and_loads"] = notes
    full = notes["DRAM"][64]
    return [max(1.0, 64 * 24 * full[1] / max(full[24], 1e-9))]


BUSY_WARPS, BUSY_AHEAD = (4, 6, 8, 12, 16), (2, 4, 8)
BUSY_BYTES = 4 * MB  # read by all SMs before, so that each has a near copy
BUSY_FROM, BUSY_TO = 0.35, 0.8  # fitted utilisations; beyond, loads queue


@probe("bandwidth.l2_latency_growth")
def l2_under_load(bench: Bench) -> Values:
    """4 to 16 warps of an SM read lines at random in 4 MiB of the L2, 2 to 8 at a time.

    The additional latency if all SMs do so, over the third power of their utilisation of the L2's
    bandwidth, from a third to four fifths: the slope, relative to the latency.
    """
    idle = bench.known("latency_cycles.l2")
    share = bench.known("bandwidth.l2_gbps") * 1000 / bench.clock_mhz / bench.sms
    notes: dict[str, Values] = {}
    points = []
    for warps in BUSY_WARPS:
        for ahead in BUSY_AHEAD:
            busy, alone = (_turn_cycles(bench, sms, warps, ahead) for sms in (bench.sms, 1))
            used = warps * ahead * LINE / max(busy, 1.0) / share
            notes[f"{warps} warps, {ahead} at a time"] = [used, alone, busy]
            if BUSY_FROM < used < BUSY_TO:
                points.append((used**3, (busy - alone) / idle))
    bench.notes["utilisation_and_cycles_of_loads_by_one_sm_and_all"] = notes
    return [max(0.0, through_nought(points))]


def _turn_cycles(bench: Bench, sms: int, warps: int, ahead: int) -> float:
    """Return the cycles of a turn with `ahead` concurrent line reads by each warp of some SMs."""
    times = [
        bench.time_us(
            bench.probe("caches", f"lines_in_turns<{ahead}>"),
            bench.buffer(DRAM_BYTES),
            np.uint32(BUSY_BYTES // LINE - 1),
            np.int32(turns),
            bench.stamps(1),
            grid=sms,
            block=32 * warps,
            cold=False,
            repetitions=5,
        )
        for turns in (64, 320)
    ]
    return (times[1] - times[0]) * bench.clock_mhz / 256
