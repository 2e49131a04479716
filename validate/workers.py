"""Work in independent pieces, on all cores; what comes out depends on neither order nor number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TypeVar

from gpusim.errors import InputError
from gpusim.prediction.sweeps import cores

Piece = TypeVar("Piece")
Result = TypeVar("Result")
Listener = Callable[[str], None]  # is called with the kernel of each launch that is finished


def ignored(_: str) -> None:
    """Listen to nothing."""


def worked_out(
    function: Callable[[Piece], Result], pieces: Sequence[Piece], workers: int | None = None
) -> Iterator[tuple[int, Result]]:
    """Yield the number of each piece and its result, as they are finished.

    `workers` is the number of processes, one for each core without it. With more than one,
    function, pieces and results must be of a kind that can be pickled. InputError where a
    process is killed.
    """
    count = min(cores() if workers is None else workers, len(pieces))
    if count <= 1:
        for number, piece in enumerate(pieces):
            yield number, function(piece)
        return
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(function, piece): n for n, piece in enumerate(pieces)}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:
            raise InputError(
                "a worker process was killed, perhaps for want of memory; fewer --workers need less"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)
