"""A module of WebAssembly: one function of Python and its call graph."""

from __future__ import annotations

import dataclasses
import inspect
from collections import deque
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from typing import Any, TypeVar, get_type_hints

from gpusim.wasm.expressions import Expressions, Signature
from gpusim.wasm.layouts import Layouts
from gpusim.wasm.sources import EXTERNAL, Function, Source, source_of
from gpusim.wasm.statements import Statements
from gpusim.wasm.value_types import Bindings, Kind, ListOf, Reference, flat, kind_of
from gpusim.wasm.values import Value

# Functions up to this number of syntax nodes are inlined, up to this depth: a call costs as much
# as ten instructions. Parts of larger modules are compiled with each of them: they are shorter.
_LARGEST, _LARGEST_OF_MANY, _DEEPEST = 110, 60, 3


def module_of(entry: Function, bindings: Bindings, packages: tuple[str, ...] = ()) -> str:
    """Return the text of a module that exports a function by its name.

    `bindings` maps protocols to classes. Functions name numbers of `packages` alone, whose source
    identifies the module (`sources.digest`). NotTranslatedError for untranslatable Python.
    """
    return _Module(bindings, packages, _LARGEST).text(entry)


def functions_of(entries: Mapping[str, Function], packages: tuple[str, ...]) -> str:
    """Return the text of functions, by name, and of those that they call, for a larger module.

    They use neither lists nor new objects: the module needs no allocator.
    """
    return _Module({}, packages, _LARGEST_OF_MANY).functions(entries)


class _Module:
    """Translated functions, and a queue of functions still to be translated."""

    def __init__(self, bindings: Bindings, packages: tuple[str, ...], largest: int) -> None:
        self.packages = packages
        self._largest = largest
        self.layouts = Layouts(bindings)
        self._known: dict[tuple[Function, tuple[Kind, ...]], Signature] = {}
        self._constructors: dict[type, Signature] = {}
        self._required: set[str] = set()
        self._waiting: deque[Callable[[], str]] = deque()

    def text(self, entry: Function) -> str:
        """Return the whole module."""
        functions = self.functions({entry.__name__: entry})
        export = f'(export "{entry.__name__}" (func ${entry.__name__}))'
        return "\n".join(["(module", _written("prelude.wat"), export, functions, ")"])

    def functions(self, entries: Mapping[str, Function]) -> str:
        """Return functions, each with its name, and those that they call."""
        for name, entry in entries.items():
            self.require(self._named(f"${name}", entry, ()))
        functions = []
        while self._waiting:
            functions.append(self._waiting.popleft()())
        text = "\n".join(functions)
        called = [one for name, one in _arithmetic().items() if f"call ${name} " in text]
        return "\n".join([text, *called])

    # -- called by the translation of functions ----------------------------------------

    def function(self, function: Function, given: tuple[Kind, ...]) -> Signature:
        """Return the signature for arguments of these kinds."""
        name = f"${function.__module__}.{function.__qualname__}.{len(self._known)}"
        return self._named(name, function, given)

    def _named(self, name: str, function: Function, given: tuple[Kind, ...]) -> Signature:
        key = function, given
        if key not in self._known:
            bindings = _bound(function, given, self.layouts.bindings)
            self._known[key] = self._signature(name, source_of(function), bindings)
        return self._known[key]

    def require(self, called: Signature) -> None:
        """Queue the translation of a function, unless it is known or inlined wherever called."""
        source = called.source
        if source is not None and called.name not in self._required:
            self._required.add(called.name)
            self._waiting.append(lambda: Statements(source, self).translated(called))

    def constructor(self, cls: type) -> Signature:
        """Return the signature of a class's constructor."""
        if cls not in self._constructors:
            made = _from_fields if dataclasses.is_dataclass(cls) else self._from_init
            self._constructors[cls] = made(cls, self)
        return self._constructors[cls]

    def inlined(self, caller: Expressions, called: Signature, given: list[Value]) -> Value | None:
        """Return the value of an inlined call, None for a function too large to inline."""
        if called.source is None or caller.depth >= _DEEPEST or called.source.size > self._largest:
            return None
        body = Statements(called.source, self, caller)
        value = body.inlined(called, given)
        caller.locals.extend(body.locals)
        return value

    # -- signatures --------------------------------------------------------------------

    def _signature(self, name: str, source: Source, bindings: Bindings) -> Signature:
        function, hints = source.function, get_type_hints(source.function, include_extras=True)
        parameters: dict[str, Kind] = {}
        for parameter in source.tree.args.args + source.tree.args.kwonlyargs:
            is_self = parameter.arg == "self"
            annotation = _owner(function) if is_self else hints.get(parameter.arg)
            kind = None if annotation is None else kind_of(annotation, bindings)
            if kind is None:
                raise source.refusal(f"the type of {parameter.arg} is not translated", parameter)
            parameters[parameter.arg] = kind
        result = kind_of(hints.get("return"), bindings)
        if result is None:
            raise source.refusal("the type of the result is not translated", source.tree)
        given = inspect.signature(function).parameters.values()
        defaults = {one.name: one.default for one in given if one.default is not one.empty}
        outside = EXTERNAL.get(function)
        if outside is not None:
            return Signature(f"${outside}", parameters, defaults, result)
        return Signature(name, parameters, defaults, result, source)

    def add(self, text: Callable[[], str]) -> None:
        """Queue a function for the module."""
        self._waiting.append(text)

    def _from_init(self, cls: type, _: object) -> Signature:
        """Return the constructor of a class with an `__init__`."""
        init = self.function(cls.__init__, ())  # type: ignore[misc]
        self.require(init)
        parameters = {name: kind for name, kind in init.parameters.items() if name != "self"}
        made = Signature(f"$new.{cls.__qualname__}", parameters, init.defaults, Reference(cls))
        given = " ".join(f"(local.get {slot})" for slot, _ in _slots(parameters))
        self.add(
            lambda: _allocating(
                made, self.layouts.of(cls).size, f"(call {init.name} (local.get $at) {given})"
            )
        )
        return made


