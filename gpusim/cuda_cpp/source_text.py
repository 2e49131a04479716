"""CUDA C++ read as text, in time that grows with its length: comments, brackets, lists.

Comments and strings declare nothing, and are removed before searching.
"""

from __future__ import annotations

import re

_SPLICE = re.compile(r"\\\r?\n")
_QUOTED = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
    |R"(?P<mark>[^()\\\s]{0,16})\(.*?(?:\)(?P=mark)"|\Z)
    |"(?:\\.|[^"\\\n])*+"?
    |(?<!\w)'(?:\\[^'\n]{0,9}.|[^'\\\n])'""",
    re.DOTALL | re.VERBOSE,
)
_BLANKS = re.compile(r"[^\S\n]+")
_EMPTY_LINES = re.compile(r"\n\s+")
_DEPTH = {"<": 1, "(": 1, "[": 1, "{": 1, ">": -1, ")": -1, "]": -1, "}": -1}


def plain_text(text: str) -> str:
    """Return a source text without comments, continued lines and contents of strings."""
    plain = _QUOTED.sub(_without_content, _SPLICE.sub("", text))
    return _EMPTY_LINES.sub("\n", _BLANKS.sub(" ", plain))


def _without_content(quoted: re.Match[str]) -> str:
    return " " if quoted["comment"] is not None else '""' if quoted[0][-1:] != "'" else "' '"


def closings(text: str, pair: str) -> dict[int, int]:
    """Return the place after the closing bracket by the place of the opening one.

    A bracket without a closing one has none.
    """
    opened: list[int] = []
    found: dict[int, int] = {}
    for match in re.finditer(f"[{re.escape(pair)}]", text):
        if match[0] == pair[0]:
            opened.append(match.start())
        elif opened:
            found[opened.pop()] = match.end()
    return found


def parts(text: str) -> list[str]:
    """Return the parts between commas, outside of brackets."""
    found, depth, start = [], 0, 0
    for place, char in enumerate(text):
        depth += _DEPTH.get(char, 0)
        if char == "," and not depth:
            found.append(text[start:place])
            start = place + 1
    return [*found, text[start:]]
