"""Predicts the launches of this folder, with nvcc's code and from the lowering.

    python -m validate.others.compare predict [PART [KERNEL ...]]    writes predicted.csv
    python -m validate.others.compare show                           prints the tables

PART is `seen`, `last` or `all`. Predictions of other kernels are kept. Each launch has a process of
its own, as many at a time as there are cores (`taskset` names fewer).
"""

from __future__ import annotations

import csv
import resource
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from gpusim.codegen.programs import prepare
from gpusim.errors import GpusimError
from gpusim.gpu import device as devices
from gpusim.host.workers import cores
from gpusim.prediction.predict import predict
from gpusim.sass.kernels import CodeFile, cuda_file

from ..table import rows_of
from . import errors, misses, traffic
from .errors import CODES, PREDICTED, STATES
from .plans import KERNELS, Launch, three
from .traffic import TRAFFIC

COLUMNS = (
    "kernel", "n", "code", "cold_us", "warm_us", "instructions", *TRAFFIC, "seconds", "memory_mb",
    "refused",
)  # fmt: skip


@dataclass(frozen=True)
class Predicted:
    """A launch's prediction with one generator's code; `refused` is the reason for none.

    `traffic` is for a cold L2, in the order of `TRAFFIC`; `seconds` is the CPU time of the more
    expensive prediction, without the compilation; `memory_mb` is the peak resident set size of a
    process that does nothing else, arrays included.
    """

    kernel: str
    n: int
    code: str
    cold_us: float = 0.0
    warm_us: float = 0.0
    instructions: int = 0
    traffic: tuple[float | None, ...] = ()
    seconds: float = 0.0
    memory_mb: float = 0.0
    refused: str = ""

    def row(self) -> list[str]:
        """Return it as a row of the table."""
        times = f"{self.cold_us:.3f}", f"{self.warm_us:.3f}", str(self.instructions)
        numbers = *times, *("" if one is None else f"{one:.6g}" for one in self.traffic)
        said = [""] * (len(times) + len(TRAFFIC)) if self.refused else numbers
        cost = f"{self.seconds:.2f}", f"{self.memory_mb:.0f}"
        return [self.kernel, str(self.n), self.code, *said, *cost, self.refused]


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
    """Return the prediction of a launch, with the costs of this process."""
    name, n = launch.key
    given, seconds, found = launch.specified(), 0.0, []
    kernel = configured(launch, code)
    if kernel is None:
        return Predicted(name, n, code, refused="the dialect lacks the words for it")
    made_by = None if code == "nvcc" else code  # a .cu file has no other
    try:
        prepare(kernel, given, devices.load("h200").cc, code=made_by)
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
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Predicted(name, n, code, *times, cold.instructions, read, seconds, peak_mb)


def _row(name: str, n: int, code: str) -> list[str]:
    return predicted(KERNELS[name].at(n), code).row()


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
    """Predict the launches of a part, or of some kernels of it; the table is written on the way.

    Launches that took long before are predicted first.
    """
    before = list(rows_of(PREDICTED)) if PREDICTED.exists() else []
    rows = [[row.get(name, "") for name in COLUMNS] for row in before]
    took = {(row["kernel"], int(row["n"]), row["code"]): float(row["seconds"]) for row in before}
    wanted = [
        (kernel.name, n, code)
        for code, kernel in product(CODES, KERNELS.values())
        for n in kernel.sizes
        if part in ("all", kernel.part) and (not kernels or kernel.name in kernels)
    ]
    wanted.sort(key=lambda key: -took.get(key, 0.0))
    context = get_context("forkserver")
    context.set_forkserver_preload([_row.__module__, "gpusim.machine.interpreter"])
    with ProcessPoolExecutor(cores(), context, max_tasks_per_child=1) as pool:
        for done in as_completed([pool.submit(_row, *key) for key in wanted]):
            rows.append(done.result())
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
