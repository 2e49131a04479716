"""Instrumentation of lowering: a callback receives the form after each step."""

from __future__ import annotations

from collections.abc import Callable

from gpusim.compiler.ir import Function
from gpusim.lowering.code import Code

# Given the name of a step and the form after it: SSA, or machine code once it is selected.
Instrumentation = Callable[[str, Function | Code], None]


def uninstrumented(*_: object) -> None:
    """Do nothing."""
