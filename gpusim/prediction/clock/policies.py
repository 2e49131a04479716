"""Scheduling policies: the choice among a scheduler's ready warps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpusim.prediction.clock.warp import Warp

# Chooses among ready warps, in the order of their age, one with a free pipe; returns its index or
# -1. The second argument is the order of the last served warp, the third the time at which each
# pipe is free, the fourth the time.
Policy = Callable[[Sequence[tuple[int, Warp]], int, Sequence[int], int], int]


def greedy_then_oldest(
    ready: Sequence[tuple[int, Warp]], last: int, pipes: Sequence[int], now: int
) -> int:
    """Choose the last served warp while possible, else the oldest."""
    found = -1
    for place, (order, warp) in enumerate(ready):
        if pipes[warp.pipe] <= now:
            if order == last or (order > last and found < 0):
                return place
            if order > last:
                return found
            if found < 0:
                found = place
    return found


def loose_round_robin(
    ready: Sequence[tuple[int, Warp]], last: int, pipes: Sequence[int], now: int
) -> int:
    """Choose the next younger warp than the last served one, cyclically."""
    found = -1
    for place, (order, warp) in enumerate(ready):
        if pipes[warp.pipe] <= now:
            if order > last:
                return place
            if found < 0:
                found = place
    return found


def greedy_then_youngest(
    ready: Sequence[tuple[int, Warp]], last: int, pipes: Sequence[int], now: int
) -> int:
    """Choose the last served warp while possible, else the youngest."""
    found = -1
    for place, (order, warp) in enumerate(ready):
        if pipes[warp.pipe] <= now:
            if order == last:
                return place
            found = place
    return found


POLICIES: dict[str, Policy] = {
    "greedy-then-oldest": greedy_then_oldest,
    "greedy-then-youngest": greedy_then_youngest,
    "loose-round-robin": loose_round_robin,
}
NAMES, CHOOSE = tuple(POLICIES), tuple(POLICIES.values())  # by number
GREEDY = (greedy_then_oldest, greedy_then_youngest)
