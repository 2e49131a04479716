"""Whether a program has loops with iterations that may be known to be alike before they are run.

An iteration is not known to be like the one before it if it branches, or addresses memory, by a
value that it has loaded or asked of other lanes. What is not found out here, the machine finds
out as it follows an iteration (`machine/iteration.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import and_

from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.program import dataflow
from gpusim.program.flow import all_blocks, all_successors, loop_bodies
from gpusim.program.memoisation import once
from gpusim.program.uses import bits


@once
def may_repeat(program: Program) -> bool:
    """Return whether iterations of some loop may be known to be alike.

    A loop around one without such iterations has none either.
    """
    if any(OPS[row.op].leads_elsewhere for row in program.instructions):
        return True
    bodies = loop_bodies(program)
    unlike = [body for body in bodies if _differs(program, body)]
    return any(
        not any(inner.start in body and inner[-1] in body for inner in unlike) for body in bodies
    )


def _differs(program: Program, body: range) -> bool:
    """Return whether each iteration depends on values that it finds out itself."""
    rows, facts = program.instructions, _unknown(program, body)
    for block in _in_each_iteration(program, body):
        unknown = facts[block.start]
        for pc in block:
            if bits(_deciding(rows[pc])) & unknown:
                return True
            unknown = _after(rows[pc], unknown)
    return False


def _unknown(program: Program, body: range) -> dict[int, int]:
    """Return, as bits, the registers unknown on all paths at the begin of a body's blocks."""
    rows, blocks = program.instructions, all_blocks(program)

    def onward(begin: int, unknown: int) -> Iterator[tuple[int, int]]:
        for pc in blocks[begin]:
            unknown = _after(rows[pc], unknown)
        for following in _within(program, body, begin):
            yield following, unknown

    return dataflow.solve({body.start: 0}, onward, and_)


def _in_each_iteration(program: Program, body: range) -> Iterator[range]:
    """Yield the blocks on all paths from a loop's head to its branch back."""
    blocks = all_blocks(program)
    last = next(begin for begin, block in blocks.items() if body[-1] in block)
    for begin in (begin for begin in blocks if begin in body):
        found = dataflow.reachable(
            [body.start], lambda one: _within(program, body, one), without=(begin,)
        )
        if last not in found:
            yield blocks[begin]


def _within(program: Program, body: range, begin: int) -> list[int]:
    """Return the blocks behind one in the same iteration."""
    end = all_blocks(program)[begin][-1]
    return [pc for pc in all_successors(program)[end] if pc in body and pc != body.start]


def _deciding(row: Instruction) -> list[int]:
    """Return the registers that an iteration has to know before it runs an instruction."""
    op = OPS[row.op]
    found = [] if row.guard is None or op.only_describes else [row.guard]
    if op.waits_for_lanes or (row.guard is None and op.access):
        found += row.src[:1]
    return found


def _after(row: Instruction, unknown: int) -> int:
    """Return the unknown registers behind an instruction."""
    if not row.dst:
        return unknown
    made = bits(row.dst)
    if not _is_known(row, unknown):
        return unknown | made
    return unknown if row.guard is not None else unknown & ~made


def _is_known(row: Instruction, unknown: int) -> bool:
    """Return whether the results of an instruction are known if `unknown` registers are not."""
    kind = OPS[row.op].kind
    if kind == "compute":
        return not bits(row.src) & unknown
    return kind == "constant" or kind == "special" or (kind == "bank" and not row.src)
