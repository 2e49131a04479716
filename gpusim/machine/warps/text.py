"""The translation of warps, once in a process: functions for the module of each program."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from gpusim.machine.warps import convergence, scheduling
from gpusim.wasm.module import functions_of

_PACKAGES = ("gpusim.machine.warps",)
_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    convergence.append,
    convergence.remove,
    convergence.hold,
    convergence.new_path,
    convergence.give,
    convergence.take,
    convergence.release,
    convergence.gather,
    scheduling.begin,
    scheduling.run_in_turn,
)


@cache
def text() -> str:
    """Return the functions that every module has."""
    return functions_of({one.__name__: one for one in _FUNCTIONS}, _PACKAGES)
