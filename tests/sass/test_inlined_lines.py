"""Lines of device functions: counts and findings stand there, with the calls as context."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.isa.lines import Call, SourceLine, call_path, callers, calls_of, in_words
from gpusim.reports import diagnostics
from gpusim.reports.sarif import sarif
from gpusim.sass import wheels
from gpusim.sass.symbols import function_name

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

Paths = Mapping[int, list[tuple[Call, ...]]]

FORMS = """
#include "twice.cuh"
template <int N> __device__ float scaled(float v) {
    return v * N + 1;
}
__device__ float below(float v);
template <class F> __device__ float applied(F f, float v) {
    return f(v) + 1;
}
__global__ void k(float *x) {
    float v = x[threadIdx.x];
    auto shifted = [=](float a) {
        return a - x[32]; };
    v = applied(shifted, v);
    v = scaled<3>(v);
    v = twice(below(v));
    x[threadIdx.x] = v;
}
__device__ float below(float v) {
    return scaled<5>(v) + 7;
}
"""


def paths_of(trace: gpusim.Trace) -> Paths:
    return {
        line.line: [path.calls for path in line.called_from]
        for line in trace.lines
        if line.called_from
    }


def test_lines_of_every_kind_of_inlined_function_have_their_calls(tmp_path: Path) -> None:
    """A header's function stays at its call: lines are those of the kernel's file."""
    (tmp_path / "twice.cuh").write_text("__device__ float twice(float v) { return v + v; }\n")
    (tmp_path / "k.cu").write_text(FORMS)
    kernel = gpusim.cuda_file(str(tmp_path / "k.cu"))["k"]
    found = paths_of(gpusim.trace(kernel[1, 32], np.ones(33, np.float32)))
    assert found[4] == [
        (Call("scaled<3>", 15),),
        (Call("scaled<5>", 20), Call("below", 16)),
    ]
    assert found[8] == [(Call("applied", 14),)]
    assert found[13] == [(Call("lambda", 8), Call("applied", 14))]
    assert found[20] == [(Call("below", 16),)]
    assert 16 not in found


def test_each_call_of_a_line_has_counts_of_its_own() -> None:
    """Two blocks of two warps call it once each, and then one warp of each block."""
    text = """
