"""Rows of earlier sweeps on disk: found again, and never trusted when damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from gpusim.catalogue import Request
from gpusim.host.disk_cache import folder
from gpusim.prediction.sweeps import row_cache
from gpusim.prediction.sweeps.row_cache import FILE, FOLDER, opened
from gpusim.prediction.sweeps.sweep import Case, Swept, crossed, sweep

CASES = crossed([Request("reduce3")], [64, 128], [2**12], ["h200", "k40m"])


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("GPUSIM_CODE", "lowering")
    return folder(FOLDER) / FILE


@pytest.fixture
def calls() -> list[Case]:
    """The cases that `cached_sweep` predicts."""
    return []


def cached_sweep(cases: Sequence[Case], calls: list[Case]) -> Swept:
    return sweep(cases, workers=1, cached=True, progress=calls.append)


def test_a_second_sweep_predicts_nothing_and_has_the_same_rows(calls: list[Case]) -> None:
    first = cached_sweep(CASES, calls)
    assert len(calls) == 4
    assert cached_sweep(CASES, calls).rows == first.rows
    assert len(calls) == 4
    assert sweep(CASES, workers=1, progress=calls.append).rows == first.rows  # without the cache
    assert len(calls) == 8


def test_damaged_rows_are_predicted_again(calls: list[Case], file: Path) -> None:
    first = cached_sweep(CASES, calls)
    with sqlite3.connect(file) as held:
        (line,) = held.execute("SELECT line FROM rows WHERE rowid = 1").fetchone()
        damaged = line.replace(b"reduce3", b"reduce4")
        assert damaged != line
        held.execute("UPDATE rows SET line = ? WHERE rowid = 1", (damaged,))
    held.close()
    assert cached_sweep(CASES, calls).rows == first.rows
    assert len(calls) == 5


@pytest.mark.parametrize("content", [b"", b"no database" * 1000, None])
def test_a_damaged_or_deleted_file_is_replaced(
    calls: list[Case], file: Path, content: bytes | None
) -> None:
    cached_sweep(CASES, calls)
    for path in file.parent.iterdir():
        path.unlink()
    if content is not None:
        file.write_bytes(content)
    cached_sweep(CASES, calls)
    assert len(calls) == 8
    cached_sweep(CASES, calls)
    assert len(calls) == 8


def test_a_folder_that_cannot_be_written_is_no_obstacle(
    monkeypatch: pytest.MonkeyPatch, calls: list[Case]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    assert len(cached_sweep(CASES[:1], calls).rows) == 1
    assert len(calls) == 1


def test_a_locked_file_is_no_obstacle(
    monkeypatch: pytest.MonkeyPatch, file: Path, calls: list[Case]
) -> None:
    monkeypatch.setattr("gpusim.prediction.sweeps.row_cache.PATIENCE_S", 0.01)
    first = cached_sweep(CASES[:1], calls)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")  # readers of a write-ahead log go on, writers do not
    assert cached_sweep(CASES[:2], calls).rows[0] == first.rows[0]
    assert 2 <= len(calls) <= 3
    other.close()
    file.unlink()
    cached_sweep(CASES[:1], calls)
    begun = len(calls)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("DELETE FROM rows")  # holds the file from here on, for readers too
    assert cached_sweep(CASES[:2], calls).rows[0] == first.rows[0]
    assert len(calls) == begun + 2
    other.close()


def test_a_full_file_is_no_obstacle(monkeypatch: pytest.MonkeyPatch, calls: list[Case]) -> None:
    """A database with the most pages that it may have answers as a full disk does."""
    (row,) = cached_sweep(CASES[:1], calls).rows
    connected = row_cache._connected

    def full(path: Path) -> sqlite3.Connection | None:
        made = connected(path)
        assert made is not None
        made.execute("PRAGMA max_page_count = 1")  # no page more than there are
        return made

    keys = [f"{number:04}" for number in range(50)]
    with monkeypatch.context() as patch:
        patch.setattr(row_cache, "_connected", full)
        with opened() as cache:
            for key in keys:
                cache.store(key, row)
            kept = list(cache.load(keys, lambda *_: True))
        assert len(kept) < len(keys)
        assert cached_sweep(CASES, calls).rows[0] == row
        assert len(calls) == 4
    with opened() as cache:
        assert list(cache.load(keys, lambda *_: True)) == kept


def test_launches_that_cannot_run_are_not_kept(calls: list[Case]) -> None:
    cases = [Case(Request("reduce3", 2**12, block=96), "h200")]
    for _ in range(2):
        (row,) = cached_sweep(cases, calls).rows
        assert "power of two" in row["reason"]
    assert len(calls) == 2


def test_the_oldest_rows_are_dropped(file: Path, calls: list[Case]) -> None:
    cached_sweep(CASES, calls)
    with opened(most_rows=3):
        pass
    with sqlite3.connect(file) as held:
        assert held.execute("SELECT count(*) FROM rows").fetchone() == (3,)
    held.close()
    assert len(calls) == 4


def test_a_launch_on_several_devices_is_one_piece_of_work_by_compute_capability(
    calls: list[Case],
) -> None:
    cases = crossed(
        [Request("reduce3"), Request("reduce1")], [64], [2**10], ["h200", "k40m", "h100"]
    )
    rows = sweep(cases, workers=1, progress=calls.append).rows
    assert [(row["device"], row["kernel"]) for row in rows] == [
        (case.device, case.request.kernel) for case in cases
    ]
    assert [(case.request.kernel, case.device) for case in calls] == [
        (name, device) for name in ("reduce3", "reduce1") for device in ("h200", "h100", "k40m")
    ]
