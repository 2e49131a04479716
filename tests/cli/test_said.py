"""What a command says beside its answer: of warnings, and of launches that take long."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpusim.cli.progress import Patience

WARNS = r"""
import warnings
import numpy as np
from gpusim import cuda

assert (1, "a pair is true")
warnings.warn("mind the gap")
np.float32(3e38) * np.float32(3e38)

@cuda.jit
def k(o):
    o[0] = 1
"""


def test_a_warning_of_an_own_file_is_one_line_without_its_source(tmp_path: Path) -> None:
    (tmp_path / "w.py").write_text(WARNS)
    words = ["trace", "w.py:k", "--grid", "1", "--block", "1", "--arg", "int32[1]"]
    ran = subprocess.run(
        [sys.executable, "-m", "gpusim", *words, "--code", "lowering"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0
    lines = ran.stderr.splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["gpusim"] * len(lines)
    said = [line.partition("w.py, ")[2].partition(":")[0] for line in lines]
    assert sorted(said) == ["line 6", "line 7", "line 8"]


def test_a_launch_that_takes_long_says_so_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    times = iter((0.0, 15.0, 30.0, 45.0))
    patience = Patience(2**31, lambda: next(times))
    for finished in (2**20, 2**21, 2**22):
        patience(finished)
    said = capsys.readouterr().err
    assert said.startswith("gpusim: 2,097,152 of 2,147,483,648 blocks have run in 30 s; the rest ")
    assert "about 9 hours" in said
    assert said.count("\n") == 1
