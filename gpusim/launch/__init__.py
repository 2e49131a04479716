"""A launch: its grid, arguments, prepared program and events."""

from gpusim.launch.grid import (
    MAX_BLOCK,
    MAX_GRID,
    MAX_THREADS_PER_BLOCK,
    WARP_SIZE,
    ComputeCapability,
    Dim3,
    Launch,
    bound_arguments,
    dim3,
    places_of,
)

__all__ = [
    "MAX_BLOCK",
    "MAX_GRID",
    "MAX_THREADS_PER_BLOCK",
    "WARP_SIZE",
    "ComputeCapability",
    "Dim3",
    "Launch",
    "bound_arguments",
    "dim3",
    "places_of",
]
