"""Times measured on the H200 beside predicted ones, as numbers and as tables of the docs.

It reads `h200.csv`, `h200_counters.csv` and `predicted.csv`; nothing is predicted here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from ..statistics import quantile
from ..table import rows_of, table
from .plans import KERNELS, LAST, SEEN

HERE = Path(__file__).parent
MEASURED, COUNTED = HERE / "h200.csv", HERE / "h200_counters.csv"
PREDICTED = HERE / "predicted.csv"
CODES = "nvcc", "lowering"
STATES = "cold", "warm"
NEAR = 0.1  # of Nsight's executed instructions: then times tell about the model of time
Key = tuple[str, int]


def by_launch(path: Path) -> dict[Key, dict[str, str]]:
    """Return a table's rows by kernel and size."""
    return {(row["kernel"], int(row["n"])): row for row in rows_of(path)}


@dataclass(frozen=True)
class Compared:
    """A launch with one generator's code and one state of the L2, as measured and as predicted.

    `instructions` is the relative error of executed instructions.
    """

    kernel: str
    n: int
    code: str
    l2: str
    measured_us: float
    predicted_us: float
    instructions: float

    @property
    def part(self) -> str:
        """Whether the kernel was seen while the model was made, or measured last."""
        return KERNELS[self.kernel].part

    @property
    def group(self) -> str:
        """The file that holds the kernel."""
        return KERNELS[self.kernel].file

    @property
    def error(self) -> float:
        """Relative error of the prediction."""
        return self.predicted_us / self.measured_us - 1


def compared() -> list[Compared]:
    """Return all launches both measured and predicted."""
    measured, counted = by_launch(MEASURED), by_launch(COUNTED)
    found = []
    for row in rows_of(PREDICTED):
        key = row["kernel"], int(row["n"])
        if row["refused"] or key not in measured:
            continue
        executed = int(counted[key]["smsp__inst_executed.sum"])
        off = int(row["instructions"]) / executed - 1
        for l2 in STATES:
            us = float(measured[key][f"{l2}_us"]), float(row[f"{l2}_us"])
            found.append(Compared(*key, row["code"], l2, *us, off))
    return found


def refusals() -> list[str]:
    """Return why kernels are not predicted, each reason with the kernels that it keeps out."""
    kept_out: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows_of(PREDICTED):
        if row["refused"]:
            reason = re.sub(r"^\S+, (?=line)", "", row["refused"])
            kept_out.setdefault((row["code"], reason), {})[row["kernel"]] = None
    return [f"- {code}: {', '.join(names)}: {reason}" for (code, reason), names in kept_out.items()]


@dataclass(frozen=True)
class Summary:
    """Statistics of relative errors."""

    launches: int
    mean: float
    median: float
    percentile_90: float
    worst: float

    @classmethod
    def of(cls, some: Iterable[Compared]) -> Summary | None:
        """Return the summary of some, None of none."""
        errors = [abs(one.error) for one in some]
        if not errors:
            return None
        return cls(len(errors), fmean(errors), median(errors), quantile(errors, 0.9), max(errors))

    def cells(self) -> list[str]:
        """Return it as cells of a table."""
        parts = self.mean, self.median, self.percentile_90, self.worst
        return [str(self.launches), *(f"{part:.1%}" for part in parts)]


GROUPS: dict[str, Callable[[Compared], bool]] = {
    "seen": lambda one: one.part == SEEN,
    "measured last": lambda one: one.part == LAST,
    "all": lambda one: True,
    f"all, instructions within {NEAR:.0%}": lambda one: abs(one.instructions) <= NEAR,
}


def summaries(found: Sequence[Compared]) -> list[str]:
    """Return the table of errors of each part, by code and state of the L2."""
    head = "code", "L2", "kernels", "launches", "mean", "median", "90th perc.", "worst"
    rows = []
    for code in CODES:
        for l2 in STATES:
            for title, belongs in GROUPS.items():
                of_code = [one for one in found if (one.code, one.l2) == (code, l2)]
                summary = Summary.of(filter(belongs, of_code))
                if summary is not None:
                    rows.append([code, l2, title, *summary.cells()])
    return table(head, rows, text=3)


MOST_MEAN, MOST_PERCENTILE_90, MOST_OF_LAST = 0.05, 0.12, 1.3


def bars(found: Sequence[Compared]) -> list[str]:
    """Return the bars for nvcc's code, cold and warm together, beside the results."""
    of_nvcc = [one for one in found if one.code == "nvcc"]
    whole = Summary.of(of_nvcc)
    if whole is None:
        return []
    seen, last = (Summary.of(one for one in of_nvcc if one.part == part) for part in (SEEN, LAST))
    told = [
        _bar("mean error", whole.mean, MOST_MEAN, "{:.1%}"),
        _bar("90th percentile", whole.percentile_90, MOST_PERCENTILE_90, "{:.1%}"),
    ]
    if seen and last:
        ratio = last.mean / seen.mean
        told.append(_bar("mean error of those measured last over the others'", ratio, MOST_OF_LAST))
    return told


def _bar(name: str, reached: float, most: float, form: str = "{:.2f}") -> str:
    verdict = "kept" if reached <= most else "missed"
    return f"- {name}: {form.format(reached)}, at most {form.format(most)} is asked: {verdict}"


def group_by_group(found: Sequence[Compared]) -> list[str]:
    """Return the table of errors with a cold and a warm L2 together, a row a group of kernels."""
    parts = "mean", "median", "90th perc.", "worst"
    head = ["group", "kernels", *(f"{code} {part}" for code in CODES for part in parts)]
    rows = []
    for group in dict.fromkeys(one.group for one in found):
        of_group = [one for one in found if one.group == group]
        cells = [group, str(len({one.kernel for one in of_group}))]
        for code in CODES:
            summary = Summary.of(one for one in of_group if one.code == code)
            cells += summary.cells()[1:] if summary else [""] * len(parts)
        rows.append(cells)
    return table(head, rows)


def kernel_by_kernel(found: Sequence[Compared]) -> list[str]:
    """Return the table of mean errors, a row a kernel, with its launch that is farthest off."""
    head = ["kernel", "part"]
    for code in CODES:
        head += [*(f"{code} {l2}" for l2 in STATES), "worst"]
    of_kernel: dict[str, list[Compared]] = {}
    for one in found:
        of_kernel.setdefault(one.kernel, []).append(one)
    rows = []
    for name, launches in of_kernel.items():
        cells = [name, KERNELS[name].part]
        for code in CODES:
            errors = {l2: _errors_of(launches, code, l2) for l2 in STATES}
            every = [error for some in errors.values() for error in some]
            cells += [f"{fmean(map(abs, some)):.1%}" if some else "" for some in errors.values()]
            cells.append(f"{max(every, key=abs):+.1%}" if every else "")
        rows.append(cells)
    return table(head, rows, text=2)


def _errors_of(launches: Sequence[Compared], code: str, l2: str) -> list[float]:
    return [one.error for one in launches if (one.code, one.l2) == (code, l2)]
