"""The loop iteration of each execution of a trace.

A machine counts how often a warp ran an instruction. A reader counts how often the warp
came by the source line; the two differ where a loop is unrolled (one instruction for each
iteration) and where warps skip the line in some iterations.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gpusim.tracing.execution import Execution

SYNCHRONISES = ("BAR",)
CONTROLS = (".IF", "BRA", *SYNCHRONISES)

_Controller = tuple[int, int] | None  # line of a condition, and its iteration


class _Ran(NamedTuple):
    """How often something ran, and how often it decided, branched or waited."""

    times: int = 0
    controls: int = 0


NOTHING = _Ran()


@dataclass
class _Latest:
    """State of a warp's latest iteration of a line.

    `own` counts executions of the line, `others` of other lines before the iteration began.
    """

    number: int = -1
    own: _Ran = NOTHING
    others: _Ran = NOTHING
    lanes_by_pc: dict[int, list[tuple[bool, ...]]] = field(default_factory=dict)
    kinds: set[tuple[str, str | None]] = field(default_factory=set)


@dataclass(frozen=True)
class _Condition:
    """A decision of a warp: line, iteration, and the lanes that passed."""

    line: int
    iteration: int
    passed: tuple[bool, ...]


def iterations(executions: Sequence[Execution]) -> list[int]:
    """Return, for each execution, the iteration from 0 of its line in its warp.

    Executions of one warp are in execution order.
    """
    latest: dict[int, dict[int, _Latest]] = {}
    latest_condition: dict[int, _Condition | None] = {}
    ran: dict[int, _Ran] = {}  # by a warp
    own: list[int] = []
    controllers: list[_Controller] = []
    for execution in executions:
        warp, line = execution.warp, execution.line
        of_warp = latest.setdefault(warp, {})
        current = of_warp.setdefault(line, _Latest())
        whole = ran.get(warp, NOTHING)
        others = _Ran(whole.times - current.own.times, whole.controls - current.own.controls)
        if _begins_again(current, execution, others):
            current.number += 1
            current.others = others
            current.lanes_by_pc.clear()
            current.kinds.clear()
        current.lanes_by_pc.setdefault(execution.pc, []).append(execution.active)
        current.kinds.add((execution.op, execution.array))
        own.append(current.number)
        controllers.append(_controller(latest_condition.get(warp), execution))
        is_control = execution.op in CONTROLS
        ran[warp] = _Ran(whole.times + 1, whole.controls + is_control)
        current.own = _Ran(current.own.times + 1, current.own.controls + is_control)
        if execution.op == ".IF":
            latest_condition[warp] = _Condition(line, current.number, execution.taken or ())
        elif execution.op in SYNCHRONISES:
            latest_condition[warp] = None
    return _aligned(executions, own, controllers)


ITERATION, EXECUTION = "iteration", "execution"


def numbering(accesses: Sequence[tuple[Execution, int]]) -> tuple[str, list[int]]:
    """Return the unit that numbers a line's accesses, ITERATION or EXECUTION, and the numbers.

    Accesses are given with their iterations, which number them where all iterations have the same
    accesses, one instruction of a kind or two of one kind and one of another: four loads of an
    unrolled loop may as well be four iterations. Else an access is numbered by the earlier
    executions of its op at this line by its warp.
    """
    if _are_iterations(accesses):
        return ITERATION, [iteration for _, iteration in accesses]
    counts: Counter[tuple[int, str]] = Counter()
    numbers = []
    for execution, _ in accesses:
        key = execution.warp, execution.op
        numbers.append(counts[key])
        counts[key] += 1
    return EXECUTION, numbers


def _are_iterations(accesses: Sequence[tuple[Execution, int]]) -> bool:
    made: dict[tuple[int, int], Counter[tuple[str, str | None]]] = {}
    for execution, iteration in accesses:
        place = execution.warp, iteration
        made.setdefault(place, Counter())[execution.op, execution.array] += 1
    kinds = list(made.values())
    if len({iteration for _, iteration in made}) < 2:
        return True
    return all(kind == kinds[0] for kind in kinds) and math.gcd(*kinds[0].values()) == 1


def _controller(condition: _Condition | None, execution: Execution) -> _Controller:
    """Return the condition that the lanes of an execution have just passed, if there is one."""
    if condition and any(map(operator.and_, condition.passed, execution.on)):
        return (condition.line, condition.iteration)
    return None


def _begins_again(latest: _Latest, execution: Execution, others: _Ran) -> bool:
    """Return whether a lane, or an instruction of the line, repeats: a new iteration.

    `others` counts executions of other lines.
    """
    if latest.number < 0:
        return True
    for lanes in latest.lanes_by_pc.get(execution.pc, ()):
        if any(map(operator.and_, lanes, execution.active)):
            return True
    # A line may decide several things in a row (`a and b`), load twice from one array with
    # another line's work in between, and have branches on either side of its body.
    done_before = (execution.op, execution.array) in latest.kinds
    if execution.op == ".IF":
        return others.times > latest.others.times and done_before
    is_closed = others.controls > latest.others.controls
    return is_closed and done_before and execution.array is not None


def _aligned(
    executions: Sequence[Execution], own: Sequence[int], controllers: Sequence[_Controller]
) -> list[int]:
    """Number a line's iterations by the one condition that controls it, if that is finer."""
    lines: dict[int, set[int | None]] = {}
    numbers: dict[tuple[int, int, _Controller], set[int]] = {}
    for execution, number, controller in zip(executions, own, controllers, strict=True):
        if any(execution.on):
            lines.setdefault(execution.line, set()).add(controller[0] if controller else None)
            key = (execution.warp, execution.line, controller)
            numbers.setdefault(key, set()).add(number)
    coarse = {line for (_, line, _), several in numbers.items() if len(several) > 1}
    result = []
    for execution, number, controller in zip(executions, own, controllers, strict=True):
        line = execution.line
        aligned = controller and len(lines[line]) == 1 and line not in coarse
        result.append(controller[1] if controller and aligned else number)
    return result
