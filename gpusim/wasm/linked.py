"""Modules linked by the names of their functions, with one memory: compiled, or interpreted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from gpusim.host.interrupts import stopped_by_signals
from gpusim.typing import Array
from gpusim.wasm.memory import TrapError

if TYPE_CHECKING:
    import wasmtime

PAGE = 1 << 16


class Host(NamedTuple):
    """A function that modules call: the numbers of its parameters and results, each an `i32`."""

    given: int
    returned: int
    function: Callable[..., Any]


class Linked(Protocol):
    """Modules linked to functions of the host, with their memory."""

    memory: Array

    def grow(self, pages: int) -> None:
        """Add pages to the memory; it may move."""

    def call(self, name: str) -> Any:
        """Call a function; TrapError where it traps."""

    def stop(self) -> None:
        """Let a running function trap, called from another thread."""

    def close(self) -> None:
        """Free the memory."""


Link = Callable[[Mapping[str, Host], int], Linked]  # of functions and pages


class LinkedModules:
    """Compiled modules; the first has the memory, each one the functions of those before it."""

    def __init__(
        self,
        engine: wasmtime.Engine,
        modules: Sequence[wasmtime.Module],
        name: str,
        functions: Mapping[str, Host],
        pages: int,
    ) -> None:
        import wasmtime

        self.stop = engine.increment_epoch
        self._store = wasmtime.Store(engine)
        word, linker = wasmtime.ValType.i32(), wasmtime.Linker(engine)
        for own, one in functions.items():
            kind = wasmtime.FuncType([word] * one.given, [word] * one.returned)
            called = wasmtime.Func(self._store, kind, one.function)
            linker.define(self._store, name, own, called)
        first, *others = modules
        linker.define_instance(self._store, name, linker.instantiate(self._store, first))
        # By name: a table of all exports takes a hundred calls.
        self._export: Callable[[str], Any] = partial(linker.get, self._store, name)
        held: Any = self._export("memory")
        self._memory: Any = held
        self.grow(pages - held.size(self._store))
        self._store.set_epoch_deadline(1)  # to fill the table
        for other in others:
            linker.instantiate(self._store, other)
        self._functions: dict[str, Any] = {}

    def grow(self, pages: int) -> None:
        """Add pages to the memory; it may move."""
        self._memory.grow(self._store, pages)
        self.memory: Array = np.frombuffer(self._memory.get_buffer_ptr(self._store), np.uint8)

    def call(self, name: str) -> Any:
        """Call a function; TrapError where it traps."""
        import wasmtime

        if name not in self._functions:
            self._functions[name] = self._export(name)
        self._store.set_epoch_deadline(1)
        try:
            with stopped_by_signals(self.stop):
                return self._functions[name](self._store)
        except (wasmtime.Trap, wasmtime.WasmtimeError) as error:
            raise TrapError(str(error)) from error

    def close(self) -> None:
        """Free the memory."""
        self._store.close()
