"""Floating-point sums by atomics, compared with the same sums in more digits.

An addition that is too small changes nothing: a float32 that counts by ones stops at 2^24, in any
order. For each atomic, the sums of some elements are tracked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpusim.checking.accessed_elements import Spread
from gpusim.isa.ops import Instruction
from gpusim.launch.events import Step
from gpusim.typing import Array

MOST_SUMS, MOST_OF_ALL = 32, 4096  # elements that are followed: of a step, of a launch
# The part of a sum, and the part of its additions, from which on its last bits are not all that
# depends on the order.
LOST, ABSORBED = 1e-3, 1e-2
Exact = np.longdouble


@dataclass(frozen=True)
class Sum:
    """A sum: its value, the `exact` one, its additions, and the number without effect.

    `magnitude` adds up absolute values, `lost` the absolute values of additions without effect.
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
    """The sums of a launch, by instruction, block (0 in global memory) and element."""

    def __init__(self) -> None:
        self._sums: dict[tuple[int, int, int], Sum] = {}
        self._worst: dict[int, tuple[Sum, tuple[int, ...]]] = {}  # of each instruction, by place

    def add(self, step: Step, block: Array, element: Array) -> None:
        """Follow the additions of a step to elements, of blocks' shared memory or of block 0."""
        if step.before is None or step.added is None:
            return
        spread = Spread(step, (step.placement.copies, len(step.rows), 32))
        block, element, before, added = map(
            spread.flat, (block, element, step.before, signed(step.instruction, step.added))
        )
        for key, members in _by_sum(step.pc, block, element, MOST_SUMS):
            self._go_on(key, before[members[0]], added[members].astype(before.dtype))

    def add_in_turn(
        self, pc: int, block: Array, element: Array, before: Array, added: Array
    ) -> None:
        """Follow additions, each with the sum before it."""
        after = before + added
        for key, members in _by_sum(pc, block, element, MOST_OF_ALL):
            is_new = np.append(True, before[members[1:]] != after[members[:-1]])
            for part in np.split(members, np.flatnonzero(is_new)[1:]):
                self._go_on(key, before[part[0]], added[part])

    def _go_on(self, key: tuple[int, int, int], begins: np.generic, added: Array) -> None:
        """Follow additions to a sum that begins with a value; another one may have ended there."""
        known = self._sums.get(key)
        if known is None and len(self._sums) >= MOST_OF_ALL:
            return
        if known is None or known.value != begins:
            self._judge(key)
            known = Sum(begins, Exact(begins))
        self._sums[key] = known.after(added)

    def _judge(self, key: tuple[int, int, int]) -> None:
        """Keep the sum that has lost most, the first one of several."""
        known, (pc, *place) = self._sums.get(key), key
        if known is not None and known.is_wrong:
            worst = self._worst.get(pc)
            mine = -abs(known.difference), place
            if worst is None or mine < (-abs(worst[0].difference), list(worst[1])):
                self._worst[pc] = known, tuple(place)

    def wrong(self) -> dict[int, tuple[Sum, int]]:
        """Return the worst sum of each instruction with some, and its element."""
        for key in self._sums:
            self._judge(key)
        return {pc: (found, place[-1]) for pc, (found, place) in self._worst.items()}


def signed(row: Instruction, added: Array) -> Array:
    """Return the addend of an instruction, negated if it subtracts."""
    return -added if str(row.detail).startswith("sub") else added


def _by_sum(
    pc: int, block: Array, element: Array, most: int
) -> Iterator[tuple[tuple[int, int, int], Array]]:
    """Yield the entries of the sums with the most additions, in their order, by sum."""
    order = np.lexsort((element, block))
    ordered = np.stack([block[order], element[order]])
    starts = np.flatnonzero(np.append(len(order) > 0, (ordered[:, 1:] != ordered[:, :-1]).any(0)))
    ends = np.append(starts[1:], len(order))
    for place in np.argsort(starts - ends, kind="stable")[:most].tolist():
        begin = starts[place]
        first, second = ordered[:, begin].tolist()
        yield (pc, first, second), order[begin : ends[place]]
