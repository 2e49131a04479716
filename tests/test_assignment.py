"""The assignment of the docs: its skeleton has no points, a solution has all of them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ASSIGNMENT = ROOT / "docs" / "assignment"
SOLUTION = ROOT / "tests" / "data" / "assignment"


def marked(folder: Path) -> tuple[int, str]:
    """Run pytest in a folder of its own; return its exit code and its output."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "gpusim.testing.pytest_plugin"]
    ran = subprocess.run(
        [*command, "-p", "no:cacheprovider", "--rootdir", str(folder), str(folder)],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
    )
    return ran.returncode, ran.stdout + ran.stderr


def test_a_solution_has_all_points(tmp_path: Path) -> None:
    folder = tmp_path / "assignment"
    shutil.copytree(ASSIGNMENT, folder)
    shutil.copy(SOLUTION / "row_sums.py", folder)
    code, output = marked(folder)
    assert code == 0, output
    assert "points: 20 of 20" in output


def test_the_skeleton_has_none(tmp_path: Path) -> None:
    folder = tmp_path / "assignment"
    shutil.copytree(ASSIGNMENT, folder)
    code, output = marked(folder)
    assert code == 1, output
    assert "points: 0 of 20" in output
    assert output.count("AssertionError") >= 6  # it runs, and its sums are wrong


def test_the_instructions_list_the_points_of_the_tests() -> None:
    listed = re.findall(r"^\| +(\d+) \|", (ASSIGNMENT / "README.md").read_text("utf-8"), re.M)
    tests = (ASSIGNMENT / "test_row_sums.py").read_text("utf-8")
    assert listed == re.findall(r"gpusim_points\((\d+)\)", tests)
    assert sum(map(int, listed)) == 20


def test_points_that_are_no_number_are_refused(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n@pytest.mark.gpusim_points('three')\ndef test_it(): pass\n"
    )
    code, output = marked(tmp_path)
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "a mark is gpusim_points(3), a number" in output
