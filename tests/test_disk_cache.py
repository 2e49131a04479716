"""What was made before is kept: never trusted when damaged, and the oldest goes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpusim.host.disk_cache import DiskCache, key


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiskCache:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return DiskCache("kind", most_bytes=1000)


def test_an_entry_comes_back_as_it_was(cache: DiskCache) -> None:
    cache.store("one", b"MOV R1")
    assert cache.load("one") == b"MOV R1"
    assert cache.load("another") is None


@pytest.mark.parametrize("place", [0, 40, 64, -1])
def test_a_damaged_entry_is_as_if_it_were_not_there(cache: DiskCache, place: int) -> None:
    cache.store("one", b"MOV R1")
    held = bytearray((cache.folder / "one").read_bytes())
    held[place] ^= 1
    (cache.folder / "one").write_bytes(bytes(held))
    assert cache.load("one") is None


@pytest.mark.parametrize("kept", [0, 10, 64, 69])
def test_an_entry_that_was_cut_short_is_as_if_it_were_not_there(
    cache: DiskCache, kept: int
) -> None:
    cache.store("one", b"MOV R1")
    held = (cache.folder / "one").read_bytes()
    (cache.folder / "one").write_bytes(held[:kept])
    assert cache.load("one") is None


def test_the_oldest_goes_where_there_is_too_much(cache: DiskCache) -> None:
    """What was used last counts as youngest, whenever it was made."""
    for age, name in enumerate(("first", "second", "third")):
        cache.store(name, bytes(236))  # 300 with the checksum
        os.utime(cache.folder / name, (1_000_000 + age, 1_000_000 + age))
    assert cache.load("first") is not None
    cache.store("fourth", bytes(236))
    assert sorted(file.name for file in cache.folder.iterdir()) == ["first", "fourth", "third"]


def test_a_folder_of_many_small_entries_is_looked_through_at_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache, looks = DiskCache("kind", most_bytes=40_000), []
    shrink = DiskCache._shrink
    monkeypatch.setattr(DiskCache, "_shrink", lambda one: (looks.append(one), shrink(one)))
    for number in range(800):
        cache.store(str(number), number.to_bytes(4, "big") * 25)
    held = sum(file.stat().st_size for file in cache.folder.iterdir())
    assert 30_000 < held < 60_000
    assert 20 < len(looks) < 160


def test_all_goes_on_where_nothing_can_be_kept(
    cache: DiskCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    cache.store("one", b"MOV R1")
    assert cache.load("one") is None


def test_names_depend_on_each_part_and_where_it_ends() -> None:
    names = {key(parts) for parts in (["a", "b"], ["ab"], ["a", "b", ""], ["b", "a"])}
    assert len(names) == 4


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders have no modes")
def test_what_is_run_is_not_loaded_from_a_folder_that_others_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    private = DiskCache("code", most_bytes=1000, is_private=True)
    private.store("one", b"MOV R1")
    assert private.load("one") == b"MOV R1"
    private.folder.chmod(0o777)
    assert private.load("one") is None
    private.store("two", b"MOV R2")
    assert not (private.folder / "two").exists()
