"""Skipping of repeated iterations in loops.

A loop is watched at its head, the target of a backward branch. Once an iteration proves that the
following ones do the same at other addresses, the registers are set to their values near the
loop's end, and its last iterations are run again. Data that decides nothing is left as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from gpusim.launch.events import Skip, Step
from gpusim.machine.context import Context
from gpusim.machine.group import Group
from gpusim.machine.iteration import ENDLESS, DiffersError, Recurrence, follow
from gpusim.program.decisions import decisions
from gpusim.program.loops import heads
from gpusim.typing import Array

# A shorter skip is not worth the search; a nested loop may then be skipped with the outer one.
LEAST_LEFT_OUT = 16
LONGEST_ITERATION = 4096  # steps
LONG_ITERATION = 100  # steps: 16 such take as long as a module
MOST_WATCHED = 8

OnSkip = Callable[[Skip], None]
MaySkip = Callable[[Sequence[Step]], bool]


class _Watch:
    """A loop executed by a group of warps, from its first return to the head.

    It is examined after 1, 2, 4, 8 ... iterations. Once its recurrence is known, the skip waits
    until a whole period has been executed.
    """

    def __init__(self, group: Group) -> None:
        self.placement = group.batch.placement
        self.rows = group.rows
        self.mask = group.mask
        self.iterations = 0
        self.look_at = 1
        self.skip_at = 0
        self.recurrence: Recurrence | None = None
        self.begin(group)

    def begin(self, group: Group) -> None:
        """Begin an iteration."""
        self.before = group.batch.kept_registers()
        self.steps: list[Step] = []

    @property
    def is_in_vain(self) -> bool:
        """Whether one long iteration was watched, and no other by the same lanes."""
        return not self.iterations and len(self.steps) >= LONG_ITERATION

    def is_of(self, group: Group) -> bool:
        """Return whether a group is the one that is watched."""
        return (
            self.placement is group.batch.placement
            and np.array_equal(self.rows, group.rows)
            and np.array_equal(self.mask, group.mask)
        )

    def shrink_to(self, group: Group) -> bool:
        """Watch only a group's lanes; return False if it has others."""
        if self.placement is not group.batch.placement:
            return False
        places = _places(self.rows, group.rows)
        if places is None or (group.mask & ~self.mask[:, places]).any():
            return False
        if len(places) < len(self.rows) and self.recurrence is not None:
            self.recurrence = _of_rows(self.recurrence, places)
        self.rows, self.mask = group.rows, group.mask
        return True


def _places(rows: Array, some: Array) -> Array | None:
    """Return where some rows stand among others; None where one does not, or does so twice."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    found = np.searchsorted(ordered, some)
    if not len(rows) or (ordered[np.minimum(found, len(rows) - 1)] != some).any():
        return None
    return None if (ordered[1:] == ordered[:-1]).any() else order[found]


def _of_rows(recurrence: Recurrence, places: Array) -> Recurrence:
    """Return the recurrence for some of the rows."""
    steps = {
        register: step if step.shape[1] == 1 else step[:, places]
        for register, step in recurrence.steps.items()
    }
    return replace(recurrence, alike=recurrence.alike[:, places], steps=steps)


def _steps_of(steps: Sequence[Step], group: Group) -> list[Step]:
    """Return a group's part of steps by more lanes; lanes that have left the loop go apart."""
    found = []
    for step in steps:
        places = _places(step.rows, group.rows)
        if places is not None:
            active, on = (lanes[:, places] & group.mask for lanes in (step.active, step.on))
            found.append(step._replace(rows=group.rows, active=active, on=on))
        elif _takes_part(group, step):
            found.append(step)
    return found


def _takes_part(group: Group, step: Step) -> bool:
    """Return whether a lane of a group ran a step."""
    both, ours, theirs = np.intersect1d(group.rows, step.rows, return_indices=True)
    lanes = group.mask[:, ours] & step.active[:, theirs]
    return len(both) < len(step.rows) or bool(lanes.any())


