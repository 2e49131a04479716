"""The translation of warps, once in a process: functions for the module of each program."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from gpusim.machine.warps import accesses, convergence, races, scheduling, steps
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
    scheduling.prepare,
    accesses.find,
    accesses.is_there,
    accesses.new_set,
    accesses.counted,
    accesses.most_alike,
    accesses.most_of_a_bank,
    accesses.fit_wide,
    accesses.fit,
    accesses.is_outside,
    accesses.wavefronts_again,
    accesses.mark,
    accesses.mark_row,
    accesses.note,
    accesses.is_in_order,
    scheduling.run_in_turn,
)


_STEPS: tuple[Callable[..., Any], ...] = (
    steps.begun,
    steps.opened,
    steps.decided,
    steps.detail,
    steps.narrow,
    steps.side_by_side,
    steps.accessed,
    steps.keep_told,
    steps.told_again,
    steps.looked_up,
)


_RACES: tuple[Callable[..., Any], ...] = (
    races.begins,
    races.opened,
    races.meets,
    races.cell_load,
    races.cell_store,
    races.cell_atomic,
    races.cell_sum,
    races.of_block,
)


@cache
def text(*, recording: bool, detecting: bool) -> str:
    """Return the functions of a module, with those that record steps or look for races."""
    functions = _FUNCTIONS + _STEPS * recording + _RACES * detecting
    return functions_of({one.__name__: one for one in functions}, _PACKAGES)
