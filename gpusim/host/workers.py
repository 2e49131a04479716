"""Work in independent pieces, on all cores; results depend on neither order nor number of cores.

Worker processes hold the reading end of a pipe. When the parent closes the other end, or is killed,
they exit at once, in the middle of their work.
"""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import TypeVar

from gpusim.errors import InputError

Piece = TypeVar("Piece")
Result = TypeVar("Result")
Listener = Callable[[str], None]  # is called for each finished piece


def ignored(_: object) -> None:
    """Do nothing."""


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def worked_out(
    function: Callable[[Piece], Result], pieces: Sequence[Piece], workers: int | None = None
) -> Iterator[tuple[int, Result]]:
    """Yield the number of each piece and its result, in order of completion.

    `workers` is the number of processes, at most and by default one for each core. With more than
    one, function, pieces and results must be of a kind that can be pickled. InputError where a
    process is killed, or cannot be started.
    """
    count = min(cores(), len(pieces)) if workers is None else min(workers, cores(), len(pieces))
    if count <= 1:
        for number, piece in enumerate(pieces):
            yield number, function(piece)
        return
    with _refusing(), _pool(count) as pool:
        try:
            with _interrupts_held_back():
                futures = {pool.submit(function, piece): n for n, piece in enumerate(pieces)}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:
            raise InputError(
                "a worker process was killed, perhaps out of memory; use fewer --workers"
            ) from None


@contextmanager
def _refusing() -> Iterator[None]:
    """Turn the system's errors about processes and pipes into an InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(f"no worker process can be started: {error.strerror}") from None


@contextmanager
def _pool(count: int) -> Iterator[ProcessPoolExecutor]:
    """Make processes that end with the block: when they are done, or at once if it fails."""
    context = get_context("spawn")
    end, ours = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(count, context, initializer=_begin_worker, initargs=(end,))
    try:
        yield pool
    except BaseException:
        ours.close()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        ours.close()
        end.close()


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Keep an interrupt until the block ends, and from the processes that start in it.

    A process that is interrupted while it starts would print a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_worker(end: Connection) -> None:
    """Leave an interrupt to the parent, and do not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")  # the parent prints the warnings of a user's file
    threading.Thread(target=_leave_with_parent, args=(end,), daemon=True).start()


def _leave_with_parent(end: Connection) -> None:
    try:
        end.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)
