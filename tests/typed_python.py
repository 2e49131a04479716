"""Functions of typed Python as they are compiled, with their memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import wasmtime

from gpusim.wasm.module import functions_of, module_of


class Compiled:
    """A function in a module of its own; `memory` is the module's."""

    def __init__(self, function: Callable[..., Any], packages: tuple[str, ...] = ()) -> None:
        engine = wasmtime.Engine()
        text = module_of(function, {}, packages)
        self._store = wasmtime.Store(engine)
        made = wasmtime.Instance(self._store, wasmtime.Module(engine, text), [])
        exports: Any = made.exports(self._store)
        self._run, self._memory = exports[function.__name__], exports["memory"]

    def __call__(self, *arguments: float) -> Any:
        result = self._run(self._store, *arguments)
        return tuple(result) if isinstance(result, list) else result

    @property
    def memory(self) -> Any:
        """The memory as bytes that can be written to."""
        return memoryview(self._memory.get_buffer_ptr(self._store)).cast("B")


class Linked:
    """Functions of typed Python in one module, by name, with `exported` ones of the text beside."""

    def __init__(
        self,
        functions: dict[str, Callable[..., Any]],
        packages: tuple[str, ...],
        beside: str = "",
        exported: Iterable[str] = (),
    ) -> None:
        names = (*functions, *exported)
        exports = " ".join(f'(export "{name}" (func ${name}))' for name in names)
        text = functions_of(functions, packages)
        engine = wasmtime.Engine()
        module = wasmtime.Module(
            engine, f'(module (memory (export "memory") 2) {beside} {text} {exports})'
        )
        self._store = wasmtime.Store(engine)
        self._exports: Any = wasmtime.Instance(self._store, module, []).exports(self._store)

    def call(self, name: str, *arguments: int) -> Any:
        """Call a function; whole numbers of 32 bits may be given without a sign."""
        function = self._exports[name]
        is_word = [str(kind) == "i32" for kind in function.type(self._store).params]
        signed = [
            given - (1 << 32) if word and 1 << 31 <= given < 1 << 32 else given
            for given, word in zip(arguments, is_word, strict=True)
        ]
        return function(self._store, *signed)

    @property
    def memory(self) -> Any:
        """The memory as bytes that can be written to."""
        return memoryview(self._exports["memory"].get_buffer_ptr(self._store)).cast("B")
