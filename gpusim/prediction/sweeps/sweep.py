"""Sweeps: kernels, blocks, sizes and devices crossed into a table of predictions.

Each case is predicted independently, so that its row does not depend on worker or order. Finished
rows are kept in a journal beside the output.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache, lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

from gpusim.catalogue import Request
from gpusim.codegen import generators
from gpusim.errors import GpusimError, InputError, LaunchError, shown_at_the_call
from gpusim.gpu import device as devices
from gpusim.gpu.device import Device, Value
from gpusim.host.fast import is_wanted
from gpusim.host.files import refusing, shown, write_whole
from gpusim.host.garbage import uncollected
from gpusim.host.journal import Journal, opened
from gpusim.host.workers import ignored, worked_out
from gpusim.launch.grid import Launch
from gpusim.launch.views import Shown
from gpusim.machine import DEFAULT_STEP_LIMIT
from gpusim.prediction.sweeps.choices import WAVES, with_choices
from gpusim.prediction.sweeps.jobs import Asked, Forecast, Job, job_of
from gpusim.prediction.sweeps.row_cache import RowCache
from gpusim.prediction.sweeps.row_cache import opened as opened_cache
from gpusim.prediction.sweeps.tables import (
    COLUMNS,
    FORMATS,
    Row,
    is_cell,
    require_format,
    rows_of,
    table,
)
from gpusim.prediction.uncertainty.quantiles import TABLE
from gpusim.prediction.workload import BUDGET, Budget

Distribution = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[tuple[int, Any]]]

DIGITS = 16  # of a row's key in the table, a digest of its inputs
KEPT_JOBS = 16
GRID_OF_WAVES = 16  # of a launch with full waves that is run for its results
MOST_ROWS = 24  # of a piece of work: those of a piece are lost with the process that works at it
JOURNAL_SUFFIX = ".journal"


@dataclass(frozen=True)
class Case:
    """One prediction of a sweep; `device` is a name or a file, `without` its ablations.

    `changed` are overridden keys of the device, `code` the generator of the machine code, as in
    `gpusim.predict`. `choices` are values of the launch's parameters: block, coarse, those of
    `--tune`, and "waves" for a grid of that many full waves. `limits` are the most registers of a
    thread and bytes of shared memory of a block, by name. Where `first` is given, the results of
    the launch are compared with those of that one.
    """

    request: Request | Asked
    device: str
    l2: str = "cold"
    without: tuple[str, ...] = ()
    step_limit: int = DEFAULT_STEP_LIMIT
    code: str = field(default_factory=generators.chosen)
    changed: tuple[tuple[str, Value], ...] = ()
    choices: tuple[tuple[str, int | str], ...] = ()
    limits: tuple[tuple[str, int], ...] = ()
    budget: Budget = BUDGET
    first: Asked | None = None


def crossed(
    requests: Sequence[Request | Asked],
    blocks: Sequence[int | str | None],
    sizes: Sequence[int | None],
    gpus: Sequence[str],
    **settings: Any,
) -> list[Case]:
    """Return every combination once: device by device, size by size, block by block.

    `requests` are kernels with fixed fields, `settings` the cases' other fields. Results are held
    against those of a request's own block.
    """
    made = (
        Case(
            request.sized(n, block),
            gpu,
            first=None if isinstance(request, Request) else request.sized(n, None),
            **settings,
        )
        for gpu, n, block, request in product(gpus, sizes, blocks, requests)
    )
    return list(dict.fromkeys(made))


@uncollected()
def row_of(case: Case) -> Row:
    """Return a case's row: its prediction, or the `reason` of its failure."""
    row: Row = dict.fromkeys(COLUMNS) | _asked(case)
    try:
        row["digest"] = _key(case)[:DIGITS]
        device = devices.load(case.device).having(dict(case.changed)).without(*case.without)
        request = with_choices(case.request, dict(case.choices), device, case.code)
        job = _job(request, case.code)
        if case.limits:
            _check_limits(job, device, dict(case.limits))
        made = job.on(device, l2=case.l2, step_limit=case.step_limit, budget=case.budget)
        return row | _predicted(made) | _compared(case)
    except GpusimError as error:
        return row | {"reason": " ".join(str(error).split())}


