"""The source lines that decide about guarded instructions: where their predicates are computed."""

from __future__ import annotations

from gpusim.host.kept import once
from gpusim.isa.ops import OPS, Program


@once
def deciding_lines(program: Program) -> dict[int, int]:
    """Return, by pc of each guarded instruction and each branch, the line of its condition.

    The condition is the comparison that wrote the guard last before it, in the order of the code;
    for what a loop carries round, the last one of all.
    """
    writers: dict[int, list[int]] = {}
    for pc, row in enumerate(program.instructions):
        for register in row.dst:
            writers.setdefault(register, []).append(pc)
    found = {}
    for pc, row in enumerate(program.instructions):
        if row.guard is None or not OPS[row.op].issued:
            continue
        known = writers.get(row.guard, [])
        before = [writer for writer in known if writer < pc]
        if known:
            writer = before[-1] if before else known[-1]
            found[pc] = program.instructions[writer].line or row.line
    return found
