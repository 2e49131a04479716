"""Source of translated functions: the syntax tree, and errors with carets."""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from gpusim.errors import SourceLocation

Function = Callable[..., Any]


# Functions that are not translated, with the name of another in the module that takes their place.
EXTERNAL: dict[Function, str] = {}
F = TypeVar("F", bound=Function)


def external(name: str) -> Callable[[F], F]:
    """Let a function stand for one of the module, given by name; its body is for CPython alone."""

    def entered(function: F) -> F:
        EXTERNAL[function] = name
        return function

    return entered


class NotTranslatedError(Exception):
    """A translated function contains untranslatable Python."""

    def __init__(self, message: str, location: SourceLocation) -> None:
        super().__init__(f"{location.file}:{location.line}: {message}\n{location.caret()}")


@dataclass(frozen=True, eq=False)
class Source:
    """A function and its syntax tree."""

    function: Function
    tree: ast.FunctionDef
    file: str

    @cached_property
    def size(self) -> int:
        """The nodes of its syntax tree."""
        return sum(1 for _ in ast.walk(self.tree))

    @cached_property
    def only_value(self) -> ast.expr | None:
        """The expression that it returns, if it does nothing else."""
        body = [node for node in self.tree.body if not _is_docstring(node)]
        [last] = body if len(body) == 1 else [None]
        return last.value if isinstance(last, ast.Return) else None

    @cached_property
    def assigned(self) -> frozenset[str]:
        """The variables that it sets."""
        nodes = (node for node in ast.walk(self.tree) if isinstance(node, ast.Name))
        return frozenset(node.id for node in nodes if isinstance(node.ctx, ast.Store))

    def refusal(self, message: str, node: ast.AST) -> NotTranslatedError:
        """Return the error with a caret under a node of the function."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        end = getattr(node, "end_col_offset", None)
        if getattr(node, "end_lineno", line) != line or end is None:
            end = 1 << 30
        text = Path(self.file).read_text(encoding="utf-8").splitlines()[line - 1]
        return NotTranslatedError(message, SourceLocation(self.file, line, text, column, end))


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def source_of(function: Function) -> Source:
    """Return a function's source."""
    file = inspect.getsourcefile(function)
    if file is None:
        raise TypeError(f"{function} has no source")
    return Source(function, _functions(file)[function.__qualname__], file)


def origin(file: str, name: str) -> str:
    """Return the module from which a file imports a name, "" where it is the file's own."""
    return _imports(file).get(name, "")


@cache
def _imports(file: str) -> dict[str, str]:
    """Return the modules from which a file imports names."""
    nodes = (node for node in ast.walk(_tree(file)) if isinstance(node, ast.ImportFrom))
    return {one.asname or one.name: node.module or "" for node in nodes for one in node.names}


def digest(packages: Iterable[str]) -> str:
    """Return a digest of the source of packages: part of the name of a module made from them."""
    found = hashlib.sha256()
    for package in packages:
        root = Path(import_module(package).__path__[0])
        for path in sorted([*root.rglob("*.py"), *root.rglob("*.wat")]):
            name = f"{package}/{path.relative_to(root).as_posix()}"
            found.update(name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


@cache
def _tree(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text(encoding="utf-8"))


@cache
def _functions(file: str) -> dict[str, ast.FunctionDef]:
    """Return the functions and methods of a file by their qualified names."""
    found: dict[str, ast.FunctionDef] = {}

    def walk(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef):
                found[prefix + node.name] = node
                walk(node.body, f"{prefix}{node.name}.<locals>.")
            elif isinstance(node, ast.ClassDef):
                walk(node.body, f"{prefix}{node.name}.")

    walk(_tree(file).body, "")
    return found
