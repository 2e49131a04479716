"""Modules that CPython runs, translated to Python, where no compiled code runs."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from gpusim.typing import Array
from gpusim.wasm import lanes, memory
from gpusim.wasm.linked import PAGE, Host
from gpusim.wasm.memory import TrapError
from gpusim.wasm.python_code import translated
from gpusim.wasm.python_values import name_of
from gpusim.wasm.sources import EXTERNAL, Function

_DATA = re.compile(r'\(data \(i32\.const (\d+)\) "([^"]*)"\)')
_MOST_KEPT = 256  # modules
# What Python raises where WebAssembly traps: outside memory, in a division, in a conversion.
_TRAPS = (TrapError, struct.error, IndexError, BufferError, ZeroDivisionError)


@lru_cache(_MOST_KEPT)
def _code(text: str) -> CodeType:
    return compile(translated(text), "<module>", "exec")


def _without_sign(host: Host) -> Callable[..., Any]:
    """Return a function of the host whose result has no sign, as translated code expects."""
    if not host.returned:
        return host.function
    return lambda *given: host.function(*given) & 0xFFFFFFFF


class Interpreted:
    """Modules in Python: a later one's function takes the place of an earlier one's of its name.

    Some external functions run as CPython has them (`sources.external`).
    """

    def __init__(
        self,
        texts: Sequence[str],
        own: Sequence[Function],
        functions: Mapping[str, Host],
        pages: int,
    ) -> None:
        self._names: dict[str, Any] = dict(lanes.NAMES)
        self._names |= {name_of(f"${name}"): _without_sign(one) for name, one in functions.items()}
        self._bytes = bytearray()
        self.grow(pages)
        for text in texts:
            exec(_code(text), self._names)
            for at, data in _DATA.findall(text):
                held = bytes.fromhex(data.replace("\\", ""))
                self._bytes[int(at) : int(at) + len(held)] = held
        self._names |= {name_of(f"${EXTERNAL[one]}"): one for one in own}

    def grow(self, pages: int) -> None:
        """Add pages to the memory, which moves."""
        self._bytes = self._bytes + bytearray(PAGE * pages)
        self.memory: Array = np.frombuffer(self._bytes, np.uint8)
        self._names |= lanes.of_memory(self._bytes)

    def call(self, name: str) -> Any:
        """Call a function; TrapError where it traps."""
        memory.use(self._bytes)
        try:
            with np.errstate(all="ignore"):
                return self._names[name_of(f"${name}")]()
        except _TRAPS as error:
            raise TrapError(str(error)) from error

    def stop(self) -> None:
        """Do nothing: an interrupt raises its exception in Python's code."""

    def close(self) -> None:
        """Free the memory."""
        self._names.clear()
