"""Predicts the launches of this folder, with nvcc's code and from the lowering.

    python -m validate.others.compare predict [PART [KERNEL ...]]    writes predicted.csv
    python -m validate.others.compare show                           prints the tables

PART is `seen`, `last` or `all`. Predictions of other kernels are kept.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from gpusim.errors import GpusimError
from gpusim.prediction.predict import predict
from gpusim.sass.kernels import CodeFile, cuda_file

from ..table import rows_of
from . import errors, launches, misses, traffic
from .errors import CODES, PREDICTED, STATES
from .plans import KERNELS, Launch, three
from .traffic import TRAFFIC

COLUMNS = (
    "kernel", "n", "code", "cold_us", "warm_us", "instructions", *TRAFFIC, "seconds", "refused",
)  # fmt: skip


@dataclass(frozen=True)
class Predicted:
    """A launch's prediction with one generator's code; `refused` is the reason for none.

    `traffic` is for a cold L2, in the order of `TRAFFIC`; `seconds` is the run time of the more
    expensive prediction.
    """

    kernel: str
    n: int
    code: str
    cold_us: float = 0.0
    warm_us: float = 0.0
    instructions: int = 0
    traffic: tuple[float | None, ...] = ()
    seconds: float = 0.0
    refused: str = ""

    def row(self) -> list[str]:
        """Return it as a row of the table."""
        times = f"{self.cold_us:.3f}", f"{self.warm_us:.3f}", str(self.instructions)
        numbers = *times, *("" if one is None else f"{one:.6g}" for one in self.traffic)
        said = [""] * (len(times) + len(TRAFFIC)) if self.refused else numbers
        return [self.kernel, str(self.n), self.code, *said, f"{self.seconds:.1f}", self.refused]


@cache
def _file(path: Path) -> CodeFile:
    return cuda_file(path)


def configured(launch: Launch, code: str) -> Any:
    """Return a kernel with its grid and block; None where the dialect lacks the words for it."""
    grid, block = three(launch.plan.grid), three(launch.plan.block)
    if code == "lowering":
        python = launch.kernel.in_python
        return None if python is None else python[grid, block]
    made = _file(launch.kernel.source)
    for name, numbers in launch.plan.constants:
        made.set(name, numbers.make())
    return made[launch.kernel.instance][grid, block]


def predicted(launch: Launch, code: str) -> Predicted:
    """Return the prediction of a launch."""
    name, n = launch.key
    given, seconds, found = launch.specified(), 0.0, []
    kernel = configured(launch, code)
    if kernel is None:
        return Predicted(name, n, code, refused="the dialect lacks the words for it")
    made_by = None if code == "nvcc" else code  # a .cu file has no other
    try:
        for l2 in STATES:
            began = time.process_time()
            found.append(predict(kernel, *given, device="h200", l2=l2, code=made_by))
            seconds = max(seconds, time.process_time() - began)
    except GpusimError as error:
        return Predicted(name, n, code, refused=str(error).splitlines()[0])
    cold, warm = found
    counted = getattr(cold.traffic, "counters", {})  # not every model of memory has them all
    read = tuple(counted.get(metric) for metric in TRAFFIC)
    times = cold.time_us, warm.time_us
    return Predicted(name, n, code, *times, cold.instructions, read, seconds)


def write(rows: Iterable[Sequence[str]]) -> None:
    """Write the table of predictions, in the order of the kernels; later rows count."""
    held = {tuple(row[:3]): row for row in rows}
    order = (
        (name, str(n), code)
        for name, kernel in KERNELS.items()
        for n in kernel.sizes
        for code in CODES
    )
    with PREDICTED.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(held[key] for key in order if key in held)


def predict_all(part: str = "all", *kernels: str) -> None:
    """Predict the launches of a part, or of some kernels of it; the table is written on the way."""
    rows = [list(row.values()) for row in rows_of(PREDICTED)] if PREDICTED.exists() else []
    for code, launch in product(CODES, launches(part)):
        if not kernels or launch.kernel.name in kernels:
            rows.append(predicted(launch, code).row())
            print(*rows[-1], flush=True)
            write(rows)


def show() -> None:
    """Print the errors of the predictions."""
    found, read = errors.compared(), list(traffic.traffic())
    whole = errors.bars(found), errors.summaries(found), errors.group_by_group(found)
    parts = *whole, misses.table_of(found), traffic.group_by_group(read), traffic.farthest(read)
    print("\n\n".join("\n".join(lines) for lines in parts))


if __name__ == "__main__":
    command, *given = sys.argv[1:]
    {"predict": predict_all, "show": show}[command](*given)
