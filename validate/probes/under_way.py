"""How many loads of an SM are under way at a time."""

from __future__ import annotations

import numpy as np

from ..bench import Bench
from .probing import DRAM_BYTES, LINE, WARPS, Values, probe

IN_A_ROW = 24  # loads of a warp: as many registers


@probe("queue.load_depth")
def loads_in_a_row(bench: Bench) -> Values:
    """32 warps of an SM load 24 times each from a line out of DRAM: how many are under way.

    These are issued before the first line can be there, less what schedulers' queues hold.
    """
    rows = bench.told(
        "caches",
        f"loads_in_a_row<{IN_A_ROW}>",
        (IN_A_ROW + 1) * WARPS,
        bench.buffer(DRAM_BYTES),
        np.uint32(LINE // 4),
        block=32 * WARPS,
        before=bench.backend.empty_l2,
    ).reshape(WARPS, IN_A_ROW + 1)
    bench.notes["cycle_after_each_of_loads_in_a_row"] = np.sort(rows[:, :-1].ravel()).tolist()
    issued = np.count_nonzero(rows[:, :-1] < bench.known("latency_cycles.dram_least"))
    return [max(1.0, issued - 4 * bench.known("queue.lsu_depth"))]
