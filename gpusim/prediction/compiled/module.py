"""A module of WebAssembly: one function of Python, with all that it calls."""

from __future__ import annotations

import dataclasses
import inspect
from collections import deque
from collections.abc import Callable
from importlib import resources
from typing import Any, TypeVar, get_type_hints

from gpusim.prediction.compiled.expressions import Expressions, Signature, Value
from gpusim.prediction.compiled.kinds import Bindings, Kind, ListOf, Reference, flat, kind_of
from gpusim.prediction.compiled.layouts import Layouts
from gpusim.prediction.compiled.sources import Function, Source, source_of
from gpusim.prediction.compiled.statements import Statements

# Functions of so many nodes at most are written out where they are called, so deep at most: to
# call one takes as long as ten of its instructions.
_LARGEST, _DEEPEST = 110, 3


def module_of(entry: Function, bindings: Bindings) -> str:
    """Return a module that exports a function by its name, with what it calls.

    `bindings` say which classes stand for protocols. NotTranslatedError for what is not played.
    """
    return _Module(bindings).text(entry)


class _Module:
    """Functions that are translated, and those that are to be."""

    def __init__(self, bindings: Bindings) -> None:
        self.layouts = Layouts(bindings)
        self._known: dict[tuple[Function, tuple[Kind, ...]], Signature] = {}
        self._constructors: dict[type, Signature] = {}
        self._waiting: deque[Callable[[], str]] = deque()

    def text(self, entry: Function) -> str:
        """Return the whole module."""
        export = f'(export "{entry.__name__}" (func {self.function(entry, ()).name}))'
        functions = []
        while self._waiting:
            functions.append(self._waiting.popleft()())
        prelude = resources.files(__package__).joinpath("prelude.wat").read_text(encoding="utf-8")
        return "\n".join(["(module", prelude, export, *functions, ")"])

    # -- what functions ask for --------------------------------------------------------

    def function(self, function: Function, given: tuple[Kind, ...]) -> Signature:
        """Return how a function is called with values of some kinds; it will be translated."""
        key = function, given
        if key not in self._known:
            source = source_of(function)
            bindings = _bound(function, given, self.layouts.bindings)
            name = f"${function.__module__}.{function.__qualname__}.{len(self._known)}"
            self._known[key] = signature = self._signature(name, source, bindings)
            self._waiting.append(lambda: Statements(source, self).translated(signature))
        return self._known[key]

    def constructor(self, cls: type) -> Signature:
        """Return how an object of a class is made."""
        if cls not in self._constructors:
            made = _from_fields if dataclasses.is_dataclass(cls) else self._from_init
            self._constructors[cls] = made(cls, self)
        return self._constructors[cls]

    def inlined(self, caller: Expressions, called: Signature, given: list[Value]) -> Value | None:
        """Return what a function returns that is written out in another; None for a large one."""
        if called.source is None or caller.depth >= _DEEPEST or called.source.size > _LARGEST:
            return None
        body = Statements(called.source, self, caller)
        value = body.inlined(called, given)
        caller.locals.extend(body.locals)
        return value

    # -- how they are called -----------------------------------------------------------

    def _signature(self, name: str, source: Source, bindings: Bindings) -> Signature:
        function, hints = source.function, get_type_hints(source.function)
        parameters: dict[str, Kind] = {}
        for parameter in source.tree.args.args + source.tree.args.kwonlyargs:
            is_self = parameter.arg == "self"
            annotation = _owner(function) if is_self else hints.get(parameter.arg)
            kind = None if annotation is None else kind_of(annotation, bindings)
            if kind is None:
                raise source.refusal(f"{parameter.arg} is of no kind that is played", parameter)
            parameters[parameter.arg] = kind
        result = kind_of(hints.get("return"), bindings)
        if result is None:
            raise source.refusal("what is returned is of no kind that is played", source.tree)
        given = inspect.signature(function).parameters.values()
        defaults = {one.name: one.default for one in given if one.default is not one.empty}
        return Signature(name, parameters, defaults, result, source)

    def add(self, text: Callable[[], str]) -> None:
        """Let a function be in the module."""
        self._waiting.append(text)

    def _from_init(self, cls: type, _: object) -> Signature:
        """Return what makes an object with its class's `__init__`."""
        init = self.function(cls.__init__, ())  # type: ignore[misc]
        parameters = {name: kind for name, kind in init.parameters.items() if name != "self"}
        made = Signature(f"$new.{cls.__qualname__}", parameters, init.defaults, Reference(cls))
        given = " ".join(f"(local.get {slot})" for slot, _ in _slots(parameters))
        self.add(
            lambda: _allocating(
                made, self.layouts.of(cls).size, f"(call {init.name} (local.get $at) {given})"
            )
        )
        return made


def _from_fields(cls: type, module: _Module) -> Signature:
    """Return what makes an object of a dataclass, field by field."""
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
    """Return the class that a method stands in."""
    return getattr(inspect.getmodule(function), function.__qualname__.split(".")[0])


def _bound(function: Function, given: tuple[Kind, ...], bindings: Bindings) -> Bindings:
    """Return bindings with those of a generic function's type variable."""
    if not given:
        return bindings
    found = dict(bindings)
    for annotation, kind in zip(get_type_hints(function).values(), given, strict=False):
        if isinstance(annotation, TypeVar):
            found[annotation] = kind
        elif isinstance(kind, ListOf):
            found[annotation.__args__[0]] = kind.element
    return found
