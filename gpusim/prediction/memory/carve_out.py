"""The carve-out: the part of an SM's memory used as shared memory; the rest is L1."""

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
    """Return the bytes left for L1 lines beside `shared_bytes` of shared memory of its blocks.

    The driver chooses the smallest carve-out that holds all resident blocks; `without_lines` bytes
    of the rest hold no lines. Before compute capability 7.0 the L1 is a memory of its own.
    """
    generation = next((first for first in _SIZES if (cc.major, cc.minor) >= first), None)
    if generation is None:
        return memory_bytes
    sizes = [kb * 1024 for kb in _SIZES[generation]]
    carve_out = next((size for size in sizes if size >= shared_bytes), sizes[-1])
    return max(0, memory_bytes - carve_out - without_lines)
