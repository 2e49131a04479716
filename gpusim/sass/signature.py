"""What a kernel's declaration in the source says: its parameters' names and types."""

from __future__ import annotations

import re
from dataclasses import dataclass

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_KERNEL = re.compile(r"__global__\b")
_NAME = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_LAST = re.compile(r"([A-Za-z_]\w*)\s*((?:\[[^\]]*\]\s*)*)$")
_LENGTH = re.compile(r"\[\s*(\d+)\s*\]")
_NOT_NAMES = ("__launch_bounds__", "__cluster_dims__", "__align__", "__maxnreg__")


@dataclass(frozen=True)
class Declared:
    """A parameter or member as the source declares it; its type is the text before its name.

    `length` is that of an array within a structure, negative where it is no plain number.
    """

    name: str
    ctype: str
    length: int = 0

    @property
    def is_pointer(self) -> bool:
        """Whether it is a pointer."""
        return "*" in self.ctype or self.ctype.endswith("]")


def kernels(text: str) -> dict[str, tuple[Declared, ...]]:
    """Return the parameters of each kernel that a source text defines, in its order."""
    plain = plain_text(text)
    found: dict[str, tuple[Declared, ...]] = {}
    for match in _KERNEL.finditer(plain):
        named = _named(plain, match.end())
        if named is not None:
            name, begin = named
            found.setdefault(name, tuple(_parameters(plain, begin)))
    return found


def plain_text(text: str) -> str:
    """Return a source text with blanks for its comments."""
    return _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def _named(text: str, begin: int) -> tuple[str, int] | None:
    """Return a kernel's name, and where its parameters begin, behind a `__global__`."""
    while match := _NAME.search(text, begin):
        if match[1] not in _NOT_NAMES:
            return match[1], match.end()
        begin = behind(text, match.end())
    return None


def behind(text: str, begin: int, opens: str = "(", closes: str = ")") -> int:
    """Return the place behind the parenthesis that closes an open one."""
    depth = 1
    for place in range(begin, len(text)):
        depth += {opens: 1, closes: -1}.get(text[place], 0)
        if not depth:
            return place + 1
    return len(text)


def _parameters(text: str, begin: int) -> list[Declared]:
    made = []
    for number, part in enumerate(parts(text[begin : behind(text, begin) - 1])):
        declared = " ".join(part.partition("=")[0].split())
        if declared and declared != "void":
            made.append(_parameter(declared, number))
    return made


def parts(text: str) -> list[str]:
    """Return what commas part, outside of brackets."""
    found, depth, start = [], 0, 0
    for place, char in enumerate(text):
        depth += {"<": 1, "(": 1, "[": 1, ">": -1, ")": -1, "]": -1}.get(char, 0)
        if char == "," and not depth:
            found.append(text[start:place])
            start = place + 1
    return [*found, text[start:]]


def _parameter(text: str, number: int) -> Declared:
    """Return a parameter: an array is a pointer."""
    match = _LAST.search(text)
    found = type_of(text, number)
    is_array = match is not None and bool(match[2]) and bool(text[: match.start()].strip())
    return Declared(found.name, f"{found.ctype}[]") if is_array else found


def type_of(text: str, number: int) -> Declared:
    """Return what a declaration says: name, type without its qualifiers, length of an array."""
    match = _LAST.search(text)
    name = match[1] if match else ""
    before = text[: match.start()].strip() if match else text
    if not before:  # a type without a name
        return Declared(f"arg{number}", text)
    brackets = match[2].strip() if match else ""
    length = _LENGTH.fullmatch(brackets)
    ctype = re.sub(r"\b(const|volatile|__restrict__|__restrict|__grid_constant__)\b", "", before)
    ctype = re.sub(r"\s*\*", "*", " ".join(ctype.split()))
    return Declared(name, ctype, int(length[1]) if length else -len(brackets))
