"""Compiled modules of programs, cached in this process and on disk by the content of a program.

Machine code is loaded only from a folder that no other user can write to, and only undamaged. The
key includes the sources of the evaluators.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import marshal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, partial
from operator import attrgetter
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.host import address_space_limit, fast
from gpusim.host.disk_cache import DiskCache, key
from gpusim.host.kept import Recent, once
from gpusim.isa.ops import Instruction, Program
from gpusim.launch.events import Touched
from gpusim.machine.compiled.instance import Instance, close_all
from gpusim.machine.compiled.linking import NAME, Shared, shared_text
from gpusim.machine.compiled.order import needs_order
from gpusim.machine.compiled.places import Variant
from gpusim.machine.compiled.segment import Place
from gpusim.machine.compiled.symbols import NotDerivedError
from gpusim.machine.compiled.translation import Translation
from gpusim.machine.compiled.translator import translated
from gpusim.machine.warps import vectors
from gpusim.version import __version__
from gpusim.wasm.interpreted import Interpreted
from gpusim.wasm.linked import Link, LinkedModules

if TYPE_CHECKING:
    import wasmtime


_ENTRIES = DiskCache("machine", 256 << 20)
_MOST_KEPT = 256  # programs in this process
_ROOT = Path(__file__).parents[2]  # of gpusim
_MOST_IDLE_BYTES = 64 << 20  # of the memory that a module keeps between two launches
_SOURCES = (
    "gpusim.isa",
    "gpusim.sass",
    "gpusim.program",
    "gpusim.wasm",
    "gpusim.machine.warps",
    "gpusim.machine.compiled",
)


class RefusedModuleError(NotDerivedError):
    """A module beyond a limit of WebAssembly: of a function's size, above all."""


@dataclass
class Compiled:
    """A program's translation, and modules to link, with an instance that no launch uses.

    `instructions_each` is the mean number of warp instructions of a block in the last sequential
    run, 0 without one. `is_dependent` if blocks of a launch have accessed sectors that others
    wrote.
    """

    made: Translation
    link: Link
    instructions_each: float = 0.0
    is_dependent: bool = False
    _idle: list[Instance] = field(default_factory=list)

    def instance(self) -> Instance:
        """Return an instance for a launch."""
        return self._idle.pop() if self._idle else self.new_instance()

    def new_instance(self) -> Instance:
        """Return an instance with memory that is zero."""
        return Instance(self.link, self.made)

    def give_back(self, instance: Instance) -> None:
        """Keep an instance for the next launch."""
        if not self._idle and instance.memory.nbytes <= _MOST_IDLE_BYTES:
            self._idle.append(instance)


_kept: Recent[tuple[Variant, bool], Compiled] = Recent(_MOST_KEPT)  # and whether interpreted


def engine() -> wasmtime.Engine | None:
    """Return the engine, None where modules are interpreted."""
    if not fast.is_wanted():
        return None
    if address_space_limit.is_limited():
        fast.say("compiled launches need an unlimited address space (ulimit -v)")
        return None
    return _engine()


@cache
def _engine() -> wasmtime.Engine | None:
    """Return the engine, None if it does not run here."""
    if not fast.has_library():
        return None
    try:
        import wasmtime

        config = wasmtime.Config()
        config.cranelift_opt_level = "speed"
        config.parallel_compilation = False  # threads would not live through a fork
        config.wasm_relaxed_simd_deterministic = True
        config.epoch_interruption = True
        return wasmtime.Engine(config)
    except Exception as error:
        fast.say(f"launches are not compiled ({error})")
        return None


def forget() -> None:
    """Drop the modules of this process, not those on disk."""
    _kept.clear()
    _shared.cache_clear()
    close_all()
    _engine.cache_clear()


atexit.register(forget)  # wasmtime must free its objects before its own modules go


def known(variant: Variant) -> Compiled | None:
    """Return a module that was compiled or loaded in this process, None if there is none."""
    return _kept.used((variant, engine() is None))


