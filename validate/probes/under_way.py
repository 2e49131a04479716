"""How many loads of an SM are under way at a time."""

from __future__ import annotations

import numpy as np

from ..bench import Bench
from .probing import DRAM_BYTES, Values, probe

IN_A_ROW = (1, 6, 12, 24)  # loads of a warp, as many registers
BLOCKS = 2  # of an SM, that fill it


def _in_a_row(bench: Bench, count: int, warps: int, rounds: tuple[tuple[int, int], ...]) -> float:
    """Return the cycles in which warps of each SM load so often from a line, and wait for it.

    Of two launches, by how many lines each warp goes through, and how often through others'.
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

    In the time that one load each takes so many loads of the SM are served. Also by fewer warps, of
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
