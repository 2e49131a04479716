"""The elements of memory that lanes touch: read and set for each lane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.typing import Array


@dataclass(frozen=True)
class LaneElements:
    """A memory: its elements (None if it has none), each lane's first one, the accessing lanes."""

    elements: Array | None
    index: Array
    mine: Array
    beyond: tuple[Array, Array] | None = None

    def keep(self) -> None:
        """Let an array have the elements of an access beyond its end."""
        if self.beyond is not None:
            array, copy = self.beyond
            array[:] = copy

    def loaded(self, position: int) -> Array | None:
        """Return the elements at `position` after each lane's first one."""
        if self.elements is None:
            return None
        index = self.index + position if position else self.index
        return self.elements.take(index, mode="clip")

    def set(self, position: int, value: Array) -> None:
        """Set the elements at `position` after each lane's first one."""
        if self.elements is None:
            return
        index = self.index + position if position else self.index
        where, value, taking = np.broadcast_arrays(index, value, self.mine)
        if taking.all():
            self.elements[where.reshape(-1)] = value.reshape(-1)
        else:
            self.elements[where[taking]] = value[taking]
