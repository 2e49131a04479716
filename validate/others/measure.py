"""Measures the launches of this folder on a real GPU: times, results, Nsight Compute's counters.

    python -m validate.others.measure times PART TABLE
    python -m validate.others.measure counters PART TABLE

PART is `seen`, `last` or `all`. Both compile the kernels with nvcc and need PyCUDA; the second
needs `ncu`; that runs this file once more with `replay`.
"""

from __future__ import annotations

import csv
import io
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gpusim.tracing.counters import COUNTERS

from ..backend import WAIT_CYCLES, PycudaBackend, pycuda_driver
from ..statistics import summary
from . import FILES, launches
from .data import Numbers
from .plans import Launch, differing, three

HERE = Path(__file__).parent

HARDWARE = "smsp__", "l1tex__", "lts__", "dram__"  # metrics outside the source view
COLUMNS = ("kernel", "n", "cold_us", "cold_low", "cold_high", "warm_us", "warm_low", "warm_high")
REPETITIONS = 21
MOST_COPIES, MOST_BYTES = 4, 2**31
MEMORY_METRICS = (
    "lts__t_sectors_op_read.sum",
    "lts__t_sectors_op_write.sum",
    "lts__t_sectors_op_atom.sum",
    "lts__t_sectors_op_red.sum",
    "lts__t_sectors_lookup_hit.sum",
    "lts__t_sectors_lookup_miss.sum",
    "lts__t_sector_hit_rate.pct",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "l1tex__t_sector_hit_rate.pct",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum",
)
OTHER_METRICS = (
    "smsp__inst_executed_op_shared_atom.sum",
    "launch__registers_per_thread",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "gpu__time_duration.sum",
)


def metrics() -> list[str]:
    """Return the metrics of Nsight Compute: gpusim's counters, and memory traffic."""
    own = [spec.ncu for spec in COUNTERS.values() if spec.ncu.startswith(HARDWARE)]
    return list(dict.fromkeys([*own, *OTHER_METRICS, *MEMORY_METRICS]))


class Codes:
    """Machine code of the files here, as nvcc makes it for the GPU that is there."""

    def __init__(self, driver: Any, folder: Path) -> None:
        self._driver, self._folder = driver, folder
        self._modules: dict[str, Any] = {}

    def compile(self, files: Sequence[str]) -> None:
        """Compile several files at once."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(self._compile, files))

    def _compile(self, file: str) -> None:
        command = ["nvcc", "-cubin", "-O3", "-arch=sm_90", "-std=c++17"]
        out = self._folder / f"{file}.cubin"
        subprocess.run([*command, "-o", str(out), str(HERE / f"{file}.cu")], check=True)

    def module(self, file: str) -> Any:
        """Return a file's module on the GPU."""
        if file not in self._modules:
            path = str(self._folder / f"{file}.cubin")
            self._modules[file] = self._driver.module_from_file(path)
        return self._modules[file]

    def function(self, launch: Launch) -> Any:
        """Return the kernel of a launch, its constants filled."""
        module = self.module(launch.kernel.file)
        for name, numbers in launch.plan.constants:
            self._driver.memcpy_htod(module.get_global(name)[0], numbers.make())
        text = (self._folder / f"{launch.kernel.file}.cubin").read_bytes()
        names = {str(name, "ascii") for name in re.findall(rb"\.text\.(\w+)", text)}
        return module.get_function(next(n for n in names if n.startswith(launch.kernel.mangled)))


