"""What was made before is kept: never trusted when damaged, and the oldest goes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpusim.errors import GpusimWarning
from gpusim.host import disk_cache
from gpusim.host.disk_cache import DiskCache, key

of_unix = pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders have no modes")


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
    looks = []

    class Noting(DiskCache):
        def _shrink(self) -> None:
            looks.append(self)
            super()._shrink()

    cache = Noting("kind", most_bytes=40_000)
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


def test_an_entry_under_another_name_is_as_if_it_were_not_there(cache: DiskCache) -> None:
    """An entry's checksum covers its name: code of one program is never run as another's."""
    cache.store("one", b"MOV R1")
    (cache.folder / "one").rename(cache.folder / "two")
    assert cache.load("two") is None


def of_another(path: Path) -> None:
    if os.geteuid():
        pytest.skip("only the administrator gives files to others")
    os.chown(path, 65534, -1)


def writable(path: Path) -> None:
    path.chmod(0o777)


@pytest.fixture
def _says_again() -> Iterator[None]:
    for one in (disk_cache._say, disk_cache._temporary_folder):
        one.cache_clear()
    yield
    for one in (disk_cache._say, disk_cache._temporary_folder):
        one.cache_clear()


@of_unix
@pytest.mark.usefixtures("_says_again")
@pytest.mark.parametrize("expose", [of_another, writable])
@pytest.mark.parametrize("above", [0, 1, 2])
def test_a_cache_that_others_can_write_to_is_not_used(
    cache: DiskCache, expose: Callable[[Path], None], above: int
) -> None:
    """Neither the folder of a cache nor one of the two above it may be open to others."""
    cache.store("one", b"MOV R1")
    expose([cache.folder, *cache.folder.parents][above])
    with pytest.warns(GpusimWarning, match="kind is not used: (another user owns|other users can)"):
        assert cache.load("one") is None
    cache.store("two", b"MOV R2")
    assert not (cache.folder / "two").exists()


@of_unix
def test_a_cache_below_a_sticky_folder_is_used(cache: DiskCache) -> None:
    cache.store("one", b"MOV R1")
    cache.folder.parent.parent.chmod(0o1777)
    assert cache.load("one") == b"MOV R1"


@of_unix
def test_an_entry_of_another_user_is_not_used(cache: DiskCache) -> None:
    cache.store("one", b"MOV R1")
    of_another(cache.folder / "one")
    assert cache.load("one") is None


@of_unix
def test_folders_of_caches_are_closed_to_others(cache: DiskCache) -> None:
    cache.store("one", b"MOV R1")
    assert [one.stat().st_mode & 0o777 for one in (cache.folder, cache.folder.parent)] == [
        0o700
    ] * 2


@of_unix
@pytest.mark.usefixtures("_says_again")
def test_a_program_is_not_taken_from_a_cache_that_others_can_write_to(cache: DiskCache) -> None:
    place = disk_cache.program_place("kind", "program")
    assert place == cache.folder / "program"
    place.write_text("planted")
    cache.folder.chmod(0o777)
    with pytest.warns(GpusimWarning) as said:
        other = disk_cache.program_place("kind", "program")
    assert other.name == "program"
    assert not other.exists()
    assert other.parent != cache.folder
    assert "compiled again in each run" in str(said[-1].message)


@of_unix
def test_a_program_that_others_can_write_to_is_dropped(cache: DiskCache) -> None:
    """It is left from a time when its folder was open to others."""
    place = disk_cache.program_place("kind", "program")
    place.write_text("planted")
    place.chmod(0o777)
    assert disk_cache.program_place("kind", "program") == place
    assert not place.exists()


@pytest.mark.usefixtures("_says_again")
def test_programs_are_compiled_elsewhere_where_no_cache_can_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.warns(GpusimWarning, match="the driver cache cannot be used"):
        place = disk_cache.program_place("driver", "one")
    assert place.parent.is_dir()
    assert disk_cache.program_place("driver", "one") == place
