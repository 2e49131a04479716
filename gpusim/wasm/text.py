"""The text of WebAssembly as nested lists: each list is what stands between two parentheses."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

Node: TypeAlias = list[Any]  # of texts and nodes
_TOKEN = re.compile(r';;[^\n]*|"[^"]*"|[()]|[^\s()";]+')


def parsed(text: str) -> Node:
    """Return the only list of a text."""
    whole: Node = []
    inner: Node = whole
    outer: list[Node] = []
    for token in _TOKEN.findall(text):
        if token == "(":
            outer.append(inner)
            inner = []
            outer[-1].append(inner)
        elif token == ")":
            inner = outer.pop()
        elif not token.startswith(";;"):
            inner.append(token)
    found: Node
    [found] = whole
    return found
