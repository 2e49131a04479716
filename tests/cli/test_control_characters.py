"""No file and no name controls the terminal, or the log of a job, that gpusim prints to."""

from __future__ import annotations

import json
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

import pytest
from conftest import Run, Terminal
from rich.text import Text

from gpusim.cli.options import printed
from gpusim.cli.output import complain, write
from gpusim.cli.progress import Bar
from gpusim.host.files import harmless
from gpusim.reports.diagnostics import Diagnostic

CONTROLS = "\x1b]0;title\x07\x1b[31m\x9b1m\x7f\u202e"
KERNEL = f"""
import numpy as np
from gpusim import cuda

@cuda.jit
def k(x):  # {CONTROLS}
    x[cuda.threadIdx.x] = 1  # {CONTROLS}
    x[0] = 2  # {CONTROLS}
"""
COMMANDS = ["list", "trace", "check", "check --format gcc", "check --format github", "lower"]


def controls(text: str) -> set[str]:
    """Return the characters that a terminal obeys, other than the ends of lines."""
    return {one for one in text if one in CONTROLS and not one.isprintable()}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31m\x9bb", "a?[31m?b"),
        (
            "tab\t, no-break\u00a0space, 表意\u3000文字",
            "tab\t, no-break\u00a0space, 表意\u3000文字",
        ),
        ("a\n::error file=x::y", "a\n?:error file=x::y"),
        ("  ::error::y", "  ?:error::y"),
        ("a ##[error]y", "a #?[error]y"),
        ("std::max(a, b)", "std::max(a, b)"),
    ],
)
def test_text_is_harmless_and_as_long_as_before(text: str, shown: str) -> None:
    assert harmless(text) == shown


@pytest.mark.parametrize("command", COMMANDS)
def test_control_characters_of_a_file_are_not_printed(
    run: Run, tmp_path: Path, command: str
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(KERNEL, encoding="utf-8")
    name, *options = command.split()
    launch = ["--grid", "1"] if name in ("trace", "check") else []
    launch += [] if name == "list" else ["--block", "32", "--arg", "int32[32]"]
    kernel = file if name == "list" else f"{file}:k"
    code, out, err = run(name, kernel, *launch, *options)
    assert code in (0, 1)
    assert out
    assert not controls(out + err)


def test_a_name_of_a_file_begins_no_command_of_a_log(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "a\n::error file=x::y.py"
    file.write_text(KERNEL, encoding="utf-8")
    for options in ([], ["--format", "gcc"]):
        launch = ["--grid", "1", "--block", "32", "--arg", "int32[32]"]
        _, out, err = run("check", f"{file}:k", *launch, *options)
        assert not any(line.lstrip().startswith("::") for line in (out + err).splitlines())
    _, out, err = run("list", file)
    assert "?:error" in out
    assert not any(line.lstrip().startswith("::") for line in (out + err).splitlines())


@pytest.mark.parametrize("key", ["name", "kernel", "device"])
def test_control_characters_in_a_launch_of_a_project_are_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.chdir(tmp_path)
    entry = {"name": "one", "kernel": "reduce3", "n": 64} | {key: "a\n::error file=x::y"}
    lines = [f"{name} = {json.dumps(value)}" for name, value in entry.items()]
    (tmp_path / "pyproject.toml").write_text("\n".join(["[[tool.gpusim.launch]]", *lines]))
    code, out, err = run("ci")
    assert code == 2
    assert f"{key} is a line that can be shown" in err
    assert "\n::" not in out + err


def test_a_baseline_with_names_of_several_lines_begins_no_command_of_a_log(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[[tool.gpusim.launch]]\nkernel = 'reduce3'\nn = 64\n")
    held = {"generator": "lowering", "device": "h200", "measures": {}}
    launches = {"\n::error file=x::y\x1b[2J": held}
    baseline = {"schema_version": 1, "launches": launches}
    (tmp_path / "gpusim-baseline.json").write_text(json.dumps(baseline))
    _, _, err = run("ci")
    assert "\n?:error file=x::y?[2J: in the baseline, but no launch" in err


def test_all_ways_to_print_text_are_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    write("a\x1b[2J\n")
    complain("b\x1b[2J\n::error::c")
    out, err = capsys.readouterr()
    assert out == "a?[2J\n"
    assert err == "gpusim: b?[2J\n?:error::c\n"


def test_a_folded_line_begins_no_command_of_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    page = printed(lambda _: [Text(f"{'word ' * 8}::error::y")], StringIO())
    assert page.splitlines()[1].strip() == "?:error::y"


def test_a_progress_bar_shows_names_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with redirect_stderr(Terminal()) as shown, Bar(2, "launches") as bar:
        bar.start()
        bar.advance("[red]a\x1b]0;title\x07")
    assert "\x1b]0;" not in shown.getvalue()


def test_the_formats_of_findings_are_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpusim.cli.findings_formats import formatted

    one = Diagnostic("error", "rule", "a\x1b[2Jb", "::error file=x\x9b::y.cu", 3)
    (gcc,) = formatted([one], "gcc")
    (github,) = formatted([one], "github")
    assert not controls(gcc + github)
    assert gcc.startswith("?:error file=x?")
    assert github.startswith("::error file=")
