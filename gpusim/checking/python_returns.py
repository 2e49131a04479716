"""Conditions and returns of a Python kernel around a place."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import lru_cache

from gpusim.cuda_cpp.control_statements import Control, Function, left_early

_CONTROLS = (ast.If, ast.For, ast.While)


def left_python_early(text: str, reached: Sequence[int], left: Sequence[int]) -> bool | None:
    """Return whether threads have taken an early return before a place, as `left_early` does.

    The place is given by its line and those of the calls of its functions, innermost first.
    """
    functions = [(line, _around(text, line)) for line in reached]
    known = [(line, function) for line, function in functions if function is not None]
    return left_early(known, left, int) if len(known) == len(functions) else None


def _around(text: str, line: int) -> Function | None:
    found = [one for one in _functions(text) if line in one.body]
    return found[-1] if found else None


@lru_cache(maxsize=4)
def _functions(text: str) -> Sequence[Function]:
    """Return the functions of a text, each before those within it; none of text with errors."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return ()
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [_function(node) for node in sorted(nodes, key=lambda node: node.lineno)]


def _function(node: ast.FunctionDef) -> Function:
    made = Function(_lines(node))
    for inner in ast.walk(node):
        if isinstance(inner, _CONTROLS):
            body = range(inner.body[0].lineno, _lines(inner).stop)
            is_loop = not isinstance(inner, ast.If)
            leaves = any(isinstance(one, ast.Break | ast.Continue) for one in ast.walk(inner))
            is_uniform = isinstance(inner, ast.For) and _is_constant(inner.iter) and not leaves
            made.controls.append(
                Control(inner.lineno, body, is_loop=is_loop, is_uniform=is_uniform)
            )
        elif isinstance(inner, ast.Return):
            made.returns.append(inner.lineno)
    return made


def _is_constant(node: ast.expr) -> bool:
    """Return whether a loop iterates over a range of numbers."""
    return isinstance(node, ast.Call) and all(isinstance(one, ast.Constant) for one in node.args)


def _lines(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)
