"""Demangling of names in machine code: C++ names of variables, types of kernels' parameters.

Names are mangled by the Itanium C++ ABI. Of its grammar this reads names, templates' arguments and
the types that kernels take by value or point to, and nothing else.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from gpusim.launch.languages import CUDA_CPP, PYTHON

BUILTIN: Mapping[str, str] = {
    "v": "void", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char", "s": "short",
    "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long",
    "x": "long long", "y": "unsigned long long", "n": "__int128", "o": "unsigned __int128",
    "f": "float", "d": "double", "w": "wchar_t", "Di": "char32_t", "Ds": "char16_t",
}  # fmt: skip
_STANDARD = {"t": "std", "a": "std::allocator", "s": "std::string"}
# Tags of numba's mangled names: a function's version and flags (numba/core/funcdesc.py).
_NUMBA = re.compile(r"B2v\d+B\d+c")
_LENGTH = re.compile(r"[1-9]\d*")
_NUMBER = re.compile(r"([0-9A-Z]*)_")
_LITERAL = re.compile(r"(n?\d+)E")
# A lambda's body, and the call operator of a class without namespaces.
_LAMBDA = re.compile(r"Ul.*_clI?E")
_CALL_OPERATOR = re.compile(r"_ZNK?(\d+)(\w+?)clE")
# Namespaces without a name, and the substitute for their file's.
_UNNAMED = re.compile(r"_GLOBAL__N_|_INTERNAL_|_NV_ANON")


class _UnknownError(Exception):
    """A part of the grammar that is not read."""


def cpp_name(symbol: str) -> str:
    """Return the C++ name of a variable or kernel, without namespaces that have none.

    A static variable of a function follows the function's name. The symbol where it has no other.
    """
    try:
        return _Mangled(symbol).variable()
    except _UNREADABLE:
        return symbol


def function_name(symbol: str) -> str:
    """Return the C++ name of a device function, without its parameters; "lambda" for one."""
    name = cpp_name(symbol)
    if name != symbol or not symbol.startswith("_Z"):
        return name
    if _LAMBDA.search(symbol):
        return "lambda"
    called = _CALL_OPERATOR.match(symbol)
    if called is not None and len(called[2]) == int(called[1]):
        return f"{called[2]}::operator()"
    first = _LENGTH.search(symbol)
    return symbol if first is None else symbol[first.end() : first.end() + int(first[0])]


@lru_cache(maxsize=64)
def _python_functions(file: str) -> tuple[tuple[range, str], ...]:
    """Return the functions of a Python file by their lines, inner ones last."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return ()
    return tuple(
        (range(one.lineno, (one.end_lineno or one.lineno) + 1), one.name)
        for one in ast.walk(tree)
        if isinstance(one, ast.FunctionDef)
    )


def python_function(file: str, line: int) -> str:
    """Return the innermost function of a Python file that has a line; "" for none.

    Debug information of Triton has a kernel's name for the functions that it calls, too.
    """
    if not file.endswith(".py"):
        return ""
    return next((name for lines, name in reversed(_python_functions(file)) if line in lines), "")


def language(symbol: str) -> str:
    """Return the language of a kernel's source, PYTHON for what numba-cuda has compiled."""
    return PYTHON if _NUMBA.search(symbol) else CUDA_CPP


def parameter_types(symbol: str, *, qualified: bool = False) -> list[str] | None:
    """Return the types of a kernel's parameters, None where its name does not say them.

    They are without `const`, but `qualified`.
    """
    try:
        return _Mangled(symbol, qualified=qualified).parameters()
    except _UNREADABLE:
        return None


def named(wanted: str, symbols: Mapping[str, object]) -> list[str]:
    """Return the symbols that a C++ name may mean: all of it, else the end of theirs."""
    name = re.sub(r"\s+", "", wanted).removeprefix("::")
    if wanted in symbols:
        return [wanted]
    names = {symbol: cpp_name(symbol).replace(" ", "") for symbol in symbols}
    exact = [symbol for symbol, full in names.items() if full == name]
    return exact or [symbol for symbol, full in names.items() if full.endswith(f"::{name}")]


_UNREADABLE = (_UnknownError, IndexError, ValueError, RecursionError)


