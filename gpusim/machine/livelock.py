"""Detection of infinite loops: a batch that returns to an earlier state repeats forever.

The path of a batch depends only on pcs of lanes, memory, and registers that affect branches: if all
are unchanged, only other blocks could end the loop. The state is saved after 1, 2, 4 ... times as
many instructions (Brent), and compared at the same pc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.machine.group import Group
from gpusim.machine.state import Batch
from gpusim.program.decisions import decisions
from gpusim.typing import Array

BEGIN = 4096  # instructions before the first snapshot: nearly all kernels end before
SHORT = 64  # instructions before the next snapshot after a release
IDLE = 1024  # instructions without a change of memory, in which lanes of a warp wait for others
LOOKS_EACH = 16  # visits of a pc, once it has been examined 1, 2, 4, 8 times


@dataclass
class Changes:
    """The number of changes of memory, by all batches of a launch."""

    count: int = 0


class LivelockDetector:
    """Watches one batch. `since` is the count of memory changes at its detected repetition."""

    def __init__(self, batch: Batch, changes: Changes) -> None:
        self._batch = batch
        self._changes = changes
        self._keep_at = self._interval = BEGIN
        self._kept: _State | None = None
        self._arrivals = 0
        self._changed = (0, 0)  # the count of changes, and the instructions when it was new
        self.since = -1

    @property
    def is_stuck(self) -> bool:
        """Whether the batch repeats itself, at least until memory changes."""
        return self.since == self._changes.count

    def is_idle(self, executed: int) -> bool:
        """Return whether memory has not changed for a while: clocks may keep states apart."""
        if self._changed[0] != self._changes.count:
            self._changed = self._changes.count, executed
        return executed - self._changed[1] >= IDLE

    def begin_again(self, executed: int) -> None:
        """Drop the result after a release of lanes that may change memory."""
        self.since, self._kept = -1, None
        self._changed = self._changes.count, executed
        self._interval = SHORT
        self._keep_at = executed + SHORT

    def arrive(self, group: Group, executed: int) -> bool:
        """Record that a group is about to run; return whether its state repeats an earlier one."""
        kept = self._kept
        if executed >= self._keep_at:
            self._keep_at = executed + self._interval
            self._interval *= 2
            self._kept = _State(self._batch, group.pc, self._changes.count)
            self._arrivals = 0
        elif kept is not None and kept.pc == group.pc and kept.changes == self._changes.count:
            self._arrivals += 1
            often = self._arrivals % LOOKS_EACH == 0
            if (often or self._arrivals in (1, 2, 4, 8)) and kept.is_like(self._batch):
                self.since = self._changes.count
        return self.is_stuck


class _State:
    """The deciding registers of a batch, its lanes' pcs, and memory by its count of changes."""

    def __init__(self, batch: Batch, pc: int, changes: int) -> None:
        self.pc = pc
        self.changes = changes
        kept = batch.kept_registers()
        self._registers = {which: kept[which] for which in decisions(batch.program).registers}
        self._lanes = _lanes(batch)
        self._differed = next(iter(self._registers), 0)

    def is_like(self, batch: Batch) -> bool:
        """Return whether a batch equals the snapshot; the last difference is compared first."""
        for which in (self._differed, *self._registers) if self._registers else ():
            if not _equal(self._registers[which], batch.registers[which]):
                self._differed = which
                return False
        lanes = _lanes(batch)
        return len(lanes) == len(self._lanes) and all(map(np.array_equal, self._lanes, lanes))


def _equal(a: Array | None, b: Array | None) -> bool:
    if a is b:
        return True
    if a is None or b is None or a.dtype != b.dtype:
        return False
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def _lanes(batch: Batch) -> list[Array]:
    """Return the pcs of lanes, the order of waiting, and the partition by barrier tokens."""
    splits = batch.splits
    waited = np.argsort(splits.last_run, kind="stable")
    held = (*batch.tokens, *batch.set_aside)
    tokens = [np.unique(token, return_inverse=True)[1] for token in held]
    return [splits.row, splits.pc, splits.mask, splits.state, waited, *tokens]
