"""Memoisation of analyses by their program: a prediction runs some of its blocks often."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Generic, TypeVar

from gpusim.isa.ops import Program

Found = TypeVar("Found")
Held = TypeVar("Held")

MOST_KEPT = 16  # programs with results that are kept


class Same(Generic[Held]):
    """An object as a key, such as a program: equal to itself alone."""

    def __init__(self, held: Held) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.held is self.held

    def __hash__(self) -> int:
        return id(self.held)


def once(analysis: Callable[[Program], Found]) -> Callable[[Program], Found]:
    """Let an analysis look only once at each of the programs used last."""

    @lru_cache(maxsize=MOST_KEPT)
    def kept(same: Same[Program]) -> Found:
        return analysis(same.held)

    @wraps(analysis)
    def found(program: Program) -> Found:
        return kept(Same(program))

    return found
