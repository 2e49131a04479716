"""Syntax colours of source lines, by Pygments, which rich brings."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from markupsafe import Markup, escape

from gpusim.launch.languages import PYTHON

# Classes of the style sheet, by the beginning of Pygments' names of tokens.
CLASSES = {
    "Token.Keyword": "k",
    "Token.Name.Builtin": "b",
    "Token.Comment": "c",
    "Token.Literal.Number": "n",
    "Token.Literal.String": "s",
}


@cache
def _lexer(language: str) -> Any:
    name = "python" if language == PYTHON else "cuda"
    lexers = importlib.import_module("pygments.lexers")
    return lexers.get_lexer_by_name(name, stripnl=False, ensurenl=False)


def coloured(text: str, language: str) -> Markup:
    """Return a source line as markup, its tokens in elements of `CLASSES`."""
    parts = []
    for kind, value in _lexer(language).get_tokens(text):
        name = next((CLASSES[one] for one in CLASSES if str(kind).startswith(one)), "")
        parts.append(Markup('<i class="{}">{}</i>').format(name, value) if name else escape(value))
    return Markup("").join(parts)
