"""`gpusim lower`: the source with its SSA and machine code, what passes changed, bad input."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gpusim.compiler.ir import INT32
from gpusim.gpu import device
from gpusim.isa.ops import Instruction, Program
from gpusim.reports.lowered import Lowered
from gpusim.reports.lowering import lowered_report
from gpusim.sass import wheels

Run = Callable[..., tuple[int, str, str]]

OWN = """
from gpusim import cuda


@cuda.jit
def double(data, n):
    i = cuda.grid(1)
    if i < n:
        data[i] = data[i] + data[i]
"""


@pytest.fixture
def own(tmp_path: Path) -> str:
    path = tmp_path / "own.py"
    path.write_text(OWN)
    return f"{path}:double"


def test_each_source_line_is_followed_by_its_ssa_and_its_instructions(run: Run, own: str) -> None:
    code, out, _ = run("lower", own, "--arg", "int32[64]", "--arg", "64", "--all")
    lines = out.splitlines()
    start = next(k for k, line in enumerate(lines) if "data[i] = data[i] + data[i]" in line)
    assert code == 0
    assert lines[start].split()[0] == "9"
    ssa = [line.split() for line in lines[start + 1 :] if line.lstrip().startswith("%")]
    assert [words[3] for words in ssa] == ["load", "shl"]  # x + x is a shift
    code_rows = [line.split() for line in lines[start + 1 :] if line.split()[0].isdigit()]
    assert [words[1] for words in code_rows] == ["LDG", "SHF", "STG"]
    assert [words[-1] for words in code_rows][-1] == "0"  # nothing is live behind the store


def test_the_json_has_every_instruction_once_in_the_line_that_it_comes_from(
    run: Run, own: str
) -> None:
    _, out, _ = run("lower", own, "--arg", "int32[64]", "--arg", "64", "--json")
    document = json.loads(out)
    rows = [row for line in document["lines"] for row in line["instructions"]]
    by_line = {line["line"]: line for line in document["lines"]}
    ops = [row["text"].split()[0] for row in by_line[9]["instructions"] if row["issued"]]
    assert sorted(row["pc"] for row in rows) == list(range(len(rows)))
    assert ops == ["LDG", "SHF", "STG"]
    assert by_line[9]["text"].strip() == "data[i] = data[i] + data[i]"
    assert any(text.startswith("store ") for text in by_line[9]["ssa"])
    assert document["registers"] == 16


def test_a_pass_that_changed_nothing_is_named_as_such(run: Run, own: str) -> None:
    _, out, _ = run("lower", own, "--arg", "int32[64]", "--arg", "64", "--all")
    summaries = {line.split()[0]: line for line in out.splitlines() if " SSA " in line}
    assert summaries["sroa"].endswith("no change")  # it has no local array
    assert summaries["loop_rotation"].endswith("no change")  # and no loop
    assert "+" in summaries["store_to_load_forwarding"] or "+" in summaries["simplify"]


def test_without_all_passes_without_a_change_are_counted(run: Run, own: str) -> None:
    _, out, _ = run("lower", own, "--arg", "int32[64]", "--arg", "64")
    assert "no change" not in out
    assert re.search(r"\d+ passes without a change$", out, re.M)
    assert re.search(r"--all: \d+ more instructions, SSA and passes without a change$", out, re.M)
    assert not any(line.lstrip().startswith("%") for line in out.splitlines())


def test_after_a_pass_the_form_is_what_the_pass_left(run: Run, own: str) -> None:
    given = ("lower", own, "--arg", "int32[64]", "--arg", "64", "--after")
    _, before, _ = run(*given, "build")
    _, after, _ = run(*given, "simplify")
    _, code, _ = run(*given, "if_conversion")
    assert before.count(" = load ") == 2
    assert after.count(" = load ") == 2
    assert run(*given, "store_to_load_forwarding")[1].count(" = load ") == 1
    assert "branch" not in code
    assert " EXIT" in code  # the branch around the rest has become a guarded exit
    document = json.loads(run(*given, "simplify", "--json")[1])
    assert (document["after"]["pass"], document["after"]["form"]) == ("simplify", "SSA")
    assert all(line["text"] in after for line in document["after"]["lines"])


def test_the_diff_of_a_pass_is_what_it_took_and_what_it_put_there(run: Run, own: str) -> None:
    given = ("lower", own, "--arg", "int32[64]", "--arg", "64", "--diff")
    code, out, _ = run(*given, "--after", "store_to_load_forwarding")
    removed = [line for line in out.splitlines() if line.startswith("-  ")]
    added = [line for line in out.splitlines() if line.startswith("+  ")]
    assert code == 0
    assert [line.split()[3:5] for line in removed[:1]] == [["=", "load"]]
    assert [line.split()[4] for line in added] == ["add"]  # of one value with itself
    assert "sroa: no change" in run(*given)[1]
    document = json.loads(run(*given, "--after", "store_to_load_forwarding", "--json")[1])
    (change,) = document["diff"]
    assert change["pass"] == "store_to_load_forwarding"
    assert set(removed + added) <= set(change["diff"])


def test_at_o0_there_are_no_passes_over_the_ssa_form(run: Run, own: str) -> None:
    _, out, _ = run("lower", own, "--arg", "int32[64]", "--arg", "64", "-O0", "--json")
    assert [p["pass"] for p in json.loads(out)["passes"]] == [
        "unify_latches",
        "address_lowering",
        "select",
        "out_of_ssa",
        "convergence_barriers",
    ]


def test_the_device_gives_stall_counts_and_the_capability_where_none_is_named(run: Run) -> None:
    _, out, _ = run("lower", "reduce2", "--device", "k40m", "--json")
    document = json.loads(out)
    assert (document["device"], document["compute_capability"]) == ("k40m", "3.5")
    chosen = json.loads(run("lower", "reduce2", "--cc", "8.0", "--json")[1])
    assert (chosen["device"], chosen["compute_capability"]) == ("h200", "8.0")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("reduce2 --after licmm", "there is no pass 'licmm' at O3; did you mean licm"),
        ("reduce2 -O0 --after licm --diff", "there is no pass 'licm' at O0 (it has build, "),
        ("reduce22", "reduce22"),
        ("reduce2 -O2", "-O is 0 (as nvcc -G) or 3 (as nvcc -O3), not '2'"),
        ("reduce2 --cc 1", "compute capability '1' is not known"),
        ("reduce2 --arg 3", "a kernel of the catalogue makes its own arguments"),
        ("reduce2 --device h300", "h300"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(run: Run, arguments: str, message: str) -> None:
    code, out, err = run("lower", *arguments.split())
    assert (code, out) == (2, "")
    assert err.startswith("gpusim: ")
    assert message in err


def test_a_kernel_for_a_billion_elements_is_lowered_without_any(run: Run) -> None:
    code, out, _ = run("lower", "reduce3", "-n", "2^30", "--json")
    assert (code, json.loads(out)["kernel"]) == (0, "reduce3")


def test_a_program_of_unknown_origin_is_shown_without_ssa_and_passes() -> None:
    code = (
        Instruction("S2R", (0,), dtype=INT32, detail="tid.x", line=3),
        Instruction("IADD3", (1,), (0, 0), INT32, "++", line=3),
        Instruction("EXIT"),
    )
    program = Program("foreign", code, registers=2, lowering="sass")
    lowered = Lowered(program, "", "9.0", device.load("h200"))
    lines = [line.plain.split() for line in lowered_report(lowered, 100)]
    assert [line[:3] for line in lines if line and line[0].isdigit()] == [
        ["3", "instructions,", "16"],
        ["2", "EXIT", "1"],
        ["3"],
        ["0", "S2R", "R0,"],
        ["1", "IADD3", "R1,"],
    ]
    assert not any("Passes" in line for line in lines)


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_a_kernel_in_cuda_is_shown_as_its_compiler_left_it(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "own.cu"
    path.write_text(
        'extern "C" __global__ void twice(int *data, int n) {\n'
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i < n)\n"
        "        data[i] = data[i] + data[i];\n"
        "}\n"
    )
    given = ("lower", f"{path}:twice", "--arg", "int32[64]", "--arg", "64")
    document = json.loads(run(*given, "--json")[1])
    by_line = {line["line"]: line for line in document["lines"]}
    texts = [row["text"] for row in by_line[4]["instructions"]]
    assert by_line[4]["text"].strip() == "data[i] = data[i] + data[i];"
    assert any(text.startswith("LDG.E ") for text in texts)
    assert any(text.startswith("STG.E ") for text in texts)
    assert document["passes"] == []
    code, out, err = run(*given, "--diff")
    assert (code, out) == (2, "")
    assert err == "gpusim: twice is given as machine code: it has no passes\n"
