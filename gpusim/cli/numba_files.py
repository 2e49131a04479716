"""Files with `from numba import cuda`: the dialect takes numba's name in their imports.

Kernels have the dialect's meaning; functions that numba would compile for the host stay plain
Python.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from gpusim import cuda
from gpusim.compiler.signatures import scalar_type, void

NOTE = (
    "{file} is run as the dialect: numba's words, with integers that wrap and divide as in "
    "CUDA C (docs/dialect.md, coming from numba.cuda)"
)
_ASKS = re.compile(r"^\s*(?:from|import)\s+(numba|gpusim)\b", re.MULTILINE)


def is_for_numba(text: str) -> bool:
    """Return whether a file imports numba, and nothing of this package."""
    return set(_ASKS.findall(text)) == {"numba"}


def has_kernels(text: str) -> bool:
    """Return whether a file imports numba or this package."""
    return _ASKS.search(text) is not None


class _Numba(ModuleType):
    """The module `numba` for such files: the dialect, types, and decorators without effect."""

    cuda = cuda
    void = void
    prange = range

    def __getattr__(self, name: str) -> Any:
        found = scalar_type(name)
        if found is None:
            raise AttributeError(f"numba has no {name!r} here, only cuda, types, jit and njit")
        return found

    @property
    def types(self) -> _Numba:
        """The scalar types, also attributes of this module."""
        return self

    def jit(self, *given: Any, **options: Any) -> Callable[..., Any]:
        """Return a function of the host as it is, also where it is decorated with options."""
        function = given[0] if given else None
        return function if callable(function) and not options else lambda one: one

    njit = jit


@contextmanager
def as_the_dialect() -> Iterator[None]:
    """Let imports of numba find the dialect."""
    held = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_numba(name)}
    numba = _Numba("numba")
    numba.__path__ = []  # a package without other modules
    sys.modules.update({"numba": numba, "numba.cuda": cuda, "numba.types": numba})
    try:
        yield
    finally:
        for name in [name for name in sys.modules if _is_numba(name)]:
            del sys.modules[name]
        sys.modules.update(held)


def _is_numba(name: str) -> bool:
    return name.partition(".")[0] == "numba"
