"""Kinds of loops in a program, by their bodies: pure, yielding, or retrying a compare-and-swap."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gpusim.host.kept import once
from gpusim.isa.ops import OPS, SPIN, Program
from gpusim.program.flow import loop_bodies
from gpusim.program.uses import Slices
from gpusim.typing import Array


def innermost(program: Program, pc: int) -> range | None:
    """Return the body of the loop around a pc that begins last; None outside all loops."""
    around = (body for body in loop_bodies(program) if pc in body)
    return max(around, key=lambda body: (body.start, body.stop), default=None)


@once
def pure(program: Program) -> Array:
    """Return, by pc, whether it is in a loop without memory accesses and synchronisation.

    Lanes leave such a loop in different iterations, and would continue in small groups. Waiting
    costs them nothing, as nothing in the loop depends on other lanes.
    """
    is_pure = [OPS[row.op].is_pure for row in program.instructions]
    return _inside(
        program, (body for body in loop_bodies(program) if all(map(is_pure.__getitem__, body)))
    )


@once
def yielding(program: Program) -> Array:
    """Return, by pc, whether it is in a loop that yields."""
    rows = program.instructions
    return _inside(
        program,
        (body for body in loop_bodies(program) if any(OPS[rows[pc].op].yields for pc in body)),
    )


def _inside(program: Program, bodies: Iterable[range]) -> Array:
    """Return, by pc, whether it is in one of the loops."""
    inside = np.zeros(len(program.instructions), dtype=bool)
    for body in bodies:
        inside[body] = True
    return inside


@once
def swapping(program: Program) -> dict[int, int]:
    """Return the headers of the innermost loops around a retried compare-and-swap, by its pc."""
    swaps = [pc for pc, row in enumerate(program.instructions) if row.op == SPIN]
    around = {pc: [body for body in loop_bodies(program) if pc in body] for pc in swaps}
    return {pc: bodies[0].start for pc, bodies in around.items() if bodies}


@once
def control(program: Program) -> dict[int, frozenset[int]]:
    """Return the loop overhead of innermost loops, by the pc of the back edge.

    Branch, comparison and counters: the backward slice of the branch's guard within the body. Loops
    with a loaded condition, or one from other lanes, are not included.
    """
    rows, found = program.instructions, {}
    for body in loop_bodies(program):
        branch = body[-1]
        guard = rows[branch].guard
        if guard is None or innermost(program, branch) != body:
            continue
        inside = [rows[pc] for pc in body]
        registers = Slices(inside).of([guard])
        mine = {pc for pc in body if not registers.isdisjoint(rows[pc].dst)}
        if all(OPS[rows[pc].op].kind == "compute" for pc in mine):
            found[branch] = frozenset({branch, *mine})
    return found
