"""Settings of the process's malloc, for arrays that each instruction allocates and frees."""

from __future__ import annotations

import sys
from functools import cache

LARGEST = 1 << 24  # bytes of an array that is made again and again
# mallopt(3): free memory above the first is returned; larger arrays are mapped by themselves.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


@cache
def keep_freed_memory() -> None:
    """Reuse the memory of freed arrays for the next ones, instead of returning it to the system.

    glibc gives it back after nearly each instruction; pages that come again cost up to half the
    time. Where there is another C library nothing happens.
    """
    if sys.platform != "linux":
        return
    import ctypes  # NumPy has it, too

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGEST)
        mallopt(M_TRIM_THRESHOLD, 4 * LARGEST)
