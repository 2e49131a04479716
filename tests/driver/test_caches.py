"""Kernels in the caches of packages: cubins are found among other bytes, nothing is unpickled."""

from __future__ import annotations

import pickle
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from driver.host import cubin, needs_compilers

from gpusim import trace
from gpusim.cli.app import main
from gpusim.driver.caches import cache_file
from gpusim.errors import InputError

pytestmark = needs_compilers


class Trap:
    """A pickle of it would end the test."""

    def __reduce__(self) -> tuple[object, ...]:
        return exit, (3,)


def held(name: str, tmp_path: Path) -> Path:
    path, pickled = tmp_path / name, pickle.dumps([Trap(), b"\x7fELF no ELF", cubin(), "text"])
    if path.suffix == ".nbc":
        path.write_bytes(pickled)
        return path
    with sqlite3.connect(path) as database:
        database.execute('create table "compile cuda" (key text, val blob)')
        database.execute('insert into "compile cuda" values (?, ?)', ("k", pickled))
    database.close()
    return path


@pytest.mark.parametrize("name", ["kernel.nbc", "cache.db"])
def test_a_kernel_of_a_cache_is_launched_as_of_a_cubin(name: str, tmp_path: Path) -> None:
    kernel = cache_file(held(name, tmp_path))["scale"]
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    trace(kernel[2, 32], y, x, np.int32(64))
    assert (y == 3 * x).all()
    assert "scale" in cache_file(tmp_path / name).names


def test_the_command_line_takes_caches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = held("cache.db", tmp_path)
    launch = ["--grid", "1", "--block", "32", "--arg", "float32[32]"]
    assert main(["trace", f"{path}:race", *launch]) == 0
    assert main(["list", str(path)]) == 0
    assert f"{path}:racearg0:8bytes" in "".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("name", "words"),
    [("x.nbc", "neither cubins nor PTX"), ("x.db", "not read as a database"), ("no.db", "no such")],
)
def test_a_file_without_kernels_is_refused(name: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "x.nbc").write_bytes(b"nothing")
    (tmp_path / "x.db").write_bytes(b"nothing at all, and no database")
    with pytest.raises(InputError, match=words):
        cache_file(tmp_path / name)
