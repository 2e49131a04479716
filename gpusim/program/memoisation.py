"""Memoisation of analyses by their program: a prediction runs some of its blocks often."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

from gpusim.isa.ops import Program

Found = TypeVar("Found")

MOST_KEPT = 16  # programs with results that are kept


class Same:
    """A program as a key: equal to itself alone."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.program is self.program

    def __hash__(self) -> int:
        return id(self.program)


def once(analysis: Callable[[Program], Found]) -> Callable[[Program], Found]:
    """Let an analysis look only once at each of the programs used last."""

    @lru_cache(maxsize=MOST_KEPT)
    def kept(same: Same) -> Found:
        return analysis(same.program)

    @wraps(analysis)
    def found(program: Program) -> Found:
        return kept(Same(program))

    return found
