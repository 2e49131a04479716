"""The launches of a program: their times with intervals, and code without a line table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpusim import cuda
from gpusim.cli.program_modes import LaunchChoice, Watched
from gpusim.codegen.programs import prepare
from gpusim.driver.execution import LaunchOf
from gpusim.gpu.device import load
from gpusim.launch.prepared import Prepared

H200 = load("h200")


@cuda.jit
def doubled(values):
    values[cuda.grid(1)] *= 2


def prepared(*, lines: bool) -> Prepared:
    made = prepare(doubled[64, 128], (np.ones(64 * 128, np.float32),), H200.cc, code="lowering")
    if lines:
        return made
    rows = tuple(replace(row, line=0) for row in made.program.instructions)
    return replace(made, program=replace(made.program, instructions=rows))


def launches(*, lines: bool, times: int = 2) -> Watched:
    watched = Watched(H200, LaunchChoice(), frozenset({"time"}), step_limit=10**6)
    for number in range(1, times + 1):
        made = prepared(lines=lines)
        watched.execute(LaunchOf(number, 1, "doubled", made.launch, 0, "same"), made)
    return watched


def test_a_launch_has_the_kernels_time_and_its_interval() -> None:
    for one in launches(lines=True).launches:
        assert one.time_us is not None
        assert one.kernel_us == pytest.approx(one.time_us - H200.host.launch_overhead_us)
        low, high = one.interval_us
        assert 0 <= low < one.kernel_us < high


@pytest.mark.parametrize(("lines", "said"), [(True, 0), (False, 1)])
def test_code_without_a_line_table_is_said_once(
    lines: bool, said: int, capsys: pytest.CaptureFixture[str]
) -> None:
    launches(lines=lines)
    text = capsys.readouterr().err
    assert text.count("has no line table") == said
    assert text.count("nvcc -lineinfo, or @cuda.jit(lineinfo=True) of numba") == said