def _written(file: str) -> str:
    return resources.files(__package__).joinpath(file).read_text(encoding="utf-8")


@cache
def _arithmetic() -> dict[str, str]:
    """Return the functions of arithmetic, by name."""
    parts = _written("arithmetic.wat").split("(func $")[1:]
    return {part.split()[0]: f"(func ${part}" for part in parts}


def _from_fields(cls: type, module: _Module) -> Signature:
    """Return the constructor of a dataclass, field by field."""
    layout = module.layouts.of(cls)
    parameters = {name: field.kind for name, field in layout.fields.items()}
    defaults: dict[str, Any] = {field.name: field.default for field in dataclasses.fields(cls)}
    made = Signature(f"$new.{cls.__qualname__}", parameters, defaults, Reference(cls))
    stores = " ".join(
        f"({one.wasm}.store offset={offset} (local.get $at) (local.get {slot}))"
        for (slot, one), offset in zip(_slots(parameters), range(0, layout.size, 8), strict=True)
    )
    module.add(lambda: _allocating(made, layout.size, stores))
    return made


def _slots(parameters: dict[str, Kind]) -> list[tuple[str, Any]]:
    return [
        (f"${name}.{number}", one)
        for name, kind in parameters.items()
        for number, one in enumerate(flat(kind))
    ]


def _allocating(made: Signature, size: int, fill: str) -> str:
    parameters = " ".join(f"(param {slot} {one.wasm})" for slot, one in _slots(made.parameters))
    return (
        f"(func {made.name} {parameters} (result i32) (local $at i32)\n"
        f"(local.set $at (call $allocate (i32.const {size})))\n{fill}\n(local.get $at))"
    )


def _owner(function: Function) -> Any:
    """Return the class of a method."""
    return getattr(inspect.getmodule(function), function.__qualname__.split(".")[0])


def _bound(function: Function, given: tuple[Kind, ...], bindings: Bindings) -> Bindings:
    """Return bindings with a generic function's type variables bound to the arguments' kinds."""
    if not given:
        return bindings
    found = dict(bindings)
    for annotation, kind in zip(get_type_hints(function).values(), given, strict=False):
        if isinstance(annotation, TypeVar):
            found[annotation] = kind
        elif isinstance(kind, ListOf):
            found[annotation.__args__[0]] = kind.element
    return found
