"""Kernels with one planted bug each, and the same kernels corrected.

A case is a function that returns both. The lines of the bug bear the comment `# <-`; the
arguments are made anew for each run.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpusim
from gpusim.cuda import Kernel

MARK = "# <-"
Pair = Callable[[], tuple[Any, Any]]


@dataclass(frozen=True)
class Case:
    """A bug and its corrected twin, how both are launched, and the rule that finds the bug."""

    name: str
    rule: str
    grid: Any
    block: Any
    arguments: tuple[Callable[[], Any], ...]
    pair: Pair
    shared_bytes: int
    device: str
    step_limit: int
    uninitialised: tuple[str, ...]

    def configured(self, kernel: Kernel) -> Any:
        """Return a kernel of the case, ready to be called with `values`."""
        return kernel[self.grid, self.block, 0, self.shared_bytes]

    def check(self, kernel: Kernel) -> gpusim.Findings:
        """Check a kernel of the case."""
        return gpusim.check(
            self.configured(kernel),
            *self.values(),
            device=self.device,
            step_limit=self.step_limit,
            uninitialised=self.uninitialised,
        )

    def values(self) -> list[Any]:
        """Return new arguments."""
        return [make() for make in self.arguments]


CASES: list[Case] = []
# The modules that plant them, `planted_...`.
KINDS = ("shared", "warps", "blocks", "barriers", "memory", "arithmetic")


def planted(
    rule: str,
    grid: Any,
    block: Any,
    *arguments: Callable[[], Any],
    shared_bytes: int = 0,
    device: str = "h200",
    step_limit: int = 100_000,
    uninitialised: tuple[str, ...] = (),
) -> Callable[[Pair], Pair]:
    """Enter a case under its function's name."""

    def enter(pair: Pair) -> Pair:
        made = Case(
            pair.__name__,
            rule,
            grid,
            block,
            arguments,
            pair,
            shared_bytes,
            device,
            step_limit,
            uninitialised,
        )
        CASES.append(made)
        return pair

    return enter


def marked_lines(pair: Pair) -> set[int]:
    """Return the lines of a case that bear the mark."""
    lines, first = inspect.getsourcelines(pair)
    return {number for number, line in enumerate(lines, first) if MARK in line}


def ints(count: int) -> Callable[[], Any]:
    """0, 1, 2, ... as int32."""
    return lambda: np.arange(count, dtype=np.int32)


def floats(count: int) -> Callable[[], Any]:
    """0, 1, 2, ... as float32."""
    return lambda: np.arange(count, dtype=np.float32)


def zeros(shape: Any, dtype: Any = np.int32) -> Callable[[], Any]:
    """An array of zeros."""
    return lambda: np.zeros(shape, dtype=dtype)


def number(value: Any) -> Callable[[], Any]:
    """A scalar."""
    return lambda: value
