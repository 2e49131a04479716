"""Constants of `__constant__` arrays: when they come to an SM, and out of which cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from prediction.test_clock import EXIT, plain_device

from gpusim.gpu.device import Device
from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.prediction.arithmetic.ticks import TICKS
from gpusim.prediction.clock.code_fetch import ConstantFetch
from gpusim.prediction.clock.issue import issues
from gpusim.prediction.clock.step_builder import steps_of
from gpusim.prediction.streams import WarpStream
from gpusim.prediction.streams.instruction_table import COLUMNS

pytestmark = pytest.mark.usefixtures("both_evaluators")

LINE, PIECE = 64, 256


def small_device() -> Device:
    """Return a device with two lines of constants near by; out of their cache they take 30 cycles.

    70 more out of the L1.5, 281 out of the L2, 654 out of DRAM.
    """
    gpu = plain_device(constant=30, constant_l15=70, l2=281, dram=654)
    return replace(gpu, capacity=replace(gpu.capacity, constant_bytes=2 * LINE))


def load(offset: int, bank: int = 3, op: str = "LDC.BANK") -> Instruction:
    assert OPS[op].kind == "bank"
    return Instruction(op, (offset,), (), detail=("bank", (bank, offset, 4, False)))


def stream(count: int, constant: Any = -1) -> WarpStream:
    columns: dict[str, Any] = {name: np.zeros(count, dtype=np.int64) for name in COLUMNS}
    lines = np.broadcast_to(constant, count)
    return WarpStream.of(**{**columns, "pc": np.arange(count), "constant": lines})


def later(*code: Instruction, l2: str = "cold", is_first: bool = False) -> Mapping[int, float]:
    """Return by how many cycles constants come later than out of their cache, by place."""
    fetch = ConstantFetch(Program("by hand", code, registers=4), small_device(), l2)
    found = fetch.of(stream(len(code)), is_first=is_first)
    return {place: ticks / TICKS for place, ticks in found.items()}


def test_what_the_launch_brings_along_is_there() -> None:
    assert later(*(load(offset, bank=0) for offset in range(0, 4096, 64)), is_first=True) == {}


@pytest.mark.parametrize(("l2", "first"), [("cold", 654 - 30), ("warm", 281 - 30)])
def test_the_first_blocks_wait_for_the_l2_or_dram_once_for_256_bytes(l2: str, first: int) -> None:
    """Other lines of a piece are in the L1.5 then, and other words of a line in the cache."""
    code = [load(offset) for offset in (0, 4, LINE, PIECE, PIECE + LINE)]
    assert later(*code, l2=l2, is_first=True) == {0: first, 2: 70, 3: first, 4: 70}


def test_later_blocks_find_what_the_cache_keeps() -> None:
    assert later(load(0), load(LINE)) == {}


def test_more_than_the_cache_keeps_comes_out_of_the_l15_each_time() -> None:
    assert later(load(0), load(LINE), load(2 * LINE)) == {0: 70, 1: 70, 2: 70}


def test_constants_at_an_offset_in_a_register_lie_where_the_stream_says() -> None:
    code = Program("by hand", (replace(load(0), src=(1,)),) * 3, registers=4)
    found = ConstantFetch(code, small_device(), "warm").of(stream(3, [7, 7, 8]), is_first=True)
    assert found == {0: (281 - 30) * TICKS, 2: (281 - 30) * TICKS}


@pytest.mark.parametrize(("op", "uses"), [("LDC.BANK", 30), ("ULDC.BANK", 3)])
def test_who_needs_a_constant_waits_for_it(op: str, uses: int) -> None:
    """An addition behind the load, and the exit behind that: a cycle each."""
    gpu = small_device()
    user = Instruction("MOV", (9,), (0,))
    program = Program("by hand", (load(0, op=op), user, EXIT), registers=4)
    made = [steps_of(stream(3), issues(program, gpu), late={0: late * TICKS}) for late in (0, 100)]
    there = [sum(step.gap for step in one.steps[:-1]) / TICKS for one in made]
    waits = [step.access.cost / TICKS for step in (one.steps[0] for one in made)]
    assert uses in (waits[0], there[0] - 1)
    assert max(waits[1] - waits[0], there[1] - there[0]) == 100


def test_an_operand_that_is_not_there_holds_its_instruction() -> None:
    program = Program(
        "by hand", (Instruction("MOV", (9,), (8,)),), registers=9, constants={8: (3, 0)}
    )
    fetch = ConstantFetch(program, small_device(), "warm")
    assert fetch.of(stream(1), is_first=True) == {0: (281 - 30) * TICKS}
    there, held = (
        steps_of(stream(1), issues(program, small_device()), late={0: late * TICKS})
        for late in (0, 100)
    )
    assert held.charges[0] - there.charges[0] == 100 * TICKS
