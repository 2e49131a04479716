"""Addresses of local memory: beyond all arrays, one row for each warp.

A row holds the words of the warp's lanes side by side. The GPU reuses rows: it has as many as
resident warps.
"""

from __future__ import annotations

import numpy as np

from gpusim.gpu import memory
from gpusim.launch.events import Step
from gpusim.launch.grid import WARP_SIZE
from gpusim.launch.prepared import Prepared
from gpusim.typing import Array

BEYOND = 1 << 44  # no array has this address, nor any above
EVERYWHERE = 2 * BEYOND  # the pseudo-address of fences between blocks


class LocalRows:
    """Rows of the warps of a program; it `has` them if stores are written through to the L2.

    Before compute capability 7.0 local stores stay in the L1 (write-back).
    """

    def __init__(self, prepared: Prepared) -> None:
        self._row_bytes = -(-prepared.program.local_bytes // memory.WORD_BYTES) * memory.LINE_BYTES
        self.has = bool(self._row_bytes) and prepared.cc.major >= memory.CC_OF_WRITE_THROUGH

    def begin_of(self, warps: Array) -> Array:
        """Return where the rows of some of the first block's warps begin."""
        return BEYOND + warps * self._row_bytes

    def within_block(self, step: Step, width_bytes: int) -> tuple[Array, Array]:
        """Return the words touched by an access and their lanes, a column for each word.

        Shaped (copies or 1, rows, columns), with addresses of the first block.
        """
        assert step.addresses is not None
        rows = step.placement.warp_of(step.rows)[None, :, None] * self._row_bytes
        words = max(1, width_bytes // memory.WORD_BYTES)
        offsets = np.repeat(np.arange(words) * memory.LINE_BYTES, WARP_SIZE)
        own = np.tile(memory.local_places(step.addresses), words) + offsets
        return BEYOND + rows + own, np.tile(step.on, words)

    def places(self, step: Step, width_bytes: int) -> tuple[Array, Array]:
        """Return the same at the blocks' own addresses, shaped (copies, rows, columns)."""
        within, on = self.within_block(step, width_bytes)
        placement = step.placement
        blocks = placement.block_of(step.rows) * placement.warps_per_block
        return within + blocks[..., None] * self._row_bytes, on


def are_rows(addresses: Array) -> Array:
    """Return the addresses of local memory, as a mask."""
    return np.asarray((addresses >= BEYOND) & (addresses < EVERYWHERE))
