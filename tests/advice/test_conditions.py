"""Conditions of the source are told whoever made the code: by line, by lane, in pictures."""

from __future__ import annotations

import pytest

import gpusim
from gpusim import catalogue
from gpusim.advice.decisions import conditions_of, passing_lanes
from gpusim.reports.accesses import line_report
from gpusim.reports.plots.divergence import decisions
from gpusim.sass import wheels
from gpusim.tracing import lanes

CODES = [
    "lowering",
    pytest.param("nvcc", marks=pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)),
]


def traced(name: str, code: str) -> gpusim.Trace:
    """The trace of a kernel of the tour, four blocks of 128 threads."""
    call = catalogue.find(name).call(catalogue.sample(512, "int32"), block=128)
    return gpusim.trace(call.configured, *call.arguments, code=code)


@pytest.mark.parametrize("code", CODES)
def test_the_lanes_of_a_condition_are_those_for_which_it_holds(code: str) -> None:
    """Of 128 threads 64, 32, ... 1 pass in 7 steps, 127 in 28 decisions of a warp."""
    assert passing_lanes(traced("reduce1", code))[53] == pytest.approx(127 / 28)
    assert passing_lanes(traced("reduce3", code))[106] == pytest.approx(127 / 28)


@pytest.mark.parametrize("code", CODES)
def test_a_line_with_a_condition_is_drawn_lane_by_lane(code: str) -> None:
    text = "\n".join(str(row) for row in line_report(traced("reduce1", code), 53, None, 100))
    assert "16 of 32  every 2nd lane: divergent" in text
    assert "1 of 32  lane 0 alone: divergent" in text


@pytest.mark.parametrize("code", CODES)
def test_divergent_decisions_are_those_of_the_source(code: str) -> None:
    """23 of line 53 and one of `if tid == 0`: conditions that all lanes pass diverge nowhere."""
    made = traced("reduce1", code)
    assert len(decisions(made).divergent) == 24
    if code == "nvcc":
        kept = [e for e, _ in conditions_of(made) if e.line == 53]
        assert sum(map(lanes.diverges, kept)) == 23
