"""Both evaluators of the clock, side by side."""

from __future__ import annotations

from array import array
from typing import Any

from gpusim.prediction.clock import processes
from gpusim.prediction.clock.multiprocessor import StreamingMultiprocessor
from gpusim.prediction.compiled import evaluator


def snapshot(sm: StreamingMultiprocessor) -> list[Any]:
    """Return all that an SM's play leaves behind."""
    runs = [(one.count, list(one.spent), list(one.marks)) for one in sm.runs.values()]
    return [sm.end, sm.units.memory.end, list(sm.block_ends), runs]


def restore(sm: StreamingMultiprocessor, before: list[Any]) -> None:
    """Let an SM be as it was."""
    sm.end, sm.units.memory.end, sm.block_ends, runs = before
    for one, held in zip(sm.runs.values(), runs, strict=True):
        one.count, one.spent[:], one.marks = held[0], array("q", held[1]), held[2]


def both_play(sm: StreamingMultiprocessor) -> bool:
    """Play an SM by both evaluators; everything they leave behind is equal."""
    clock = evaluator.clock()
    assert clock is not None
    before = snapshot(sm)
    clock.play(sm)
    compiled = snapshot(sm)
    restore(sm, before)
    processes.play(sm)
    assert compiled == snapshot(sm)
    return True
