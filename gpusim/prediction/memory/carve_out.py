"""What of an SM's memory is shared memory: the rest is L1."""

from __future__ import annotations

from gpusim.launch.grid import ComputeCapability

# KB of shared memory that an SM can have, by the first generation with these sizes (CUDA C++
# Programming Guide, "Compute Capabilities").
_SIZES = {
    (9, 0): (0, 8, 16, 32, 64, 100, 132, 164, 196, 228),
    (8, 6): (0, 8, 16, 32, 64, 100),
    (8, 0): (0, 8, 16, 32, 64, 100, 132, 164),
    (7, 5): (32, 64),
    (7, 0): (0, 8, 16, 32, 64, 96),
}


def l1_left(memory_bytes: int, shared_bytes: int, without_lines: int, cc: ComputeCapability) -> int:
    """Return how many bytes of an SM's memory hold lines where its blocks need so many others.

    The driver sets the least aside that holds as many blocks as there can be; of the rest some
    bytes are `without_lines`. Before compute capability 7.0 the L1 is memory of its own.
    """
    generation = next((first for first in _SIZES if (cc.major, cc.minor) >= first), None)
    if generation is None:
        return memory_bytes
    sizes = [kb * 1024 for kb in _SIZES[generation]]
    carve_out = next((size for size in sizes if size >= shared_bytes), sizes[-1])
    return max(0, memory_bytes - carve_out - without_lines)