def loaded(variant: Variant) -> Compiled | None:
    """Return a module from this process or the disk, None if there is none."""
    found = known(variant)
    if found is not None:
        return found
    using = engine()
    name = _name(variant) if using is not None else ""
    held = _ENTRIES.load(name) if name else None
    if held is None or using is None:
        return None
    import wasmtime

    try:
        header = int.from_bytes(held[:8], "little")
        made = _translation(marshal.loads(held[8 : 8 + header]))
        module = wasmtime.Module.deserialize(using, held[8 + header :])
    except (wasmtime.WasmtimeError, ValueError, EOFError, TypeError, KeyError):
        return None
    return _keep(variant, Compiled(made, _linking(using, made, module)))


def compiled(variant: Variant) -> Compiled:
    """Return the module of a program; NotDerivedError for one that NumPy has to run.

    The steps of a check are written down in NumPy's scheduling order.
    """
    found, asked = loaded(variant), variant.detection
    if found is not None:
        return found
    in_order = bool(asked and asked.steps) or needs_order(variant.program)
    return _made(variant, in_order=in_order and variant.pacing is None)


def reordered(variant: Variant) -> Compiled:
    """Return the module of a program with NumPy's scheduling order, even if none seems needed.

    It replaces the other one; NotDerivedError for a program that NumPy has to run.
    """
    return _made(variant, in_order=True)


def _made(variant: Variant, *, in_order: bool) -> Compiled:
    made = translated(variant, in_order=in_order)
    using = engine()
    if using is None:
        texts = shared_text(made.shared), made.text
        return _keep(variant, Compiled(made, partial(Interpreted, texts, vectors.FUNCTIONS)))
    import wasmtime

    try:
        module = wasmtime.Module(using, made.text)
    except wasmtime.WasmtimeError as error:
        raise RefusedModuleError(str(error)) from error
    name = _name(variant)
    if name:
        header = marshal.dumps(_plain(made))
        _ENTRIES.store(name, len(header).to_bytes(8, "little") + header + module.serialize())
    return _keep(variant, Compiled(made, _linking(using, made, module)))


def _linking(using: wasmtime.Engine, made: Translation, module: wasmtime.Module) -> Link:
    return partial(LinkedModules, using, (_shared(made.shared), module), NAME)


@cache
def _shared(variant: Shared) -> wasmtime.Module:
    """Return the module that all programs share, compiled or from the disk."""
    import wasmtime

    using = engine()
    assert using is not None
    name = key((__version__, _library(), _sources(), str(variant)))
    held = _ENTRIES.load(name)
    if held is not None:
        with contextlib.suppress(wasmtime.WasmtimeError):  # of another version or processor
            return wasmtime.Module.deserialize(using, held)
    module = wasmtime.Module(using, shared_text(variant))
    _ENTRIES.store(name, bytes(module.serialize()))
    return module


def _keep(variant: Variant, one: Compiled) -> Compiled:
    _kept[variant, engine() is None] = one
    return one


# -- on disk ---------------------------------------------------------------------------------


# Fields of a translation: all but its text, and the facts of a launch.
_STORED = {one.name for one in fields(Translation)} - {"text", "constants", "begun", "rows_of_sums"}
_PLACES = "registers", "specials", "cells"


def _plain(made: Translation) -> dict[str, Any]:
    """Return a translation as plain values, without its text."""
    held = {name: one for name, one in vars(made).items() if name in _STORED}
    places = {
        name: {where: _plain_place(place) for where, place in held[name].items()}
        for name in _PLACES
    }
    operands = {pc: [one.str for one in types] for pc, types in made.operands.items()}
    touched, shared = [tuple(one) for one in made.touched], tuple(made.shared)
    return {**held, **places, "operands": operands, "touched": touched, "shared": shared}


def _translation(plain: Mapping[str, Any]) -> Translation:
    places = {
        name: {where: _place(place) for where, place in plain[name].items()} for name in _PLACES
    }
    operands = {pc: [np.dtype(one) for one in types] for pc, types in plain["operands"].items()}
    touched = [Touched(*one) for one in plain["touched"]]
    shared = Shared(*plain["shared"])
    return Translation(
        **{**plain, **places, "operands": operands, "touched": touched, "shared": shared}
    )


def _plain_place(place: Place) -> tuple[int, str, str]:
    return place.offset, place.dtype.str, place.base


def _place(plain: tuple[int, str, str]) -> Place:
    offset, dtype, base = plain
    return Place(offset, np.dtype(dtype), base)


class _NotKeptError(Exception):
    """A program with a part that has no name."""


