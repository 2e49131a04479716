"""Kernels in Python files: importing one runs it, with any effect.

In files with `from numba import cuda` the dialect takes numba's name. Kernels have the dialect's
meaning; functions that numba would compile for the host stay plain Python.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import current_thread, main_thread
from types import CodeType, FrameType, MappingProxyType, ModuleType
from typing import Any

from gpusim import cuda
from gpusim.cli import output
from gpusim.cli.inputs import number, only
from gpusim.compiler.signatures import scalar_type, void
from gpusim.cuda import Kernel, refused_when_used
from gpusim.errors import GpusimError, InputError, did_you_mean
from gpusim.host import files
from gpusim.host.files import shown

NO_VALUES: Mapping[str, str] = MappingProxyType({})
NOTE = (
    "{file} is run as the dialect: numba's words, with integers that wrap and divide as in "
    "CUDA C (docs/dialect.md, coming from numba.cuda)"
)
_DIALECTS = re.compile(r"^\s*(?:from|import)\s+(numba|gpusim)\b", re.MULTILINE)


def dialects(text: str) -> set[str]:
    """Return what a file of Python imports of numba and this package."""
    return set(_DIALECTS.findall(text))


def kernels_of_file(path: Path) -> dict[str, Kernel]:
    """Return the kernels of a Python file by name; InputError where it does not import."""
    return _kernels(_names_of(path))


def _names_of(path: Path, values: Mapping[str, str] = NO_VALUES) -> dict[str, Any]:
    """Run a file with other values of its constants, and return its names."""
    text = files.text(path, files.MAX_PYTHON_BYTES, again=True)  # refuses what is no text
    if dialects(text) != {"numba"}:
        return _imported(path, values)
    output.complain(NOTE.format(file=path))
    with _as_the_dialect():
        return _imported(path, values)


def _kernels(module: dict[str, Any]) -> dict[str, Kernel]:
    return {
        name: value
        for name, value in module.items()
        if isinstance(value, Kernel) and not value.device
    }


def kernel_of_file(path: Path, function: str, values: Mapping[str, str] = NO_VALUES) -> Kernel:
    """Return the kernel of a file by its function's name.

    Without a name the file must have one kernel. `values` replace those of the module's
    constants, by name. Raises InputError where the file does not import or has no such kernel,
    KernelSourceError for syntax outside the dialect.
    """
    module = _names_of(path, values)
    kernels = _kernels(module)
    function = function or only(kernels, path)
    if function not in module:
        has = f" (it has {', '.join(kernels)})" if kernels else " (it has no kernel)"
        raise InputError(f"{path} has no {shown(function)!r}{did_you_mean(function, kernels)}{has}")
    value = module[function]
    if not isinstance(value, Kernel):
        what = "a plain function" if callable(value) else f"a {type(value).__name__}"
        raise InputError(f"{function} in {path} is {what}, no kernel; decorate it with @cuda.jit")
    if value.device:
        raise InputError(f"{function} in {path} is a device function; only kernels are launched")
    _ = value.source  # raises errors about its syntax
    return value


def _imported(path: Path, values: Mapping[str, str]) -> dict[str, Any]:
    """Run a file as a module, with its directory importable, and return its names."""
    name = f"gpusim_user_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise InputError(f"{path} is not a Python file; a kernel of your own is FILE.py:FUNCTION")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    before, depth = list(sys.path), sys.getrecursionlimit()
    sys.path.insert(0, str(path.resolve().parent))
    try:
        with _interrupts_of_the_user(), refused_when_used():
            if values:
                exec(_with_values(path, values), vars(module))
            else:
                spec.loader.exec_module(module)
    except (GpusimError, _InterruptError):
        raise
    except BaseException as error:  # a file may raise anything: SystemExit, KeyboardInterrupt
        where = _line_in(error, path)
        raise InputError(f"{path}{where} does not import: {_one_line(error)}") from None
    finally:
        sys.path = before
        sys.setrecursionlimit(depth)
    return vars(module)


def _with_values(path: Path, values: Mapping[str, str]) -> CodeType:
    """Return a module's code with other values of its constants; InputError where it has none."""
    tree = ast.parse(files.text(path, files.MAX_PYTHON_BYTES, again=True), str(path.resolve()))
    left = dict(values)
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        for target in targets:
            if isinstance(target, ast.Name) and target.id in values:
                value = number(values[target.id])
                if value is None:
                    raise InputError(f"{target.id} is {values[target.id]}, not a number")
                assert isinstance(statement, ast.Assign | ast.AnnAssign)
                statement.value = ast.copy_location(ast.Constant(value), statement)
                left.pop(target.id, None)
    if left:
        raise InputError(f"{path} assigns no constant {', '.join(left)} at the level of the module")
    return compile(tree, str(path.resolve()), "exec")


class _InterruptError(KeyboardInterrupt):
    """The user's interrupt, as opposed to a KeyboardInterrupt raised by the file itself."""


@contextmanager
def _interrupts_of_the_user() -> Iterator[None]:
    """Distinguish a user's interrupt of a file's import from exceptions raised by the file."""
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or current_thread() is not main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        try:
            before(number, frame)
        except KeyboardInterrupt:
            raise _InterruptError from None

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _line_in(error: BaseException, path: Path) -> str:
    """Return ", line N" for the last place of the error that lies in the file."""
    if isinstance(error, SyntaxError):
        return f", line {error.lineno}" if error.lineno else ""
    line = 0
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == str(path.resolve()):
            line = step.tb_lineno
        step = step.tb_next
    return f", line {line}" if line else ""


def _one_line(error: BaseException) -> str:
    """Return an error's type and the first line of its message, if it has any."""
    try:
        text = error.msg if isinstance(error, SyntaxError) else str(error)
    except Exception:  # its own __str__ may fail too
        text = ""
    first = text.splitlines()[0] if text else ""
    return shown(f"{type(error).__name__}: {first}" if first else type(error).__name__)


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
def _as_the_dialect() -> Iterator[None]:
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
