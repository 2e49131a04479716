"""Decisions of warps by source line: the lanes that pass a condition, in any compiled form.

The lowering's code keeps the conditions of the source, and can be run beside nvcc's code of a
Python kernel. In other code a decision is a branch, or the guard of accesses that stand for a body.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gpusim.isa.ops import OPS
from gpusim.launch.grid import WARP_SIZE
from gpusim.program.decisions import deciding_lines
from gpusim.program.fast_paths import branches_within_lines, slow_path_branches
from gpusim.tracing import lanes
from gpusim.tracing.execution import Execution
from gpusim.tracing.iterations import iterations
from gpusim.tracing.records import Trace

SOURCE, BRANCH, GUARD = "source", "branch", "guard"
# Conditions in C++ and Python; a comment has none.
_CONDITION = re.compile(r"\b(?:if|elif|while|for|do|switch|case|and|or|assert)\b|[?]|&&|[|][|]")
_COMMENT = re.compile(r"//.*|#.*|/[*].*?[*]/")


@dataclass(frozen=True)
class Decision:
    """A condition that a warp decides: the lanes that decide, and the lanes that pass.

    `iteration` counts how often the warp came by. `origin` is "source", "branch" or "guard".
    """

    line: int
    warp: int
    iteration: int
    deciding: tuple[int, ...]
    passed: tuple[int, ...]
    origin: str

    @property
    def diverges(self) -> bool:
        """Whether the lanes disagree."""
        return 0 < len(self.passed) < len(self.deciding)


def decisions_of(trace: Trace) -> dict[int, list[Decision]]:
    """Return the decisions of a traced block's warps by line: the source's where they are known."""
    beside = vars(trace).get("source_executions", [])  # if something has computed them
    found = _of_source(beside or trace.executions, iterations(beside) or trace.iterations)
    known = {decision.line for decision in found}
    if not beside:
        found += [one for one in _of_branches(trace) if one.line not in known]
    if not known:
        lines = {decision.line for decision in found}
        found += [one for one in _of_guards(trace) if one.line not in lines]
    table: dict[int, list[Decision]] = {}
    for decision in sorted(found, key=lambda one: (one.iteration, one.warp)):
        table.setdefault(decision.line, []).append(decision)
    return dict(sorted(table.items()))


def compilers_own(trace: Trace) -> frozenset[int]:
    """Return the pcs of branches without a condition of the source: of slow paths and the like.

    A branch to a slow path's function is known by its structure. A path for special operands in
    place looks like a short body; it is the compiler's on a line whose text has no condition.
    """
    if trace.prepared is None:
        return frozenset()
    program, plain = trace.prepared.program, lines_without_conditions(trace)
    in_place = branches_within_lines(program)
    return slow_path_branches(program) | {
        pc for pc in in_place if program.instructions[pc].line in plain
    }


def lines_without_conditions(trace: Trace) -> set[int]:
    """Return the lines with a known text that has no condition."""
    texts = {line.line: _COMMENT.sub("", line.text) for line in trace.lines if line.text}
    return {line for line, text in texts.items() if not _CONDITION.search(text)}


def conditions_of(trace: Trace) -> list[tuple[Execution, int]]:
    """Return a block's decisions as executions of conditions, each with its iteration.

    For a Python kernel in nvcc's code, the lowering's code is run beside for those of the source.
    """
    _ = trace.source_executions
    found = decisions_of(trace)
    return [(_as_condition(one), one.iteration) for line in found.values() for one in line]


def _as_condition(decision: Decision) -> Execution:
    deciding, passed = set(decision.deciding), set(decision.passed)
    there = tuple(lane in deciding for lane in range(WARP_SIZE))
    return Execution(
        pc=-1,
        line=decision.line,
        op=".IF",
        warp=decision.warp,
        occurrence=decision.iteration,
        active=there,
        on=there,
        taken=tuple(lane in passed for lane in range(WARP_SIZE)),
    )


def passing_lanes(trace: Trace) -> dict[int, float]:
    """Return the mean number of lanes that pass the condition of a source line, by line.

    A guarded exit is its line's condition; branches beside it are the compiler's own.
    """
    return {
        line: sum(len(one.passed) for one in decisions) / len(decisions)
        for line, decisions in (decisions_of(trace) | _of_exits(trace)).items()
        if any(one.deciding for one in decisions)
    }


def _of_exits(trace: Trace) -> dict[int, list[Decision]]:
    """Return the guarded exits by line: the lanes that do not exit pass."""
    rows = trace.prepared.program.instructions if trace.prepared is not None else ()
    table: dict[int, list[Decision]] = {}
    for e in trace.executions:
        if rows and OPS[rows[e.pc].op].kind == "exit" and rows[e.pc].guard is not None:
            deciding = tuple(lane for lane, there in enumerate(e.active) if there)
            stays = tuple(lane for lane in deciding if not e.on[lane])
            made = Decision(e.line, e.warp, e.occurrence, deciding, stays, BRANCH)
            table.setdefault(e.line, []).append(made)
    return table


def _of_source(executions: Sequence[Execution], numbers: Sequence[int]) -> list[Decision]:
    """Return the conditions of the source among executions, given with their iterations."""
    placed = zip(executions, numbers, strict=True)
    return [_decided(e, i, SOURCE) for e, i in placed if lanes.is_condition(e) and any(e.on)]


def _decided(execution: Execution, iteration: int, origin: str) -> Decision:
    deciding = tuple(lanes.deciding_lanes(execution))
    passed = tuple(lanes.taken_lanes(execution))
    return Decision(execution.line, execution.warp, iteration, deciding, passed, origin)


def _of_branches(trace: Trace) -> list[Decision]:
    """Return the guarded branches; lanes pass that stay for the body, or repeat a loop.

    The compiler's branch over a body is taken by the lanes that do not run it.
    """
    rows = trace.prepared.program.instructions if trace.prepared is not None else ()
    own = compilers_own(trace)
    found = []
    for e, i in zip(trace.executions, trace.iterations, strict=True):
        if not lanes.is_machine_branch(e) or e.taken is None:
            continue
        if rows and (rows[e.pc].guard is None or e.pc in own):
            continue
        made = _decided(e, i, BRANCH)
        if rows and rows[e.pc].target > e.pc:
            stays = tuple(lane for lane in made.deciding if lane not in made.passed)
            made = Decision(e.line, e.warp, i, made.deciding, stays, BRANCH)
        found.append(made)
    return found


def _of_guards(trace: Trace) -> list[Decision]:
    """Return guards of accesses as decisions, at the lines where their predicates are computed."""
    if trace.prepared is None:
        return []
    program = trace.prepared.program
    lines = deciding_lines(program)
    first: dict[tuple[int, int], int] = {}  # of the accesses under one guard
    for execution in trace.executions:
        row = program.instructions[execution.pc]
        if execution.pc in lines and row.guard is not None and not OPS[row.op].leaves:
            key = lines[execution.pc], row.guard
            first[key] = min(first.get(key, execution.pc), execution.pc)
    chosen = {pc: line for (line, _), pc in first.items()}
    counts: dict[tuple[int, int], int] = {}
    found = []
    for execution in trace.executions:
        line = chosen.get(execution.pc)
        if line is None or not any(execution.active):
            continue
        key = execution.warp, line
        number = counts[key] = counts.get(key, -1) + 1
        deciding = tuple(lane for lane, there in enumerate(execution.active) if there)
        passed = tuple(lanes.on_lanes(execution))
        found.append(Decision(line, execution.warp, number, deciding, passed, GUARD))
    return found
