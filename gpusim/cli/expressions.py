"""Sizes that depend on others: `ceil(n/(2*block))` in a grid, a shape or an argument.

Whole numbers, + - * / %, min, max, ceil and the names that are given; parsed, never evaluated as
Python. A quotient is exact until `ceil` rounds it up; what is left must be a whole number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from gpusim.cli.inputs import whole_number
from gpusim.errors import InputError, did_you_mean
from gpusim.files import shown

MOST_TOKENS = 100
MOST = 2**64
_TOKEN = re.compile(r"\s*(\d[\d_]*(?:\s*(?:\^|\*\*)\s*\d+)?|[A-Za-z_]\w*|[-+*/%(),])")
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


def names_something(text: str, names: Mapping[str, int]) -> bool:
    """Return whether a text is an expression: it has one of the names, or an operation."""
    words = set(re.findall(r"[A-Za-z_]\w*", text))
    return bool(words) and words <= {*names, *FUNCTIONS}


def size_of(text: str, names: Mapping[str, int]) -> int | None:
    """Return the size that a number or an expression stands for, None for neither."""
    return value_of(text, names) if names_something(text, names) else whole_number(text)


def parts_of(text: str) -> list[str]:
    """Return what the commas of a text part that stand in no parentheses."""
    parts, depth, begin = [], 0, 0
    for place, char in enumerate(text):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "," and not depth:
            parts.append(text[begin:place])
            begin = place + 1
    return [*parts, text[begin:]]


def value_of(text: str, names: Mapping[str, int]) -> int:
    """Return the whole number that an expression comes to; InputError where it is none."""
    try:
        found = _Parser(text, names).whole()
    except ZeroDivisionError:
        raise InputError(f"{shown(text)!r} divides by zero") from None
    if found.denominator != 1:
        raise InputError(f"{shown(text)!r} comes to {float(found):g}; ceil(...) rounds it up")
    if abs(found) >= MOST:
        raise InputError(f"{shown(text)!r} comes to more than any size")
    return int(found)


class _Parser:
    """Works an expression out from left to right."""

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
            f"{shown(self._text)!r} is not understood at {shown(at)!r}; a size is made of whole "
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
        """Return what all of it comes to."""
        found = self._chain(SUMS)
        if self._next():
            raise self._error(self._next())
        return found

    def _chain(self, operators: str) -> Fraction:
        """Return operands of one rank put together: sums of products of operands."""
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
        number = whole_number(token)
        if number is None and _IS_NAME.match(token):
            known = did_you_mean(token, [*self._names, *FUNCTIONS])
            raise InputError(
                f"{shown(self._text)!r}: nothing is named {shown(token)!r} here{known}"
            )
        if number is None:
            raise self._error(token)
        return Fraction(number)

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
