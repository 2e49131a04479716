"""Masks of shuffles, votes and warp barriers, which machine code drops where lanes are together.

The instruction of PTX has the mask as its last operand: a number, or a register that is set to one.
A mask computed at run time stays in a register, which the cubin names for synccheck; where it is
also the operand of a WARPSYNC, that one is judged.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.isa.ops import OPS
from gpusim.sass.cubin import KernelCode
from gpusim.sass.decoding import Micro
from gpusim.sass.listing import Row
from gpusim.sass.ptx import Ptx

WITH_MASK = ("shfl", "vote", "match", "redux", "bar")
_KINDS = ("shuffle", "vote", "match", "reduce_lanes")
EVERY_LANE = 0xFFFFFFFF
# From here on the cubin names a register for each mask but a full one (seen with NVRTC 13.5).
FIRST_ARCH_WITH_ALL = 90


def _names_lanes(micro: Micro) -> bool:
    """Return whether a step is of lanes together, and without the mask that it has in PTX."""
    op = OPS[micro.op]
    return micro.issued and (op.kind in _KINDS or micro.op == "NOP")


def masks(
    micros: Sequence[Micro], rows: Sequence[Row], ptx: Ptx | None, kernel: KernelCode, arch: int
) -> dict[int, int | str | None]:
    """Return the masks of a kernel's steps: numbers, names of registers, None for unknown ones."""
    found: dict[int, int | str | None] = {}
    for step, micro in enumerate(micros):
        row, before = rows[micro.row], rows[micro.row - 1]
        is_judged = before.mnemonic == "WARPSYNC" and any(o.kind == "R" for o in before.operands)
        if _names_lanes(micro) and not (is_judged and "COLLECTIVE" not in before.modifiers):
            number = None if ptx is None else _number(ptx, row.ptx_line)
            if number is not None:
                found[step] = number
            elif row.address in kernel.masks:
                register = kernel.masks[row.address]
                if register is None:
                    is_full = ptx is None and arch >= FIRST_ARCH_WITH_ALL
                    found[step] = EVERY_LANE if is_full else None
                elif not is_judged:
                    found[step] = f"R{register}"
    return found


def _number(ptx: Ptx, line: int) -> int | None:
    """Return the mask of a line of PTX, None where it is no number."""
    for row in ptx.rows(line):
        mask = ptx.number(row.operands[-1], line) if row.operands else None
        is_of_block = row.mnemonic == "bar" and "warp" not in row.words  # with its number
        has_mask = row.mnemonic in WITH_MASK and "sync" in row.words and not is_of_block
        if has_mask and mask is not None:
            return mask & EVERY_LANE
    return None
