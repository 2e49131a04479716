"""Tensor maps: an array, a box of it, and how boxes lie in shared memory.

CUDA's `CUtensorMap` has 128 bytes of undocumented meaning. Here the first eight are the array's
address, and the words after it are `TensorMap.words`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from operator import mul
from typing import Any

import numpy as np

from gpusim.errors import InputError
from gpusim.launch.arguments import ArraySpec
from gpusim.typing import Array

MOST_DIMENSIONS, MOST_BOX, UNIT = 5, 256, 16
FILLED = 0x7FF7  # each half of a word outside, with NaN, on an H200
WORDS = 15  # of 64 bits, after the address
SWIZZLES = (0, 32, 64, 128)  # bytes of a row of units that change places
# Types as reductions name them, by their number in a map.
KINDS = {
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "int32": "s32", "uint64": "u64",
    "int64": "s64", "float16": "f16", "float32": "f32", "float64": "f64",
}  # fmt: skip
_KINDS = *KINDS.values(), "bf16"
_BYTES = *(np.dtype(name).itemsize for name in KINDS), 2


class TensorMap:
    """A map of a C-contiguous array for `cp.async.bulk.tensor`, as `cuTensorMapEncodeTiled` makes.

    `box` is its shape in elements, in the order of the array's axes; coordinates in a kernel begin
    with the last axis. `swizzle` is 0, 32, 64 or 128 bytes; elements outside are 0, or NaN with
    `fill="nan"`. Raises InputError for maps that CUDA refuses.
    """

    def __init__(
        self,
        array: np.ndarray[Any, Any] | ArraySpec,
        box: Sequence[int],
        *,
        swizzle: int = 0,
        fill: str = "zero",
    ) -> None:
        self.array, self.box = array, tuple(box)
        self.swizzle, self.fill = swizzle, fill
        self._check()

    def _check(self) -> None:
        shape, item = self.array.shape, self.array.dtype.itemsize
        if self.array.dtype.name not in KINDS:
            raise InputError(
                f"a tensor map has elements of {', '.join(KINDS)}, not {self.array.dtype}"
            )
        if not 1 <= len(shape) <= MOST_DIMENSIONS or len(self.box) != len(shape):
            raise InputError(
                f"a tensor map has 1 to {MOST_DIMENSIONS} dimensions, and a box as many as its "
                f"array: the array has {len(shape)}, the box {len(self.box)}"
            )
        if not all(1 <= extent <= MOST_BOX for extent in self.box):
            raise InputError(f"a box has 1 to {MOST_BOX} elements along each axis, not {self.box}")
        if self.swizzle not in SWIZZLES or self.fill not in ("zero", "nan"):
            raise InputError("a tensor map has swizzle 0, 32, 64 or 128, and fill zero or nan")
        inner = self.box[-1] * item
        if inner % UNIT or (self.swizzle and inner != self.swizzle):
            raise InputError(
                f"a row of a box has a multiple of {UNIT} bytes, or, with a swizzle, its bytes "
                f"(narrower rows are not simulated): {self.box[-1]} elements have {inner}"
            )
        if len(shape) > 1 and shape[-1] * item % UNIT:
            raise InputError(f"a row of a tensor map's array has a multiple of {UNIT} bytes")

    @property
    def members(self) -> tuple[Any, ...]:
        """The map as kernel arguments: the array, and the words after its address."""
        return self.array, *map(np.uint64, self.words)

    @property
    def words(self) -> list[int]:
        """A byte each for rank, swizzle, fill and type; extents, box and strides, last axis first.

        The strides in bytes, of all axes but the last, are 0 in a C-contiguous array.
        """
        shape, item = self.array.shape[::-1], KINDS[self.array.dtype.name]
        head = (len(shape), SWIZZLES.index(self.swizzle), self.fill == "nan", _KINDS.index(item))
        first = sum(int(value) << 8 * place for place, value in enumerate(head))
        rest = [0] * (MOST_DIMENSIONS - len(shape))
        both = [*shape, *rest, *self.box[::-1], *rest]
        return [first, *both, *[0] * (WORDS - 1 - len(both))]


@dataclass(frozen=True)
class Box:
    """A box of an array at a place: by last axis first, as a map's words say."""

    extents: tuple[int, ...]
    box: tuple[int, ...]
    first: tuple[int, ...]
    strides: tuple[int, ...]
    swizzle: int
    is_nan: bool
    kind: str
    item: int

    @classmethod
    def of(cls, words: Sequence[int], first: Sequence[int]) -> Box:
        """Return the box at some coordinates of a map with these words after its address."""
        rank, swizzle, is_nan, kind = (words[0] >> 8 * place & 0xFF for place in range(4))
        extents, box, strides = (
            tuple(words[begin : begin + rank])
            for begin in (1, 1 + MOST_DIMENSIONS, 2 * MOST_DIMENSIONS)
        )
        item, inner = _BYTES[kind], extents[:-1]
        dense = accumulate(inner, mul, initial=item)
        found = tuple(given or own for given, own in zip((0, *strides[1:]), dense, strict=True))
        return cls(
            extents, box, tuple(first[:rank]), found, SWIZZLES[swizzle], bool(is_nan),
            _KINDS[kind], item,
        )  # fmt: skip

    @property
    def size(self) -> int:
        """Bytes in shared memory, elements outside included."""
        return prod(self.box) * self.item

    def places(self) -> tuple[Array, Array]:
        """Return the first byte of each element in the array, and whether it lies inside."""
        place = np.zeros((1,) * len(self.box), dtype=np.int64)
        inside = np.ones((1,) * len(self.box), dtype=bool)
        for axis, (extent, size, first, stride) in enumerate(
            zip(self.extents, self.box, self.first, self.strides, strict=True)
        ):
            shape = [1] * len(self.box)
            shape[len(self.box) - 1 - axis] = size
            at = np.arange(first, first + size).reshape(shape)
            inside = inside & (at >= 0) & (at < extent)
            place = place + at * stride
        return np.broadcast_to(place, inside.shape).reshape(-1), inside.reshape(-1)

    def stretches(self) -> Array:
        """Return begin and end of the array's bytes that the box touches, row by row, (rows, 2)."""
        place, inside = (one.reshape(-1, self.box[0]) for one in self.places())
        rows = inside.any(axis=1)
        place, inside = place[rows], inside[rows]
        begins = np.where(inside, place, np.iinfo(np.int64).max).min(axis=1)
        return np.stack([begins, np.where(inside, place + self.item, 0).max(axis=1)], axis=1)

    def pieces(self, *, stores: bool) -> list[tuple[int, int, int]]:
        """Return begin in the array, place in the box, and bytes of each row of the box.

        A load asks for all of its rows, a store for what lies inside.
        """
        place, inside = (one.reshape(-1, self.box[0]) for one in self.places())
        begins, size = place[:, 0], self.box[0] * self.item
        rows = range(len(place))
        if not stores:
            return [(int(begins[row]), row * size, size) for row in rows]
        sizes = inside.sum(axis=1) * self.item
        return [(int(begins[row]), row * size, int(sizes[row])) for row in rows if sizes[row]]

    def swizzled(self, begin: int) -> Array:
        """Return where each byte of the box is, from its first place in shared memory on."""
        at = np.arange(begin, begin + self.size)
        mask = max(self.swizzle // UNIT - 1, 0)
        return np.asarray(at ^ (at >> 7 & mask) << 4)

    def load(self, source: Array, shared: Array, begin: int) -> None:
        """Copy the box from an array's bytes to shared memory."""
        place, inside = self.places()
        found = np.zeros((len(place), self.item), dtype=np.uint8)
        if self.is_nan and self.kind.startswith("f"):
            found.reshape(-1).view(np.uint16)[:] = FILLED
        each = place[inside, None] + np.arange(self.item)
        found[inside] = source[each]
        shared[self.swizzled(begin)] = found.reshape(-1)

    def stored(self, shared: Array, begin: int) -> tuple[Array, Array]:
        """Return the places in an array that the box stores to, and the bytes stored."""
        place, inside = self.places()
        values = shared[self.swizzled(begin)].reshape(-1, self.item)[inside]
        return (place[inside, None] + np.arange(self.item)).reshape(-1), values.reshape(-1)
