"""What a kernel's declaration in the source says: its parameters' names and types."""

from __future__ import annotations

import re
from dataclasses import dataclass

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_KERNEL = re.compile(r"__global__\b")
_NAME = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_LAST = re.compile(r"([A-Za-z_]\w*)\s*(\[[^\]]*\]\s*)*$")
_NOT_NAMES = ("__launch_bounds__", "__cluster_dims__", "__align__", "__maxnreg__")


@dataclass(frozen=True)
class Declared:
    """A parameter as the source declares it; its type is the text before its name."""

    name: str
    ctype: str

    @property
    def is_pointer(self) -> bool:
        """Whether it is a pointer."""
        return "*" in self.ctype or self.ctype.endswith("]")


def kernels(text: str) -> dict[str, tuple[Declared, ...]]:
    """Return the parameters of each kernel that a source text defines, in its order."""
    plain = _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    found: dict[str, tuple[Declared, ...]] = {}
    for match in _KERNEL.finditer(plain):
        named = _named(plain, match.end())
        if named is not None:
            name, begin = named
            found.setdefault(name, tuple(_parameters(plain, begin)))
    return found


def _named(text: str, begin: int) -> tuple[str, int] | None:
    """Return a kernel's name, and where its parameters begin, behind a `__global__`."""
    while match := _NAME.search(text, begin):
        if match[1] not in _NOT_NAMES:
            return match[1], match.end()
        begin = _behind(text, match.end())
    return None


def _behind(text: str, begin: int) -> int:
    """Return the place behind the parenthesis that closes an open one."""
    depth = 1
    for place in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if not depth:
            return place + 1
    return len(text)


def _parameters(text: str, begin: int) -> list[Declared]:
    inside = text[begin : _behind(text, begin) - 1]
    parts, depth, start = [], 0, 0
    for place, char in enumerate(inside):
        depth += {"<": 1, "(": 1, "[": 1, ">": -1, ")": -1, "]": -1}.get(char, 0)
        if char == "," and not depth:
            parts.append(inside[start:place])
            start = place + 1
    parts.append(inside[start:])
    made = []
    for number, part in enumerate(parts):
        declared = " ".join(part.partition("=")[0].split())
        if declared and declared != "void":
            made.append(_declared(declared, number))
    return made


def _declared(text: str, number: int) -> Declared:
    match = _LAST.search(text)
    name = match[1] if match else ""
    before = text[: match.start()].strip() if match else text
    if not before:  # a type without a name
        return Declared(f"arg{number}", text)
    brackets = "[]" if match and match[2] else ""
    ctype = re.sub(r"\b(const|volatile|__restrict__|__restrict|__grid_constant__)\b", "", before)
    return Declared(name, " ".join(ctype.split()) + brackets)
