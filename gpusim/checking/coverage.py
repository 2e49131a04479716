"""Coverage of a check: compared accesses, ordered pairs, and pairs without need of an order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

# Reasons why accesses were not compared, by their names in JSON.
STRONG = "strong"
LOCAL = "local"
ARRAYS = "arrays"
MASKS = "masks"
REASONS = {
    STRONG: "races of atomics and flags",
    LOCAL: "bounds of arrays in local memory: the machine code has no boundaries between them",
    ARRAYS: "bounds of arrays in shared or constant memory: the machine code has no names for them",
    MASKS: "masks of warp operations: the machine code does not have them",
}


@dataclass
class Coverage:
    """Counts of a check: element accesses of threads, and pairs of them on one element.

    A pair is an access and the last earlier conflicting one. `ordered` ones have happens-before
    order; `not_compared` counts pairs or accesses without need of an order, and instructions with
    an unknown mask. `lines_not_run` have machine code that no thread executed. For a check of some
    blocks, `blocks` are the first, the last, and the number in the grid.
    """

    accesses: int = 0
    ordered: int = 0
    not_compared: Counter[str] = field(default_factory=Counter)
    lines_not_run: set[int] = field(default_factory=set)
    blocks: tuple[int, int, int] | None = None

    def __str__(self) -> str:
        words = f"{self.accesses:,} accesses, {self.ordered:,} pairs of accesses ordered"
        left = [f"{count:,} not comparable ({REASONS[why]})" for why, count in self._left]
        some = [] if self.blocks is None else ["blocks {:,} to {:,} of {:,}".format(*self.blocks)]
        return ", ".join([words, *left, *lines_not_run(sorted(self.lines_not_run)), *some])

    def __add__(self, other: Coverage) -> Coverage:
        """Return the coverage of two checks of a kernel; `lines_not_run` ran in neither."""
        return Coverage(
            self.accesses + other.accesses,
            self.ordered + other.ordered,
            self.not_compared + other.not_compared,
            self.lines_not_run & other.lines_not_run,
        )

    @property
    def _left(self) -> list[tuple[str, int]]:
        return sorted((why, count) for why, count in self.not_compared.items() if count)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts, ready for JSON."""
        return {
            "accesses": self.accesses,
            "ordered_pairs": self.ordered,
            "not_compared": dict(self._left),
            "lines_not_run": sorted(self.lines_not_run),
            **({} if self.blocks is None else {"blocks": list(self.blocks)}),
        }


def lines_not_run(lines: Sequence[int]) -> list[str]:
    """Return the words for lines that did not run, with ranges; none for none."""
    if not lines:
        return []
    ends = [at for at in range(1, len(lines)) if lines[at] != lines[at - 1] + 1]
    parts = [lines[a:b] for a, b in zip([0, *ends], [*ends, len(lines)], strict=True)]
    texts = [str(one[0]) if len(one) == 1 else f"{one[0]}-{one[-1]}" for one in parts]
    return [f"line{'s' * (len(lines) > 1)} {', '.join(texts)} not run"]
