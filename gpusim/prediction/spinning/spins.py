"""Repeated polls with equal results: the warp is parked until somebody writes the word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpusim.launch.events import Step
from gpusim.typing import Array

NEVER_ASKED = -1


class Spinning:
    """Last poll of each warp of a batch with its result, and the time since it is parked."""

    def __init__(self, rows: int) -> None:
        self._pc = np.full(rows, NEVER_ASKED)
        self._told: list[Array] = []  # lanes, addresses and results, shaped (rows, 32)
        self._since = np.zeros(rows, dtype=np.int64)

    def asked(self, step: Step, found: Sequence[Array], at: Array) -> Array:
        """Return the warps of a step whose poll in a loop gives the same result again.

        `found` are the results, `at` the time of each warp of the batch.
        """
        assert step.addresses is not None
        rows, shape = step.rows, (1, len(step.rows), 32)
        on, addresses, *values = (
            np.broadcast_to(one, shape)[0] for one in (step.on, step.addresses, *found)
        )
        told = [on, *(np.where(on, one, 0) for one in (addresses, *values))]
        again = (self._pc[rows] == step.pc) & on.any(axis=1)
        if again.any():
            for before, now in zip(self._told, told, strict=True):
                again &= (before[rows] == now).all(axis=1)
        if [one.dtype for one in self._told] != [one.dtype for one in told]:
            self._told = [np.zeros((len(self._pc), 32), dtype=one.dtype) for one in told]
            self._pc[:] = NEVER_ASKED
        for before, now in zip(self._told, told, strict=True):
            before[rows] = now
        self._pc[rows] = step.pc
        self._since[rows] = at[rows]
        return np.asarray(again)

    def woken(self, rows: Array, at: int) -> Array:
        """Return the times at which warps woken at a time go on."""
        return np.maximum(at, self._since[rows])
