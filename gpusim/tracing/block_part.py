"""The part of a step that belongs to one block: its warps, and their arrays lane by lane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.launch.events import Step
from gpusim.launch.grid import WARP_SIZE
from gpusim.typing import Array


@dataclass(frozen=True)
class BlockPart:
    """One block in a step. `rows` are places in the step's arrays, `warps` the block's warps."""

    copy: int
    rows: tuple[int, ...]
    warps: tuple[int, ...]

    def lanes(self, values: Array, row: int) -> Array:
        """Return the 32 lanes of one of its rows from an array that is to be broadcast."""
        of_copy = values[self.copy if len(values) > 1 else 0]
        found = of_copy[row if len(of_copy) > 1 else 0]
        return found if len(found) == WARP_SIZE else np.repeat(found, WARP_SIZE)


def part_of(step: Step, block: int) -> BlockPart | None:
    """Return a block's part of a step, None where the block has none."""
    placement = step.placement
    position = block - int(placement.blocks[0])
    if not 0 <= position < len(placement.blocks):
        return None
    warps = placement.warp_of(step.rows)
    if placement.folded:
        return BlockPart(position, tuple(range(len(warps))), tuple(warps.tolist()))
    rows = np.flatnonzero(step.rows // placement.warps_per_block == position)
    return BlockPart(0, tuple(rows.tolist()), tuple(warps[rows].tolist()))
