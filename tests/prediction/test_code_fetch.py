"""Code that is longer than the instruction caches: lines of 128 bytes that come one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from prediction.test_clock import EXIT, LOAD, alu, plain_device, simulate

from gpusim.catalogue import Request
from gpusim.gpu.device import Device, load
from gpusim.isa.ops import Instruction, Program
from gpusim.prediction.arithmetic.ticks import TICKS
from gpusim.prediction.clock.code_fetch import CodeFetch
from gpusim.prediction.streams import WarpStream
from gpusim.prediction.streams.instruction_table import COLUMNS
from gpusim.prediction.sweeps.jobs import catalogue_job

pytestmark = pytest.mark.usefixtures("both_evaluators")

LINE = 8  # instructions of 16 bytes


def small_device(**latency: float) -> Device:
    """Return a device of two lines of code, four behind them; lines take 20, 50 and 90 cycles."""
    gpu = plain_device(**latency)
    return replace(
        gpu,
        capacity=replace(gpu.capacity, instruction_bytes=2 * 128, l15_bytes=4 * 128),
        interval_cycles=replace(
            gpu.interval_cycles,
            instruction_line=20,
            instruction_line_l2=50,
            instruction_line_dram=90,
        ),
    )


def program(lines: int, op: str = "NOP") -> Program:
    return Program("by hand", (Instruction(op),) * (LINE * lines), registers=4)


def cycles(gpu: Device, code: Program, *pcs: int, is_first: bool = False) -> Mapping[int, float]:
    """Return the cycles of each line that a warp comes to which runs these instructions."""
    columns: dict[str, Any] = {name: np.zeros(len(pcs), dtype=np.int64) for name in COLUMNS}
    stream = WarpStream.of(**{**columns, "pc": np.array(pcs)})
    fetched = CodeFetch(code, gpu, "cold").of(stream, is_first=is_first)
    return {place: ticks / TICKS for place, ticks in fetched.items()}


def test_code_that_the_cache_holds_is_there() -> None:
    assert cycles(small_device(), program(2), *range(16)) == {}


@pytest.mark.parametrize(("lines", "takes"), [(3, 20), (4, 20), (5, 50)])
def test_longer_code_comes_out_of_the_caches_behind(lines: int, takes: int) -> None:
    """Each line was run before, by another warp, but all other lines have come since."""
    found = cycles(small_device(), program(lines), *range(LINE * lines))
    assert found == {LINE * line: takes for line in range(lines)}


def test_a_loop_that_the_cache_holds_comes_once() -> None:
    """Lines 2 and 3 are gone over three times, in code of five."""
    loop = [16, 24] * 3
    found = cycles(small_device(), program(5), 0, 8, *loop, 32)
    assert list(found.values()) == [50, 50, 50, 50, 0, 0, 0, 0, 50]


def test_a_loop_that_is_longer_than_the_cache_comes_each_time() -> None:
    found = cycles(small_device(), program(5), 0, 8, *[8, 16, 24] * 2, 32)
    assert list(found.values()) == [50, 50, 50, 50, 20, 20, 20, 50]


def test_what_the_l2_does_not_have_comes_out_of_dram_the_first_time() -> None:
    """Five lines, twice: six others came since, of which the L2 has all by then."""
    twice = [*range(0, 40, 8)] * 2
    found = cycles(small_device(), program(5), *twice, is_first=True)
    assert list(found.values()) == [90] * 5 + [50] * 5


def test_what_describes_the_source_is_no_code() -> None:
    assert cycles(small_device(), program(9, ".IF"), 0, 8, 16) == {}


def test_instructions_of_older_gpus_are_half_as_long() -> None:
    old = small_device()
    old = replace(old, gpu=replace(old.gpu, compute_capability="6.1"))
    assert cycles(old, program(4), *range(32)) == {}
    assert list(cycles(old, program(6), *range(48))) == [0, 16, 32]


@pytest.mark.parametrize(("lines", "ends"), [(2, 16), (3, 48), (5, 208)])
def test_a_line_begins_no_sooner_after_the_one_before(lines: int, ends: int) -> None:
    """The last line begins at 8, 2 x 20 or 4 x 50; its 8 instructions issue one a cycle."""
    work = [alu(2 + k, 0) for k in range(LINE * lines - 1)]
    assert simulate([*work, EXIT], gpu=small_device()).cycles == ends


def test_warps_that_run_together_wait_for_a_line_together() -> None:
    work = [alu(2 + k, 0) for k in range(LINE * 5 - 1)]
    assert simulate([*work, EXIT], gpu=small_device(), warps=4).cycles == 208


def test_a_line_comes_while_its_warp_waits_for_a_result() -> None:
    """The load of line 0 has its result at 100; line 1, which was there at 20, waits for it."""
    work = [LOAD, *(alu(2 + k, 0) for k in range(7)), alu(40, 1)]
    work += [alu(41 + k, 0) for k in range(14)]
    assert simulate([*work, EXIT], gpu=small_device(shared_load=100)).cycles == 100 + 20 + 8


def test_a_prediction_tells_code_that_the_caches_do_not_hold() -> None:
    gpu = load("h200")
    small = gpu.having({"capacity.instruction_bytes": 128, "capacity.l15_bytes": 256})
    job = catalogue_job(Request("reduce3", 2**12, block=128))
    held, fetched = (job.on(one).time_us for one in (gpu, small))
    assert fetched > held


def test_the_first_blocks_of_a_cold_launch_wait_for_code_that_no_cache_holds() -> None:
    """A cache behind that holds the code has it from an earlier launch, whatever the L2 has."""
    gpu = load("h200")
    slow = {"interval_cycles.instruction_line_l2": 50, "interval_cycles.instruction_line_dram": 900}
    long = gpu.having({**slow, "capacity.instruction_bytes": 128, "capacity.l15_bytes": 256})
    kept = long.having({"capacity.l15_bytes": 2**17})
    job = catalogue_job(Request("reduce3", 2**12, block=128))
    added = {
        (l2, name): job.on(one, l2=l2).time_us - job.on(gpu, l2=l2).time_us
        for l2 in ("cold", "warm")
        for name, one in (("long", long), ("kept", kept))
    }
    assert added["cold", "kept"] == pytest.approx(added["warm", "kept"], abs=0.1)
    assert added["cold", "long"] > 5 * added["warm", "long"] > 0
