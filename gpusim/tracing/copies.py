"""Addresses that blocks share up to an offset: one block's, and each block's distance from them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpusim.gpu.memory import LINE_BYTES
from gpusim.launch.events import Step
from gpusim.typing import Array

NOT_MOVED = np.zeros((1, 1, 1), dtype=np.int64)


class Copies(NamedTuple):
    """Byte addresses of a step's blocks: each of `addresses`, moved on by each of `moved`."""

    addresses: Array
    moved: Array


class LastCopies:
    """A cache of the last step's copies, for all counters."""

    def __init__(self) -> None:
        self._step: Step | None = None
        self._copies = Copies(NOT_MOVED, NOT_MOVED)

    def of(self, step: Step) -> Copies:
        """Return one copy where blocks with the same masks are whole lines apart, else all."""
        if self._step is not step:
            assert step.addresses is not None
            self._step, self._copies = step, _copies(step.addresses, step.on)
        return self._copies


def _copies(addresses: Array, on: Array) -> Copies:
    if len(addresses) == 1 or len(on) > 1:
        return Copies(addresses, NOT_MOVED)
    moved = addresses[:, :1, :1] - addresses[0, 0, 0]
    alike = not np.count_nonzero(moved & (LINE_BYTES - 1))
    if alike and not np.count_nonzero(addresses != addresses[:1] + moved):
        return Copies(addresses[:1], moved)
    return Copies(addresses, NOT_MOVED)
