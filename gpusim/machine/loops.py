"""Loops whose iterations are all alike: most of them are skipped.

A loop is watched where a branch comes back to. Once an iteration shows that those after it do
the same, elsewhere in the arrays, the registers are set to what they are near the loop's end,
and its last iterations are run again. What does not decide (data) is then left as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpusim.events import Skip, Step
from gpusim.isa import OPS, Program
from gpusim.machine.context import Context
from gpusim.machine.decisions import decisions
from gpusim.machine.group import Group
from gpusim.machine.iteration import ENDLESS, DiffersError, Recurrence, follow

Array = np.ndarray[Any, Any]

# A shorter skip is not worth the search; a loop within a loop may then be skipped with it.
LEAST_LEFT_OUT = 16
LONGEST_ITERATION = 4096  # steps
MOST_WATCHED = 8

OnSkip = Callable[[Skip], None]


def heads(program: Program) -> frozenset[int]:
    """Return the pcs to which branches go back."""
    return frozenset(
        instruction.target
        for pc, instruction in enumerate(program.instructions)
        if OPS[instruction.op].kind == "branch" and instruction.target <= pc
    )


class _Watch:
    """A loop that a group of warps is in, since it came back to the head for the first time.

    It is looked at after 1, 2, 4, 8 ... iterations. Once its recurrence is known, the skip waits
    until a whole period has been run.
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
        """Let an iteration begin."""
        self.before = list(group.batch.registers)
        self.steps: list[Step] = []

    def is_of(self, group: Group) -> bool:
        """Return whether a group is the one that is watched."""
        return (
            self.placement is group.batch.placement
            and np.array_equal(self.rows, group.rows)
            and np.array_equal(self.mask, group.mask)
        )


class Loops:
    """The loops of a batch. `on_skip` hears of what is skipped; without it, nothing is.

    `is_endless` is set where a loop is seen that nothing ends: whatever it computes, no register
    that moves and no memory decides about going on.
    """

    def __init__(self, context: Context, on_skip: OnSkip | None) -> None:
        self.is_endless = False
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
        """Take note that a group stands at the head of a loop; it may leave further on."""
        key = (group.pc, int(group.rows[0]))
        watch = self._watches.get(key)
        if watch is None or not watch.is_of(group):
            if len(np.unique(group.rows)) == len(group.rows):
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

    def _look(self, watch: _Watch, group: Group) -> None:
        """See whether the last iteration shows how the loop goes on."""
        watch.look_at *= 2
        try:
            recurrence = follow(self._context, group, watch.before, watch.steps, self._decisions)
        except DiffersError:
            return
        if (recurrence.alike >= ENDLESS).all():
            self.is_endless = True
        elif (
            self._on_skip is not None
            and (_times(recurrence) * recurrence.period >= LEAST_LEFT_OUT).any()
        ):
            watch.recurrence = recurrence
            watch.skip_at = watch.iterations + recurrence.period - 1
            watch.look_at = 0

    def _skip(self, recurrence: Recurrence, group: Group) -> None:
        """Set the registers to what they are some periods on."""
        assert self._on_skip is not None
        times = _times(recurrence)
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


def _is_worth_it(recurrence: Recurrence) -> bool:
    return bool((_times(recurrence) * recurrence.period >= LEAST_LEFT_OUT).any())


def _times(recurrence: Recurrence) -> Array:
    """Return how many periods can be left out after the first.

    One iteration more is run that is known to be like them: it sets what it computes anew.
    """
    periods = (recurrence.alike - 1 - recurrence.period) // recurrence.period
    return np.asarray(np.maximum(periods, 0))
