"""Registers that addresses of memory are computed from."""

from __future__ import annotations

from gpusim.host.kept import once
from gpusim.isa.ops import OPS, Program


@once
def address_registers(program: Program) -> frozenset[int]:
    """Return the registers of which addresses are made, found backwards from all accesses."""
    found = {row.src[0] for row in program.instructions if row.memory is not None and row.src}
    size = -1
    while size != len(found):
        size = len(found)
        for row in program.instructions:
            if OPS[row.op].kind == "compute" and not found.isdisjoint(row.dst):
                found.update(row.src)
    return frozenset(found)
