"""Conditions and returns of CUDA C++ around a place in the source.

Machine code has one form for an early return and for a body in `if (i < n)` at a kernel's end: an
EXIT with a predicate. The source decides: whether a condition or loop is around the place,
and whether a return stands before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

_BLANKED = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#(?:\\\n|[^\n])*',
    re.DOTALL | re.MULTILINE,
)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:\\\n|[^\n])*)", re.MULTILINE)
_DIRECTIVE = re.compile(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b.*")
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|[^\s\w]")
_SYNC = re.compile(
    r"__sync\w+|sync|__(?:shfl|match|reduce)\w+|__(?:ballot|any|all)_sync|\w*wait\w*"
)
_EXIT = re.compile(r'"[^"\n]*\b(?:exit|ret|trap)\b')
_UNKNOWN_MACRO = re.compile(r"[A-Z][A-Z0-9_]{2,}")
END = "\n"  # after the last token
_CLOSING = {")": "(", "]": "[", "}": "{"}
_LOOPS = ("for", "while", "do")
_HEADED = ("if", "for", "while", "switch")
# Names in expressions with one value for all threads of a block, and types.
_UNIFORM = frozenset({
    "blockIdx", "blockDim", "gridDim", "x", "y", "z", "w", "int", "unsigned", "long", "short",
    "char", "bool", "float", "double", "size_t", "const", "auto", "int32_t", "uint32_t", "int64_t",
    "uint64_t", "min", "max", "true", "false", "sizeof", "nullptr",
})  # fmt: skip
_LEAVES, _BRANCHES = re.compile(r"\breturn\b"), re.compile(r"\b(?:if|for|while|switch)\b")


@dataclass(frozen=True)
class Control:
    """A conditional statement or loop: its keyword and its body, `else` included, by place.

    If it is uniform, all threads of a block take the same path.
    """

    keyword: int
    body: range
    is_loop: bool
    is_uniform: bool = False


@dataclass
class Function:
    """The statements of a function's body: conditions, loops, and returns, by place.

    `uniform` are the names of values that all threads of a block share.
    """

    body: range
    controls: list[Control] = field(default_factory=list)
    returns: list[int] = field(default_factory=list)
    uniform: set[str] = field(default_factory=set)
    is_unclear: bool = False  # gotos, and macros of unknown text


def left_early(
    reached: Sequence[tuple[int, Function]], left: Sequence[int], line_of: Callable[[int], int]
) -> bool | None:
    """Return whether threads have taken an early return before a place.

    False where a condition or loop around the place was not entered, None where that is not clear.
    The place is given for each of the functions that it is in by calls; `left` are the lines where
    the threads exited. A uniform condition does not divide a block.
    """
    around: list[Control] = []
    before: list[int] = []
    for place, function in reached:
        inside = [one for one in function.controls if place in one.body]
        loops = [one.body for one in inside if one.is_loop]
        parting = [one for one in function.controls if not one.is_uniform]
        around += [one for one in inside if not one.is_uniform]
        before += [
            one
            for one in function.returns
            if (one < place or any(one in body for body in loops))
            and (
                any(one in control.body for control in parting)
                or not any(one in control.body for control in function.controls)  # of a macro
            )
        ]
    if any(function.is_unclear for _, function in reached) or not (around or before):
        return None
    if not (around and before):
        return not around
    controls = [one for _, function in reached for one in function.controls]
    guards = [
        one
        for one in around
        if line_of(one.keyword) in left and not any(place in one.body for place in before)
    ]
    returns = [place for place in before if line_of(place) in left] + [
        one.keyword
        for one in controls
        if line_of(one.keyword) in left
        and one not in around
        and any(place in one.body for place in before)
    ]
    return None if bool(guards) == bool(returns) else bool(returns)


class _UnreadableError(Exception):
    """Brackets that do not match, as alternatives of the preprocessor may leave them."""


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def _first_alternatives(text: str) -> str:
    """Return a text without the lines of #else and #elif: their brackets may not match."""
    kept, lines = [True], []
    for line in text.split("\n"):
        directive = _DIRECTIVE.match(line)
        if directive and directive[1].startswith("if"):
            kept.append(directive[0].split()[-1:] != ["0"])
        elif directive and len(kept) > 1:
            kept[-1:] = {"else": [not kept[-1]], "elif": [False]}.get(directive[1], [])
        lines.append(line if all(kept) else "")
    return "\n".join(lines)


