"""Faults of the machine as findings: a fault does not stop the check."""

from __future__ import annotations

from collections.abc import Mapping

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
    return Finding(rule, str(fault), (where,), place.array, place.index, count=place.lanes)