def _compared(case: Case) -> Row:
    """Return the columns about the results of a launch beside those of the first."""
    request, choices = case.request, dict(case.choices)
    if isinstance(request, Request) or case.first is None or case.budget != BUDGET:
        return {}
    if choices.pop(WAVES, None) is not None:
        choices["grid"] = GRID_OF_WAVES
    made = request.with_values(choices) if choices else request
    found = made.difference(case.first, case.device, case.code)
    return {} if found is None else {"wrong" if found.is_wrong else "not_compared": found.text}


def _job(request: Request | Asked, code: str) -> Job:
    """Return the job of a request; one of the catalogue has no elements, and some are kept."""
    if isinstance(request, Request):
        return _kept_job(request, code)
    return job_of(request).in_code(code)


@lru_cache(maxsize=KEPT_JOBS)
def _kept_job(request: Request, code: str) -> Job:
    return job_of(request).in_code(code)


def _check_limits(job: Job, device: Device, limits: Mapping[str, int]) -> None:
    """Raise LaunchError for a launch beyond the limits on registers or shared memory."""
    prepared = job.launches[0].prepared(device.cc)
    used = {
        "registers": (prepared.program.register_estimate, "registers of a thread"),
        "shared_bytes": (prepared.block_shared_bytes, "bytes of shared memory"),
    }
    for name, most in limits.items():
        value, what = used[name]
        if value > most:
            raise LaunchError(f"{value:,} {what}, over the limit of {most:,}")


def _asked(case: Case) -> Row:
    """Return the columns that identify a row's case."""
    request = case.request
    return {
        "kernel": request.kernel,
        "device": case.device,
        "n": request.n,
        "block": request.block,
        "operation": request.operation,
        "dtype": request.dtype,
        "l2": case.l2,
        "passes": request.passes,
        "without": " ".join(case.without),
        "set": " ".join(f"{key}={value}" for key, value in case.changed),
        "choices": " ".join(f"{name}={value}" for name, value in case.choices),
        "code": case.code,
    }


def _predicted(forecast: Forecast) -> Row:
    """Return the columns of a prediction; all but time and rate are of the first launch."""
    first, setup = forecast.first, forecast.job.launches[0].setup
    return {
        "dtype": setup.dtype.name if setup else None,
        "generator": first.prepared.program.generator,
        "fallback": first.prepared.fallback or None,
        "block": _block(first.launch),
        "launches": len(forecast.predictions),
        "grid": first.launch.blocks,
        "time_us": forecast.time_us,
        "low_us": forecast.interval_us[0],
        "high_us": forecast.interval_us[1],
        "gbps": forecast.gbps,
        "peak_fraction": forecast.peak_fraction,
        "cycles": first.cycles,
        "limiter": first.limiter.name,
        "limiter_us": first.limiter.time_us,
        "occupancy": first.occupancy.fraction,
        "occupancy_limit": first.occupancy.limit,
        "registers": first.prepared.program.register_estimate,
        "shared_bytes": first.prepared.block_shared_bytes,
        "waves": first.waves,
        "instructions": first.instructions,
        "blocks_on_sm": first.extent.blocks_on_sm,
        "blocks_simulated": first.extent.simulated,
        "spread": first.extent.spread,
        **{f"stall_{name}": spent for name, spent in first.stalls.items()},
    }


def _block(launch: Launch) -> int | str:
    """Return the threads of a block, or its dimensions such as 16x16."""
    sizes = launch.block
    most = max((axis for axis, size in enumerate(sizes, 1) if size > 1), default=1)
    return sizes[0] if most == 1 else "x".join(map(str, sizes[:most]))


@dataclass(frozen=True)
class Swept(Shown, shown_as="sweep"):
    """A finished sweep: its rows, in the order of its cases, and the number found finished.

    It `was_complete` if the output held all rows already, and nothing was computed.
    """

    rows: list[Row]
    found: int
    was_complete: bool = False

    def __repr__(self) -> str:
        return f"<Swept: {len(self.rows)} rows, {self.failed} of them failed>"

    @property
    def failed(self) -> int:
        """Number of rows with a reason in place of a prediction."""
        return sum(row["reason"] is not None for row in self.rows)


