"""Errors of launches without progress: a repeated state, or too many steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gpusim.errors import BarrierError, FaultPlace, NoProgressError
from gpusim.isa.ops import OPS, Program
from gpusim.program.flow import all_successors
from gpusim.program.loops import innermost
from gpusim.typing import Array

WAITING_FOR: Mapping[str, str] = {
    "barrier": "at the barrier on line {}",
    "named barrier": "at the named barrier on line {}",
    "cluster": "at the barrier of its cluster on line {}",
    "convergence": "for its other lanes to reconverge before line {}",
    "mask": "for lanes of the mask on line {}",
}


def livelock(program: Program, pcs: Sequence[int], blocks: Array) -> NoProgressError:
    """Return the error of blocks that spin at some pcs."""
    message = (
        f"livelock: blocks {blocks[0]} to {blocks[-1]} spin, and no other warp can end the loop at "
        f"line {_lines(program, pcs)}"
    )
    return NoProgressError(message, FaultPlace(_loop_line(program, pcs[0]), int(blocks[0])))


def too_long(
    program: Program, pcs: Sequence[int], blocks: Array, file: str, ran: str
) -> NoProgressError:
    """Return the error of blocks with warps at some pcs that `ran` so much without an end.

    `file` is that of the program's lines, "" where it has none.
    """
    line = _loop_line(program, pcs[0])
    place = f"{file}:{line}" if file else f"line {line}"
    message = (
        f"blocks {blocks[0]} to {blocks[-1]} ran {ran} without finishing; warps are at line "
        f"{_lines(program, pcs)}, in the loop at {place}. If the kernel only needs longer, raise "
        "the step limit"
    )
    return NoProgressError(message, FaultPlace(line, int(blocks[0])))


class Standing(NamedTuple):
    """Lanes of a warp that wait, as a message names the place (`WAITING_FOR`)."""

    block: int
    warp: int
    lanes: int
    pc: int
    place: str


def deadlock(program: Program, standing: Sequence[Standing]) -> BarrierError:
    """Return the fault of a deadlock: the waiting lanes, and where they wait."""
    rows = program.instructions
    seen = dict.fromkeys(
        f"block {one.block}: warp {one.warp} ({one.lanes} lanes) waits "
        f"{WAITING_FOR[one.place].format(rows[one.pc].line)}"
        for one in standing
    )
    shown = list(seen)[:4]
    more = f"; and {len(seen) - 4} more" if len(seen) > 4 else ""
    message = (
        f"deadlock: threads wait at a barrier that others never reach. {'; '.join(shown)}{more}"
    )
    # The most informative wait is one that the source states.
    tells = min(standing, key=lambda one: (one.place != "mask", one.place != "barrier"))
    return BarrierError(message, FaultPlace(rows[tells.pc].line, tells.block))


def never_ends(program: Program, pc: int) -> bool:
    """Return whether no lane that is at a pc ever comes to an exit or a trap."""
    rows, following = program.instructions, all_successors(program)
    seen, waiting = {pc}, [pc]
    while waiting:
        at = waiting.pop()
        row = rows[at]
        if OPS[row.op].leaves:
            return False
        is_jump = OPS[row.op].kind == "branch" and row.guard is None
        onward = {row.target} if is_jump else set(following[at])
        waiting += onward - seen
        seen |= onward
    return True


def _lines(program: Program, pcs: Iterable[int]) -> str:
    lines = sorted({program.instructions[pc].line for pc in pcs})
    return ", ".join(map(str, lines[:4]))


def _loop_line(program: Program, pc: int) -> int:
    """Return where the innermost loop around a pc is left, the pc's own line if there is none."""
    instructions = program.instructions
    body = innermost(program, pc) or range(pc, pc + 1)
    branches = (instructions[at] for at in body if OPS[instructions[at].op].kind == "branch")
    exits = (row.line for row in branches if row.guard is not None)
    return next(exits, instructions[body[-1]].line)
