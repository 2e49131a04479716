"""No fact of a report is lost at 80 columns: compared with the same report at 200."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpusim.cli import check, options
from gpusim.cli.app import MODULES, main

# Bars are drawn to the terminal's width; so is the whole of predict --timeline, not compared here.
DRAWN = re.compile("[█▏▎▍▌▋▊▉]+|-{3,}")
LEAST_PIECE = 2  # of a word that is folded; numbers never are
NUMBER = re.compile(r"[\d,.+%-]+")
LAUNCH = """
[[tool.gpusim.launch]]
name = "conflicts"
kernel = "reduce2"
n = 4096
limits = { bank_conflicts = 0, time_us = 1 }
"""


def words(text: str) -> list[str]:
    found = (
        word.strip(".,;:()")
        for word in re.split(r"[\s_]+|(?<=[a-z])\.(?=[a-z])", DRAWN.sub(" ", text))
    )
    return [word for word in found if word]


def is_there(word: str, have: set[str]) -> bool:
    """Whether a word is there, whole or in the pieces that folding makes of long ones."""
    if word in have or NUMBER.fullmatch(word):
        return word in have
    places = range(LEAST_PIECE, len(word) - LEAST_PIECE + 1)
    return any(word[:at] in have and is_there(word[at:], have) for at in places)


Shown = dict[int, str]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shown:
    """What reports print, by the number of columns: each is made once and shown twice."""
    found: Shown = {80: "", 200: ""}
    as_ever = options.print_lines

    def print_twice(report: Callable[[int], Any]) -> None:
        for width in found:
            monkeypatch.setenv("COLUMNS", str(width))
            capsys.readouterr()
            as_ever(report)
            found[width] += capsys.readouterr().out

    for module in (check, *(importlib.import_module(f"gpusim.cli.{m}") for m in MODULES.values())):
        if hasattr(module, "print_lines"):
            monkeypatch.setattr(module, "print_lines", print_twice)
    return found


COMMANDS = [
    "list",
    "run reduce3 -n 4096",
    "trace reduce2 -n 4096 --block 128 --device h200 --all",
    "trace reduce2 -n 1024 --line 81 --all",
    "check reduction5 -n 1024 --all",
    "lower reduce3 --all",
    "predict reduce2 -n 2^14 --why --all",
    "predict reduce7 -n 2^14 --passes all --set bandwidth.dram_gbps=3000 --all",
    "rank reduce1 reduce5 reduce7 -n 2^14",
    "compare reduce1 reduce7 -n 4096",
    "sweep reduce1 reduce7 -n 2^12,2^14 --workers 1",
    "tune reduce7 -n 2^14 --block 64,128 --workers 1",
    "ci",
    "devices",
    "devices k40m",
]


def test_every_command_with_a_report_is_compared() -> None:
    others = {"plot", "report", "grade"}  # write files, or run a folder of tests
    assert {command.split()[0] for command in COMMANDS} == MODULES.keys() - others


@pytest.mark.parametrize("command", COMMANDS)
def test_a_report_has_every_fact_at_80_columns(
    command: str, shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GPUSIM_CODE", "lowering")
    (tmp_path / "pyproject.toml").write_text(LAUNCH)
    assert main(command.split()) in (0, 1)
    wide, narrow = words(shown[200]), set(words(shown[80]))
    assert len(wide) > 10
    assert max(map(len, shown[80].splitlines())) <= 80
    assert [word for word in dict.fromkeys(wide) if not is_there(word, narrow)] == []


def test_a_lost_fact_is_found() -> None:
    have = set(words("l1tex__data_pipe_lsu_wavefr onts 1,234"))
    assert is_there("wavefronts", have)
    assert not is_there("5,234", have)
    assert not is_there("wavefrontx", have)
