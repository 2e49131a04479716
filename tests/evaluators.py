"""Launches by NumPy's machine and by compiled code, for tests that compare both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim.codegen.programs import prepare
from gpusim.cuda import Kernel
from gpusim.launch.events import Observer, Ran
from gpusim.launch.grid import ComputeCapability
from gpusim.machine import run, takeover
from gpusim.machine.compiled import modules
from gpusim.tracing.copies import LastCopies
from gpusim.tracing.counting import Counters

HOPPER = ComputeCapability(9, 0)
Array = np.ndarray[Any, np.dtype[Any]]


class Went(Observer):
    """Notes whether a launch went over to compiled code."""

    def __init__(self) -> None:
        self.over = False

    def ran(self, ran: Ran) -> None:
        self.over = True


def goes_over_after(patched: pytest.MonkeyPatch, steps: int) -> None:
    """Let launches of any program go over to compiled code after some steps, however fast."""
    modules.forget()
    takeover.forget()
    patched.setattr(takeover, "LOAD_STEPS", steps)
    patched.setattr(takeover, "STEPS", steps)
    patched.setattr(takeover, "FIRST_STEPS", steps)
    patched.setattr(takeover, "STEPS_EACH", 0)
    patched.setattr(takeover, "BYTE_NS", 0)
    patched.setattr(takeover, "_steps_saved", lambda interpreter: interpreter.context.executed)


def evaluated(
    kernel: Kernel, grid: int, block: int, code: str, arguments: tuple[Any, ...], *, steps: int
) -> tuple[list[Any], Counters, bool]:
    """Return the arguments after a launch that goes over after some steps, and its counters.

    With no steps, it begins in compiled code.
    """
    given = [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]
    counters, went = Counters(HOPPER, LastCopies()), Went()
    with pytest.MonkeyPatch.context() as patched:
        goes_over_after(patched, steps)
        prepared = prepare(kernel[grid, block], given, HOPPER, code=code)
        run(prepared, observers=(counters, went))
    return given, counters, went.over


def agree(
    kernel: Kernel, grid: int, block: int, code: str, *arguments: Any, steps: int = 0
) -> None:
    """Fail if compiled code leaves other bytes or counts anything differently."""
    numpys, counted, went = evaluated(kernel, grid, block, code, arguments, steps=10**9)
    assert not went
    compiled, sums, went = evaluated(kernel, grid, block, code, arguments, steps=steps)
    assert went
    for one, other in zip(numpys, compiled, strict=True):
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))
    np.testing.assert_array_equal(counted.by_pc, sums.by_pc)
    for number in range(grid):
        tables = (c.tables[c.table_of_block[number]] for c in (counted, sums))
        np.testing.assert_array_equal(*tables)
