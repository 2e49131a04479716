"""A command that takes some seconds says so, once, on standard error."""

from __future__ import annotations

import time

import pytest

from gpusim.cli import output
from gpusim.cli.progress import SWITCH, Word

SOON_S = 0.2


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH)
    output.note_telling(0.0)


def test_a_long_command_says_once_that_it_is_at_work(capsys: pytest.CaptureFixture[str]) -> None:
    with Word(["trace", "l.cu:k"], SOON_S):
        time.sleep(0.7)
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "gpusim: gpusim trace l.cu:k has been running for 0 s; Ctrl-C ends it\n"


def test_a_short_command_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Word(["list"], SOON_S):
        pass
    time.sleep(0.4)
    assert capsys.readouterr().err == ""


def test_the_launch_of_a_program_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Word, "running", lambda: "launch 1, k, grid 1, block 32")
    with Word(["run"], SOON_S):
        time.sleep(0.6)
    assert "gpusim: launch 1, k, grid 1, block 32 has been running for" in capsys.readouterr().err


def test_the_word_comes_after_a_pause_without_others(capsys: pytest.CaptureFixture[str]) -> None:
    with Word(["check"], SOON_S):
        time.sleep(0.12)
        output.complain("a line")
        time.sleep(0.12)
        assert "been running" not in capsys.readouterr().err
        time.sleep(0.4)
    assert "been running" in capsys.readouterr().err


def test_a_bar_that_is_shown_is_word_enough(capsys: pytest.CaptureFixture[str]) -> None:
    with Word(["sweep"], SOON_S):
        output.note_telling(float("inf"))
        time.sleep(0.5)
    assert capsys.readouterr().err == ""
