"""The watched blocks of a batch, presented to observers as a batch of their own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np

from gpusim.launch.events import Observer, Placement, Step, hooks
from gpusim.typing import Array

LANES = "active", "on", "addresses", "taken", "mask", "left", "sources", "constants"
_lanes = attrgetter(*LANES)


class Focus(Observer):
    """Forwards steps and ends of the `watched` block numbers to observers."""

    def __init__(self, watched: Collection[int], observers: Sequence[Observer]) -> None:
        self._watched = np.array(sorted(watched), dtype=np.int64)
        self._listeners = hooks(observers, "step")
        self._ending = hooks(observers, "batch_end")
        self._seen: Placement | None = None
        self._latest = self._watched, self._watched  # rows of the last step, and the watched ones

    @property
    def watches(self) -> bool:
        """Whether any block is watched."""
        return len(self._watched) > 0

    def step(self, step: Step) -> None:
        """Forward the watched blocks' part of a step, unless none of them runs it."""
        copies, which = self._among(step.placement, step.rows)
        if not len(which) or not len(self._positions):
            return
        changed: dict[str, Any] = {
            name: None if lanes is None else _part(lanes, copies, which)
            for name, lanes in zip(LANES, _lanes(step), strict=True)
        }
        changed["values"] = tuple(_part(value, copies, which) for value in step.values)
        changed |= {"placement": self._own, "rows": self._rows(step.rows[which])}
        watched = step._replace(**changed)
        for listener in self._listeners:
            listener(watched)

    def batch_end(self, blocks: Array) -> None:
        """Forward the end of the watched blocks."""
        mine = blocks[np.isin(blocks, self._watched)]
        for hook in self._ending if len(mine) else ():
            hook(mine)

    def _among(self, placement: Placement, rows: Array) -> tuple[Array | None, Array]:
        """Return the positions of watched blocks, None for all, and the indices of their rows."""
        if placement is not self._seen:
            self._look_at(placement)
        if placement.folded:
            return self._positions, np.arange(len(rows))
        if rows is not self._latest[0]:  # a group's are one array from step to step
            which = np.flatnonzero(self._place[rows // placement.warps_per_block] >= 0)
            self._latest = rows, which
        return None, self._latest[1]

    def _look_at(self, placement: Placement) -> None:
        """Find the watched blocks of a batch, again after it has been unfolded."""
        self._seen = placement
        self._latest = self._watched, self._watched
        is_mine = np.isin(placement.blocks, self._watched)
        self._positions = np.flatnonzero(is_mine)
        self._place = np.where(is_mine, np.cumsum(is_mine) - 1, -1)
        self._own = replace(placement, blocks=placement.blocks[is_mine])

    def _rows(self, rows: Array) -> Array:
        """Translate rows of the batch to rows of the watched blocks alone."""
        warps = self._own.warps_per_block
        if self._own.folded:
            return rows
        return np.asarray(self._place[rows // warps] * warps + rows % warps)


def _part(value: Array, copies: Array | None, which: Array) -> Array:
    """Return some copies and rows of an array shaped (copies or 1, rows or 1, ...)."""
    if copies is not None and len(value) > 1:
        value = value[copies]
    return value[:, which] if value.ndim > 1 and value.shape[1] > 1 else value