@shown_at_the_call
def sweep(
    cases: Sequence[Case],
    output: Path | None = None,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    cached: bool = False,
    overwrite: bool = False,
    started: Callable[[int], None] | None = None,
    progress: Callable[[Case], None] | None = None,
    remark: Callable[[str], None] | None = None,
) -> Swept:
    """Predict all cases, on all cores or with `workers` processes, and write them to `output`.

    With an output (.csv, .json or .parquet) finished rows are on disk at once, in a journal beside
    it: after a kill the same call resumes. An output with exactly these rows is left as it is; any
    other content raises InputError without `overwrite`. `cluster` is the address of a scheduler of
    dask.distributed in place of processes of this computer, or "local" for one of `workers`
    processes. With `cached`, rows of earlier sweeps are taken from the user's cache and kept there.
    `started` is called with the number of rows found finished, `progress` with each finished case,
    `remark` with a sentence for the user about a damaged journal. A script that calls this with
    more than one worker needs `if __name__ == "__main__"`, as any use of multiprocessing does.
    """
    begin, tell = started or ignored, progress or ignored
    is_wanted()  # an invalid environment raises here, not in each row
    distribute = _distribution(workers, cluster)
    if output is not None:
        _check_output(output)
    keys = {case: _key(case) for case in cases} if cached or output is not None else {}
    with ExitStack() as stack:
        rows: dict[Case, Row] = {}
        journal = None
        if output is not None:
            journal = stack.enter_context(_journal(output, keys, remark or ignored))
            if (
                not overwrite
                and (held := _complete(output, [keys[case] for case in cases])) is not None
            ):
                journal.discard()
                return Swept(held, len(held), was_complete=True)
            rows = {case: journal.kept[key] for case, key in keys.items() if key in journal.kept}
        found = len(rows)
        cache = stack.enter_context(opened_cache()) if cached else None
        if cache is not None:
            rows |= _known(cache, {keys[case]: case for case in cases if case not in rows})
        begin(len(rows))
        for made in _worked_out([case for case in cases if case not in rows], distribute):
            for case, row in made.items():
                if journal is not None:
                    journal.keep(keys[case], row)
                if cache is not None and row["reason"] is None:
                    cache.store(keys[case], row)
            rows |= made
            for case in made:
                tell(case)
        ordered = [rows[case] for case in cases]
        if output is not None and journal is not None:
            write_whole(output, table(ordered, output.suffix))
            journal.discard()
    return Swept(ordered, found)


@contextmanager
def _journal(
    output: Path, keys: Mapping[Case, str], remark: Callable[[str], None]
) -> Iterator[Journal]:
    """Open the journal beside an output; `remark` is called with what was damaged."""
    with opened(output.with_name(output.name + JOURNAL_SUFFIX), _fitting(keys)) as journal:
        if journal.remark:
            remark(journal.remark)
        yield journal


def _known(cache: RowCache, left: Mapping[str, Case]) -> dict[Case, Row]:
    """Return the cached rows of cases by their key."""
    fits = _fitting({case: key for key, case in left.items()})
    return {left[key]: row for key, row in cache.load(list(left), fits).items()}


def _distribution(workers: int | None, cluster: str | None) -> Distribution:
    """Return how pieces of work are distributed; InputError where that cannot be."""
    if cluster is None:
        return partial(worked_out, workers=workers)
    from gpusim.host import cluster as clusters

    return partial(clusters.worked_out, address=cluster, workers=workers)


def _worked_out(cases: Sequence[Case], distribute: Distribution) -> Iterator[dict[Case, Row]]:
    """Yield the rows of some cases, in order of completion."""
    pieces = _pieces(cases)
    for number, rows in distribute(_rows_of, pieces):
        yield dict(zip(pieces[number], rows, strict=True))