def _name(variant: Variant) -> str:
    """Return the name of a variant's entry, "" for one that is not cached."""
    parts = (
        variant.constants, variant.pairs, variant.counting, variant.watching, variant.recording,
        variant.detection, variant.pacing, variant.telling,
    )  # fmt: skip
    program = _program_name(variant.program)
    try:
        return program and key((program, _Content().of(parts)))
    except _NotKeptError:
        return ""


@once
def _program_name(program: Program) -> str:
    """Return the name of a program by its content, "" for one with a part that has none."""
    content = _Content()
    parts = (
        program.registers, program.immediates, program.initial, program.barriers,
        program.local_bytes, program.constants,
    )  # fmt: skip
    try:
        texts = [content.of(one) for one in (*program.instructions, parts)]
    except _NotKeptError:
        return ""
    return key((__version__, _library(), _sources(), *texts))


class _Content:
    """The content of values as text, equal in every process."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, str]] = {}  # the object is kept, so that its id is its

    def of(self, value: Any) -> str:
        """Return a value's content."""
        if value is None or isinstance(value, bool | int | float | str | bytes):
            return repr(value)
        if isinstance(value, np.dtype):
            return value.str
        if isinstance(value, np.generic):
            return f"{value.dtype.str}{value.tobytes().hex()}"
        if isinstance(value, Instruction):
            return self._instruction(value)
        found = self._known.get(id(value))
        if found is None:
            found = self._known[id(value)] = value, self._of_parts(value)
        return found[1]

    def _instruction(self, row: Instruction) -> str:
        parts = (
            row.op, row.dst, row.src, row.guard, row.negated, row.target, int(row.line),
            self.of(row.dtype), self.of(row.detail), self.of(row.memory),
        )  # fmt: skip
        return repr(parts)

    def _of_parts(self, value: Any) -> str:
        if isinstance(value, tuple | list):
            return f"({','.join(map(self.of, value))})"
        if isinstance(value, frozenset | set):
            return f"{{{','.join(sorted(map(self.of, value)))}}}"
        if isinstance(value, Mapping):
            pairs = sorted((self.of(name), self.of(one)) for name, one in value.items())
            return f"{{{pairs}}}"
        if isinstance(value, partial):
            return f"partial{self.of((value.func, value.args, value.keywords))}"
        if isinstance(value, type | FunctionType | np.ufunc):
            return self._named(value)
        if is_dataclass(value):
            kind: Any = type(value)
            return f"{kind.__qualname__}({','.join(map(self.of, _fields_of(kind)(value)))})"
        raise _NotKeptError

    def _named(self, value: Callable[..., Any]) -> str:
        own = getattr(value, "__qualname__", value.__name__)
        name = f"{getattr(value, '__module__', '')}.{own}"
        return f"{name}{self._inner(value)}" if "<" in name else name

    def _inner(self, value: Callable[..., Any]) -> str:
        """Return the identity of a nested function: its code and closure."""
        if not isinstance(value, FunctionType) or not value.__module__.startswith(_SOURCES):
            raise _NotKeptError
        code, cells = value.__code__, [one.cell_contents for one in value.__closure__ or ()]
        parts = code.co_firstlineno, code.co_code, code.co_names, code.co_consts, cells
        return self.of((*parts, value.__defaults__, value.__kwdefaults__))


@cache
def _fields_of(kind: Any) -> Callable[[Any], tuple[Any, ...]]:
    """Return the function from an object to the values of its fields."""
    names = [one.name for one in fields(kind)]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda one: tuple(getattr(one, name) for name in names)


@cache
def _sources() -> str:
    """Return the sizes and dates of the files with evaluators and with their translation."""
    stamps = []
    for package in _SOURCES:
        folder = _ROOT.joinpath(*package.split(".")[1:])  # an import would take longer
        for file in sorted(folder.rglob("*.[pw]*")):
            if file.suffix in (".py", ".wat"):
                stat = file.stat()
                stamps.append(f"{file.name}{stat.st_size}{stat.st_mtime_ns}")
    return hashlib.sha256("".join(stamps).encode()).hexdigest()


@cache
def _library() -> str:
    """Return the place and date of wasmtime: requesting its version takes 0.1 s."""
    import wasmtime

    file = Path(wasmtime.__file__)
    return f"{file}{file.stat().st_mtime_ns}"
