"""Stand-ins for array arguments: a type and a size without elements, or a null pointer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpusim.errors import InputError

if TYPE_CHECKING:
    import numpy as np

MAX_ELEMENTS = 2**31 - 1  # the largest int of CUDA C, the type of kernels' counts
MAX_ARRAY = 2**36  # elements of an array of zeros, whose untouched parts take no memory


@dataclass(frozen=True)
class NullPointer:
    """A pointer to no array, CUDA C's nullptr: an access through it is a fault."""


@dataclass(frozen=True)
class ArraySpec:
    """An array without its elements: they are never read. Made by `array_spec`."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes that the array would take."""
        return self.size * self.dtype.itemsize


def array_spec(shape: int | Sequence[int], dtype: Any) -> ArraySpec:
    """Return a stand-in for an array of `shape` (elements) and `dtype`, taking no memory.

    It suffices for `predict` if a kernel's control flow and addresses do not depend on the array's
    elements. Raises InputError for an invalid shape or dtype.
    """
    import numpy as np

    sizes = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    if not all(isinstance(size, int | np.integer) and size >= 0 for size in sizes):
        raise InputError(f"the sizes of an array are whole numbers, not {shape!r}")
    try:
        kind: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        raise InputError(f"{dtype!r} is not a data type") from None
    return ArraySpec(tuple(int(size) for size in sizes), kind)
