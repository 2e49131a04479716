"""Masks of shuffles, votes and warp barriers, which machine code drops where lanes are together.

The instruction of PTX has the mask as its last operand: a number, or a register that is set to one.
Masks computed at run time stay in machine code, as the operand of a WARPSYNC.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.isa.ops import OPS
from gpusim.sass.decode import Micro
from gpusim.sass.listing import Row
from gpusim.sass.ptx import Ptx

WITH_MASK = ("shfl", "vote", "match", "redux", "bar")
_KINDS = ("shuffle", "vote", "match", "reduce_lanes")


def names_lanes(micro: Micro) -> bool:
    """Return whether a step is of lanes together, and without the mask that it has in PTX."""
    op = OPS[micro.op]
    return micro.issued and (op.kind in _KINDS or micro.op == "NOP")


def masks(micros: Sequence[Micro], rows: Sequence[Row], ptx: Ptx) -> dict[int, int]:
    """Return the masks of a kernel's steps that are numbers in PTX."""
    found: dict[int, int] = {}
    for step, micro in enumerate(micros):
        line = rows[micro.row].ptx_line
        for row in ptx.rows(line) if names_lanes(micro) else ():
            mask = ptx.number(row.operands[-1], line) if row.operands else None
            if row.mnemonic in WITH_MASK and "sync" in row.words and mask is not None:
                found[step] = mask & 0xFFFFFFFF
    return found
