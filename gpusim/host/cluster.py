"""Work in independent pieces on a cluster of dask.distributed: the same results as on one computer.

Pieces of a worker that is killed are given to others by the scheduler. Each finished piece is
returned to the client at once.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from gpusim.errors import InputError
from gpusim.host.files import shown
from gpusim.host.installation import install
from gpusim.host.workers import cores
from gpusim.version import __version__

Piece = TypeVar("Piece")
Result = TypeVar("Result")

LOCAL = "local"
CONNECTING_S = 10.0
FAILURES = 10  # kills of workers that a piece survives
# Of a cluster of this computer: its workers are not profiled, which a dashboard alone would show,
# and watched less often: four of them took 0.12 s of processor time a second without work, now
# 0.025.
OF_WORKERS = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}


def worked_out(
    function: Callable[[Piece], Result],
    pieces: Sequence[Piece],
    *,
    address: str,
    workers: int | None = None,
) -> Iterator[tuple[int, Result]]:
    """Yield the number of each piece and its result, in order of completion.

    `address` is that of a scheduler, such as tcp://host:8786, or "local" for a cluster of `workers`
    processes on this computer, by default one for each core. Functions, pieces and results are
    pickled. InputError where there is no scheduler, where it goes away, and where a worker has
    another version of gpusim.
    """
    if not pieces:
        return
    with _connected(address, workers) as client:
        import distributed
        from distributed.client import ClosedClientError

        futures: Any = []
        finished: Any = distributed.as_completed  # has no types
        try:
            _require_same_version(client)
            task = _Task(function, Path.cwd())
            futures = client.map(task, list(enumerate(pieces)), pure=False, retries=FAILURES)
            for _, result in finished(futures, loop=client.loop, with_results=True):
                if isinstance(result, CancelledError):  # it is given, not raised
                    raise result
                yield result
        except (distributed.KilledWorker, CancelledError, OSError, ClosedClientError) as error:
            raise _lost(address, error) from None
        finally:
            with suppress(Exception):  # of any kind, where the scheduler is gone
                client.cancel(futures)


class _Task:
    """A function of numbered pieces, in the folder of the client where a worker has it."""

    def __init__(self, function: Callable[[Any], Any], folder: Path) -> None:
        self._function = function
        self._folder = folder

    def __call__(self, numbered: tuple[int, Any]) -> tuple[int, Any]:
        number, piece = numbered
        if self._folder.is_dir():
            os.chdir(self._folder)
        return number, self._function(piece)


@contextmanager
def _connected(address: str, workers: int | None) -> Iterator[Any]:
    """Connect to a scheduler; InputError where there is none."""
    try:
        import dask
        import distributed
    except ImportError:
        raise InputError(f"a cluster needs dask.distributed: {install('dask')}") from None
    for name in logging.root.manager.loggerDict:  # Dask has set the level of some of its own
        if name.split(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    settings: dict[str, Any] = {"address": address, "timeout": CONNECTING_S}
    if address == LOCAL:
        settings = {
            "n_workers": workers or cores(),
            "threads_per_worker": 1,
            "dashboard_address": None,
            "silence_logs": logging.CRITICAL,
        }
    connect: Any = distributed.Client  # has no types
    try:
        with dask.config.set(OF_WORKERS):
            client = connect(**settings, set_as_default=False)
    except Exception as error:  # of any kind, by the address and the configuration of Dask
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"no Dask scheduler answers at {shown(address)}: {shown(reason)}"
        ) from None
    try:
        yield client
    finally:
        with suppress(Exception):  # of any kind, where the scheduler is gone
            client.close()


def _require_same_version(client: Any) -> None:
    versions = client.run(_version)
    others = sorted({version for version in versions.values() if version != __version__})
    if others:
        raise InputError(f"workers have gpusim {', '.join(others)}, this is {__version__}")


def _version() -> str:
    return __version__


def _lost(address: str, error: Exception) -> InputError:
    return InputError(
        f"the Dask scheduler at {address} has ended, or its workers are killed repeatedly "
        f"({type(error).__name__}); run the same command again to continue"
    )
