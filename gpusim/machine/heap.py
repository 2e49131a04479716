"""Memory of arrays that each instruction makes and drops: it stays with the process."""

from __future__ import annotations

import numpy as np

LARGEST = 1 << 24  # bytes of an array that is made again and again


def keep_freed_memory() -> None:
    """Let what arrays leave behind be used for the next ones, not given back to the system.

    glibc gives back what is free above twice the largest array that it has taken from the system
    by itself and got back (mallopt(3), "M_MMAP_THRESHOLD"). One that nobody touches raises the
    limit and takes no memory: pages that come anew with each instruction cost up to half the time.
    """
    np.empty(LARGEST, dtype=np.uint8)
