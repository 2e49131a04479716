"""Divergence checks: BRA.DIV before a shuffle or a warp barrier in possibly divergent code.

ptxas puts one wherever some lanes of a warp may be missing. Diverged lanes
would take a path of their own, omitted here: they wait at the shuffle itself.
From compute capability 9.0 one check serves all shuffles and barriers of a block that name the
same lanes, and an instruction gathers the warp for votes.
"""

from __future__ import annotations

from gpusim.compiler.ir import Block
from gpusim.isa.ops import OPS
from gpusim.launch.grid import ComputeCapability
from gpusim.lowering.code import Code, Row

ALL_LANES = 0xFFFFFFFF


def divergence_checks(code: Code, apart: set[Block], cc: ComputeCapability) -> None:
    """Put the checks into the blocks with lanes possibly `apart`."""
    with_checks = _once_a_block if cc.major >= 9 else _every_time
    for block in code.function.blocks:
        if block in apart:
            code.rows[block] = with_checks(code, code.rows[block])


def _every_time(_: Code, rows: list[Row]) -> list[Row]:
    result: list[Row] = []
    for row in rows:
        if OPS[row.op].when_apart:
            result.append(Row("BRA.DIV", line=row.line))
        result.append(row)
    return result


def _once_a_block(code: Code, rows: list[Row]) -> list[Row]:
    asked: set[int] = set()
    gathered = False
    result: list[Row] = []
    for row in rows:
        when_apart = OPS[row.op].when_apart
        if when_apart == "ask" and not gathered and row.src[0] not in asked:
            asked.add(row.src[0])
            result += [Row(op, line=row.line) for op in _check(code, row.src[0])]
        elif when_apart == "gather" and not gathered:
            gathered = True
            result.append(Row("WARPSYNC.ALL", line=row.line))
        result.append(row)
    return result


def _check(code: Code, mask: int) -> tuple[str, ...]:
    """Return the ops that ask whether the lanes that a mask names are together."""
    known = code.immediates.get(mask)
    if known is None:
        return ("R2UR", "BRA.DIV")
    if int(known) & ALL_LANES == ALL_LANES:
        return ("UMOV", "BRA.DIV")
    return ("MOV", "R2UR", "BRA.DIV")
