"""Command lines are completed in a shell: commands, options, kernels, GPUs, values."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("argcomplete")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("gpusim tr", {"trace"}),
        ("gpusim predict reduce1 --dev", {"--device"}),
        ("gpusim predict reduce1 --device h2", {"h200"}),
        ("gpusim trace reduce5", {"reduce5", "reduce5_fixed"}),
        ("gpusim trace mine", {"mine.cu", "mine_launch"}),
        ("gpusim check reduce1 --format g", {"gcc", "github"}),
    ],
)
def test_a_line_is_completed(line: str, expected: set[str], tmp_path: Path) -> None:
    (tmp_path / "mine.cu").write_text("")
    (tmp_path / "mine.txt").write_text("")
    table = '[[tool.gpusim.launch]]\nname = "mine_launch"\nkernel = "mine.cu:k"\n'
    (tmp_path / "pyproject.toml").write_text(table)
    out = tmp_path / "answer"
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(out),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    subprocess.run([sys.executable, "-m", "gpusim"], cwd=tmp_path, env=environment, check=True)
    assert {one.strip() for one in out.read_text().split("\n")} == expected
