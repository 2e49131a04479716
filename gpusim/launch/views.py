"""Views: methods of a result implemented in a higher layer, imported when first called.

A result knows that it can be drawn, not how: `Trace.plot_tree` names module and function.
So results stay in their layer, and drawing code is loaded only when used.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar


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


class Shown:
    """A result that shows itself, as HTML in a notebook, as a summary, and as a DataFrame.

    `class Trace(Shown, shown_as="trace")` has the forms of that name in
    `reports/notebook/results.py`.
    """

    _shown_as: ClassVar[str]

    def __init_subclass__(cls, *, shown_as: str = "", **others: Any) -> None:
        super().__init_subclass__(**others)
        cls._shown_as = shown_as or cls._shown_as

    def _repr_html_(self) -> str:
        return str(self._forms().html(self))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return it by media type; viewers without HTML have the summary."""
        return {"text/plain": str(self), "text/html": self._repr_html_()}

    def __str__(self) -> str:
        return str(self._forms().summary(self))

    def to_dataframe(self) -> Any:
        """Return its rows as a pandas DataFrame; InputError where pandas is not installed."""
        return self._forms().frame(self)

    def _forms(self) -> Any:
        results = importlib.import_module("gpusim.reports.notebook.results")
        return results.FORMS[self._shown_as]
