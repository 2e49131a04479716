"""`gpusim grade`: handed-in work marked by the tests of an assignment."""

from __future__ import annotations

import csv
import io
import math
from argparse import Namespace
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from gpusim.cli import output
from gpusim.cli.options import Command, Option, print_lines
from gpusim.cli.progress import Bar
from gpusim.errors import InputError
from gpusim.host.files import shown
from gpusim.host.workers import cores

if TYPE_CHECKING:
    from rich.text import Text

    from gpusim.testing.grading import Grade


def grade(chosen: Namespace) -> int:
    """Run the tests of an assignment on handed-in work, and print the points of each.

    TESTS is a folder with tests marked gpusim_points and the file that students complete; each
    WORK is a file or folder that replaces that file. A test that fails is named with its reason,
    and so is a file with a syntax error.

    Handed-in code is executed without a sandbox: run untrusted code in a container.
    """
    try:
        from gpusim.testing.grading import Assignment
    except ModuleNotFoundError:
        raise InputError("gpusim grade needs pytest: pip install pytest") from None
    assignment = Assignment(Path(chosen.tests), _seconds(chosen.seconds))
    works = [Path(one) for one in chosen.works]
    with Bar(len(works), "works") as bar, ThreadPoolExecutor(cores()) as pool:
        bar.start()
        grades = []
        for one in pool.map(assignment.grade, works):
            grades.append(one)
            bar.advance(one.name)
    if chosen.csv:
        _write_csv(grades)
    else:
        print_lines(lambda width: _lines(grades, width))
    return 0


COMMAND = Command(
    "grade",
    grade,
    (
        Option("tests", "a folder with tests and the file to complete", "TESTS"),
        Option("works", "files or folders handed in", "WORK", arity="+"),
        Option("--csv", "print a table of comma-separated values"),
        Option("--seconds", "most seconds for one work (300)", "N", "300"),
    ),
    (
        """examples:
  gpusim grade docs/assignment handed_in/*
  gpusim grade docs/assignment handed_in/* --csv > points.csv""",
    ),
)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise InputError(f"--seconds is a number above 0, not {shown(text)}")
    return seconds


def _write_csv(grades: Sequence[Grade]) -> None:
    """Print a row for each work: its points, the possible ones, a column for each test."""
    page = io.StringIO()
    table = csv.writer(page, lineterminator="\n")
    tests = [part.test for part in grades[0].parts]
    table.writerow(["work", "points", "possible", *tests, "remark"])
    for one in grades:
        table.writerow([one.name, one.points, one.possible,
                        *(part.points for part in one.parts), one.remark])  # fmt: skip
    output.write(page.getvalue())


def _lines(grades: Sequence[Grade], width: int) -> Iterator[Text]:
    """Yield the lines of the report: points of each work, then the tests without points."""
    from textwrap import wrap

    from rich.text import Text

    from gpusim.reports.layout import TITLE

    for one in grades:
        yield Text(f"{one.points:3} of {one.possible}  ").append(one.name, TITLE)
        lost = [f"0 of {part.possible}  {part.test}: {part.reason}" for part in one.parts
                if not part.points]  # fmt: skip
        for reason in [one.remark] if one.remark else lost:
            for line in wrap(reason, width, initial_indent=" " * 4, subsequent_indent=" " * 6):
                yield Text(line)
