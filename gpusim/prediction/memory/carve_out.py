"""What of an SM's memory is shared memory: the rest is L1."""

from __future__ import annotations

from gpusim.launch import ComputeCapability

# KB of shared memory that an SM can have, by the first generation with these sizes (CUDA C++
# Programming Guide, "Compute Capabilities").
_SIZES = {
    (9, 0): (0, 8, 16, 32, 64, 100, 132, 164, 196, 228),
    (8, 6): (0, 8, 16, 32, 64, 100),
    (8, 0): (0, 8, 16, 32, 64, 100, 132, 164),
    (7, 5): (32, 64),
    (7, 0): (0, 8, 16, 32, 64, 96),
}


def carve_out(shared_bytes: int, cc: ComputeCapability) -> int:
    """Return how many bytes an SM sets aside for shared memory where its blocks need so many.

    The driver takes the least that holds as many blocks as there can be. Before compute capability
    7.0 the L1 is memory of its own.
    """
    generation = next((first for first in _SIZES if (cc.major, cc.minor) >= first), None)
    if generation is None:
        return 0
    sizes = [kb * 1024 for kb in _SIZES[generation]]
    return next((size for size in sizes if size >= shared_bytes), sizes[-1])
