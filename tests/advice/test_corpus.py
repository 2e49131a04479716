"""A defect is found at its line, and its cure has nothing of the kind."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from advice.pairs import CORPUS, PAIRS, Launch, Pair

import gpusim
from gpusim.advice.launch import advice_on
from gpusim.advice.records import Advice
from gpusim.prediction.records import Prediction
from gpusim.sass import wheels
from gpusim.sass.kernels import CodeFile, cuda_file

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

# Kinds of a trace alone: the others cost nothing but on a device.
TRACED = {
    "bank-conflict",
    "uncoalesced",
    "repeated-accesses",
    "narrow-loads",
    "divergence",
    "idle-lanes",
    "atomics",
}
QUICK = {"strided_tree", "row_each", "by_parity", "sum_in_memory", "four_words", "shared_bins"}
LONG = {"product_from_global", "long_code"}
TIMES = CORPUS.parent / "h200.json"  # written by measure.py
NEAR = 0.15  # of the defect's time
MISSED = {
    "sum_in_memory",  # the other loads stay in the order that a possible alias forces on them
    "global_bins",  # atomics of a warp apart, but those of other warps still at the same addresses
    "long_code",  # code out of the L2 is waited for less than the clock says
}


def saved(pair: Pair) -> float:
    """The part of the measured time of a defect that its cure saves, on an H200."""
    times = json.loads(TIMES.read_text(encoding="utf-8"))["times_us"]
    defect, cure = (times[f"{pair.kind}:{pair.name}:{side}"][1] for side in ("defect", "cure"))
    return float(1 - cure / defect)


@cache
def file(name: str) -> CodeFile:
    """A file of the corpus, compiled once."""
    return cuda_file(str(CORPUS / name))


def traced(pair: Pair, kernel: str, launch: Launch) -> list[Advice]:
    """The findings of a small launch's trace."""
    configured = file(pair.file)[kernel][launch.grid, launch.block]
    arrays = [np.zeros(size, pair.dtype) for size in (launch.x, launch.y)]
    return gpusim.trace(configured, *arrays, np.int32(launch.n), np.int32(launch.k)).findings


def predicted(pair: Pair, kernel: str, launch: Launch) -> Prediction:
    """The prediction of a large launch."""
    configured = file(pair.file)[kernel][launch.grid, launch.block]
    arrays = [gpusim.array_spec(size, pair.dtype) for size in (launch.x, launch.y)]
    return gpusim.predict(configured, *arrays, np.int32(launch.n), np.int32(launch.k))


def told(found: list[Advice]) -> set[tuple[str, int]]:
    """Kinds and lines."""
    return {(advice.kind, advice.line) for advice in found}


@pytest.mark.parametrize(
    "pair",
    [
        pytest.param(p, id=p.name, marks=[] if p.defect in QUICK else [pytest.mark.slow])
        for p in PAIRS
        if p.kind in TRACED
    ],
)
def test_a_trace_names_the_line_of_a_defect_and_not_its_cure(pair: Pair) -> None:
    assert (pair.kind, pair.line()) in told(traced(pair, pair.defect, pair.small))
    cured = traced(pair, pair.cure, pair.small_cure or pair.small)
    assert pair.kind not in {advice.kind for advice in cured}


@pytest.mark.slow
@pytest.mark.parametrize(
    "pair", [pytest.param(p, id=f"{p.kind}-{p.name}") for p in PAIRS if p.defect not in LONG]
)
def test_a_prediction_names_the_line_of_a_defect_and_not_its_cure(pair: Pair) -> None:
    found = advice_on(predicted(pair, pair.defect, pair.large))
    assert (pair.kind, pair.line()) in told(found)
    gain = next(a for a in found if a.kind == pair.kind).gain
    assert gain is not None
    assert gain.saves == pytest.approx(saved(pair), abs=NEAR) or pair.defect in MISSED
    cured = advice_on(predicted(pair, pair.cure, pair.large_cure or pair.large))
    assert pair.kind not in {advice.kind for advice in cured}
