"""Words of global memory through which blocks communicate: parked polls and atomic throughput."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from gpusim.gpu.memory import LINE_BYTES
from gpusim.launch.events import Step
from gpusim.machine.storage import Allocation
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
        """Return the times at which warps woken at a time continue."""
        return np.maximum(at, self._since[rows])


Wake = Callable[[Array, int], None]  # warps by their rows, at a time


class Words:
    """The words shared by all batches; atomics on one are served `apart` ticks apart."""

    def __init__(self, apart: int) -> None:
        self._apart = apart
        self._free: dict[int, int] = {}
        self._waiting: dict[int, list[tuple[Wake, Array]]] = {}

    def park(self, wake: Wake, rows: Array, addresses: Array, on: Array) -> None:
        """Park warps until a word polled by one of their lanes is written.

        `addresses` and `on` are shaped (warps, 32).
        """
        asked = addresses[on]
        of = np.broadcast_to(rows[:, None], on.shape)[on]
        for address in np.unique(asked).tolist():
            self._waiting.setdefault(address, []).append((wake, np.unique(of[asked == address])))

    def written(self, addresses: Array, at: Array) -> None:
        """Wake the warps parked on written words, at the time of the last write to each."""
        if not self._waiting:
            return
        waited_for = np.array(list(self._waiting))
        for address in np.intersect1d(addresses, waited_for).tolist():
            last = int(at[addresses == address].max())
            for wake, rows in self._waiting.pop(address):
                wake(rows, last)

    def found(self, addresses: Array, on: Array, at: Array, later: int) -> Array:
        """Return when the polls of warps are served: `later`, after atomics still in progress.

        A poll in between would be answered too early and repeated.
        """
        if self._free.keys().isdisjoint(addresses[on].tolist()):
            return at
        busy = np.array(
            [
                max((self._free.get(word, 0) for word in set(asked[lanes].tolist())), default=0)
                for asked, lanes in zip(addresses, on, strict=True)
            ]
        )
        return np.where(busy > at, busy + later, at)

    def served(self, addresses: Array, on: Array, at: Array) -> Array:
        """Return when the atomics of warps that arrive at a time are served.

        `addresses` and `on` are shaped (warps, 32). The word with the most lanes of a warp counts.
        """
        begins = at.copy()
        for place in np.argsort(at, kind="stable").tolist():
            asked, passes = np.unique(addresses[place][on[place]], return_counts=True)
            if len(asked):
                most = int(passes.argmax())
                word = int(asked[most])
                begins[place] = max(int(at[place]), self._free.get(word, 0))
                self._free[word] = int(begins[place]) + int(passes[most]) * self._apart
        return begins


class Lines:
    """The lines of all arrays, each touched or not."""

    def __init__(self, allocations: Iterable[Allocation]) -> None:
        extents = [one.extent for one in allocations]
        self._begin = min((one.start for one in extents), default=0) // LINE_BYTES
        end = max((one.stop for one in extents), default=0) // LINE_BYTES
        self._touched = np.zeros(end - self._begin + 1, dtype=bool)

    def first(self, addresses: Array, on: Array) -> Array:
        """Return the warps that touch a line first; `addresses` and `on` are (warps, 32)."""
        lines = np.where(on, addresses // LINE_BYTES - self._begin, 0)
        are_first = (on & ~self._touched[lines]).any(axis=1)
        self._touched[lines[on]] = True
        return np.asarray(are_first)

    def touch(self, addresses: Array) -> None:
        """Mark the lines of addresses as touched."""
        self._touched[addresses // LINE_BYTES - self._begin] = True
