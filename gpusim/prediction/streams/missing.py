"""What a kernel does that depends on elements which it is not given."""

from __future__ import annotations

from gpusim.arguments import ArraySpec
from gpusim.errors import InputError
from gpusim.isa import OPS
from gpusim.prepared import Prepared


def data_lines(prepared: Prepared) -> list[int]:
    """Return the lines whose control flow or addresses depend on arrays without elements."""
    program, arguments = prepared.program, prepared.arguments
    specs = {name for name, value in arguments.items() if isinstance(value, ArraySpec)}
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
                unknown = unknown or found.may_touch(specs) or found.may_touch(spaces)
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
    unknown = data_lines(prepared)
    if unknown:
        where = ", ".join(map(str, unknown[:4]))
        raise InputError(
            f"what {prepared.kernel} does at line {where} depends on the arrays' elements; "
            "give the arrays themselves, not array_spec (on the command line a filling: "
            "NAME=TYPE[SHAPE]=random)"
        )
