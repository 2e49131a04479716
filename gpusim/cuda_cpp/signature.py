"""A kernel's declaration in the source: its parameters' names and types."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from gpusim.cuda_cpp.source_text import closings, parts, plain_text

_MARK = re.compile(r"[;{}]|\b__global__\b")
_NAME = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_NAMESPACE = re.compile(r"\bnamespace\s+([A-Za-z_][\w:]*)\s*\{")
_MACRO = re.compile(r"^#\s?define (\w+)(?:\(([^()\n]*)\))?([^\n]*)$", re.MULTILINE)
_WORD, _PASTE = re.compile(r"\w+"), re.compile(r"\s*##\s*")
_TEMPLATE = re.compile(r"\btemplate\s*<")
_LAST = re.compile(r"([A-Za-z_]\w*)\s*((?:\[[^\]]*\]\s*)*)$")
_LENGTH = re.compile(r"\[\s*(\d+)\s*\]")
_QUALIFIER = re.compile(r"\b(const|volatile|__restrict__|__restrict|__grid_constant__)\b")
_POINTS_TO_CONST = re.compile(r"\bconst\b.*[*&\[]")
_DECLARED = re.compile(r"\)\s*;")
_NOT_NAMES = (
    "__launch_bounds__", "__cluster_dims__", "__align__", "__maxnreg__", "__block_size__",
    "__attribute__", "alignas",
)  # fmt: skip


@dataclass(frozen=True)
class Declared:
    """A parameter or member as the source declares it; its type is the text before its name.

    `length` is that of an array within a structure, negative where it is no plain number. A class
    is passed as bytes. The type is without qualifiers; `is_const`: the elements that it points to
    are const.
    """

    name: str
    ctype: str
    length: int = 0
    is_class: bool = False
    is_const: bool = False

    @property
    def is_pointer(self) -> bool:
        """Whether it is a pointer."""
        return "*" in self.ctype or self.ctype.endswith("]")

    @property
    def qualified(self) -> str:
        """The type, with the `const` of its elements."""
        return f"const {self.ctype}" if self.is_const else self.ctype


@lru_cache(maxsize=8)
def kernels(text: str) -> Mapping[str, tuple[Declared, ...]]:
    """Return the parameters of each kernel that a source text defines, in its order."""
    plain, found = _kernels(text)
    return {name: tuple(_parameters(plain[slice(*at[0])])) for name, at in found.items()}


@lru_cache(maxsize=256)
def overloads(text: str, name: str) -> Sequence[tuple[Declared, ...]]:
    """Return the parameters of each kernel of a name, as it is defined."""
    plain, found = _kernels(text)
    places = found.get(name, ())
    defined = [at for at in places if not _DECLARED.match(plain, at[1])]
    return [tuple(_parameters(plain[slice(*at)])) for at in defined or places]


@lru_cache(maxsize=8)
def _kernels(text: str) -> tuple[str, Mapping[str, Sequence[tuple[int, int]]]]:
    """Return the text without comments, and where in it each kernel's parameters stand."""
    plain = _expanded(text)
    closing = closings(plain, "()")
    found: dict[str, list[tuple[int, int]]] = {}
    for _, name, begin in _declarations(plain, closing):
        found.setdefault(name, []).append((begin, _behind(plain, begin, closing) - 1))
    return plain, found


def templates(text: str) -> dict[str, list[str]]:
    """Return the parameters of each template of a kernel that a source text defines."""
    plain = _expanded(text)
    found: dict[str, list[str]] = {}
    for before, name, _ in _declarations(plain, closings(plain, "()")):
        if match := _TEMPLATE.search(before):
            inside = before[match.end() :]
            found.setdefault(name, parts(inside[: closings(f"<{inside}", "<>").get(0, 0) - 2]))
    return found