class Copy:
    """A launch's arguments on the GPU; `filled` are their elements, or None for zeros."""

    def __init__(self, driver: Any, launch: Launch, filled: Sequence[Any]) -> None:
        self._driver = driver
        self.arguments = [self._given(value) for value in filled]
        self._fresh: list[tuple[Any, Any, int]] = []
        for place, value in enumerate(launch.plan.arguments):
            if isinstance(value, Numbers) and value.is_afresh:
                size = filled[place].nbytes
                pristine = driver.mem_alloc(size)
                driver.memcpy_dtod(pristine, self.arguments[place], size)
                self._fresh.append((self.arguments[place], pristine, size))

    def _given(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        memory = self._driver.mem_alloc(value.nbytes)
        self._driver.memcpy_htod(memory, np.ascontiguousarray(value))
        return memory

    def restore(self) -> None:
        """Queue the restoration of arrays that a launch must find in their initial state."""
        for to, pristine, size in self._fresh:
            self._driver.memcpy_dtod_async(to, pristine, size, None)

    def results(self, filled: Sequence[Any]) -> tuple[Any, ...]:
        """Return the arguments as they are now."""
        found = [np.empty_like(v) if isinstance(v, np.ndarray) else v for v in filled]
        for value, argument in zip(found, self.arguments, strict=True):
            if isinstance(value, np.ndarray):
                self._driver.memcpy_dtoh(value, argument)
        return tuple(found)

    def free(self) -> None:
        """Give the memory back."""
        for value in [*self.arguments, *(pristine for _, pristine, _ in self._fresh)]:
            if not isinstance(value, np.generic):
                value.free()


def queued(function: Any, launch: Launch, copy: Copy) -> None:
    """Queue a launch."""
    plan = launch.plan
    function(*copy.arguments, grid=three(plan.grid), block=three(plan.block))


def times(
    backend: PycudaBackend,
    codes: Codes,
    launch: Launch,
    is_checked: bool,
    repetitions: int = REPETITIONS,
) -> list[float]:
    """Return cold and warm times with their percentiles; wrong results are printed."""
    filled = launch.filled()
    function = codes.function(launch)
    size = sum(value.nbytes for value in filled if isinstance(value, np.ndarray))
    count = max(1, min(MOST_COPIES, MOST_BYTES // max(size, 1)))
    copies = [Copy(backend.driver, launch, filled) for _ in range(count)]
    queued(function, launch, copies[0])
    backend.driver.Context.synchronize()
    if is_checked:
        for line in differing(launch.plan, filled, copies[0].results(filled)):
            print("WRONG", launch.key, line, flush=True)
    made = [
        us
        for before in (_cold, _warm)
        for us in summary(_timed(backend, function, launch, copies, before, repetitions))
    ]
    for copy in copies:
        copy.free()
    return made


Before = Callable[[PycudaBackend, Callable[[], None], Copy], None]


def _timed(
    backend: PycudaBackend,
    function: Any,
    launch: Launch,
    copies: Sequence[Copy],
    before: Before,
    repetitions: int,
) -> list[float]:
    """Return the times of many repetitions, in microseconds; the copies in rotation."""
    found: list[float] = []
    for number in range(repetitions):
        copy = copies[number % len(copies)]
        work = partial(queued, function, launch, copy)
        found += backend.timed(partial(before, backend, work, copy), work, 1)
    return found


def _cold(backend: PycudaBackend, work: Callable[[], None], copy: Copy) -> None:
    copy.restore()
    backend.empty_l2()


def _warm(backend: PycudaBackend, work: Callable[[], None], copy: Copy) -> None:
    copy.restore()
    work()
    copy.restore()
    backend.wait(WAIT_CYCLES)


@contextmanager
def compiled(driver: Any, part: str) -> Iterator[Codes]:
    """Yield the code of the launches of a part."""
    with tempfile.TemporaryDirectory() as folder:
        codes = Codes(driver, Path(folder))
        codes.compile(FILES)
        yield codes


def measure(part: str, table: str) -> None:
    """Write a table of times."""
    backend = PycudaBackend()
    began, found = time.perf_counter(), []
    with compiled(backend.driver, part) as codes:
        print(f"compiled in {time.perf_counter() - began:.0f} s", flush=True)
        machine = backend.machine("h200", time.strftime("%Y-%m-%d"))
        for launch in launches(part):
            with backend.naming(str(launch.key)):
                made = times(backend, codes, launch, launch.is_smallest)
            found.append([*launch.key, *(f"{us:.3f}" for us in made)])
            print(*found[-1], flush=True)
    backend.close()
    said = (
        f"{machine.gpu}, driver {machine.driver}, CUDA {machine.cuda}, {machine.compiler}, "
        f"{machine.sm_clock_mhz:.0f} MHz, {machine.date}: microseconds of a launch, the median of "
        f"{REPETITIONS}, with 10th and 90th percentile."
    )
    write(table, said, COLUMNS, found)
    print(f"{len(found)} launches in {time.perf_counter() - began:.0f} s")


def count(part: str, table: str) -> None:
    """Write a table of counters."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        Codes(None, Path(folder)).compile(FILES)
        command = [
            "ncu", "--clock-control", "none", "--cache-control", "all", "--csv", "--page", "raw",
            "--print-units", "base", "--metrics", ",".join(metrics()),
            sys.executable, "-m", __spec__.name, "replay", part, folder,
        ]  # fmt: skip
        ran = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent.parent)
    lines = ran.stdout.splitlines()
    begin = next((k for k, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    rows = [
        row for row in csv.DictReader(io.StringIO("\n".join(lines[begin:]))) if row["Kernel Name"]
    ]
    wanted = list(launches(part))
    print(f"{len(rows)} of {len(wanted)} counted in {time.perf_counter() - began:.0f} s")
    if len(rows) != len(wanted):
        print(*lines[:begin][-20:], ran.stderr[-2000:], sep="\n")
    found = []
    for launch, row in zip(wanted, rows, strict=False):
        if launch.kernel.function not in row["Kernel Name"]:
            print("NOT IN ORDER", launch.key, row["Kernel Name"])
        found.append([*launch.key, *(row.get(m, "").replace(",", "") for m in metrics())])
    said = f"Nsight Compute, --clock-control none, --cache-control all, {time.strftime('%Y-%m-%d')}"
    write(table, said, ["kernel", "n", *metrics()], found)


def replay(part: str, folder: str) -> None:
    """Launch each kernel once, for the profiler."""
    driver = pycuda_driver()
    context = driver.Device(0).make_context()
    codes = Codes(driver, Path(folder))
    for launch in launches(part):
        copy = Copy(driver, launch, launch.filled())
        queued(codes.function(launch), launch, copy)
        context.synchronize()
        copy.free()
    context.pop()


def write(table: str, said: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Write a table with its origin in the first line."""
    with Path(table).open("w", encoding="utf-8", newline="") as file:
        file.write(f"# {said}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


if __name__ == "__main__":
    command, *given = sys.argv[1:]
    {"times": measure, "counters": count, "replay": replay}[command](*given)