class Loops:
    """The loops of a batch. `on_skip` is called with skipped iterations; without it, all are run.

    With `may_skip` only iterations are skipped if it accepts their steps, and others may
    leave the loop while it is watched.

    `is_endless` is set for an infinite loop: no register that moves and no memory is used by
    its condition. `failures` counts iterations that tell nothing of the next, `changes` long ones
    that began with some lanes and ended with others, `too_short` those that tell of too few others;
    `left_out` warp instructions that were skipped.
    """

    def __init__(
        self, context: Context, on_skip: OnSkip | None, may_skip: MaySkip | None = None
    ) -> None:
        self.is_endless = self.has_recurrence = False
        self.failures = self.changes = self.too_short = self.left_out = 0
        self._may_skip = may_skip
        self._context = context
        self._on_skip = on_skip
        self._decisions = decisions(context.batch.program)
        self.heads = heads(context.batch.program)
        self._watches: dict[tuple[int, int], _Watch] = {}

    def step(self, step: Step) -> None:
        """Keep a step for all that are watched."""
        for key, watch in list(self._watches.items()):
            watch.steps.append(step)
            if len(watch.steps) > LONGEST_ITERATION:
                del self._watches[key]

    def arrive(self, group: Group) -> None:
        """Handle a group at a loop header; it may skip ahead."""
        key = (group.pc, int(group.rows[0]) if self._may_skip is None else 0)
        watch = self._watches.get(key)
        if watch is None or not self._goes_on(watch, group):
            self.changes += watch is not None and watch.is_in_vain
            if len(set(group.rows.tolist())) == len(group.rows):
                self._watches[key] = _Watch(group)
            if len(self._watches) > MOST_WATCHED:
                del self._watches[next(iter(self._watches))]
            return
        watch.iterations += 1
        if watch.iterations == watch.look_at:
            self._look(watch, group)
        if watch.recurrence is not None and watch.iterations == watch.skip_at:
            self._skip(watch.recurrence, group)
            self._watches.clear()
            return
        watch.begin(group)

    def _goes_on(self, watch: _Watch, group: Group) -> bool:
        """Return whether a group is the one that is watched."""
        return watch.is_of(group) or (self._may_skip is not None and watch.shrink_to(group))

    def _look(self, watch: _Watch, group: Group) -> None:
        """Examine whether the last iteration shows a recurrence."""
        watch.look_at *= 2
        steps = watch.steps
        if self._may_skip is not None:
            steps = _steps_of(steps, group)
        try:
            recurrence = follow(self._context, group, watch.before, steps, self._decisions)
        except DiffersError:
            self.failures += 1
            return
        if (recurrence.alike >= ENDLESS).all():
            self.is_endless = True
        elif (
            self._on_skip is not None
            and (self._may_skip is None or self._may_skip(steps))
            and (_times(recurrence) * recurrence.period >= LEAST_LEFT_OUT).any()
        ):
            watch.recurrence, self.has_recurrence = recurrence, True
            watch.skip_at = watch.iterations + recurrence.period - 1
            watch.look_at = 0
        else:
            self.too_short += 1

    def _skip(self, recurrence: Recurrence, group: Group) -> None:
        """Set the registers to their values some periods later."""
        assert self._on_skip is not None
        times = _times(recurrence)
        each = np.broadcast_to(times, (group.batch.placement.copies, len(group.rows)))
        self.left_out += int(each.sum()) * recurrence.period * recurrence.issued
        iterations = (times * recurrence.period)[..., None]
        for register, step in recurrence.steps.items():
            now = group.read(register)
            group.write(register, now + step * iterations.astype(now.dtype), group.mask)
        self._on_skip(
            Skip(
                group.batch.placement,
                group.rows,
                recurrence.issued * recurrence.period,
                times,
                {array: stride * recurrence.period for array, stride in recurrence.strides.items()},
            )
        )


def _times(recurrence: Recurrence) -> Array:
    """Return how many periods can be left out after the first.

    One more of the equal iterations is run: it recomputes all other registers.
    """
    periods = (recurrence.alike - 1 - recurrence.period) // recurrence.period
    return np.asarray(np.maximum(periods, 0))
