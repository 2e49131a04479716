"""Work in processes: as many as are asked for, and no more than the machine has cores."""

from __future__ import annotations

import os

import pytest

from gpusim.host import workers


def process(_: int) -> int:
    return os.getpid()


def test_no_more_processes_are_started_than_there_are_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One core does all pieces in the process itself."""
    monkeypatch.setattr(workers, "cores", lambda: 1)
    found = dict(workers.worked_out(process, range(5), 1024))
    assert found == dict.fromkeys(range(5), os.getpid())
