"""Launches of one machine, interpreted by CPython and compiled, for tests that compare both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim.codegen.programs import prepare
from gpusim.cuda import Kernel
from gpusim.host.fast import OFF, ON, SWITCH
from gpusim.launch.events import Observer, Ran
from gpusim.launch.grid import ComputeCapability
from gpusim.machine import run
from gpusim.machine.compiled import modules
from gpusim.tracing.counting import Counters

HOPPER = ComputeCapability(9, 0)
INTERPRETED, COMPILED = EVALUATORS = (OFF, ON)  # values of the switch in the environment
Array = np.ndarray[Any, np.dtype[Any]]


class Went(Observer):
    """Notes whether a launch ran in the modules of its program."""

    def __init__(self) -> None:
        self.over = False

    def ran(self, ran: Ran) -> None:
        self.over = True


def runs_in(patched: pytest.MonkeyPatch, evaluator: str) -> None:
    """Let launches run in COMPILED code, of modules made anew or from the disk, or INTERPRETED."""
    modules.forget()
    patched.setenv(SWITCH, evaluator)


def evaluated(
    kernel: Kernel,
    grid: int,
    block: int,
    code: str,
    arguments: tuple[Any, ...],
    evaluator: str = COMPILED,
) -> tuple[list[Any], Counters, bool]:
    """Return the arguments after a launch, its counters, and whether it ran in its modules."""
    given = [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]
    counters, went = Counters(HOPPER), Went()
    with pytest.MonkeyPatch.context() as patched:
        runs_in(patched, evaluator)
        prepared = prepare(kernel[grid, block], given, HOPPER, code=code)
        run(prepared, observers=(counters, went))
    return given, counters, went.over


def agree(kernel: Kernel, grid: int, block: int, code: str, *arguments: Any) -> None:
    """Fail if compiled code leaves other bytes or counts anything differently."""
    interpreted, counted, went = evaluated(kernel, grid, block, code, arguments, INTERPRETED)
    assert went
    compiled, sums, went = evaluated(kernel, grid, block, code, arguments)
    assert went
    for one, other in zip(interpreted, compiled, strict=True):
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))
    np.testing.assert_array_equal(counted.by_pc, sums.by_pc)
    for number in range(grid):
        tables = (c.tables[c.table_of_block[number]] for c in (counted, sums))
        np.testing.assert_array_equal(*tables)
