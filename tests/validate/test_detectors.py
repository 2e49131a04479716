"""The score on a suite of labelled bugs: labels, launches and verdicts, on suites made here."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gpusim.cli.launch_examples import Parameter
from gpusim.sass import wheels
from validate.commands import main
from validate.detectors import gpuverify, indigo, scor
from validate.detectors.case import ANY, BOUNDS, RACE, Case, Verdict

needs_compiler = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
RACY = """#define NBLOCKS 2
#define TPERBLK 1
__global__ void kmain(volatile unsigned *data) { data[0] = %s; }
int main() { return 0; }
"""
ON_A_GRAPH = """#include "indigo_cuda.h"
__global__ void test_kernel(int *nindex, int *nlist, data_t *data1, data_t *data2, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n) %s;
}
"""


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_labels_of_indigo_are_words_of_file_names(tmp_path: Path) -> None:
    write(tmp_path / "include" / "indigo_cuda.h", "")
    for name in ("push", "push_cond_atomicBug", "pull_boundsBug_guardBug", "pull_boundsBug"):
        write(tmp_path / "CUDA" / name / f"{name}.cu", "")
    found = {one.name: one.defects for one in indigo.cases(tmp_path)}
    assert found == {
        "push": set(),
        "push_cond_atomicBug": {RACE},
        "pull_boundsBug_guardBug": {RACE, BOUNDS},
        "pull_boundsBug": {BOUNDS},
    }


def test_the_graph_has_vertices_without_neighbours_at_both_ends() -> None:
    starts, neighbours, first, second, vertices = indigo.arguments(())
    assert starts[0] == starts[1] == 0
    assert starts[-1] == starts[-2] == len(neighbours)
    assert len(first) == len(second) == max(len(neighbours), vertices)
    assert neighbours.min() >= 0
    assert neighbours.max() < vertices


def test_launches_of_gpuverify_stand_in_the_second_line(tmp_path: Path) -> None:
    root = tmp_path / "testsuite" / "CUDA"
    kernel = "__global__ void k(float *a, int n) { __requires(n == blockDim.x); a[0] = n; }\n"
    write(root / "one" / "kernel.cu", f"//pass\n//--blockDim=[8,4] --gridDim=2 -DN=3\n{kernel}")
    write(root / "two" / "kernel.cu", f"//xfail:NOT_ALL_VERIFIED\n//--blockDim=2048\n{kernel}")
    write(root / "three" / "kernel.cu", f"//pass\n//--warp-sync=32\n{kernel}__assert(1);")
    one, three, two = gpuverify.cases(tmp_path)
    assert (one.grid, one.block, one.defects, one.kernels) == ((2,), (8, 4), set(), ("k",))
    assert "N=3" in one.definitions
    assert len(one.arguments) == 1  # the file says what n is
    assert two.defects == {ANY}
    assert two.excluded
    assert three.excluded


def test_launches_of_gpuverify_have_the_pointers_of_its_counterexample(tmp_path: Path) -> None:
    kernel = "__global__ void k(unsigned long long int *a, int n) { a[0] = n < 7; }\n"
    typedef = "typedef int (*call)(int);\n__global__ void k(call f) { f(1); }\n"
    for name, text in (("an", kernel), ("by", f"//null pointer access\n{kernel}"), ("f", typedef)):
        write(tmp_path / "CUDA" / name / "kernel.cu", f"//pass\n//--blockDim=8\n{text}")
    given, null, function = gpuverify.cases(tmp_path)
    declared = [Parameter("a", "unsigned long long int*"), Parameter("n", "int")]
    assert [value.dtype for value in given.arguments[0](declared)] == [np.uint64, np.int32]
    assert [launch(declared)[1] for launch in given.arguments] == [1, 0, 8]
    assert null.arguments[0](declared)[0] is None
    assert "function" in function.excluded


def test_a_verdict_compares_what_was_found_with_the_label() -> None:
    def state(defects: set[str], *rules: str) -> str:
        case = Case("k", Path(), ("k",), frozenset({RACE, BOUNDS}), frozenset(defects))
        return Verdict(case, rules).state

    assert state(set()) == "right"
    assert state({RACE}, "block-race") == "right"
    assert state({RACE}, "bounds") == "missed"
    assert state(set(), "deadlock") == "false report"
    assert state({BOUNDS}, "bounds", "warp-race") == "false report"


def test_a_verdict_ignores_rules_that_a_label_says_nothing_of() -> None:
    every = frozenset({ANY})
    case = Case("k", Path(), ("k",), every, frozenset(), ignored=frozenset({"uninitialised"}))
    assert Verdict(case, ("uninitialised",)).state == "right"
    assert Verdict(case, ("uninitialised", "bounds")).state == "false report"


@needs_compiler
def test_a_suite_is_scored_by_one_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "src" / "race_store.cu", RACY % "blockIdx.x")
    write(tmp_path / "src" / "norace_store.cu", RACY % "1")
    assert main(["detectors", "scor", str(tmp_path)]) == 0
    assert "2 right, 0 missed" in capsys.readouterr().out
    assert [one.grid for one in scor.cases(tmp_path)] == [(2,), (2,)]
    write(tmp_path / "src" / "norace_too.cu", RACY % "blockIdx.x")
    assert main(["detectors", "scor", str(tmp_path), "--json"]) == 1
    made = json.loads(capsys.readouterr().out)
    assert made["counts"]["false report"] == 1
    assert [one["name"] for one in made["verdicts"] if one["state"] != "right"] == ["norace_too"]


@needs_compiler
def test_programs_on_graphs_are_launched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "include" / "indigo_cuda.h", "typedef int data_t;\n")
    for name, does in (
        ("push", "atomicAdd(data1, 1)"),
        ("push_atomicBug", "data1[0] += data2[i]"),
        ("push_boundsBug", "data1[i] = nlist[nindex[i + 1] - 1]"),
    ):
        write(tmp_path / "CUDA" / f"{name}.cu", ON_A_GRAPH % does)
    assert main(["detectors", "indigo", str(tmp_path)]) == 0
    assert "3 right, 0 missed, 0 false report, 0 refused" in capsys.readouterr().out