class _Mangled:
    """One name, read from left to right, with the parts that later ones refer to."""

    def __init__(self, text: str, *, qualified: bool = False) -> None:
        if not text.startswith("_Z"):
            raise _UnknownError
        self.text, self.place, self.qualified = text, 2, qualified
        self.known: list[str] = []
        self.arguments: list[str] = []

    def next(self, *starts: str) -> str:
        """Return the one of these that comes next, and go on after it; "" for none."""
        for start in starts:
            if self.text.startswith(start, self.place):
                self.place += len(start)
                return start
        return ""

    def matched(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.place)
        if match is None:
            raise _UnknownError
        self.place = match.end()
        return match[match.lastindex or 0]

    def variable(self) -> str:
        if not self.next("Z"):
            return self.name()
        function = self.name()
        for match in re.finditer(r"E(?:\d+_)?", self.text):
            length = _LENGTH.match(self.text, match.end())
            if length and length.end() + int(length[0]) == len(self.text):
                return f"{function}::{self.text[length.end() :]}"
        raise _UnknownError

    def parameters(self) -> list[str]:
        is_template = self.name().endswith(">")
        if is_template:
            self.type()  # the return type
        types = []
        while self.place < len(self.text):
            types.append(self.type())
        return [] if types == ["void"] else types

    def name(self) -> str:
        """Read a name that is not a type's."""
        self.next("L")
        if self.next("N"):
            return self.nested(is_type=False)
        name = self.one()
        if self.text.startswith("I", self.place):
            self.known.append(name)
            self.arguments = self.template_arguments()
            name += _shown(self.arguments)
        return name

    def one(self) -> str:
        self.next("L")
        length = int(self.matched(_LENGTH))
        self.place += length
        if self.place > len(self.text):
            raise _UnknownError
        name = self.text[self.place - length : self.place]
        while self.next("B"):  # tags of the ABI, which are no part of the name
            length = int(self.matched(_LENGTH))
            self.place += length
        return name

    def nested(self, *, is_type: bool) -> str:
        """Read a name's parts up to the last; each prefix may be referred to."""
        while self.next("r", "V", "K"):
            pass
        name, is_new = "", False
        while not self.next("E"):
            if is_new:
                self.known.append(name)
            is_new = True
            if self.text.startswith("I", self.place):
                self.arguments = self.template_arguments()
                name += _shown(self.arguments)
            elif self.next("S"):
                name, is_new = self.referred(), False
            else:
                part = self.one()
                unnamed = _UNNAMED.match(part) is not None
                name = name if unnamed else f"{name}::{part}" if name else part
        if is_type and is_new:
            self.known.append(name)
        return name

    def referred(self) -> str:
        """Read a substitution: a reference to an earlier part."""
        standard = self.next(*_STANDARD)
        if standard:
            return _STANDARD[standard]
        number = self.matched(_NUMBER)
        return self.known[int(number, 36) + 1 if number else 0]

    def template_arguments(self) -> list[str]:
        self.next("I")
        made: list[str] = []
        while not self.next("E"):
            if self.next("J"):
                self.place -= 1
                self.text = f"{self.text[: self.place]}I{self.text[self.place + 1 :]}"
                made += self.template_arguments()
            else:
                made.append(self.literal() if self.next("L") else self.type())
        return made

    def literal(self) -> str:
        kind, value = self.type(), self.matched(_LITERAL).replace("n", "-")
        return {"0": "false", "1": "true"}.get(value, value) if kind == "bool" else value

    def type(self) -> str:
        for start, read in self._TYPES.items():
            if self.next(start):
                return read(self)
        builtin = self.next(*sorted(BUILTIN, key=len, reverse=True))
        return BUILTIN[builtin] if builtin else self._class()

    def _class(self) -> str:
        return self._with_arguments(self._kept(self.one()))

    def _with_arguments(self, name: str) -> str:
        if not self.text.startswith("I", self.place):
            return name
        outer = self.arguments
        made = self._kept(name + _shown(self.template_arguments()))
        self.arguments = outer
        return made

    def _pointer(self) -> str:
        return self._kept(f"{self.type()}*")

    def _qualified(self) -> str:
        begin = self.place - 1
        while self.next("r", "V", "K"):
            pass
        is_const = self.qualified and "K" in self.text[begin : self.place]
        return self._kept(f"{'const ' * is_const}{self.type()}")

    def _substituted(self) -> str:
        return self._with_arguments(self.referred())

    def _parameter(self) -> str:
        number = self.matched(_NUMBER)
        return self._kept(self.arguments[int(number, 36) + 1 if number else 0])

    def _nested_type(self) -> str:
        outer = self.arguments
        name = self.nested(is_type=True)
        self.arguments = outer
        return name

    def _kept(self, name: str) -> str:
        self.known.append(name)
        return name

    _TYPES: Mapping[str, Callable[[_Mangled], str]] = {
        "P": _pointer, "r": _qualified, "V": _qualified, "K": _qualified, "S": _substituted,
        "T": _parameter, "N": _nested_type,
    }  # fmt: skip


def _shown(arguments: list[str]) -> str:
    return f"<{', '.join(arguments)}>"
