"""Addresses near available ones: a constant away, or a multiple of one variable.

LLVM does this in three passes: a constant goes into the access (separation of constant offsets),
a product with one factor more than another is added to that (straight-line strength
reduction), and so is the difference of two indices (n-ary reassociation).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gpusim.compiler.dominators import Dominators
from gpusim.compiler.ir import Block, Value
from gpusim.lowering.analysis.index_sums import IndexSum, index_sum

# An access adds 24 bits to its address, with a sign.
LARGEST_DISPLACEMENT = 1 << 23

Where = tuple[str, int]  # the base of addresses, and the bytes of an element


@dataclass(frozen=True)
class _Known:
    """An address computed in a block, and its index."""

    home: Block
    address: Value
    total: IndexSum


@dataclass(frozen=True)
class Near:
    """An available address, and the elements between: `factor` times `term`, and `step`."""

    address: Value
    step: int
    term: Value | None = None
    factor: int = 0


@dataclass
class NearAddresses:
    """The addresses made so far, the latest last."""

    tree: Dominators
    known: dict[Where, list[_Known]] = field(default_factory=dict)

    def note(self, where: Where, home: Block, address: Value, index: Value, step: int) -> None:
        """Record an address that is `step` elements before that of an index."""
        made = _Known(home, address, index_sum(index).plus(IndexSum(-step)))
        self.known.setdefault(where, []).append(made)

    def nearest(self, where: Where, block: Block, index: Value) -> Near | None:
        """Return the available address nearest to an index in `block`, None if none is near."""
        total, size = index_sum(index), where[1]
        found: Near | None = None
        for known in reversed(self.known.get(where, ())):
            if known.home is not block and not self.tree.dominates(known.home, block):
                continue
            apart = total.plus(known.total, -1)
            if abs(apart.constant) * size >= LARGEST_DISPLACEMENT:
                continue
            if not apart.factors:
                return Near(known.address, apart.constant)
            found = found or _one_term_away(known.address, apart)
        return found


def _one_term_away(address: Value, apart: IndexSum) -> Near | None:
    """Return an address plus a multiple of one value, if `apart` is one."""
    if len(apart.factors) != 1:
        return None
    ((product, factor),) = apart.factors.items()
    return Near(address, apart.constant, product[0], factor) if len(product) == 1 else None
