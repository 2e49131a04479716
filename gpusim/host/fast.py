"""Whether compiled code runs: the switches in the environment, and the library that runs it.

`GPUSIM_FAST` is 1 by default; `GPUSIM_THREADS` is the number of threads of a launch.
"""

from __future__ import annotations

import os
import warnings
from functools import cache

from gpusim.errors import GpusimWarning, InputError

SWITCH = "GPUSIM_FAST"
OFF, ON = VALUES = ("0", "1")
THREADS = "GPUSIM_THREADS"
MOST_THREADS = 64
MOST_UNASKED = 4  # threads: each has a copy of the arrays


def is_wanted() -> bool:
    """Return whether compiled code may run; with `GPUSIM_FAST=0`, Python and SimPy run all.

    Raises InputError for any other value than 0 or 1.
    """
    said = os.environ.get(SWITCH) or ON
    if said not in VALUES:
        raise InputError(f"{SWITCH} in the environment is {said!r}; it is {' or '.join(VALUES)}")
    return said == ON


@cache
def has_library() -> bool:
    """Return whether the library that runs compiled code is there; if not, say so once."""
    try:
        import wasmtime  # noqa: F401
    except Exception as error:  # also of a library for another processor
        say(f"wasmtime does not run here ({error})")
        return False
    return True


@cache
def say(reason: str) -> None:
    """Say once why Python and SimPy run in place of compiled code."""
    how = f"slower, with the same results ({SWITCH}={OFF} does so on purpose)"
    warnings.warn(f"{reason}: Python and SimPy run, {how}", GpusimWarning, stacklevel=2)


def threads() -> int:
    """Return the most threads of a launch: GPUSIM_THREADS, else one a processor, up to 4.

    In a worker process it is one. Raises InputError for anything but a number of 1 to 64.
    """
    said = os.environ.get(THREADS)
    if said:
        if not (said.isascii() and said.isdigit() and 1 <= int(said[:9]) <= MOST_THREADS):
            raise InputError(
                f"{THREADS} in the environment is {said!r}; it is a number of 1 to {MOST_THREADS}"
            )
        return int(said)
    import multiprocessing

    if multiprocessing.parent_process() is not None:
        return 1
    return min(
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1, MOST_UNASKED
    )
