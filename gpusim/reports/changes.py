"""Reasons why one kernel is faster than another, in a few words, from their predictions."""

from __future__ import annotations

from collections.abc import Iterator

from gpusim.prediction.records import Prediction
from gpusim.prediction.sweeps.ablation import conflict_wavefronts
from gpusim.reports.quantities import interval

MOST_CHANGES = 3
LEAST_CHANGE = 0.03  # a count that changes by less is no reason
LEAST_FRACTION = 0.2  # of the time gained that a stall must explain
_WORKING = ("selected", "not_selected")


def changes(before: Prediction, after: Prediction) -> list[str]:
    """Return the changes from one launch to a faster one, up to three phrases."""
    return list(_changes(before, after))[:MOST_CHANGES]


def _changes(before: Prediction, after: Prediction) -> Iterator[str]:
    instructions = _ratio(before.instructions, after.instructions)
    if abs(instructions - 1) >= LEAST_CHANGE:
        yield f"{_more_or_fewer(instructions)} instructions"
    yield from _conflicts(before, after)
    blocks = _ratio(before.launch.blocks, after.launch.blocks)
    if abs(blocks - 1) >= LEAST_CHANGE:
        yield "half the blocks" if blocks == 0.5 else f"{_more_or_fewer(blocks)} blocks"
    if after.limiter.name != before.limiter.name:
        yield f"limiter {after.limiter.name} instead of {before.limiter.name}"
    yield from _stalls(before, after)


def _conflicts(before: Prediction, after: Prediction) -> Iterator[str]:
    had, has = (conflict_wavefronts(one) for one in (before, after))
    if had and not has:
        yield "no bank conflicts"
    elif has and not had:
        yield "new bank conflicts"
    elif had and abs(_ratio(had, has) - 1) >= LEAST_CHANGE:
        yield f"{_more_or_fewer(_ratio(had, has))} bank conflicts"


def _stalls(before: Prediction, after: Prediction) -> Iterator[str]:
    """Yield the wait that shrank most, as a warp's mean time."""
    gained = before.time_us - after.time_us
    waits = {
        name: (fraction * before.time_us, after.stalls[name] * after.time_us)
        for name, fraction in before.stalls.items()
        if name not in _WORKING
    }
    name = max(waits, key=lambda stall: (waits[stall][0] - waits[stall][1], stall))
    had, has = waits[name]
    if gained > 0 and had - has >= LEAST_FRACTION * gained:
        yield f"{name} {interval(had, has)}"


def _ratio(before: float, after: float) -> float:
    return after / before if before else 1.0


def _more_or_fewer(ratio: float) -> str:
    if ratio >= 2:
        return f"{ratio:.1f} times the"
    return f"{100 * abs(1 - ratio):.0f} % {'more' if ratio > 1 else 'fewer'}"
