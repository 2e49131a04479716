"""The sums of a batch that ran in compiled code, by instruction and warp."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.launch.events import Ran, Sums
from gpusim.machine.compiled.memory import BatchMemory
from gpusim.machine.state import Batch

Array = np.ndarray[Any, Any]


def totals_of(memory: Array, place: BatchMemory, batch: Batch) -> Ran:
    """Return what the warps of a batch did, from its sums in linear memory."""
    made, rows = place.made, batch.program.instructions
    held = memory[place.sums_at : place.sums_at + place.rows * place.sum_bytes]
    words = held.view(np.int64).reshape(place.rows, -1).T.copy()
    ends = [*made.starts[1:], len(rows)]
    sums: dict[int, Sums] = {}
    for number, (begin, end) in enumerate(zip(made.starts, ends, strict=True)):
        times, lanes = words[2 * number : 2 * number + 1], words[2 * number + 1 : 2 * number + 2]
        if not times.any():
            continue
        plain = Sums(times, lanes, lanes, times)
        for pc in range(begin, end):
            found = {
                name: words[made.sums[pc, name]][None] for name in _NAMES if (pc, name) in made.sums
            }
            sums[pc] = plain._replace(**found) if found else plain
    return Ran(batch.placement, np.arange(place.rows), sums)


_NAMES = ("on", "any", "divergent", "wavefronts", "least", "sectors", "replays")
