"""Floating-point sums by atomics, beside the same sums with more digits: how much is lost.

An addition that is small beside the sum changes nothing: a float32 that counts by ones stops at
2^24, whatever the order. Of each atomic, the sums of some elements are followed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.checking.accessed_elements import Spread, owners
from gpusim.launch.events import Step
from gpusim.typing import Array

MOST_SUMS, MOST_OF_ALL = 32, 4096  # elements that are followed: of a step, of a launch
# The part of a sum, and the part of its additions, from which on its last bits are not all that
# depends on the order.
LOST, ABSORBED = 1e-3, 1e-2
Exact = np.longdouble


@dataclass(frozen=True)
class Sum:
    """A sum: its value, the `exact` one, its additions, and those of them that changed nothing.

    `magnitude` adds up absolute values, `lost` those of the additions without effect.
    """

    value: np.generic
    exact: np.longdouble
    additions: int = 0
    absorbed: int = 0
    magnitude: float = 0.0
    lost: float = 0.0

    def after(self, addends: Array) -> Sum:
        """Return the sum after further additions, in their order."""
        values = np.add.accumulate(np.concatenate([[self.value], addends]))
        absorbed = (values[1:] == values[:-1]) & (addends != 0)
        sizes = np.abs(addends.astype(np.float64))
        return Sum(
            values[-1],
            self.exact + addends.sum(dtype=Exact),
            self.additions + len(addends),
            self.absorbed + int(np.count_nonzero(absorbed)),
            self.magnitude + float(sizes.sum()),
            self.lost + float(sizes[absorbed].sum()),
        )

    @property
    def difference(self) -> float:
        """The exact value without the value."""
        return float(self.exact - Exact(self.value))

    @property
    def is_wrong(self) -> bool:
        """Whether more than the last bits differ."""
        if not np.isfinite(self.value) or not np.isfinite(self.exact):
            return False
        differs = abs(self.difference) > LOST * abs(float(self.exact))
        return differs or self.lost > ABSORBED * self.magnitude

    def __str__(self) -> str:
        kind = self.value.dtype
        more = "80 bits give" if kind.itemsize == 8 else "double gives"
        part = f" ({100 * abs(self.difference / float(self.exact)):.2g} %)" if self.exact else ""
        digits = 10 if kind.itemsize < 8 else 17
        value, exact, difference = (
            f"{float(number):,.{digits}g}"
            for number in (self.value, self.exact, abs(self.difference))
        )
        return (
            f"{self.absorbed:,} of {self.additions:,} additions change nothing; the sum is {value} "
            f"in {kind}, where {more} {exact}: a difference of {difference}{part}"
        )


class FloatSums:
    """The sums of a launch, by instruction, block and element."""

    def __init__(self) -> None:
        self._sums: dict[tuple[int, int, int], Sum] = {}
        self._worst: dict[int, tuple[Sum, int]] = {}  # of each instruction, with its element

    def add(self, step: Step, element: Array, elements_of_block: int) -> None:
        """Follow the additions of a step to elements; in shared memory, each block has its own."""
        if step.before is None or step.added is None:
            return
        copies, row = step.placement.copies, step.instruction
        spread = Spread(step, (copies, len(step.rows), 32))
        if elements_of_block:
            element = element + owners(step, copies, by_lane=False) * elements_of_block
        element, before, added = map(spread.flat, (element, step.before, step.added))
        added = (-added if str(row.detail).startswith("sub") else added).astype(before.dtype)
        owner = 1 + int(step.placement.blocks[0]) if elements_of_block else 0
        found, first, counts = np.unique(element, return_index=True, return_counts=True)
        order = np.argsort(element, kind="stable")
        ends = np.cumsum(counts)
        for place in np.argsort(-counts, kind="stable")[:MOST_SUMS].tolist():
            key = (step.pc, owner, int(found[place]))
            known = self._sums.get(key)
            begins = before[first[place]]
            if known is None and len(self._sums) >= MOST_OF_ALL:
                continue
            if known is None or known.value != begins:
                self._judge(key)
                known = Sum(begins, Exact(begins))
            members = order[ends[place] - counts[place] : ends[place]]
            self._sums[key] = known.after(added[members])

    def _judge(self, key: tuple[int, int, int]) -> None:
        """Keep the sum that has lost most."""
        known, (pc, _, element) = self._sums.get(key), key
        if known is not None and known.is_wrong:
            worst = self._worst.get(pc)
            if worst is None or abs(worst[0].difference) < abs(known.difference):
                self._worst[pc] = known, element

    def wrong(self) -> dict[int, tuple[Sum, int]]:
        """Return the worst sum of each instruction with some, and its element."""
        for key in self._sums:
            self._judge(key)
        return self._worst
