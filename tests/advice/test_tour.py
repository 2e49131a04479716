"""Each lesson of the tour has its finding, whoever made the code."""

from __future__ import annotations

import pytest

import gpusim
from gpusim import catalogue
from gpusim.advice.launch import forecast_advice
from gpusim.advice.records import Advice
from gpusim.catalogue import Request
from gpusim.checking.findings import Finding
from gpusim.codegen.generators import VARIABLE
from gpusim.prediction.sweeps.jobs import catalogue_job
from gpusim.sass import wheels

CODES = [
    "lowering",
    pytest.param("nvcc", marks=pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)),
]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(
    ("name", "kind", "line"),
    [
        ("reduce1", "divergence", 53),
        ("reduce1", "integer-division", 53),
        ("reduce2", "bank-conflict", 81),
        ("reduce2", "idle-lanes", 80),
        ("reduce3", "idle-lanes", 106),
        ("reduce4", "idle-lanes", 132),
    ],
)
def test_a_lesson_has_its_finding(name: str, kind: str, line: int, code: str) -> None:
    assert (kind, line) in {(found.kind, found.line) for found in traced(name, code).findings}


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("name", ["reduce5_fixed", "reduce6"])
def test_the_last_lessons_have_none_of_these(name: str, code: str) -> None:
    assert [found.kind for found in traced(name, code).findings] == ["none"]


@pytest.mark.parametrize("code", CODES)
def test_divergence_is_counted_by_what_runs(code: str) -> None:
    """Of 4 warps in 7 steps, all diverge in 5, one in each of the last two: by 2 and 1 lanes."""
    found = next(f for f in traced("reduce1", code).findings if f.kind == "divergence")
    assert "every 2nd lane takes the branch (iteration 0)" in found.message
    assert "23 of the block's 28 executions diverge" in found.message
    assert "the machine code predicates the body" in found.message


def test_the_last_warp_without_volatile_memory_races() -> None:
    """Lesson 5: the additions of reduce5 race, those of reduce5_fixed do not (checked at -O0)."""
    found = [one for one in checked("reduce5") if one.rule == "warp-race"]
    assert {167, 168, 169, 170, 171} <= {line for one in found for line in one.lines}
    assert "warp-race" not in {one.rule for one in checked("reduce5_fixed")}


@pytest.mark.parametrize("code", CODES)
def test_no_loop_is_fewer_instructions_and_more_work_per_thread_is_less_time(
    code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lessons 6 and 7, as ranking and table of the tour say them."""
    monkeypatch.setenv(VARIABLE, code)
    looping, written_out, whole = (
        catalogue_job(Request(name, n=2**22, block=256)).on("h200")
        for name in ("reduce5_fixed", "reduce6", "reduce7")
    )
    assert written_out.first.instructions < 0.85 * looping.first.instructions
    few = catalogue_job(Request("reduce7", n=2**22, block=256, grid=1056)).on("h200")
    assert few.first.instructions < 0.5 * whole.first.instructions
    assert few.time_us < 0.8 * whole.time_us


@pytest.mark.parametrize("code", CODES)
def test_the_last_warp_alone_still_waits_at_the_barrier(code: str) -> None:
    """Lesson 5: in six of seven steps one warp works, and its lanes need no barrier."""
    found = next(f for f in traced("reduce4", code).findings if f.kind == "idle-lanes")
    assert "in the last 6 of 7 iterations 1 of 4 warps has work" in found.message
    assert "wait at the barrier of line 134" in found.message


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(
    ("name", "kind", "line", "cured"),
    [("reduce5_fixed", "loop-overhead", 194, "reduce6"), ("reduce6", "fine-grain", 0, "reduce7")],
)
def test_a_lesson_of_time_has_its_finding(
    name: str, kind: str, line: int, cured: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lessons 6 and 7: a loop that counts and branches; threads that add two elements each."""
    monkeypatch.setenv(VARIABLE, code)
    found = predicted(name)
    gains = {advice.line: advice.gain for advice in found if advice.kind == kind}
    assert list(gains) == [line]
    assert gains[line] is not None
    assert kind not in {advice.kind for advice in predicted(cured, grid=1056)}


def predicted(name: str, grid: int | None = None) -> list[Advice]:
    """The findings of a kernel of the tour with times, 2^22 elements."""
    grid = grid if name == "reduce7" else None
    return forecast_advice(catalogue_job(Request(name, n=2**22, block=256, grid=grid)).on("h200"))


def checked(name: str) -> list[Finding]:
    """What check finds in a kernel of the tour, two blocks of 128 threads."""
    call = catalogue.find(name).call(catalogue.sample(512, "int32"), block=128)
    return list(gpusim.check(call.configured, *call.arguments))


def traced(name: str, code: str) -> gpusim.Trace:
    """The trace of a kernel of the tour, four blocks of 128 threads."""
    call = catalogue.find(name).call(catalogue.sample(512, "int32"), block=128)
    return gpusim.trace(call.configured, *call.arguments, code=code)
