"""Memory of arrays that each instruction makes and drops: it stays with the process."""

from __future__ import annotations

import sys
from functools import cache

LARGEST = 1 << 24  # bytes of an array that is made again and again
# mallopt(3): what is free above the first is given back; larger arrays are mapped by themselves.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


@cache
def keep_freed_memory() -> None:
    """Let what arrays leave behind be used for the next ones, not given back to the system.

    glibc gives it back after nearly each instruction; pages that come anew cost up to half the
    time. Where there is another C library nothing happens.
    """
    if sys.platform != "linux":
        return
    import ctypes  # NumPy has it, too

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGEST)
        mallopt(M_TRIM_THRESHOLD, 2 * LARGEST)
