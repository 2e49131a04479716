"""The table of all launches, `launches.csv`: measured and predicted times, errors and traffic."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from .errors import CODES, HERE, STATES, Compared, Key, compared
from .plans import KERNELS
from .traffic import TRAFFIC, Traffic, traffic

LAUNCHES = HERE / "launches.csv"
COLUMNS = (
    "kernel", "group", "part", "n", *(f"{l2}_us" for l2 in STATES),
    *(f"{code}_{l2}_error" for code in CODES for l2 in STATES), "lowering_instructions_error",
    *(column for metric in TRAFFIC for column in (metric, f"predicted {metric}")),
)  # fmt: skip


def text() -> str:
    """Return the table as CSV, a row a launch; errors are fractions of the measured numbers."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(_rows())
    return written.getvalue()


def _rows() -> Iterator[list[str]]:
    held = {(one.kernel, one.n, one.code, one.l2): one for one in compared()}
    counted = {(*one.key, one.metric): one for one in traffic()}
    for name, n in dict.fromkeys((name, n) for name, n, _, _ in held):
        kernel = KERNELS[name]
        cells = [held.get((name, n, code, l2)) for code in CODES for l2 in STATES]
        yield [name, kernel.file, kernel.part, str(n), *_errors(cells), *_read((name, n), counted)]


def _errors(cells: list[Compared | None]) -> list[str]:
    """Return the measured times, the errors of the predicted ones and of the instructions."""
    measured = {one.l2: f"{one.measured_us:.1f}" for one in cells if one}
    off = [f"{one.error:.3f}" if one else "" for one in cells]
    lowered = cells[len(STATES)]
    return [
        *(measured[l2] for l2 in STATES),
        *off,
        f"{lowered.instructions:.3f}" if lowered else "",
    ]


def _read(key: Key, counted: dict[tuple[str, int, str], Traffic]) -> list[str]:
    """Return each metric of the traffic as counted and as predicted, empty where there is none."""
    cells: list[str] = []
    for metric in TRAFFIC:
        one = counted.get((*key, metric))
        numbers = (one.counted, one.predicted) if one else (None, None)
        cells += ["" if number is None else f"{number:.9g}" for number in numbers]
    return cells
