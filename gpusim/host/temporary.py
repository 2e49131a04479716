"""Temporary folders of a process, removed when it ends, also by a signal."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path


def folder() -> tempfile.TemporaryDirectory[str]:
    """Return a new temporary folder, removed at the end of a `with` block."""
    return tempfile.TemporaryDirectory(dir=_root())


def lasting_folder() -> Path:
    """Return a new temporary folder, removed at the end of the process."""
    return Path(tempfile.mkdtemp(dir=_root()))


def remove_all() -> None:
    """Remove all folders, before a signal ends the process."""
    if _root.cache_info().currsize:
        shutil.rmtree(_root(), ignore_errors=True)
        _root.cache_clear()


@cache
def _root() -> Path:
    atexit.register(remove_all)
    return Path(tempfile.mkdtemp(prefix="gpusim-"))