@lru_cache(maxsize=8)
def namespaces(text: str) -> Mapping[str, str]:
    """Return the namespace of each kernel that has one, as `outer::inner::`."""
    plain = _expanded(text)
    closing = closings(plain, "{}")
    spaces = [
        (one[1], one.end(), closing.get(one.end() - 1, 0)) for one in _NAMESPACE.finditer(plain)
    ]
    found: dict[str, str] = {}
    for _, name, at in _declarations(plain, closings(plain, "()")):
        around = "".join(f"{space}::" for space, begin, end in spaces if begin < at < end)
        found.setdefault(name, around)
    return {name: around for name, around in found.items() if around}


def _expanded(text: str) -> str:
    """Return the plain text without definitions of macros; uses of `__global__` ones expanded."""
    plain = plain_text(text)
    macros = [macro.groups("") for macro in _MACRO.finditer(plain) if "__global__" in macro[0]]
    plain = _MACRO.sub("", plain)
    for name, parameters, body in macros:
        use = rf"\b{name}\b" + r"\s*\(([^()]*)\)" * bool(parameters)
        plain = re.sub(use, partial(_body, parameters, body), plain)
    return plain


def _body(parameters: str, body: str, use: re.Match[str]) -> str:
    """Return the body of a macro with the arguments of one use."""
    if not parameters:
        return body
    given = dict(zip(_WORD.findall(parameters), parts(use[1]), strict=False))
    return _PASTE.sub("", _WORD.sub(lambda word: given.get(word[0], word[0]).strip(), body))


def _declarations(text: str, closing: Mapping[int, int]) -> Iterator[tuple[str, str, int]]:
    """Yield the words before each `__global__`, the kernel's name, and where parameters begin."""
    marks = list(_MARK.finditer(text))
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    begin = 0
    for mark, end in zip(marks, ends, strict=False):
        named = _named(text, mark.end(), end, closing) if mark[0] == "__global__" else None
        if named is not None:
            yield text[begin : mark.start()], *named
        begin = mark.end()


def _named(text: str, begin: int, end: int, closing: Mapping[int, int]) -> tuple[str, int] | None:
    """Return a kernel's name, and where its parameters begin, after a `__global__`."""
    while match := _NAME.search(text, begin, end):
        if match[1] not in _NOT_NAMES:
            return match[1], match.end()
        begin = _behind(text, match.end(), closing)
    return None


def _behind(text: str, begin: int, closing: Mapping[int, int]) -> int:
    """Return the place after the parenthesis that closes the one before a place."""
    return closing.get(begin - 1, len(text))


def _parameters(text: str) -> list[Declared]:
    made = []
    for number, part in enumerate(parts(text)):
        declared = " ".join(part.partition("=")[0].split())
        if declared and declared != "void":
            made.append(_parameter(declared, number))
    return made


def _parameter(text: str, number: int) -> Declared:
    """Return a parameter: an array is a pointer."""
    match = _LAST.search(text)
    found = type_of(text, number)
    is_array = match is not None and bool(match[2]) and bool(text[: match.start()].strip())
    if not is_array:
        return found
    return Declared(found.name, f"{found.ctype}[]", is_const=points_to_const(text))


def type_of(text: str, number: int) -> Declared:
    """Return the parts of a declaration: name, type without its qualifiers, length of an array."""
    match = _LAST.search(text)
    name = match[1] if match else ""
    before = text[: match.start()].strip() if match else text
    if not before:  # a type without a name
        return Declared(f"arg{number}", text)
    brackets = match[2].strip() if match else ""
    length = _LENGTH.fullmatch(brackets)
    ctype = _QUALIFIER.sub("", before)
    ctype = re.sub(r"\s*\*", "*", " ".join(ctype.split()))
    elements = int(length[1]) if length else -len(brackets)
    return Declared(name, ctype, elements, is_const=points_to_const(before))


def points_to_const(ctype: str) -> bool:
    """Return whether a type is a pointer, a reference or an array of something `const`."""
    return _POINTS_TO_CONST.search(ctype) is not None
