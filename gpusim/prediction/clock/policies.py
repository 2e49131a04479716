"""Which of the warps that are ready a scheduler serves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpusim.prediction.clock.warp import Warp

# Chooses among warps whose time has come, in the order of their age, one whose pipe is free, and
# returns its place or -1. The second argument is the order of the warp that was served last, the
# third when each pipe is free, the fourth the time.
Policy = Callable[[Sequence[tuple[int, Warp]], int, Sequence[int], int], int]


def greedy_then_oldest(
    ready: Sequence[tuple[int, Warp]], last: int, pipes: Sequence[int], now: int
) -> int:
    """Choose the warp that was served last while it can be, else the oldest."""
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
    """Choose the next younger warp than the one that was served last, in a circle."""
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
    """Choose the warp that was served last while it can be, else the youngest."""
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
