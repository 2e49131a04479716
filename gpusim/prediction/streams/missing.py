"""What a kernel does that depends on elements which it is not given."""

from __future__ import annotations

from collections.abc import Set

from gpusim.arguments import ArraySpec
from gpusim.errors import InputError
from gpusim.isa import OPS, Program
from gpusim.prepared import Prepared


def data_lines(program: Program, arrays: Set[str]) -> list[int]:
    """Return the lines whose control flow or addresses depend on the elements of some arrays."""
    tainted: set[int] = set()
    spaces: set[str] = set()
    lines: set[int] = set()
    size = -1
    while size != len(tainted) + len(spaces):
        size = len(tainted) + len(spaces)
        for instruction in program.instructions:
            op, found = OPS[instruction.op], instruction.memory
            sources = set(instruction.src)
            if instruction.guard is not None:
                sources.add(instruction.guard)
            reads = op.reads_memory and found is not None
            unknown = bool(sources & tainted)
            if reads and found is not None:
                unknown = unknown or found.may_touch(arrays) or found.may_touch(spaces)
            if unknown and op.writes_memory and found is not None:
                spaces |= found.places
            if unknown:
                tainted.update(instruction.dst)
    for instruction in program.instructions:
        op = OPS[instruction.op]
        decides = {instruction.guard} if instruction.guard is not None else set()
        if op.access and instruction.src:
            decides.add(instruction.src[0])
        if op.kind == "bank":
            decides.update(instruction.src)
        if decides & tainted and not op.only_describes:
            lines.add(instruction.line)
    return sorted(lines)


def refuse_missing_elements(prepared: Prepared) -> None:
    """Raise InputError where control flow or addresses depend on arrays without elements."""
    program, arguments = prepared.program, prepared.arguments
    without = [name for name, value in arguments.items() if isinstance(value, ArraySpec)]
    unknown = data_lines(program, set(without))
    if unknown:
        where = ", ".join(map(str, unknown[:4]))
        needed = [name for name in without if data_lines(program, {name})] or without
        raise InputError(
            f"what {prepared.kernel} does at line {where} depends on the arrays' elements: give "
            f"those of {', '.join(needed)}, with the arrays themselves in place of array_spec, "
            f"or on the command line with a filling, as in {needed[0]}=TYPE[SHAPE]=random"
        )
