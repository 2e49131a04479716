"""Views: methods of a result implemented in a higher layer, imported when first called.

A result knows that it can be drawn, not how: `Trace.plot_tree` names module and function.
So results stay in their layer, and drawing code is loaded only when used.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any


class View:
    """A method that calls a function of another module with the result as its first argument."""

    def __init__(self, module: str, function: str) -> None:
        self.module = module
        self.function = function

    def load(self) -> Callable[..., Any]:
        """Import the function and return it."""
        found: Callable[..., Any] = getattr(importlib.import_module(self.module), self.function)
        return found

    def __get__(self, result: object, owner: type | None = None) -> Any:
        return self if result is None else partial(self.load(), result)
