"""Each report fits on one screen, 60 lines of 80 columns, unless everything is asked for."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from strategies import ENTRIES

from gpusim.cli.app import MODULES, main
from gpusim.reports.excerpts import SCREEN

COLUMNS = 80
KERNELS = [entry.name for entry in ENTRIES if entry.name != "kogge_stone_scan"]  # out of bounds
SOME = ["reduction5", "kernel4", "kogge_stone_scan_double"]  # two are wrong, one with long loops
LAUNCH = """
[[tool.gpusim.launch]]
name = "conflicts"
kernel = "reduce2"
n = 4096
limits = { bank_conflicts = 0, time_us = 1 }
"""
OF_A_KERNEL = [
    "run {} --check",
    "trace {}",
    "trace {} --check",
    "check {}",
    "lower {}",
    "predict {}",
    "predict {} --check",
]
OF_SOME = [
    "list",
    "devices",
    "devices h200",
    "ci",
    "rank",
    "compare reduce1 reduce7 --device h200",
    "sweep reduce1 reduce7 -n 2^12,2^14 --workers 1",
    "tune reduce7 -n 2^14 --workers 1",
    "trace reduce2 --device h200",
    "trace reduce2 --line 81",
    "trace reduce1 --line 55",
    "trace kernel4 --line 148",
    "predict reduce7 -n 2^18 --passes all",
    "predict reduce7 -n 2^18 --why",
    "predict reduce7 -n 2^18 --passes all --timeline --why",
    "predict reduce2 -n 2^26 --passes all --timeline --why --device rtx4090",
    "predict reduce2 -n 2^18 --block 1024 --timeline",
    "predict reduce2 -n 2^18 --without bank-conflicts@81",
    "check reduction5 --explore 4",
    pytest.param("validate compare --against k40m --workers 1", marks=pytest.mark.slow),
]


@pytest.fixture
def screen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> pytest.CaptureFixture[str]:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(LAUNCH)
    return capsys


def shown(command: str, screen: pytest.CaptureFixture[str]) -> list[str]:
    """Return the lines that a command prints; those of no traceback or refusal."""
    assert main(command.split()) in (0, 1)
    return screen.readouterr().out.splitlines()


def test_every_command_with_a_report_is_here() -> None:
    others = {"plot", "report", "grade"}  # write files, or run a folder of tests
    of_some = (one for one in OF_SOME if isinstance(one, str))
    named = {command.split()[0] for command in (*OF_A_KERNEL, *of_some)}
    assert named == MODULES.keys() - others


def too_large(command: str, kernels: list[str], screen: pytest.CaptureFixture[str]) -> list[str]:
    """Return the kernels with a report of too many lines or columns."""
    found = []
    for kernel in kernels:
        lines = shown(command.format(kernel), screen)
        if len(lines) > SCREEN or max(map(len, lines)) > COLUMNS:
            found.append(f"{kernel}: {len(lines)} lines")
    return found


@pytest.mark.parametrize("command", OF_A_KERNEL)
def test_a_report_on_a_kernel_fits_on_a_screen(
    command: str, screen: pytest.CaptureFixture[str]
) -> None:
    assert too_large(command, SOME, screen) == []


@pytest.mark.slow
@pytest.mark.parametrize("code", ["lowering", "auto"])
@pytest.mark.parametrize("command", OF_A_KERNEL)
def test_a_report_on_any_kernel_of_the_catalogue_fits_on_a_screen(
    command: str, code: str, screen: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUSIM_CODE", code)
    assert too_large(command, KERNELS, screen) == []


@pytest.mark.parametrize("command", OF_SOME)
def test_another_report_fits_on_a_screen(command: str, screen: pytest.CaptureFixture[str]) -> None:
    lines = shown(command, screen)
    assert len(lines) <= SCREEN
    assert max(map(len, lines)) <= COLUMNS


def test_threads_on_and_threads_that_pass_a_condition_have_a_column_each(
    screen: pytest.CaptureFixture[str],
) -> None:
    """In 28 executions of line 80 64 + 32 + ... + 1 = 127 threads pass; line 81 is its body."""
    rows = [line.split() for line in shown("trace reduce2 -n 128 --block 128", screen)]
    titles = next(row for row in rows if row[:2] == ["line", "source"])
    (condition,) = (after for row, after in pairwise(rows) if row[:2] == [">", "80"])
    (body,) = (after for row, after in pairwise(rows) if row and row[-1] == "stride])")
    passing = f"{127 / 28:.1f}"
    assert titles[2:6] == ["execs", "active", "on", "pass"]
    assert (condition[3], body[2:4]) == (passing, [passing, "."])


@pytest.mark.parametrize("command", ["trace {}", "lower {}", "predict {}", "check {}"])
def test_all_has_every_line_of_the_source(command: str, screen: pytest.CaptureFixture[str]) -> None:
    short = shown(command.format("reduce5"), screen)
    whole = shown(f"{command.format('reduce5')} --all", screen)
    assert any("--all" in line for line in short)
    assert not any("--all" in line for line in whole)
    assert len(whole) > SCREEN
