"""Arguments of a call in a kernel: their number and their types."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from gpusim.compiler.arithmetic import floating
from gpusim.compiler.builder import Builder, common_type
from gpusim.compiler.ir import Value
from gpusim.typing import DType


def need(builder: Builder, values: Sequence[Any], node: ast.Call, *counts: int) -> None:
    """Refuse a call with a number of arguments not in `counts`."""
    if len(values) not in counts:
        wanted = " or ".join(map(str, counts))
        raise builder.error(f"this takes {wanted} argument(s), not {len(values)}", node)


def value_of(builder: Builder, item: Any, node: ast.AST, dtype: DType | None = None) -> Value:
    """Return an argument as a value of `dtype`, or of the type it is computed with in."""
    number = builder.number(item, node)
    if isinstance(number, Value) and dtype is None:
        return number
    return builder.as_type(number, common_type(number) if dtype is None else dtype)


def truth_of(builder: Builder, item: Any, node: ast.AST) -> Value:
    """Return an argument as a truth value."""
    return builder.truth(builder.number(item, node))


def floats_of(builder: Builder, items: Sequence[Any], node: ast.AST) -> list[Value]:
    """Return arguments in their common floating type."""
    numbers = [builder.number(item, node) for item in items]
    dtype = floating(common_type(*numbers))
    return [builder.as_type(number, dtype) for number in numbers]
