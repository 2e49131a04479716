"""What each kind of Python's syntax means in a kernel: two tables, of statements and expressions.

A row is added where the function that gives the meaning is written. Which kinds there may
be is decided before, in `source`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from gpusim.compiler.builder import Builder

Statement = Callable[["Builder", Any], None]
Expression = Callable[["Builder", Any], Any]
S = TypeVar("S", bound=Statement)
E = TypeVar("E", bound=Expression)

STATEMENTS: dict[type[ast.stmt], Statement] = {}
EXPRESSIONS: dict[type[ast.expr], Expression] = {}


def statement(kind: type[ast.stmt]) -> Callable[[S], S]:
    """Let a function build the statements of a kind."""

    def register(function: S) -> S:
        STATEMENTS[kind] = function
        return function

    return register


def expression(kind: type[ast.expr]) -> Callable[[E], E]:
    """Let a function build the expressions of a kind."""

    def register(function: E) -> E:
        EXPRESSIONS[kind] = function
        return function

    return register
