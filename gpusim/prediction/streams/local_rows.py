"""Where what threads have of local memory lies: beyond all arrays, a row for each warp.

A warp's row has the words of its lanes side by side. The GPU has as many rows as warps run at a
time: what a block has of them a later block has again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.gpu import memory
from gpusim.launch.events import Step
from gpusim.launch.grid import WARP_SIZE
from gpusim.launch.prepared import Prepared

Array = np.ndarray[Any, Any]

BEYOND = 1 << 44  # no array has this address, nor any above
EVERYWHERE = 2 * BEYOND  # where fences between blocks are kept


class LocalRows:
    """Rows of the warps of a program; it `has` them where stores go on to the L2.

    Caches before compute capability 7.0 keep what is stored: it is in the L1.
    """

    def __init__(self, prepared: Prepared) -> None:
        self._row_bytes = -(-prepared.program.local_bytes // memory.WORD_BYTES) * memory.LINE_BYTES
        self.has = bool(self._row_bytes) and prepared.cc.major >= memory.CC_OF_WRITE_THROUGH

    def within_block(self, step: Step, width_bytes: int) -> tuple[Array, Array]:
        """Return the words that an access touches and which lanes do, a column for each word.

        Shaped (copies or 1, rows, columns), as if the block were the first.
        """
        assert step.addresses is not None
        rows = step.placement.warp_of(step.rows)[None, :, None] * self._row_bytes
        words = max(1, width_bytes // memory.WORD_BYTES)
        offsets = np.repeat(np.arange(words) * memory.LINE_BYTES, WARP_SIZE)
        own = np.tile(memory.local_places(step.addresses), words) + offsets
        return BEYOND + rows + own, np.tile(step.on, words)

    def places(self, step: Step, width_bytes: int) -> tuple[Array, Array]:
        """Return the same where the blocks have them, shaped (copies, rows, columns)."""
        within, on = self.within_block(step, width_bytes)
        placement = step.placement
        blocks = placement.block_of(step.rows) * placement.warps_per_block
        return within + blocks[..., None] * self._row_bytes, on


def are_rows(addresses: Array) -> Array:
    """Return which bytes are local memory."""
    return np.asarray((addresses >= BEYOND) & (addresses < EVERYWHERE))
