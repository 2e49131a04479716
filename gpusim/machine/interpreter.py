"""The interpreter: selects the group to run, by default the splits at the lowest pc.

All splits at the lowest pc run together until they branch, exit or join others, so that warps run
together again after the shorter path. The order of a warp's diverged lanes does not depend on other
warps. Instructions are executed by the `handlers`; here groups are chosen and deadlock is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpusim.errors import BarrierError
from gpusim.isa.ops import OPS
from gpusim.launch.events import Observer
from gpusim.machine import cas_loops, convergence, gathering
from gpusim.machine.context import Context, OnFault
from gpusim.machine.group import BlocksDisagreeError, Group
from gpusim.machine.handlers import HANDLERS
from gpusim.machine.livelock import Changes, LivelockDetector
from gpusim.machine.no_progress import Standing, deadlock
from gpusim.machine.state import (
    AT_BARRIER,
    AT_CLUSTER,
    AT_CONVERGENCE,
    AT_NAMED_BARRIER,
    AT_WARP,
    READY,
    Batch,
    Splits,
)
from gpusim.machine.storage import Allocation
from gpusim.machine.turns import Turns
from gpusim.program.loops import pure, swapping, yielding
from gpusim.program.polling import awaits
from gpusim.typing import Array

PLACES = {
    AT_BARRIER: "barrier",
    AT_NAMED_BARRIER: "named barrier",
    AT_CLUSTER: "cluster",
    AT_CONVERGENCE: "convergence",
    AT_WARP: "mask",
}

# One turn in this many goes to the warp that has waited longest, at any pc: a warp at a lower pc
# may wait for one at a higher pc, undetected by `awaits`.
FAIR_TURNS = 32


class Interpreter:
    """Runs one batch. `arguments` are the launch's scalars, `allocations` its arrays.

    With `turns` warps and blocks run in another order than the usual one.
    """

    def __init__(
        self,
        batch: Batch,
        arguments: Mapping[str, Any],
        allocations: Mapping[str, Allocation],
        observers: Sequence[Observer] = (),
        on_fault: OnFault | None = None,
        changes: Changes | None = None,
        printed: list[bytes] | None = None,
        turns: Turns | None = None,
    ) -> None:
        self.batch = batch
        self._turns = turns
        kinds = {OPS[row.op].kind for row in batch.program.instructions}
        has_rows = not kinds.isdisjoint(("bulk_copy", "warpgroup_product"))
        if turns is not None or batch.launch.cluster_blocks > 1 or has_rows:
            batch.unfold()
        self.context = Context(batch, arguments, allocations, observers, on_fault, changes)
        self.context.printed = printed
        self.repetition = LivelockDetector(batch, self.context.changes)
        self._instructions = batch.program.instructions
        ops = [OPS[one.op] for one in self._instructions]
        swaps = swapping(batch.program)
        self._heads, self._swaps = frozenset(swaps.values()), frozenset(swaps)
        self._rounds = cas_loops.Rounds(self._heads, self._swaps, batch.placement.warps_per_block)
        self._lone = pure(batch.program)
        self._has_lone = bool(self._lone.any())
        waits = bool(swaps or awaits(batch.program))
        self._is_fair = waits or on_fault is not None
        self._may_yield = bool(yielding(batch.program).any())
        self._handlers = [HANDLERS[op.kind] for op in ops]
        self._settles = [not op.keeps_to_itself for op in ops]

    def run(self, instructions: int) -> bool:
        """Run about that many instructions; return whether the batch has finished.

        It stops early if the batch repeats itself as long as memory is unchanged.
        """
        stop = self.context.executed + instructions
        while len(self.batch.splits):
            if self.context.executed >= stop or self.repetition.is_stuck:
                return False
            if self._may_yield and self.repetition.is_idle(self.context.executed):
                self._is_fair |= convergence.let_go(self.context)
                self.repetition.begin_again(self.context.executed)
            group = self._next_group()
            if group is None:
                if not self._goes_on():
                    return True
                continue
            if self.repetition.arrive(group, self.context.executed):
                if self._is_fair:
                    return False
                self._is_fair = True
                self.repetition.begin_again(self.context.executed)
            self._take_turn(group)
        return True

    def _take_turn(self, group: Group) -> None:
        try:
            self._run_group(group)
        except BlocksDisagreeError:
            self._run_group(self._unfolded(group))

    def _unfolded(self, group: Group) -> Group:
        """Return a group of a folded batch, within its turn, as one of all its blocks."""
        batch, copies = self.batch, self.batch.placement.copies
        batch.splits.pc[group.which] = group.pc
        begins = np.arange(copies)[:, None] * len(batch.splits)
        batch.unfold()
        return self._together(_by_row(batch.splits, (begins + group.which).reshape(-1)))

    def _together(self, which: Array) -> Group:
        """Return splits as a group, in its order."""
        splits = self.batch.splits
        if len(which) == len(splits) and (which[1:] < which[:-1]).any():
            self.batch.splits = splits.take(which)
            which = np.arange(len(which))
        return Group(self.batch, which)

    def _goes_on(self) -> bool:
        """Release lanes of warps that wait for each other, if all lanes wait; else report a fault.

        CUDA leaves this undefined. It is run as on a GPU, and masks are reported to checks.
        """
        goes_on = self._lets_go()
        if not goes_on:
            self.context.fault(self._deadlock())
        return goes_on

    def yields(self) -> bool:
        """Release lanes that other lanes of their warp wait for; return whether any exist."""
        if not self._lets_go():
            return False
        self.repetition.begin_again(self.context.executed)
        return True

    def _lets_go(self) -> bool:
        """Release lanes at convergence barriers, else lanes that wait for others of their mask."""
        if convergence.let_go(self.context):
            return True
        group = gathering.with_those_present(self.context)
        if group is not None:
            self._take_turn(group)
        return group is not None

    def _next_group(self) -> Group | None:
        splits = self.batch.splits
        ready = splits.state == READY
        count = np.count_nonzero(ready)
        if not count:
            return None
        if self._turns is not None:
            which = np.flatnonzero(ready)
            first = int(which[self._turns.first(splits.last_run[which], splits.row[which])])
            which = which[splits.pc[which] == splits.pc[first]]
            which = which[self._turns.arranged(splits.row[which])]
            if len(which) == len(splits):
                splits = self.batch.splits = splits.take(which)
                which = np.arange(len(splits))
        elif self._is_fair:
            which = self._longest_waiting(np.flatnonzero(ready))
        else:
            which = self._furthest_behind(np.flatnonzero(ready))
        self.batch.clock += 1
        splits.last_run[which] = self.batch.clock
        return self._together(which)

    def _longest_waiting(self, ready: Array) -> Array:
        """Return the splits at the pc of the one that has waited longest.

        Splits in loops without memory accesses run first, except in a round of compare-and-swap
        loops.
        """
        splits, first = self.batch.splits, ready
        following = self._rounds.following(splits, ready)
        if following is not None:
            return following
        if self._has_lone:
            inside = self._lone[splits.pc[ready]]
            first = ready[inside] if inside.any() else ready
        one = int(first[splits.last_run[first].argmin()])
        if int(splits.pc[one]) in self._heads:
            self._rounds.begin(splits, one, self.batch.clock)
            following = self._rounds.following(splits, ready)
            assert following is not None
            return following
        return _by_row(splits, ready[splits.pc[ready] == splits.pc[one]])

    def _furthest_behind(self, ready: Array) -> Array:
        """Return the splits at the lowest pc, one of each warp: the one with its lowest lane.

        Every few turns it is the pc of the first split of the warp that has waited longest, if all
        splits there are the first of their warps: splits with equal paths stay together.
        """
        splits = self.batch.splits
        if self.batch.clock % FAIR_TURNS == 0:
            firsts = self._first_of_rows(ready)
            one = int(firsts[splits.last_run[firsts].argmin()])
            which = ready[splits.pc[ready] == splits.pc[one]]
            if np.isin(which, firsts).all():
                return _by_row(splits, which)
        pc = splits.pc[ready]
        which = _by_row(splits, ready[pc == pc.min()])
        rows = splits.row[which]
        return self._first_of_rows(which) if (rows[1:] == rows[:-1]).any() else which

    def _first_of_rows(self, which: Array) -> Array:
        """Return, of some splits, the one of each row that runs first."""
        splits = self.batch.splits
        lane = splits.mask[0, which].argmax(axis=1)
        order = np.lexsort((lane, splits.pc[which], splits.row[which]))
        rows = splits.row[which[order]]
        is_first = np.ones(len(order), dtype=bool)
        is_first[1:] = rows[1:] != rows[:-1]
        return np.asarray(which[order[is_first]])

    def _run_group(self, group: Group) -> None:
        """Run a group to the end of its turn, also before the swap of a compare-and-swap loop."""
        begin = group.pc
        while True:
            if group.pc in self._swaps and group.pc != begin:
                group.settle()
                self.batch.splits.pc[group.which] = group.pc
                return
            instruction = self._instructions[group.pc]
            self.context.executed += 1
            on = group.lanes_on(instruction)
            if self._settles[group.pc]:
                group.settle()
            if self._handlers[group.pc](self.context, group, instruction, on):
                return
            group.pc += 1

    def _deadlock(self) -> BarrierError:
        """Return the fault of a deadlock: the waiting lanes, and where they wait."""
        splits, placement = self.batch.splits, self.batch.placement
        standing = []
        for number, row in enumerate(splits.row.tolist()):
            block = placement.blocks[0 if placement.folded else row // placement.warps_per_block]
            lanes = int(np.count_nonzero(splits.mask[0, number]))
            place = PLACES[int(splits.state[number])]
            warp, pc = row % placement.warps_per_block, int(splits.pc[number])
            standing.append(Standing(int(block), warp, lanes, pc, place))
        return deadlock(self.batch.program, standing)


def _by_row(splits: Splits, which: Array) -> Array:
    """Return some splits in the order of their rows."""
    rows = splits.row[which]
    return which[np.argsort(rows, kind="stable")] if (rows[1:] < rows[:-1]).any() else which
