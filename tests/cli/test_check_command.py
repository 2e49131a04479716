"""`gpusim check` and --check: reports, documents, SARIF and exit codes."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path

import pytest
from conftest import Run
from rich.console import Console

from gpusim.checking.findings import Finding, Place
from gpusim.checking.rules import RULES
from gpusim.cli.app import main
from gpusim.launch.languages import CUDA_CPP, PYTHON
from gpusim.reports.checking import finding_lines
from gpusim.sass import wheels
from gpusim.sass.symbols import language

KERNELS = """
import numpy as np
from gpusim import cuda

@cuda.jit
def racy(x, out):
    s = cuda.shared.array(64, np.int32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    out[t] = s[63 - t]

@cuda.jit
def returns(out, n):
    i = cuda.grid(1)
    if i >= n:
        return
    cuda.syncthreads()
    out[i] = i
"""
RACY = """
extern "C" __global__ void racy(const int *x, int *out) {
    __shared__ int s[64];
    s[threadIdx.x] = x[threadIdx.x];
    out[threadIdx.x] = s[63 - threadIdx.x];
}
"""
ARRAYS = ["--grid", "1", "--block", "64", "--arg", "int32[64]=arange", "--arg", "int32[64]"]
RETURNS = ["--grid", "1", "--block", "64", "--arg", "int32[64]", "--arg", "40"]


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(KERNELS)
    return "mine.py"


def test_a_race_is_shown_with_its_lines_a_picture_and_how_to_mend_it(
    kernels: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", f"{kernels}:racy", *ARRAYS]) == 1
    out = capsys.readouterr().out
    assert "1 error, 0 warnings, 0 notes" in out
    assert "mine.py:9  s[t] = x[t]" in out
    assert "mine.py:10  out[t] = s[63 - t]" in out
    assert "fix: put cuda.syncthreads() between the two" in out
    assert "line 9: writes s[63]" in out
    assert " start of the kernel " in out


def test_a_right_kernel_exits_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "reduce3", "-n", "1000"]) == 0
    assert "no hazards found in this launch with these inputs: " in capsys.readouterr().out


def test_warnings_exit_with_1_where_strict(kernels: str) -> None:
    assert main(["check", f"{kernels}:returns", *RETURNS]) == 0
    assert main(["check", f"{kernels}:returns", *RETURNS, "--strict"]) == 1


def test_input_that_cannot_be_used_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "reduce3", "--arg", "3"]) == 2
    assert main(["check", "nothing.py:none"]) == 2


def test_the_document_counts_and_places_findings(
    kernels: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", f"{kernels}:racy", *ARRAYS, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["counts"] == {"error": 1, "warning": 0, "note": 0}
    (finding,) = document["findings"]
    assert (finding["rule"], finding["hazard"]) == ("shared-race", "read-after-write")
    assert (finding["array"], finding["index"], finding["count"]) == ("s", 63, 64)
    writes, reads = finding["places"]
    assert writes["thread"] == {"block": 0, "thread": 63, "warp": 1, "lane": 31}
    assert (writes["line"], reads["line"], reads["since"]) == (9, 10, 0)


def test_sarif_names_rules_levels_and_lines(
    kernels: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", f"{kernels}:racy", *ARRAYS, "--sarif"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(RULES)
    assert {rule["defaultConfiguration"]["level"] for rule in rules} == {"error", "warning", "note"}
    (result,) = run["results"]
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == "shared-race"
    (place,), (related,) = result["locations"], result["relatedLocations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "mine.py"
    assert place["physicalLocation"]["region"]["startLine"] == 10
    assert related["physicalLocation"]["region"]["startLine"] == 9


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
@pytest.mark.parametrize("form", ["", "--json", "--sarif", "--format=gcc"])
def test_fixes_name_the_functions_of_the_kernels_language(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    source = tmp_path / "racy.cu"
    source.write_text(RACY)
    words = ["check", f"{source}:racy", *ARRAYS, *filter(None, [form])]
    assert main(words) == 1
    said = capsys.readouterr().out
    if form == "--sarif":
        said = str(json.loads(said)["runs"][0]["results"])
    assert "put __syncthreads() between the two" in said
    assert "cuda.sync" not in said


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
@pytest.mark.parametrize(("ctype", "dtype"), [("float", "float32"), ("double", "float64")])
def test_sums_by_floating_point_atomics_are_noted_in_machine_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ctype: str, dtype: str
) -> None:
    source = tmp_path / "sums.cu"
    source.write_text(
        f"__global__ void sum({ctype} *out) {{ atomicAdd(out, ({ctype})threadIdx.x); }}"
    )
    words = ["check", f"{source}:sum", "--grid", "2", "--block", "32", "--arg", f"{dtype}[1]"]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [one["rule"] for one in found] == ["float-order"]


@pytest.mark.parametrize("rule", RULES)
def test_a_fix_has_one_prefix_of_the_language(rule: str) -> None:
    about = RULES[rule]
    assert "cuda." not in about.fix_in(CUDA_CPP)
    assert not re.search(r"\b__(sync|threadf|ballot)", about.fix_in(PYTHON))
    assert not re.search("[{}]", about.fix + about.fix_in(PYTHON) + about.fix_in(CUDA_CPP))


def test_numbas_kernels_are_mended_in_python() -> None:
    assert language("_ZN8__main__3revB2v1B94cw51cXTLSUwv1sDUaKthqaNgoKmjgOR3W") == PYTHON
    assert language("_Z4racyPiS_") == language("racy") == CUDA_CPP


@pytest.mark.parametrize("command", ["run", "trace", "predict"])
def test_other_commands_check_too_where_asked(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [command, "reduction5", "-n", "512", "--block", "128"]
    before = main(words)
    assert main([*words, "--check"]) == 1
    assert "race in shared memory between warps" in " ".join(capsys.readouterr().out.split())
    assert main([*words, "--check", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["check"]["counts"]["error"] >= 1
    assert before == (command == "run")  # the race leaves other sums


@pytest.mark.parametrize("name", ["reduce3", "mine.py:racy", "mine.cubin:k"])
def test_code_that_is_no_cuda_source_cannot_be_compiled_without_optimisation(
    kernels: str, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert main(["check", "-G", name]) == 2
    assert "-G cannot be given here: " in capsys.readouterr().err


def test_a_terminal_gets_links_to_files_and_a_file_gets_none(kernels: str, tmp_path: Path) -> None:
    file = str(tmp_path / kernels)
    found = Finding("bounds", "out of bounds", (Place(9, "reads"),))
    shown = {}
    for is_terminal in (True, False):
        page = StringIO()
        colours = "standard" if is_terminal else None
        screen = Console(file=page, force_terminal=is_terminal, color_system=colours)
        for line in finding_lines(found, file, 80):
            screen.print(line)
        shown[is_terminal] = page.getvalue()
    assert f";file://{file}\x1b\\mine.py:9\x1b[0m\x1b]8;;" in re.sub(r"\x1b\[2m", "", shown[True])
    assert "mine.py:9" in shown[False]
    assert "\x1b" not in shown[False]


def test_findings_of_a_kernel_have_a_page(run: Run, tmp_path: Path) -> None:
    """With the launch in its heading, each finding with its lines; one page with --explore too."""
    page = tmp_path / "page.html"
    words = ("check", "reduction5", "-n", 4096, "--out", page)
    code, out, err = run(*words)
    text = page.read_text()
    assert (code, "is the page" in err, "[shared-race]" in out) == (1, True, True)
    assert "1 error, 1 warning, 0 notes; grid 8, block 256" in text
    assert text.count("<article") == 2
    assert 'id="finding-2"' in text
    assert run(*words, "--json")[0] == 2
    assert run("check", "reduce3", "-n", 64, "--explore", 1, "--out", page)[0] == 0
    assert "No hazards found" in page.read_text()
    assert run("check", "reduce3", "--out", tmp_path / "page.txt")[0] == 2


def test_a_page_of_several_launches_has_their_command_lines(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    run("check", "reduction5", "-n", 4096, "--explore", 2, "--out", page)
    text = page.read_text()
    assert "gpusim check reduction5 -n" in text
    assert "--out" not in text


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
@pytest.mark.parametrize(
    ("words", "variable", "code"),
    [
        ((), "", "lowering O0"),
        ((), "auto", "lowering O0"),
        ((), "nvcc", "code of NVRTC"),
        (("--code", "nvcc"), "", "code of NVRTC"),
        (("--code", "auto"), "lowering", "code of NVRTC"),
        (("--code", "lowering"), "nvcc", "lowering O0"),
        (("--code", "auto", "--device", "v100"), "", "lowering O0"),
    ],
)
def test_a_python_kernel_is_checked_in_the_code_that_is_asked_for(
    words: tuple[str, ...],
    variable: str,
    code: str,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The option counts before GPUSIM_CODE; a V100 has the lowering's code alone."""
    (tmp_path / "mine.py").write_text(KERNELS)
    monkeypatch.setenv("GPUSIM_CODE", variable)
    launch = "--grid=1", "--block=64", "--arg=x=int32[64]", "--arg=out=int32[64]"
    status, out, _ = run("check", f"{tmp_path}/mine.py:racy", *launch, *words)
    assert status == 1
    assert code in out
    assert "[shared-race]" in out
