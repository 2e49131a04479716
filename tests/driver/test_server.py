"""The server of a program's processes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, cast

import pytest

from gpusim.driver import shared_objects
from gpusim.driver.server import Server
from gpusim.errors import GpusimWarning, InputError
from gpusim.gpu.device import load
from gpusim.host import disk_cache

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs run on Linux alone")


def test_a_folder_with_too_long_a_name_for_a_socket_is_a_sentence(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    with pytest.raises(InputError, match="set TMPDIR to a folder with a short name"):
        Server(folder, load("h200"), cast(Any, None))


def test_a_driver_in_a_cache_that_others_can_write_to_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    built: list[Path] = []
    monkeypatch.setattr(shared_objects, "_build", built.append)
    planted = tmp_path / "gpusim" / "driver" / shared_objects._digest()
    planted.mkdir(parents=True)
    (planted / shared_objects.RUNTIMES[-1]).write_text("planted")
    assert shared_objects.folder() == planted
    planted.parent.chmod(0o777)
    disk_cache._say.cache_clear()
    with pytest.warns(GpusimWarning) as said:
        assert shared_objects.folder() != planted
    assert "driver is not used: other users can write to" in str(said[0].message)
    assert len(built) == 1
