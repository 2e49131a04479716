"""Handed-in work marked by the tests of an assignment: points, and the reason of each failure.

Each work replaces files in a copy of the assignment: a folder those of the same names, a file the
one of its name or the only one to complete.
Its tests run there in a process of their own; their points are the marks `gpusim_points`.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from gpusim.errors import InputError
from gpusim.testing.pytest_plugin import POINTS

REPORT = "report.xml"
SOURCES = (".py", ".cu", ".cuh", ".ipynb")
TESTS = ("test_*.py", "*_test.py", "conftest.py")


@dataclass(frozen=True)
class Part:
    """A test with its points: those reached, those possible, and the reason of a failure."""

    test: str
    points: int
    possible: int
    reason: str = ""


@dataclass(frozen=True)
class Grade:
    """A handed-in work with its parts, and the reason why no test ran, if none did."""

    name: str
    parts: tuple[Part, ...]
    remark: str = ""

    @property
    def points(self) -> int:
        """The points reached."""
        return sum(one.points for one in self.parts)

    @property
    def possible(self) -> int:
        """The points of all tests."""
        return sum(one.possible for one in self.parts)


class Assignment:
    """The tests of a folder, marked `gpusim_points`, beside the file that students complete.

    `possible` are the points of each test, `skeleton` the points of the file as it is.
    Raises InputError where the folder has no such tests, or where they cannot run as they are.
    """

    def __init__(self, folder: Path, seconds: float) -> None:
        if not folder.is_dir():
            raise InputError(f"{folder} is not a folder with the tests of an assignment")
        self.folder, self.seconds = folder, seconds
        with tempfile.TemporaryDirectory() as place:
            copy = Path(place) / "work"
            shutil.copytree(folder, copy)
            parts, remark = self._ran(copy)
        if remark:
            raise InputError(f"the tests of {folder} do not run as they are: {remark}")
        self.possible = {one.test: one.possible for one in parts}
        self.skeleton = sum(one.points for one in parts)
        if not self.possible:
            raise InputError(f"{folder} has no test marked gpusim_points(3)")

    def grade(self, work: Path) -> Grade:
        """Return the points of a handed-in file or folder; InputError if it is not there."""
        if not work.exists():
            raise InputError(f"{work} is not there")
        with tempfile.TemporaryDirectory() as place:
            copy = Path(place) / "work"
            shutil.copytree(self.folder, copy)
            remark = self._hand_in(work, copy) or next(_syntax_errors(copy), "")
            parts, remark = ((), remark) if remark else self._ran(copy)
        found = {one.test: one for one in parts}
        absent = remark or "did not run"
        every = [found.get(test, Part(test, 0, possible, absent)) for test, possible in
                 self.possible.items()]  # fmt: skip
        return Grade(str(work), tuple(every), remark)

    def _hand_in(self, work: Path, copy: Path) -> str:
        """Replace files of a copy of the assignment by a work, or return why that is impossible."""
        tests = [path for pattern in TESTS for path in self.folder.rglob(pattern)]
        files = [path for path in self.folder.rglob("*") if path.is_file() and path not in tests]
        if work.is_dir():
            names = [path.relative_to(self.folder) for path in files if path.suffix in SOURCES]
            if names and not any((work / name).is_file() for name in names):
                return f"the folder has no {' or '.join(sorted(map(str, names)))}"
            shutil.copytree(work, copy, dirs_exist_ok=True)
            for path in tests:
                shutil.copy(path, copy / path.relative_to(self.folder))
            return ""
        alike = [path for path in files if path.suffix == work.suffix]
        named = [path for path in alike if path.name == work.name] or alike
        if len(named) != 1:
            return f"the assignment has no file {work.name} to complete"
        shutil.copy(work, copy / named[0].relative_to(self.folder))
        return ""

    def _ran(self, folder: Path) -> tuple[tuple[Part, ...], str]:
        """Run the tests of a folder: their parts, and the reason why none ran."""
        command = [sys.executable, "-m", "pytest", "-p", "gpusim.testing.pytest_plugin"]
        command += ["-p", "no:cacheprovider", "-o", "junit_family=xunit1", "-c", os.devnull]
        command += ["--rootdir", str(folder), f"--junitxml={REPORT}", str(folder)]
        try:
            ended = subprocess.run(
                command,
                cwd=folder,
                env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self.seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return (), f"no result within {self.seconds:g} s"
        report = folder / REPORT
        if not report.is_file():
            return (), f"pytest ended with exit code {ended.returncode}"
        cases = list(ElementTree.parse(report).iter("testcase"))
        parts = tuple(part for case in cases if (part := _part(case)) is not None)
        return parts, "" if parts else next(filter(None, map(_reason, cases)), "")


def _syntax_errors(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*.py")):
        try:
            ast.parse(path.read_bytes(), path.name)
        except SyntaxError as error:
            where = f", line {error.lineno}" if error.lineno else ""
            yield f"{path.relative_to(folder)}{where}: {error.msg}"
        except ValueError as error:
            yield f"{path.relative_to(folder)}: {error}"


def _part(case: ElementTree.Element) -> Part | None:
    """Return a test's part from its element of the report, None without points."""
    properties: Mapping[str, str] = {
        one.attrib["name"]: one.attrib["value"] for one in case.iter("property")
    }
    if POINTS not in properties:
        return None
    possible = int(properties[POINTS])
    reason = _reason(case)
    return Part(case.attrib["name"], 0 if reason else possible, possible, reason)


def _reason(case: ElementTree.Element) -> str:
    """Return the error of a test in one line, "" if it passed."""
    failed = next((one for kind in ("failure", "error", "skipped")
                   for one in case.iter(kind)), None)  # fmt: skip
    if failed is None:
        return ""
    said = [line[1:].strip() for line in (failed.text or "").splitlines() if line[:2] == "E "]
    message = failed.attrib.get("message", "").splitlines()
    first = message[0] if message and message[0] != "collection failure" else ""
    return first.removeprefix("AssertionError: ") or (said[-1] if said else "failed")
