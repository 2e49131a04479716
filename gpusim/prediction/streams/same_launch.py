"""Launches as keys: results that follow from a launch alone are kept for all GPUs that run it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpusim.launch.prepared import Prepared
from gpusim.program.memoisation import Same


@dataclass(frozen=True)
class SameLaunch:
    """A launch of a program, equal to others with equal grids, blocks and arguments."""

    prepared: Prepared = field(compare=False)
    key: tuple[Any, ...]

    @classmethod
    def of(cls, prepared: Prepared) -> SameLaunch | None:
        """Return a launch as a key, None for one with elements: these may change."""
        arguments = prepared.arguments
        if any(isinstance(value, np.ndarray) for value in arguments.values()):
            return None
        given = list(map(id, arguments.values()))
        same = tuple(map(given.index, given))  # aliasing: an array may be passed twice
        items = tuple(arguments.items())
        return cls(prepared, (Same(prepared.program), prepared.launch, items, same, prepared.cc))
