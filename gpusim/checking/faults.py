"""Faults of the machine as findings: a fault does not stop the check."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from gpusim.checking.findings import Finding, Place, Thread
from gpusim.errors import (
    BarrierError,
    KernelFault,
    LaneMaskError,
    MisalignedError,
    NoProgressError,
    OutOfBoundsError,
    ReadOnlyError,
)
from gpusim.isa.ops import Program

# The rule of each kind of fault, and the verb in its finding.
RULES: Mapping[type[KernelFault], tuple[str, str]] = {
    OutOfBoundsError: ("bounds", "accesses"),
    MisalignedError: ("misaligned", "accesses"),
    ReadOnlyError: ("read-only", "writes"),
    BarrierError: ("deadlock", "waits"),
    LaneMaskError: ("mask", "calls"),
    NoProgressError: ("no-progress", "runs"),
}


def finding_of(fault: KernelFault) -> Finding:
    """Return a fault as a finding."""
    rule, does = RULES.get(type(fault), ("fault", "runs"))
    place = fault.place
    if place is None:
        return Finding(rule, str(fault), ())
    who = None
    if place.block is not None and place.thread is not None:
        who = Thread(place.block, place.thread)
    where = Place(place.line, does, who)
    return Finding(
        rule,
        str(fault),
        (where,),
        place.array,
        place.index,
        count=place.lanes,
        fix_text=place.remedy,
    )


def constant_indices(program: Program, lines_not_run: Container[int]) -> Iterator[Finding]:
    """Yield the findings of constant indices outside their array, in lines that have run."""
    for one in program.outside:
        if one.line not in lines_not_run:
            array, line = one.array.name, one.line
            elements = (one.array.size or 0) // one.each
            message = (
                f"line {line}: {array}[{one.index}] is out of bounds: {array} has {elements} "
                "elements (a constant index)"
            )
            yield Finding("bounds", message, (Place(line, "accesses"),), array, one.index)
