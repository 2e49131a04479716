"""Textures and surfaces: memory with axes, named by handles of texture and surface objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

TEXTURES = "texture objects"  # the arguments of a launch have them by this name

WRAP, CLAMP, MIRROR, BORDER = range(4)  # address modes, numbered as in CUDA's API


@dataclass(frozen=True)
class Texture:
    """Memory at an address: `width` elements of some channels a row, rows, and slices or layers.

    `height` and `depth` are 0 without such an axis; pitches are in bytes. `modes` are the address
    modes of the axes. A texture `is_linear` if it interpolates, `is_normalized` if its coordinates
    go from 0 to 1, and `reads_fractions` if integers stand for numbers up to 1.
    """

    address: int
    width: int
    height: int
    depth: int
    pitch: int
    slice_pitch: int
    dtype: np.dtype[Any]
    channels: int
    is_layered: bool = False
    modes: tuple[int, int, int] = (CLAMP, CLAMP, CLAMP)
    is_linear: bool = False
    is_normalized: bool = False
    reads_fractions: bool = False
    border: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)

    @property
    def element_bytes(self) -> int:
        """The bytes of all channels of an element."""
        return self.channels * self.dtype.itemsize

    @property
    def row_bytes(self) -> int:
        """The bytes of a row's elements."""
        return self.width * self.element_bytes

    @property
    def bytes(self) -> int:
        """The bytes from the first element to the last."""
        rows, slices = max(self.height, 1), max(self.depth, 1)
        return (slices - 1) * self.slice_pitch + (rows - 1) * self.pitch + self.row_bytes
