"""Who makes a Python kernel's machine code: nvcc's compiler where it can, else the lowering."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Run

from gpusim import cuda
from gpusim.catalogue import Request, find, sample
from gpusim.codegen import generators
from gpusim.codegen.programs import prepare
from gpusim.errors import InputError, LaunchError
from gpusim.launch.grid import ComputeCapability
from gpusim.prediction.predict import predict
from gpusim.prediction.sweeps.sweep import Case, row_of, sweep
from gpusim.sass import wheels
from gpusim.tracing.trace import trace

needs_compiler = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
HOPPER, KEPLER = ComputeCapability(9, 0), ComputeCapability(3, 5)
SMALL = Request("reduce3", 2**10, block=64)


@cuda.jit
def twice(x, n):
    i = cuda.grid(1)
    if i < n:
        x[i] = x[i] + x[i]


@pytest.fixture(autouse=True)
def _nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(generators.VARIABLE)


def made(cc: ComputeCapability = HOPPER, level: str = "O3", **settings: Any) -> tuple[str, str]:
    """Return who makes the code of a small launch, and why not nvcc's compiler."""
    x = settings.pop("x", np.ones(64, np.int32))
    prepared = prepare(twice[1, 64], (x, 64), cc, level, **settings)
    return prepared.program.generator.split()[0], prepared.fallback


def test_what_is_said_wins_over_the_environment_and_that_over_auto(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert generators.chosen() == "auto"
    monkeypatch.setenv(generators.VARIABLE, "lowering")
    assert generators.chosen() == "lowering"
    assert generators.chosen("nvcc") == "nvcc"


def test_nvcc_in_the_environment_is_for_optimised_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(generators.VARIABLE, "nvcc")
    assert generators.chosen() == "nvcc"
    assert made(level="O0") == ("gpusim", "")
    with pytest.raises(LaunchError, match="-O0 is the lowering's"):
        made(level="O0", code="nvcc")


def test_what_is_unknown_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LaunchError, match="code 'gcc' is not known; known are lowering, nvcc, "):
        made(code="gcc")
    monkeypatch.setenv(generators.VARIABLE, "gcc")
    with pytest.raises(InputError, match="GPUSIM_CODE in the environment is 'gcc'"):
        made()


@needs_compiler
def test_auto_is_nvccs_code_where_it_serves_and_says_why_it_does_not() -> None:
    assert made() == ("NVRTC", "")
    assert made(level="O0") == ("gpusim", "")  # which was asked for
    assert made(code="lowering") == ("gpusim", "")
    maker, why = made(KEPLER)
    assert maker == "gpusim"
    assert why.startswith("machine code for compute capability 3.5 is not known here")
    assert made(x=np.ones(128, np.int32)[::2]) == ("NVRTC", "")


@needs_compiler
def test_what_nvcc_does_not_serve_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpusim.codegen import programs

    asked = []

    def refuse(*of: Any) -> None:
        asked.append(of)
        raise InputError("there are no words for it")

    monkeypatch.setattr(programs, "written_out", refuse)
    for _ in range(3):
        assert made(x=np.ones(64, np.uint16)) == ("gpusim", "there are no words for it")
    assert len(asked) == 1


@pytest.mark.usefixtures("without_compiler")
def test_auto_is_the_lowerings_code_where_no_compiler_is_installed() -> None:
    assert made() == ("gpusim", "")
    assert generators.stamp("auto") == generators.stamp("lowering") == ""


@needs_compiler
def test_nvccs_code_is_of_an_optimised_level_and_known_gpus() -> None:
    with pytest.raises(LaunchError, match="-O0 is the lowering's"):
        made(level="O0", code="nvcc")
    with pytest.raises(LaunchError, match=r"compute capability 3\.5 is not known here"):
        made(KEPLER, code="nvcc")


@needs_compiler
def test_conditions_of_the_source_are_counted_by_the_lowering_alone() -> None:
    setup = find("reduce1").setup(2**10, block=128)
    counted = {}
    for code in ("lowering", "nvcc"):
        call = setup.call(sample(2**10, "int32"))
        found = trace(call.configured, *call.arguments, code=code)
        counted[code] = found.counters
        assert set(found.lines[0].counters) == set(found.warps[0].counters) == set(found.counters)
    # 8 blocks of 4 warps: i < n, seven times stride < blockDim.x and an eighth that fails, seven
    # times the condition within, tid == 0
    assert counted["lowering"]["source_branches"] == 32 * (1 + 8 + 7 + 1)
    only = set(counted["lowering"]) - set(counted["nvcc"])
    assert only == {"source_branches", "source_divergent_branches"}


