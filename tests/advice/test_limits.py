"""Where a launch is far from all limits, a finding names a cause: a line, or the launch's shape."""

from __future__ import annotations

import re

import pytest

from gpusim import cuda
from gpusim.advice.launch import advice_on, forecast_advice
from gpusim.advice.records import LIMIT
from gpusim.advice.timed.waiting import NEAR, nearness
from gpusim.catalogue import Request
from gpusim.launch.arguments import array_spec
from gpusim.prediction.predict import predict
from gpusim.prediction.sweeps.jobs import catalogue_job
from gpusim.reports.advice import findings_lines


@pytest.mark.parametrize(
    ("name", "n"),
    [
        ("reduce_gpu", 2**10),
        ("reduce3", 2**16),
        ("kernel4", 2**18),
        ("naive_scan", 2**9),
        ("kogge_stone_scan_fixed", 2**8),
        ("reduce7", 2**20),
    ],
)
def test_something_is_said_of_a_launch_far_from_its_limits(name: str, n: int) -> None:
    forecast = catalogue_job(Request(name, n=n, block=256)).on("h200")
    found = forecast_advice(forecast)
    assert nearness(forecast.first) < NEAR
    assert [one for one in found if one.kind != LIMIT] or re.search(
        r"the longest stall is \w+, \d+ % of the warps' time, \d+ % at line \d+\. Fix: ",
        found[0].message,
    )


@pytest.mark.parametrize("block", [256, 512])
def test_exposed_latency_has_its_longest_stall_with_the_line(block: int) -> None:
    """Far from all limits, and at the chain of one warp's latencies."""
    found = forecast_advice(catalogue_job(Request("reduce6", n=2**24, block=block)).on("h200"))
    said = next(one.message for one in found if one.kind == LIMIT)
    assert ("Limiter latency" in said) == (block == 512)
    assert "the longest stall is long_scoreboard" in said
    assert "at line 227. Fix: more loads in flight per thread." in said


def test_the_limit_is_the_first_sentence_and_three_findings_follow_it() -> None:
    """In `trace`, `predict` and the page, by one order of findings."""
    found = forecast_advice(catalogue_job(Request("reduce2", n=2**22, block=128)).on("h200"))
    assert [place for place, one in enumerate(found) if one.kind == LIMIT] == [0]
    lines = [line.plain for line in findings_lines([found[0], *4 * [found[1]]], 80)]
    assert lines[0].startswith(f"  {found[0].message[:30]}")
    assert [line[:20] for line in lines].count(f"  {found[1].kind}: {found[1].message}"[:20]) == 3
    assert lines[-1] == "  in full: --all"


@cuda.jit
def first_of_warps(x, total):
    value = x[cuda.grid(1)]
    if cuda.threadIdx.x % 32 == 0:
        cuda.atomic.add(total, 0, value)


def test_atomics_that_limit_a_launch_are_found_although_a_warp_has_one_lane_in_each() -> None:
    blocks = 2**14
    arrays = array_spec(256 * blocks, "float32"), array_spec(1, "float32")
    made = predict(first_of_warps[blocks, 256], *arrays, device="h200")
    assert made.limiter.name == "atomics"
    found = {one.kind: one for one in advice_on(made)}["atomics"]
    assert "blocks of the whole grid update one address" in found.message
    assert found.gain is not None
    assert found.gain.speedup > 2
