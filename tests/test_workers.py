"""Work in processes: as many as are asked for, and no more than the machine has cores."""

from __future__ import annotations

import os

import pytest

from gpusim.host import workers


def process(_: int) -> int:
    return os.getpid()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no choice of cores")
def test_no_more_processes_are_started_than_there_are_cores() -> None:
    """One core does all pieces in the process itself."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        found = dict(workers.worked_out(process, range(5), 1024))
    finally:
        os.sched_setaffinity(0, allowed)
    assert found == dict.fromkeys(range(5), os.getpid())
