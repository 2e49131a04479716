"""The server of a program's processes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, cast

import pytest

from gpusim.driver.server import Server
from gpusim.errors import InputError
from gpusim.gpu.device import load

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs run on Linux alone")


def test_a_folder_with_too_long_a_name_for_a_socket_is_a_sentence(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    with pytest.raises(InputError, match="set TMPDIR to a folder with a short name"):
        Server(folder, load("h200"), cast(Any, None))
