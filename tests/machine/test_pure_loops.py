"""Loops that concern only their own lanes: those that have left them wait for the others."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim import cuda
from gpusim.compiler.ir import INT32
from gpusim.isa.ops import Instruction, Memory, Program
from gpusim.launch.events import Observer, Step
from gpusim.program.loops import pure
from gpusim.tracing.trace import trace

GLOBAL = Memory("global", "x", np.dtype(np.int32))


def looping(*body: Instruction) -> Program:
    """Return a program of a loop around some instructions, with one before and one behind it."""
    before = Instruction("MOV", (0,), (1,), INT32)
    back = Instruction("BRA", guard=2, target=1)
    return Program("loop", (before, *body, back, Instruction("EXIT")), registers=4)


def test_a_loop_that_only_computes_is_lone() -> None:
    program = looping(Instruction("IADD3", (0,), (0, 1), INT32, "++"))
    assert pure(program).tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    "meeting",
    [
        Instruction("LDG", (0,), (3,), INT32, memory=GLOBAL),
        Instruction("BAR", detail="sync"),
        Instruction("SHFL", (0,), (0, 0, 0, 0), INT32, ("down", "value")),
    ],
    ids=["memory", "barrier", "shuffle"],
)
def test_a_loop_that_touches_memory_or_meets_others_is_not(meeting: Instruction) -> None:
    assert not pure(looping(meeting)).any()


class Stores(Observer):
    """Notes how many warps run each store together."""

    def __init__(self) -> None:
        self.warps: list[int] = []

    def step(self, step: Step) -> None:
        """Take note of a store."""
        if step.instruction.op == "STG":
            self.warps.append(len(step.rows))


@cuda.jit
def halvings(x, out):
    i = cuda.grid(1)
    left, count = x[i], 0
    while left > 1:
        left = left // 2 if left % 2 == 0 else 3 * left + 1
        count += 1
    out[i] = count


def test_warps_that_leave_such_a_loop_at_different_times_go_on_together() -> None:
    # A warp of 2^k goes round k times.
    x = np.repeat(np.array([2, 4, 8, 16], dtype=np.int32), 32)
    out, stores = np.zeros(128, dtype=np.int32), Stores()
    trace(halvings[1, 128], x, out, observers=[stores], code="lowering")
    assert out.reshape(4, 32)[:, 0].tolist() == [1, 2, 3, 4]
    assert stores.warps == [4]
