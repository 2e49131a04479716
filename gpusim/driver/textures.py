"""Texture and surface objects of a process, by their handles."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from gpusim.launch.textures import Texture

# Elements by their format's number (CUarray_format).
_DTYPES = {
    1: np.uint8, 2: np.uint16, 3: np.uint32, 8: np.int8, 9: np.int16, 10: np.int32,
    16: np.float16, 32: np.float32,
}  # fmt: skip


def texture_of(numbers: Sequence[int]) -> Texture:
    """Return what a request describes, as `describe_texture` of `native/driver.c` sends it."""
    address, width, height, depth, pitch, slice_pitch, number, channels, layered, *rest = numbers
    x, y, z, linear, normalized, fractions, *border = rest
    colours = struct.unpack("<4f", struct.pack("<4I", *border))
    return Texture(
        address=address,
        width=width,
        height=height,
        depth=depth,
        pitch=pitch,
        slice_pitch=slice_pitch,
        dtype=np.dtype(_DTYPES[number]),
        channels=channels,
        is_layered=bool(layered),
        modes=(x, y, z),
        is_linear=bool(linear),
        is_normalized=bool(normalized),
        reads_fractions=bool(fractions),
        border=colours,
    )
