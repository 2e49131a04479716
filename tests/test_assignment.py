"""The assignment of the docs: its skeleton has no points, a solution has all of them."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpusim.cli.app import main
from gpusim.testing.grading import Assignment, Grade

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


def small_assignment(folder: Path) -> Path:
    """Two tests with points, of which the skeleton passes one."""
    folder.mkdir()
    (folder / "work.py").write_text("answer = 1\n")
    (folder / "test_work.py").write_text(
        "import pytest, work\n"
        "@pytest.mark.gpusim_points(1)\ndef test_one(): assert work.answer >= 1\n"
        "@pytest.mark.gpusim_points(2)\ndef test_two(): assert work.answer == 2, 'not two'\n"
    )
    return folder


def test_points_of_tests_that_pass_are_summed(tmp_path: Path) -> None:
    code, output = marked(small_assignment(tmp_path / "small"))
    assert code == 1, output
    assert "points: 1 of 3" in output


def test_grading_without_pytest_names_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("gpusim.testing.grading", "gpusim.testing.pytest_plugin"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "pytest", None)
    assert main(["grade", str(ASSIGNMENT), str(SOLUTION)]) == 2
    assert capsys.readouterr().err == "gpusim: gpusim grade needs pytest: pip install pytest\n"


def test_points_that_are_no_number_are_refused(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n@pytest.mark.gpusim_points('three')\ndef test_it(): pass\n"
    )
    code, output = marked(tmp_path)
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "a mark is gpusim_points(3), a number" in output


SKELETON = """
import numpy as np
from gpusim import cuda
THREADS = 256

@cuda.jit
def row_sums(matrix, sums):
    row, tid = cuda.blockIdx.x, cuda.threadIdx.x
"""
BY_ONE_THREAD = f"""{SKELETON}
    if tid == 0:
        total = np.float32(0)
        for column in range(matrix.shape[1]):
            total += matrix[row, column]
        sums[row] = total
"""
WITHOUT_A_BARRIER = f"""{SKELETON}
    parts = cuda.shared.array(256, np.float32)
    total = np.float32(0)
    for column in range(tid, matrix.shape[1], 256):
        total += matrix[row, column]
    parts[tid] = total
    distance = 128
    while distance > 0:
        if tid < distance:
            parts[tid] += parts[tid + distance]
        cuda.syncthreads()
        distance //= 2
    if tid == 0:
        sums[row] = parts[0]
"""


def handed_in(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "row_sums.py").write_text(text)
    return folder


@pytest.fixture(scope="module")
def assignment() -> Assignment:
    return Assignment(ASSIGNMENT, seconds=300)


def test_the_instructions_list_the_points_of_the_tests(assignment: Assignment) -> None:
    listed = re.findall(r"^\| +(\d+) \|", (ASSIGNMENT / "README.md").read_text("utf-8"), re.M)
    assert list(map(int, listed)) == list(assignment.possible.values())
    assert sum(assignment.possible.values()) == 20


def reasons(grade: Grade) -> dict[str, str]:
    return {part.test: part.reason for part in grade.parts if not part.points}


def test_a_solution_has_all_points(assignment: Assignment) -> None:
    assert assignment.grade(SOLUTION).points == 20


def test_the_skeleton_has_none(assignment: Assignment) -> None:
    assert assignment.skeleton == 0


def test_a_row_summed_by_one_thread_has_the_points_of_correct_sums_alone(
    tmp_path: Path, assignment: Assignment
) -> None:
    grade = assignment.grade(handed_in(tmp_path / "one", BY_ONE_THREAD))
    reached = {part.test for part in grade.parts if part.points}
    assert reached == {"test_no_race_and_no_error", "test_the_sums_are_right"}
    assert "32.0 sectors loaded" in reasons(grade)["test_loads_are_coalesced"]


def test_a_missing_barrier_is_named_as_a_race_and_keeps_the_points_of_speed(
    tmp_path: Path, assignment: Assignment
) -> None:
    grade = assignment.grade(handed_in(tmp_path / "racing", WITHOUT_A_BARRIER))
    race = reasons(grade)["test_no_race_and_no_error"]
    assert re.match(r"race in shared memory between warps, line \d+", race)
    assert {"test_loads_are_coalesced", "test_all_threads_do_the_work"}.isdisjoint(reasons(grade))


def test_a_syntax_error_is_named_with_its_line(tmp_path: Path, assignment: Assignment) -> None:
    grade = assignment.grade(handed_in(tmp_path / "broken", "THREADS = 256\ndef x(:\n"))
    assert (grade.points, grade.possible) == (0, 20)
    assert grade.remark == "row_sums.py, line 2: invalid syntax"


def test_a_module_that_cannot_be_imported_is_named(tmp_path: Path, assignment: Assignment) -> None:
    grade = assignment.grade(handed_in(tmp_path / "other", "import nosuchmodule\n"))
    assert grade.points == 0
    assert "No module named 'nosuchmodule'" in grade.remark


def test_tests_handed_in_do_not_replace_those_of_the_assignment(tmp_path: Path) -> None:
    small = small_assignment(tmp_path / "small")
    cheat = small_assignment(tmp_path / "cheat")
    (cheat / "test_work.py").write_text("def test_two(): pass\n")
    assert Assignment(small, seconds=60).grade(cheat).points == 1


def test_a_file_of_any_name_replaces_the_only_one_to_complete(
    tmp_path: Path, assignment: Assignment
) -> None:
    work = tmp_path / "alice.py"
    work.write_text((SOLUTION / "row_sums.py").read_text("utf-8"))
    assert assignment.grade(work).points == 20


def test_work_without_the_file_to_complete_is_named(tmp_path: Path) -> None:
    small = small_assignment(tmp_path / "small")
    (small / "helpers.py").write_text("")
    assignment = Assignment(small, seconds=60)
    (tmp_path / "empty").mkdir()
    (tmp_path / "mine.py").write_text("")
    assert assignment.grade(tmp_path / "empty").remark == "the folder has no helpers.py or work.py"
    assert assignment.grade(tmp_path / "mine.py").remark == (
        "the assignment has no file mine.py to complete"
    )


def test_work_that_does_not_end_has_no_points(tmp_path: Path) -> None:
    assignment = Assignment(small_assignment(tmp_path / "small"), seconds=60)
    (tmp_path / "work.py").write_text("while True: pass\n")
    assignment.seconds = 1
    grade = assignment.grade(tmp_path / "work.py")
    assert (grade.points, grade.possible, grade.remark) == (0, 3, "no result within 1 s")


def test_a_table_has_a_row_for_each_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = small_assignment(tmp_path / "small")
    (tmp_path / "solved").mkdir()
    solved, broken = tmp_path / "solved" / "work.py", tmp_path / "work.py"
    solved.write_text("answer = 2\n")
    broken.write_text("def x(:\n")
    words = ["grade", str(small), str(small), str(solved), str(broken)]
    assert main([*words, "--csv"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["points"] for row in rows] == ["1", "3", "0"]
    assert [row["test_two"] for row in rows] == ["0", "2", "0"]
    assert rows[2]["remark"] == "work.py, line 1: invalid syntax"
    assert main(words) == 0
    assert "0 of 2  test_two: not two" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((str(ASSIGNMENT), "absent"), "absent is not there"),
        (("absent", str(SOLUTION)), "absent is not a folder"),
        ((str(ASSIGNMENT), str(SOLUTION), "--seconds", "nan"), "--seconds is a number above 0"),
    ],
)
def test_what_cannot_be_graded_is_refused(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["grade", *words]) == 2
    assert said in capsys.readouterr().err