class Statements:
    """The statements of a source text, found by line."""

    def __init__(self, text: str) -> None:
        macros = dict(_MACRO.findall(text))
        self._leaving = {name for name, body in macros.items() if _LEAVES.search(body)}
        self._heading = {name for name, body in macros.items() if _BRANCHES.search(body)}
        self._known = macros.keys()
        self._exits_in_asm = _EXIT.search(text) is not None
        blanked = _BLANKED.sub(_blank, _first_alternatives(text))
        found = list(_TOKEN.finditer(blanked))
        self._tokens = [*(one[0] for one in found), END, END]
        ends = [one.start() for one in re.finditer("\n", blanked)]
        self._lines: list[int] = []
        line = 0
        for one in found:
            while line < len(ends) and ends[line] < one.start():
                line += 1
            self._lines.append(line + 1)

    def left_early(self, reached: Sequence[tuple[int, str]], left: Sequence[int]) -> bool | None:
        """Return whether threads that left have taken an early return, as `left_early` does.

        The place is given by its line and those of the calls of its functions, innermost first,
        each with the name of what is called there, "" for a barrier.
        """
        try:
            places = [self._place(line, name) for line, name in reached]
            functions = [(place, self._function(place)) for place in places]
        except (_UnreadableError, IndexError):
            return None
        return left_early(functions, left, self._lines.__getitem__)

    def _place(self, line: int, name: str) -> int:
        """Return the token of a barrier, or of a call of a function, in a line."""
        here = [place for place, at in enumerate(self._lines) if at == line]
        named = [
            place
            for place in here
            if (self._tokens[place] == name if name else _SYNC.fullmatch(self._tokens[place]))
        ]
        return (named or here)[0]

    @cached_property
    def _match(self) -> dict[int, int]:
        """The closing bracket of each opening one."""
        found, waiting = {}, []
        for place, token in enumerate(self._tokens):
            if token in "([{":
                waiting.append(place)
            elif token in _CLOSING:
                if not waiting or self._tokens[waiting[-1]] != _CLOSING[token]:
                    raise _UnreadableError
                found[waiting.pop()] = place
        if waiting:
            raise _UnreadableError
        return found

    @cached_property
    def _opening(self) -> dict[int, int]:
        """The opening bracket of each closing one."""
        return {end: begin for begin, end in self._match.items()}

    def _function(self, place: int) -> Function:
        """Return the innermost function or lambda around a token."""
        around = [
            begin
            for begin, end in sorted(self._match.items())
            if self._tokens[begin] == "{" and begin < place < end
        ]
        bodies: list[int] = []
        for begin in around:
            caller = self._called_before(begin)
            if caller == "]" or (not bodies and caller):
                bodies.append(begin)
        if not bodies:
            raise _UnreadableError
        made = Function(range(bodies[-1] + 1, self._match[bodies[-1]]))
        made.uniform = self._uniform(bodies[-1], made.body)
        self._read(made.body, made)
        return made

    def _uniform(self, begin: int, body: range) -> set[str]:
        """Return a kernel's parameters, and values computed from these and the block's number."""
        closing = begin - 1
        opening = self._opening.get(closing, 0)
        uniform = set(_UNIFORM)
        if "__global__" in self._tokens[max(0, opening - 12) : opening]:
            uniform |= {one for one in self._tokens[opening:closing] if one.isidentifier()}
        assigned = [place for place in body if self._is_assignment(place)]
        names = [self._tokens[place] for place in assigned]
        uniform -= set(names)
        for place, name in zip(assigned, names, strict=True):
            behind = next((p for p in range(place, body.stop) if self._tokens[p] in ";{"), place)
            if names.count(name) == 1 and self._is_uniform(range(place + 2, behind), uniform):
                uniform.add(name)
        return uniform

    def _is_assignment(self, place: int) -> bool:
        """Return whether a name gets a value there, by =, +=, ++ and the like."""
        first, second = self._tokens[place + 1 : place + 3]
        is_plain = first == "=" and second != "="
        is_changed = (first in "+-*/%&|^" and second == "=") or (first in "+-" and first == second)
        return self._tokens[place].isidentifier() and (is_plain or is_changed)

    def _is_uniform(self, part: range, uniform: set[str]) -> bool:
        tokens = [self._tokens[place] for place in part]
        return "[" not in tokens and all(one in uniform or not one.isidentifier() for one in tokens)

    def _called_before(self, begin: int) -> str:
        """Return the token before the parameters in front of a brace: a name, or a lambda's "]"."""
        closing = begin - 1
        while closing > 0 and re.fullmatch(r"\w+|[>*&:-]", self._tokens[closing]):
            closing -= 1
        if self._tokens[closing] == "]":
            return "]"
        opening = self._opening.get(closing, 0) if self._tokens[closing] == ")" else 0
        return self._tokens[opening - 1] if opening else ""

    def _read(self, part: range, made: Function) -> None:
        place = part.start
        while place < part.stop:
            place = self._statement(place, part.stop, made)

    def _statement(self, place: int, end: int, made: Function) -> int:
        """Read one statement, and return the token after it."""
        token = self._tokens[place]
        if token == "{":
            self._read(range(place + 1, self._match[place]), made)
            return self._match[place] + 1
        if token == "do":
            behind = self._statement(place + 1, end, made)
            made.controls.append(Control(place, range(place + 1, behind), is_loop=True))
            return self._to_semicolon(behind, end, made)
        opening = self._header(place, end)
        if opening is None:
            return self._to_semicolon(place, end, made)
        behind = self._statement(self._match[opening] + 1, end, made)
        while behind < end and self._tokens[behind] == "else":
            behind = self._statement(behind + 1, end, made)
        body = range(self._match[opening] + 1, behind)
        is_loop = token in _LOOPS or token not in _HEADED
        header = range(opening + 1, self._match[opening])
        counters = {self._tokens[one] for one in header if self._is_counter(one)}
        is_uniform = token in _HEADED and self._is_uniform(header, made.uniform | counters)
        is_uniform &= not {"break", "continue"} & {self._tokens[one] for one in body}
        made.controls.append(Control(place, body, is_loop=is_loop, is_uniform=is_uniform))
        return behind

    def _is_counter(self, place: int) -> bool:
        """Return whether a name is declared in the head of a loop."""
        return self._is_assignment(place) and self._tokens[place - 1].isidentifier()

    def _header(self, place: int, end: int) -> int | None:
        """Return the bracket after a keyword, or a macro in the place of one; None for others."""
        token = self._tokens[place]
        opening = place + 1 + (self._tokens[place + 1] == "constexpr")
        if opening >= end or self._tokens[opening] != "(":
            return None
        behind = self._match[opening] + 1
        is_macro = token in self._heading and behind < end and self._tokens[behind] != ";"
        is_block = token.isidentifier() and behind < end and self._tokens[behind] == "{"
        return opening if token in _HEADED or is_macro or is_block else None

    def _to_semicolon(self, place: int, end: int, made: Function) -> int:
        """Read an expression or declaration up to its semicolon, or a label up to its colon."""
        first = self._tokens[place]
        is_label = first in ("case", "default")
        if _UNKNOWN_MACRO.fullmatch(first) and first not in self._known:
            made.is_unclear |= self._tokens[place + 1] == "("
        begin = place
        while place < end:
            token = self._tokens[place]
            if place > begin and token in (*_HEADED, "do"):  # after a macro without semicolon
                return place
            if token == "return" or token in self._leaving:
                made.returns.append(place)
            if token == "goto" or (token == "asm" and self._exits_in_asm):
                made.is_unclear = True
            if token == ";" or (is_label and token == ":"):
                return place + 1
            place = self._match[place] + 1 if token in "([{" else place + 1
        return end


@lru_cache(maxsize=4)
def statements_of(text: str) -> Statements:
    """Return the statements of a text, read once."""
    return Statements(text)
