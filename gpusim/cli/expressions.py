"""Sizes that depend on others: `ceil(n/(2*block))` in a grid, a shape or an argument.

Numbers, + - * / %, min, max, ceil and the given names; parsed, never evaluated as
Python. A quotient is exact until `ceil` rounds it up; the result must be a whole number, or, in
an argument with a decimal point, any number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from gpusim.cli.inputs import number, whole_number
from gpusim.errors import InputError, did_you_mean
from gpusim.host.files import shown

MOST_TOKENS = 100
MOST = 2**64
_DECIMAL = r"\d+\.\d*(?:[eE][-+]?\d{1,2})?"
_TOKEN = re.compile(rf"\s*({_DECIMAL}|\d[\d_]*(?:\s*(?:\^|\*\*)\s*\d+)?|[A-Za-z_]\w*|[-+*/%(),])")
# Separators of sizes: a comma, or an x between two of them, as in 16x16, ceil(n/16)xn or nxn.
_COMMA = re.compile(
    r",|(?:(?<=[\d)\s])|(?<=\bn)|(?<=xn)|(?<=\bblock)|(?<=xblock))x"
    r"(?=[\s\d(]|(?:n|block)(?:\b|x)|(?:ceil|min|max)\b)"
)
_OPERATION = re.compile(r"\d\s*\)?\s*[-+*/%]\s*\(?\s*\d")
_IS_NAME = re.compile(r"[A-Za-z_]\w*$")

FUNCTIONS: Mapping[str, Callable[[Sequence[Fraction]], Fraction]] = {
    "ceil": lambda values: Fraction(math.ceil(values[0])),
    "min": min,
    "max": max,
}
OPERATORS: Mapping[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": lambda a, b: a % b,
}
SUMS, PRODUCTS = "+-", "*/%"
NO_NAMES: Mapping[str, int] = {}
SIZES = ("n", "block")  # the names that options give


def is_expression(text: str, names: Mapping[str, int]) -> bool:
    """Return whether a text is an expression: it has one of the names, or an operation."""
    if number(text) is not None or whole_number(text) is not None:
        return False
    words = set(re.findall(r"(?<![\d.])[A-Za-z_]\w*", text))
    return words <= {*names, *FUNCTIONS, *SIZES} if words else bool(_OPERATION.search(text))


def size_of(text: str, names: Mapping[str, int]) -> int | None:
    """Return the value of a number or an expression, None for neither."""
    return value_of(text, names) if is_expression(text, names) else whole_number(text)


def parts_of(text: str, *, commas: bool = True) -> list[str]:
    """Return the parts between commas, or an x between sizes, outside parentheses.

    Without `commas`, those do not separate parts.
    """
    parts, begin = [], 0
    for comma in _COMMA.finditer(text):
        before = text[: comma.start()]
        if comma[0] == "," and not commas:
            continue
        if before.count("(") == before.count(")"):
            parts.append(text[begin : comma.start()])
            begin = comma.end()
    return [*parts, text[begin:]]


def number_of(text: str, names: Mapping[str, int]) -> int | float:
    """Return an expression's value: any number if it has a decimal point, else a whole one."""
    return float(_exact(text, names)) if "." in text else value_of(text, names)


def value_of(text: str, names: Mapping[str, int]) -> int:
    """Return the whole number that an expression evaluates to; InputError if it is none."""
    found = _exact(text, names)
    if found.denominator != 1:
        raise InputError(
            f"{shown(text)!r} is {float(found):g}, not a whole number; ceil(...) rounds up"
        )
    return int(found)


def _exact(text: str, names: Mapping[str, int]) -> Fraction:
    try:
        found = _Parser(text, names).whole()
    except ZeroDivisionError:
        raise InputError(f"{shown(text)!r} divides by zero") from None
    if abs(found) >= MOST:
        raise InputError(f"{shown(text)!r} is larger than any size")
    return found


class _Parser:
    """Evaluates an expression from left to right."""

    def __init__(self, text: str, names: Mapping[str, int]) -> None:
        self._text, self._names = text, names
        self._tokens = self._parted(text)
        self._place = 0

    def _parted(self, text: str) -> list[str]:
        tokens: list[str] = []
        place = 0
        while place < len(text.rstrip()):
            match = _TOKEN.match(text, place)
            if match is None or len(tokens) == MOST_TOKENS:
                raise self._error(text[place : place + 10].strip())
            tokens.append(match[1])
            place = match.end()
        return tokens

    def _error(self, at: str) -> InputError:
        return InputError(
            f"{shown(self._text)!r} is not understood at {shown(at)!r}; a size consists of "
            f"numbers, + - * / %, {', '.join(FUNCTIONS)}, {', '.join(self._names) or 'no names'}"
        )

    def _next(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def _take(self, wanted: str = "") -> str:
        token = self._next()
        if not token or (wanted and token != wanted):
            raise self._error(token or "its end")
        self._place += 1
        return token

    def whole(self) -> Fraction:
        """Return the value of the whole expression."""
        found = self._chain(SUMS)
        if self._next():
            raise self._error(self._next())
        return found

    def _chain(self, operators: str) -> Fraction:
        """Return operands joined by operators of one precedence: sums of products of operands."""
        part = self._operand if operators == PRODUCTS else lambda: self._chain(PRODUCTS)
        found = part()
        while self._next() and self._next() in operators:
            operator = OPERATORS[self._take()]
            found = operator(found, part())
        return found

    def _operand(self) -> Fraction:
        token = self._take()
        if token == "(":
            inside = self._chain(SUMS)
            self._take(")")
            return inside
        if token in FUNCTIONS:
            return FUNCTIONS[token](self._arguments(token))
        if token in self._names:
            return Fraction(self._names[token])
        if re.fullmatch(_DECIMAL, token):
            return Fraction(token)
        whole = whole_number(token)
        if whole is None and _IS_NAME.match(token):
            known = did_you_mean(token, [*self._names, *FUNCTIONS])
            given = f"; -{'-' * (token != 'n')}{token} gives it" if token in SIZES else known
            raise InputError(
                f"{shown(self._text)!r}: nothing is named {shown(token)!r} here{given}"
            )
        if whole is None:
            raise self._error(token)
        return Fraction(whole)

    def _arguments(self, function: str) -> list[Fraction]:
        self._take("(")
        found = [self._chain(SUMS)]
        while self._next() == ",":
            self._take()
            found.append(self._chain(SUMS))
        self._take(")")
        if function == "ceil" and len(found) != 1:
            raise self._error("ceil")
        return found