@needs_compiler
@pytest.mark.parametrize(
    "command",
    [
        ("run", "reduce3", "-n", "2^10"),
        ("trace", "reduce3", "-n", "2^10"),
        ("predict", "reduce3", "-n", "2^10"),
        ("rank", "reduce3", "-n", "2^10"),
        ("sweep", "reduce3", "-n", "2^10"),
    ],
)
def test_every_command_takes_the_same_code_and_names_who_made_it(
    run: Run, command: tuple[str, ...]
) -> None:
    version = generators_version()
    code, out, _ = run(*command)
    assert code == 0
    assert version in out
    assert f'"generator": "{version}"' in run(*command, "--json")[1]
    code, out, _ = run(*command, "--code", "lowering")
    assert code == 0
    assert version not in out


def generators_version() -> str:
    return prepare(twice[1, 64], (np.ones(64, np.int32), 64), HOPPER, code="nvcc").program.generator


@needs_compiler
@pytest.mark.parametrize(
    "command",
    [
        ("predict", "reduce3", "-n", "2^10", "--device", "k40m"),
        ("rank", "reduce3", "-n", "2^10", "--device", "k40m"),
        ("sweep", "reduce3", "-n", "2^10", "--device", "k40m"),
        ("trace", "reduce3", "-n", "2^10", "--cc", "3.5"),
    ],
)
def test_a_fallback_is_told_in_a_line(run: Run, command: tuple[str, ...]) -> None:
    code, out, _ = run(*command)
    assert code == 0
    assert "not in nvcc's code: machine code for compute capability 3.5 is not known" in out
    assert json.loads(run(*command, "--json")[1])


def test_a_check_names_the_code_that_is_judged(run: Run) -> None:
    assert "compute capability 9.0, lowering O0" in run("check", "reduce3", "-n", "64")[1]
    document = json.loads(run("check", "reduce3", "-n", "64", "--json")[1])
    assert document["generator"].startswith("gpusim ")


def test_the_lowering_has_no_code_for_cuda_cpp(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text("__global__ void twice(float *x) { x[threadIdx.x] *= 2; }")
    launch = (f"{path}:twice", "--block", "32", "--arg", "float32[32]")
    for command in ("trace", "predict", "lower"):
        code, _, complaint = run(command, *launch, "--code", "lowering")
        assert (code, "--code lowering is for Python kernels" in complaint) == (2, True)


@needs_compiler
def test_rows_of_a_sweep_say_who_made_the_code_and_are_not_mixed(tmp_path: Path) -> None:
    output = tmp_path / "table.csv"
    by_nvcc, by_lowering = (Case(SMALL, "h200", code=code) for code in ("auto", "lowering"))
    (row,) = sweep([by_nvcc], output, workers=1).rows
    assert (row["code"], row["generator"][:6], row["fallback"]) == ("auto", "NVRTC ", None)
    with pytest.raises(InputError, match="has other content than the rows of this sweep"):
        sweep([by_lowering], output, workers=1)
    (row,) = sweep([by_lowering], output, workers=1, overwrite=True).rows
    assert (row["code"], row["generator"][:7]) == ("lowering", "gpusim ")


@needs_compiler
def test_another_compiler_is_another_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    case, fixed = Case(SMALL, "h200", code="auto"), Case(SMALL, "h200", code="lowering")
    before = row_of(case)["digest"], row_of(fixed)["digest"]
    monkeypatch.setattr(wheels, "stamp", lambda path: f"{path.name} of another version")
    assert row_of(case)["digest"] != before[0]
    assert row_of(fixed)["digest"] == before[1]


@needs_compiler
def test_functions_take_the_environments_code(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.ones(64, np.int32)
    assert predict(twice[1, 64], x, 64).prepared.program.compiler
    monkeypatch.setenv(generators.VARIABLE, "lowering")
    assert not predict(twice[1, 64], x, 64).prepared.program.compiler
    assert not trace(twice[1, 64], x, 64).compiler
    assert trace(twice[1, 64], x, 64, code="nvcc").compiler
