"""Arrays of zeros that take memory where they are touched; they may exceed the machine's."""

from __future__ import annotations

import mmap
import sys
from typing import Any

import numpy as np

from gpusim.errors import InputError

# From that many bytes on only addresses are reserved: the system counts other memory as used.
MANY_BYTES = 1 << 30
_MAP_NORESERVE = 0x4000 if sys.platform == "linux" else 0


def zeros(elements: int, dtype: Any) -> np.ndarray[Any, Any]:
    """Return zeros that take memory where touched; InputError beyond the address space."""
    size = elements * np.dtype(dtype).itemsize
    if size < MANY_BYTES or not _MAP_NORESERVE:
        return np.zeros(elements, dtype)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
    try:
        return np.frombuffer(mmap.mmap(-1, size, flags=flags), dtype)
    except OSError:
        raise InputError(f"no {size:,} bytes of address space are left (ulimit -v)") from None