def _pieces(cases: Sequence[Case], most: int = MOST_ROWS) -> list[list[Case]]:
    """Return pieces of work of at most `most` rows.

    The sizes of a launch on devices of one compute capability are one piece of work, or some,
    device by device: what does not depend on the size is worked out once for each, and
    code and classes of blocks once for all.
    """
    pieces: dict[Any, list[Case]] = {}
    for case in sorted(cases, key=_first_of(cases)):
        pieces.setdefault((_without_size(case), _capability(case.device)), []).append(case)
    whole = [_by_device(piece) for piece in pieces.values()]
    return [piece[first : first + most] for piece in whole for first in range(0, len(piece), most)]


def _by_device(piece: Sequence[Case]) -> list[Case]:
    """Return cases device by device, in the order of first appearance."""
    places = {device: n for n, device in enumerate(dict.fromkeys(case.device for case in piece))}
    return sorted(piece, key=lambda case: places[case.device])


def _first_of(cases: Sequence[Case]) -> Callable[[Case], int]:
    """Return the order of launches without their sizes, by first appearance."""
    places: dict[Any, int] = {}
    for case in cases:
        places.setdefault(_without_size(case), len(places))
    return lambda case: places[_without_size(case)]


def _without_size(case: Case) -> Any:
    return case.request.sized(1, case.request.block), case.choices


def _rows_of(cases: Sequence[Case]) -> list[Row]:
    return [row_of(case) for case in cases]


@cache
def _capability(device: str) -> str:
    """Return the compute capability of a device, "" where there is none of this name."""
    try:
        return str(devices.load(device).cc)
    except GpusimError:
        return ""


def _complete(output: Path, keys: Iterable[str]) -> list[Row] | None:
    """Return the rows of a complete output, None for an empty or missing one."""
    if not output.exists() or not output.stat().st_size:
        return None
    rows = rows_of(output)
    if [row["digest"] for row in rows] != [key[:DIGITS] for key in keys]:
        raise InputError(
            f"{shown(output)}: has other content than the rows of this sweep; "
            "give --overwrite to replace it, or another file"
        )
    return rows


def _fitting(keys: Mapping[Case, str]) -> Callable[[str, Row], bool]:
    """Return a test of journal rows: valid for their case; rows of other cases always are."""
    cases = {key: case for case, key in keys.items()}
    return lambda key, row: key not in cases or _belongs(row, cases[key], key)


def _belongs(row: Row, case: Case, key: str) -> bool:
    """Whether a row of a journal is valid for this case."""
    if tuple(row) != COLUMNS or row["digest"] != key[:DIGITS]:
        return False
    asked = {name: value for name, value in _asked(case).items() if value is not None}
    return all(row[name] == value for name, value in asked.items()) and all(
        is_cell(name, value) for name, value in row.items()
    )


def _check_output(output: Path) -> None:
    if output.suffix not in FORMATS:
        ends = " or ".join(FORMATS)
        raise InputError(f"the output is a file that ends in {ends}, not {shown(output)}")
    require_format(output.suffix)
    with refusing(output):
        if output.exists() and not output.is_file():
            raise InputError(f"{shown(output)}: is not a file for a table")
        if not output.parent.is_dir():
            raise InputError(f"there is no directory {shown(output.parent)} for {output.name}")


def _key(case: Case, model: str = "") -> str:
    """Return a digest of a row's inputs: the case, its device's numbers and a model, this one's."""
    facts = {
        **asdict(case),
        "device": _numbers(case.device),
        "model": model or _model(),
        "compilers": generators.stamp(case.code),
    }
    written = json.dumps([case.device, facts], sort_keys=True, default=_name_of)
    return hashlib.sha256(written.encode()).hexdigest()


def _name_of(made: Any) -> str:
    """Return the name of a function that makes launches: its rows are kept nowhere."""
    return str(made.__qualname__)


@cache
def _numbers(name: str) -> Any:
    device: Device = devices.load(name)
    return {key: fact.value for key, fact in device.facts.items()}


@cache
def _model() -> str:
    """Return a digest of gpusim's own source and quantiles: no other version's rows are reused."""
    digest = hashlib.sha256()
    root = Path(__file__).parents[2]
    for path in [*sorted(root.rglob("*.py")), TABLE]:
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
