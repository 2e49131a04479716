"""`gpusim ci`: launches of pyproject.toml, limits, baselines, formats, and what CI runs of it."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from gpusim.cli.app import main
from gpusim.cli.project import KEYS

ROOT = Path(__file__).resolve().parents[2]
KERNELS = """
import numpy as np
from gpusim import cuda

@cuda.jit
def transposed(source, out):
    tile = cuda.shared.array((32, 32), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    tile[y, x] = source[y, x]
    cuda.syncthreads()
    out[y, x] = tile[x, y]

@cuda.jit
def racy(x, out):
    s = cuda.shared.array(64, np.int32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    out[t] = s[63 - t]

@cuda.jit
def beyond(x, n):
    x[cuda.threadIdx.x + n] = 1
"""
TRANSPOSED = """
[[tool.gpusim.launch]]
name = "tile"
kernel = "mine.py:transposed"
grid = 1
block = "32x32"
args = ["float32[32,32]=arange", "float32[32,32]"]
code = "lowering"
"""
RACY = """
[[tool.gpusim.launch]]
name = "racy"
kernel = "mine.py:racy"
grid = 1
block = 64
args = ["int32[64]=arange", "int32[64]"]
code = "lowering"
"""
# 32 lanes read a column of 32 rows: one wavefront each, one of them needed, in 32 warps.
CONFLICTS = 31 * 32


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    (tmp_path / "mine.py").write_text(KERNELS)
    return tmp_path


def write(folder: Path, *parts: str) -> None:
    (folder / "pyproject.toml").write_text("[project]\nname = 'mine'\n" + "".join(parts))


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def test_a_launch_within_its_limits_exits_with_0(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, TRANSPOSED, f"limits = {{ bank_conflicts = {CONFLICTS}, time_us = 50 }}")
    assert main(["ci"]) == 0
    out = said(capsys)
    assert "errors 0 of 0, bank_conflicts 992 of 992, time_us " in out
    assert "1 launch, all within their limits" in out


def test_an_exceeded_limit_exits_with_1_and_names_the_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, TRANSPOSED, f"limits = {{ bank_conflicts = {CONFLICTS - 1} }}")
    assert main(["ci"]) == 1
    out = said(capsys)
    assert "bank_conflicts is 992, allowed are 991" in out
    assert "line 11: 992  out[y, x] = tile[x, y]" in out


def test_limits_of_the_project_hold_where_a_launch_has_none_of_its_own(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = "[tool.gpusim.limits]\nbank_conflicts = 0\nshared-race = 1\n"
    write(folder, common, TRANSPOSED, RACY)
    assert main(["ci", "--format", "gcc"]) == 1
    lines = said(capsys).splitlines()
    assert (
        lines[0] == "mine.py:11: error: tile: bank_conflicts is 992, allowed are 0 [limit-exceeded]"
    )
    assert lines[1] == "mine.py:17: note: thread 63 (block 0, warp 1, lane 31) writes"
    assert lines[2].startswith("mine.py:18: error: thread 0 (block 0, warp 0, lane 0) reads s[63]")
    assert lines[2].endswith("[shared-race]")
    assert len(lines) == 3
    lifted = "limits = { errors = false, bank_conflicts = false }\n"
    write(folder, common, TRANSPOSED, lifted, RACY, lifted)
    assert main(["ci"]) == 0


@pytest.mark.parametrize(
    ("table", "name", "sentence"),
    [
        ("baseline = 'held.json'", "", "held.json: there is no such baseline; write it with"),
        ("growth-percent = 2", "", "gpusim-baseline.json: there is no such baseline; write it"),
        ("baseline = 'held.json'", "held.json", "held.json: is a directory, not a file"),
        ("device = 'h200'", "gpusim-baseline.json", "gpusim-baseline.json: is a directory, not a"),
    ],
)
def test_a_baseline_that_is_missing_or_a_folder_is_an_error(
    folder: Path, capsys: pytest.CaptureFixture[str], table: str, name: str, sentence: str
) -> None:
    write(folder, f"[tool.gpusim]\n{table}\n", TRANSPOSED)
    if name:
        (folder / name).mkdir()
    assert main(["ci"]) == 2
    assert sentence in capsys.readouterr().err


def test_a_project_that_names_no_baseline_needs_none(folder: Path) -> None:
    write(folder, TRANSPOSED)
    assert main(["ci"]) == 0


def test_a_baseline_accepts_what_it_holds_and_refuses_more(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = "[tool.gpusim]\nbaseline = 'held.json'\ngrowth-percent = 1\n"
    write(folder, table, "[tool.gpusim.limits]\nbank_conflicts = 0\n", TRANSPOSED, RACY)
    assert main(["ci", "--update-baseline"]) == 0
    assert "held.json: 2 launches recorded" in said(capsys)
    assert main(["ci"]) == 0
    assert "measures checked against the baseline" in said(capsys)
    source = (folder / "mine.py").read_text()
    (folder / "mine.py").write_text(source.replace("= source[y, x]", "= source[x, y]"))
    assert main(["ci", "tile"]) == 1
    out = said(capsys)
    assert "uncoalesced is 1, allowed are 0 of the baseline" in out
    # 32 warps load 32 sectors each where they loaded 4, and one percent more is allowed.
    assert "global_load_sectors is 1,024, allowed are 129.28 of the baseline" in out
    held = json.loads((folder / "held.json").read_text())
    held["launches"]["tile"]["device"] = "v100"
    (folder / "held.json").write_text(json.dumps(held))
    assert main(["ci", "tile"]) == 2
    (folder / "held.json").write_text("{}")
    assert main(["ci", "tile"]) == 2


def test_a_launch_that_ends_with_a_fault_is_beyond_its_limits(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = RACY.replace("racy", "beyond").replace('"int32[64]"]', '"1"]')
    write(folder, kernel, "limits = { errors = false, barriers = 0 }")
    assert main(["ci", "--format", "gcc"]) == 1
    assert said(capsys).startswith("mine.py:22: error: beyond: line 22: x[64] is out of bounds")


def test_formats_name_file_line_and_rule(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, TRANSPOSED, "limits = { bank-conflict = 0 }", RACY)
    assert main(["ci", "--format", "github"]) == 1
    first, second = said(capsys).splitlines()
    assert first == (
        "::error file=mine.py,line=11,title=gpusim%3A limit-exceeded::"
        "tile: bank-conflict is 1, allowed are 0"
    )
    assert second.startswith("::error file=mine.py,line=18,title=gpusim%3A shared-race::thread 0 ")
    assert "%0AFix: put cuda.syncthreads()" in second
    assert main(["ci", "--sarif"]) == 1
    (run,) = json.loads(said(capsys))["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [rules[one["ruleIndex"]] for one in run["results"]] == ["limit-exceeded", "shared-race"]
    assert main(["ci", "--json", "--out", "all.sarif"]) == 1
    document = json.loads(said(capsys))
    assert not document["within_limits"]
    assert [one["name"] for one in document["launches"]] == ["tile", "racy"]
    assert json.loads((folder / "all.sarif").read_text())["runs"][0]["results"] == run["results"]


def test_a_summary_is_added_to_the_job(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary.md"))
    write(folder, TRANSPOSED)
    assert main(["ci"]) == 0
    last = (folder / "summary.md").read_text().splitlines()[-1]
    assert last == "| tile | mine.py:transposed | h200 | within its limits |"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "there is no pyproject.toml with a table [tool.gpusim]"),
        ("[tool.gpusim]\n", "has no launch; write for example"),
        (TRANSPOSED + "limits = { bank_conflict = 0 }", "did you mean bank_conflicts"),
        (TRANSPOSED + "limits = { time_us = 'ten' }", "the largest number that is allowed"),
        (TRANSPOSED + "blocks = 3", "'blocks' is not known; did you mean block"),
        (TRANSPOSED + TRANSPOSED, "two launches are named 'tile'"),
        ("[[tool.gpusim.launch]]\nname = 'a'", "has no kernel"),
        ("[tool.gpusim]\nlaunch = 3", "[[tool.gpusim.launch]]"),
        ("[tool.gpusim]\ngrowth-percent = -1", "growth-percent is a number of at least 0"),
        (TRANSPOSED.replace("grid = 1", "grid = 'x'"), "launch tile: the grid is 'x'"),
        (TRANSPOSED + "limits = { time_us = 1 }\ndevice = 'h2000'", "launch tile: "),
        ("[tool.gpusim", "is not TOML"),
    ],
)
def test_a_table_that_cannot_be_used_exits_with_2(
    folder: Path, capsys: pytest.CaptureFixture[str], table: str, message: str
) -> None:
    write(folder, table)
    assert main(["ci"]) == 2
    assert message in capsys.readouterr().err


def test_other_commands_take_a_launch_by_its_name(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, "[tool.gpusim]\ndevice = 'rtx4090'\n", TRANSPOSED, RACY)
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    assert main(["trace", "tile", "--json"]) == 0
    document = json.loads(said(capsys))
    assert document["counters"]["shared_load_bank_conflicts"]["value"] == CONFLICTS
    assert document["lowering"] == "O3"  # code = "lowering"
    assert main(["check", "racy"]) == 1
    assert "mine.py:17" in said(capsys)
    assert main(["predict", "tile", "--block", "16x16", "--json"]) == 0
    assert json.loads(said(capsys))["passes"][0]["block"] == [16, 16, 1]
    assert main(["compare", "tile", "tile --device v100", "--json"]) == 0
    assert [side["device_id"] for side in json.loads(said(capsys))["sides"]] == ["rtx4090", "v100"]
    assert main(["predict", "tile", "--json"]) == 0
    assert json.loads(said(capsys))["device_id"] == "rtx4090"
    assert (
        main(["predict", "tile", "--device", "h200", "--json"]) == 0
    )  # although it is the default
    assert json.loads(said(capsys))["device_id"] == "h200"
    assert main(["rank", "tile", "racy", "--json"]) == 0
    ranking = json.loads(said(capsys))
    (tile,), (racy,) = ranking["kernels"], ranking["wrong"]  # their results are of two sizes
    assert (tile["kernel"], racy["kernel"]) == ("../mine.py:transposed", "../mine.py:racy")
    assert main(["trace", "tiles"]) == 2


# -- what CI runs --------------------------------------------------------------------------


def steps() -> list[dict[str, object]]:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert action["runs"]["using"] == "composite"
    return [step for step in action["runs"]["steps"] if "run" in step]


def ran(step: dict[str, object], folder: Path, **given: str) -> subprocess.CompletedProcess[str]:
    """Run a step's command as GitHub does, with inputs that are given or at their defaults."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    values = {f"inputs.{name}": str(one["default"]) for name, one in action["inputs"].items()}
    values |= {f"inputs.{name.replace('_', '-')}": value for name, value in given.items()}
    values["github.action_path"] = str(ROOT)

    def filled(text: object) -> str:
        return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda found: values[found[1]], str(text))

    environment = {name: filled(text) for name, text in dict(step["env"]).items()}  # type: ignore[call-overload]
    python = folder / "bin" / "python"
    python.parent.mkdir(exist_ok=True)
    python.write_text(f'#!/bin/sh\n[ "$2" = pip ] && echo "$@" || exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    script = folder / "step.sh"
    script.write_text(filled(step["run"]))
    return subprocess.run(  # `shell: bash` of a workflow
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],
        cwd=folder / filled(step.get("working-directory", ".")),
        env={
            **os.environ,
            **environment,
            "PATH": f"{python.parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "GITHUB_STEP_SUMMARY": "",
            "GITHUB_WORKSPACE": str(folder),
        },
        capture_output=True,
        text=True,
    )


def test_the_action_installs_the_extras_that_there_are(folder: Path) -> None:
    install = ran(steps()[0], folder).stdout.split()
    assert install[:3] == ["-m", "pip", "install"]
    path, extras = re.fullmatch(r"(.*)\[(.*)\]", install[-1]).groups()  # type: ignore[union-attr]
    project = tomllib.loads((Path(path) / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == "gpusim"
    assert set(extras.split(",")) <= project["optional-dependencies"].keys()
    assert ran(steps()[0], folder, package="gpusim==0.2").stdout.split()[-1] == "gpusim==0.2"


def test_the_action_fails_a_job_with_annotations_and_writes_sarif(folder: Path) -> None:
    (folder / "below").mkdir()
    (folder / "mine.py").rename(folder / "below" / "mine.py")
    write(folder / "below", TRANSPOSED, RACY)
    hold = steps()[-1]
    good = ran(hold, folder, working_directory="below", launches="\n tile\n")
    assert (good.returncode, good.stdout, good.stderr) == (0, "", "")
    bad = ran(hold, folder, working_directory="below", out="found.sarif")
    assert bad.returncode == 1
    place = "file=below/mine.py,line=18"  # from the top of the checkout
    assert bad.stdout.startswith(f"::error {place},title=gpusim%3A shared-race::")
    (run,) = json.loads((folder / "below" / "found.sarif").read_text())["runs"]
    (location,) = run["results"][0]["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "below/mine.py"
    unknown = ran(hold, folder, working_directory="below", launches='tile\nracy  "$(id)"')
    assert unknown.returncode == 2
    assert '"$(id)"' in unknown.stderr  # a word as it is, of the second line


def test_the_hook_of_pre_commit_holds_launches_to_their_limits(folder: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    words = shlex.split(hook["entry"])
    assert words[0] in project["scripts"]
    assert hook["pass_filenames"] is False
    for name in ("kernels/a.cu", "mine.py", "pyproject.toml", "below/gpusim-baseline.json"):
        assert re.search(hook["files"], name)
    assert not re.search(hook["files"], "README.md")
    write(folder, TRANSPOSED)
    assert main(words[1:]) == 0
    write(folder, TRANSPOSED, RACY)
    assert main(words[1:]) == 1


def test_the_page_names_every_key_of_a_launch() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    assert [key for key in KEYS if f"`{key}`" not in page] == []


def test_findings_of_a_trace_have_the_same_formats(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, TRANSPOSED)
    assert main(["trace", "tile", "--format", "gcc"]) == 0
    (line,) = said(capsys).splitlines()
    assert line.startswith("mine.py:11: warning: stride 32 puts 32 lanes on 1 bank")
    assert line.endswith("[bank-conflict]")
    assert main(["trace", "tile", "--sarif", "--check"]) == 0
    (run,) = json.loads(said(capsys))["runs"]
    rules = run["tool"]["driver"]["rules"]
    (result,) = run["results"]
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == "bank-conflict"
    assert rules[result["ruleIndex"]]["shortDescription"]["text"]