__device__ void add(int *x, int i) {
    x[i] += 1;
}
__global__ void k(int *x) {
    add(x, threadIdx.x);
    if (threadIdx.x < 32)
        add(x, threadIdx.x + 64);
}
"""
    trace = gpusim.trace(gpusim.cuda_source(text)["k"][2, 64], np.zeros(96, np.int32))
    (line,) = [line for line in trace.lines if line.line == 3]
    assert line.executions == 6
    assert [(path.calls, path.executions) for path in line.called_from] == [
        ((Call("add", 6),), 4),
        ((Call("add", 8),), 2),
    ]
    assert [path.counters["global_store_instructions"] for path in line.called_from] == [4, 2]
    assert line.to_dict()["called_from"][1]["calls"] == [{"function": "add", "line": 8}]
    assert line.callers == "add, called from lines 6, 8"


@cuda.jit(device=True)
def halved(value: Any) -> Any:
    return value * 3 // 2


@cuda.jit(device=True)
def more(value: Any) -> Any:
    return halved(value) + 1


@cuda.jit
def two_calls(x: Any) -> None:
    i = cuda.threadIdx.x
    x[i] = more(x[i])
    x[i + 32] = halved(x[i + 32])


@pytest.mark.parametrize("code", ["lowering", "nvcc"])
def test_both_generators_have_the_same_calls(code: str) -> None:
    lines = Path(__file__).read_text().splitlines()
    place = {text.strip(): line for line, text in enumerate(lines, 1)}
    trace = gpusim.trace(two_calls[1, 32], np.ones(64, np.int32), code=code)
    assert paths_of(trace)[place["return value * 3 // 2"]] == [
        (
            Call("halved", place["return halved(value) + 1"]),
            Call("more", place["x[i] = more(x[i])"]),
        ),
        (Call("halved", place["x[i + 32] = halved(x[i + 32])"]),),
    ]


TWICE = """
__device__ int sum(int v, int *part) {
    part[threadIdx.x] = v;
    __syncthreads();
    return part[127 - threadIdx.x];
}
__global__ void k(int *x) {
    __shared__ int part[128];
    int a = sum(x[threadIdx.x], part);
    x[threadIdx.x] = sum(a, part);
}
"""


def checked(text: str, *arguments: Any, block: int = 128) -> gpusim.Findings:
    return gpusim.check(gpusim.cuda_source(text)["k"][1, block], *arguments)


def test_findings_stand_in_device_functions_and_name_the_calls() -> None:
    """The second call's store races with the first call's load: lines 3 and 5."""
    found = checked(TWICE, np.zeros(128, np.int32))
    (race,) = found
    assert (race.rule, race.lines) == ("shared-race", (3, 5))
    assert [(int(one.line), one.calls) for one in race.places] == [
        (5, (Call("sum", 9),)),
        (3, (Call("sum", 10),)),
    ]
    assert race.callers(3) == "sum, called from line 10"
    assert race.to_dict()["places"][0]["called_from"] == [{"function": "sum", "line": 9}]
    assert json.loads(json.dumps(race.to_dict()))["lines"] == [3, 5]
    assert found.coverage.lines_not_run == set()


def test_sarif_and_notes_of_compilers_relate_a_finding_to_the_calls() -> None:
    every = list(diagnostics.of_findings(checked(TWICE, np.zeros(128, np.int32))))
    (result,) = sarif(every)["runs"][0]["results"]
    related = [
        (one["physicalLocation"]["region"]["startLine"], one["message"]["text"])
        for one in result["relatedLocations"]
    ]
    assert related[1:] == [(9, "calls sum"), (10, "calls sum")]
    assert [line.partition(": ")[2] for line in diagnostics.gcc(every)][1:3] == [
        "note: calls sum"
    ] * 2


def test_warps_at_one_barrier_by_two_calls_are_at_different_barriers() -> None:
    text = """
__device__ void meet() {
    __syncthreads();
}
__global__ void k(int *x) {
    if (threadIdx.x < 32) { x[0] = 1; meet(); }
    else { x[1] = 2; meet(); }
}
"""
    found = checked(text, np.zeros(2, np.int32), block=64)
    (place,) = [one for one in found if one.rule == "barrier-place"]
    assert "line 3 (meet, called from line 6)" in place.message
    assert "line 3 (meet, called from line 7)" in place.message


def test_names_of_functions_without_their_parameters() -> None:
    assert function_name("_Z8warp_sumILi32EEff") == "warp_sum<32>"
    assert function_name("_ZZ1kPKfPfiENKUlfE_clEf") == "lambda"
    assert function_name("_ZNK2OpclEff") == "Op::operator()"
    assert function_name("_Z5applyIZ1kPKfPfiEUlfE_EfT_f") == "apply"


def test_lines_in_words() -> None:
    calls = (Call("inner", 7), Call("outer", 20))
    line = SourceLine(3, calls)
    assert (line, calls_of(line), calls_of(3)) == (3, calls, ())
    assert in_words(line) == "line 3 (inner, called from line 7 in outer, called from line 20)"
    assert in_words(3) == "line 3"
    assert calls_of(pickle.loads(pickle.dumps(line))) == calls
    assert call_path((Call("", 9),)) == "called from line 9"
    assert callers([calls, (Call("inner", 5),)]) == "inner, called from lines 5, 7"


def test_the_page_names_the_calls_beside_lines_and_instructions() -> None:
    pytest.importorskip("jinja2", reason="the page needs jinja2, of the extras report and test")
    trace = gpusim.trace(gpusim.cuda_source(TWICE)["k"][1, 128], np.zeros(128, np.int32))
    page = trace.show(None).document
    assert '<span class="callers">sum, called from lines 9, 10</span>' in page
    assert 'title="sum, called from line 10"' in page
