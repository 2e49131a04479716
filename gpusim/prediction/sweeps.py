"""Many predictions: kernels, blocks, sizes and devices crossed into a table.

A case is predicted on its own, from nothing but itself, so that its row is the same whoever
works it out and in whatever order. Finished rows are kept in a journal beside the output.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import product
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

from gpusim import device as devices
from gpusim.catalogue import Request
from gpusim.device import Device
from gpusim.errors import GpusimError, InputError
from gpusim.journal import opened, write_whole
from gpusim.machine import DEFAULT_STEP_LIMIT
from gpusim.prediction.clock.stalls import STALLS
from gpusim.prediction.jobs import Forecast, catalogue_job

Row = dict[str, Any]

FORMATS = (".csv", ".json")
JOURNAL_SUFFIX = ".journal"


@dataclass(frozen=True)
class Case:
    """One prediction of a sweep; `device` is a name or a file, `without` what it lacks."""

    request: Request
    device: str
    l2: str = "cold"
    without: tuple[str, ...] = ()
    step_limit: int = DEFAULT_STEP_LIMIT


def crossed(
    kernels: Sequence[str],
    blocks: Sequence[int],
    sizes: Sequence[int],
    gpus: Sequence[str],
    *,
    asked: Request | None = None,
    **settings: Any,
) -> list[Case]:
    """Return every combination once: device by device, size by size, block by block.

    `asked` has what the requests have in common, `settings` are the cases' other fields.
    """
    every = product(gpus, sizes, blocks, kernels)
    common = asked or Request("")
    made = (
        Case(replace(common, kernel=kernel, n=n, block=block), gpu, **settings)
        for gpu, n, block, kernel in every
    )
    return list(dict.fromkeys(made))


def row_of(case: Case) -> Row:
    """Return a case's row: its prediction, or with `reason` why it cannot run."""
    row: Row = dict.fromkeys(COLUMNS)
    request = case.request
    row |= {
        "kernel": request.kernel,
        "device": case.device,
        "n": request.n,
        "block": request.block,
        "operation": request.operation,
        "dtype": request.dtype,
        "l2": case.l2,
        "passes": request.passes,
        "without": " ".join(case.without),
    }
    try:
        job = catalogue_job(request)
        device = devices.load(case.device).without(*case.without)
        return row | _predicted(job.on(device, l2=case.l2, step_limit=case.step_limit))
    except GpusimError as error:
        return row | {"reason": " ".join(str(error).split())}


def _predicted(forecast: Forecast) -> Row:
    """Return the columns of a prediction; all but time and rate are of the first launch."""
    first, setup = forecast.first, forecast.job.launches[0].setup
    bounds = {bound.name: bound.time_us for bound in first.bounds}
    return {
        "dtype": setup.dtype.name if setup else None,
        "launches": len(forecast.predictions),
        "grid": first.launch.blocks,
        "time_us": forecast.time_us,
        "gbps": forecast.gbps,
        "peak_share": forecast.peak_share,
        "cycles": first.cycles,
        "bound": first.bound.name,
        "bound_us": bounds[first.bound.name],
        "occupancy": first.occupancy.share,
        "occupancy_limit": first.occupancy.limit,
        "waves": first.waves,
        "instructions": first.instructions,
        "blocks_on_sm": first.simulated.blocks_on_sm,
        "blocks_played": first.simulated.played,
        "spread": first.simulated.spread,
        **{f"stall_{name}": share for name, share in first.stalls.items()},
    }


COLUMNS = (
    "kernel", "device", "n", "block", "operation", "dtype", "l2", "passes", "without",
    "launches", "grid", "time_us", "gbps", "peak_share", "cycles", "bound", "bound_us",
    "occupancy", "occupancy_limit", "waves", "instructions", "blocks_on_sm", "blocks_played",
    "spread", *(f"stall_{name}" for name in STALLS), "reason",
)  # fmt: skip


@dataclass(frozen=True)
class Swept:
    """A finished sweep: its rows, in the order of its cases, and how many were there before."""

    rows: list[Row]
    found: int

    @property
    def failed(self) -> int:
        """Rows that hold a reason in place of a prediction."""
        return sum(row["reason"] is not None for row in self.rows)


def sweep(
    cases: Sequence[Case],
    output: Path | None = None,
    *,
    workers: int | None = None,
    started: Callable[[int], None] | None = None,
    progress: Callable[[Case], None] | None = None,
) -> Swept:
    """Predict all cases, on all cores or with `workers` processes, and write them to `output`.

    With an output (.csv or .json) every finished row is on disk at once, in a journal beside
    it: after a kill the same call goes on where it was. `started` hears how many rows were
    there, `progress` each case that is finished. A script that calls this with more than one
    worker needs `if __name__ == "__main__"`, as for any use of multiprocessing's spawn.
    """
    begin, tell = started or _unheard, progress or _unheard
    if output is None:
        rows = dict.fromkeys(cases, Row())
        begin(0)
        for case, row in _rows(cases, workers):
            rows[case] = row
            tell(case)
        return Swept(list(rows.values()), 0)
    _check_output(output)
    keys = {case: _key(case) for case in cases}
    with opened(output.with_name(output.name + JOURNAL_SUFFIX)) as journal:
        left = [case for case in cases if keys[case] not in journal.kept]
        begin(len(cases) - len(left))
        for case, row in _rows(left, workers):
            journal.keep(keys[case], row)
            tell(case)
        made = [journal.kept[keys[case]] for case in cases]
        write_whole(output, table(made, output.suffix))
        journal.discard()
    return Swept(made, len(cases) - len(left))


def table(rows: Sequence[Row], suffix: str) -> str:
    """Return rows as the text of a .csv or .json file."""
    if suffix == ".json":
        return json.dumps(rows, indent=1) + "\n"
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _unheard(_: object) -> None:
    """Tell nobody."""


def _check_output(output: Path) -> None:
    if output.suffix not in FORMATS or output.is_dir():
        raise InputError(f"the output is a file that ends in {' or '.join(FORMATS)}, not {output}")
    if not output.parent.is_dir():
        raise InputError(f"there is no directory {output.parent} for {output.name}")


def _rows(cases: Sequence[Case], workers: int | None) -> Iterator[tuple[Case, Row]]:
    """Yield each case with its row, as they are finished."""
    count = min(cores() if workers is None else workers, len(cases))
    if count <= 1:
        for case in cases:
            yield case, row_of(case)
        return
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_begin_worker)
    try:
        futures = {pool.submit(row_of, case): case for case in cases}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool:
        raise InputError(
            "a worker process was killed, perhaps for want of memory; fewer --workers need less, "
            "and rows that are finished are kept"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _begin_worker() -> None:
    """Leave an interrupt to the parent, and do not outlive it if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _key(case: Case) -> str:
    """Return what a row depends on: the case, its device's numbers and the model itself."""
    facts = {**asdict(case), "device": _numbers(case.device), "model": _model()}
    return hashlib.sha256(json.dumps([case.device, facts], sort_keys=True).encode()).hexdigest()


@cache
def _numbers(name: str) -> Any:
    device: Device = devices.load(name)
    return {key: fact.value for key, fact in device.facts.items()}


@cache
def _model() -> str:
    """Return a digest of gpusim's own source: another version's rows are not taken over."""
    digest = hashlib.sha256()
    root = Path(__file__).parent.parent
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
