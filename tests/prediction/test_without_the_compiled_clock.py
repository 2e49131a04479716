"""Everything works where the library that runs compiled code is not there."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gpusim.cli.app import main

HIDDEN = """
import importlib, pkgutil, sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "wasmtime":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
import gpusim.prediction
for module in pkgutil.walk_packages(gpusim.prediction.__path__, "gpusim.prediction."):
    importlib.import_module(module.name)
"""
PREDICTED = """
from gpusim.__main__ import entry_point
import sys
sys.argv = ["gpusim", "predict", "reduce3", "-n", "2^14", "--block", "64", "--json"]
entry_point()
"""


def said(script: str, warned: str = "", **environment: str) -> str:
    """Return what a script prints; the lines on standard error are as expected."""
    ran = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | environment,
    )
    assert ran.stderr == warned
    return ran.stdout


def test_without_wasmtime_a_prediction_is_the_same_and_one_line_says_so() -> None:
    """Nor does a module of the package need it to be imported."""
    line = (
        "gpusim: wasmtime does not run here (No module named 'wasmtime'): Python and SimPy run, "
        "slower, with the same results (GPUSIM_FAST=0 does so on purpose)\n"
    )
    assert said(HIDDEN + PREDICTED, line, GPUSIM_FAST="1") == said(PREDICTED, GPUSIM_FAST="0")


def test_who_asks_for_numpy_and_simpy_is_told_nothing() -> None:
    assert said(HIDDEN + PREDICTED, GPUSIM_FAST="0") == said(PREDICTED, GPUSIM_FAST="1")


@pytest.mark.parametrize("command", ["predict", "predict --timeline", "sweep"])
def test_a_switch_that_is_neither_on_nor_off_is_told(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where SimPy would play anyway, and not as the reason of each row of a sweep."""
    monkeypatch.setenv("GPUSIM_FAST", "maybe")
    assert main([*command.split(), "reduce3", "-n", "4096", "--block", "64"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "gpusim: GPUSIM_FAST in the environment is 'maybe'; it is 0 or 1\n"
