"""Numbers of host code, with the expression of a launch's size `n` that they come from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

Root = tuple[object, ...]  # the constant that a number is, by its place in the source


@dataclass(frozen=True)
class Number:
    """A value, with its text where it depends on the size or the block, "" where it does not.

    `root` is the constant of the source that it is a copy of, `is_literal` whether the expression
    itself is that constant.
    """

    value: Fraction
    text: str = ""
    root: Root | None = None
    is_literal: bool = False

    @classmethod
    def of(cls, value: float, **about: object) -> Number:
        """Return a number without a text."""
        return cls(Fraction(value), **about)  # type: ignore[arg-type]

    @property
    def whole(self) -> int:
        """The value, as C rounds it."""
        return math.trunc(self.value)

    @property
    def written(self) -> str:
        """The number as an argument has it: its expression, or its digits."""
        if self.text:
            return self.text
        return str(self.whole) if self.value.denominator == 1 else str(float(self.value))

    def copied(self) -> Number:
        """Return the number as a variable holds it."""
        return replace(self, is_literal=False)


def _quotient(a: Number, b: Number, is_whole: bool) -> Number | None:
    """Return a quotient; of whole numbers rounded down, where (n+255)/256 is ceil(n/256)."""
    if not b.value:
        return None
    x, y = a.written, _part(b)
    if not is_whole:
        return _made(a.value / b.value, f"{x}/{y}", a, b)
    value = Fraction(math.trunc(a.value / b.value))
    for end in (f"+{b.written}-1)", f"+{b.whole - 1})", f"-1+{b.written})"):
        if a.text.startswith("(") and a.text.endswith(end):
            return _made(value, f"ceil({a.text[1:].removesuffix(end)}/{y})", a, b)
    return _made(value, f"({x}-{_part(a)}%{y})/{y}", a, b)


def _made(value: Fraction, text: str, *of: Number) -> Number:
    return Number(value, text if any(one.text for one in of) else "")


def _part(one: Number) -> str:
    """Return a number as a divisor: sums and remainders have parentheses already."""
    text = one.written
    return text if text.isalnum() or _is_wrapped(text) else f"({text})"


def _is_wrapped(text: str) -> bool:
    """Return whether parentheses around the whole of a text belong together."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return text.startswith("(") and place == len(text) - 1
    return False


def _sum(sign: str) -> Callable[[Number, Number], Number]:
    def made(a: Number, b: Number) -> Number:
        value = a.value + b.value if sign == "+" else a.value - b.value
        left = a.text[1:-1] if _is_wrapped(a.text) and "%" not in a.text else a.written
        return _made(value, f"({left}{sign}{b.written})", a, b)

    return made


def _product(a: Number, b: Number) -> Number:
    return _made(a.value * b.value, f"{a.written}*{b.written}", a, b)


def _power_of_two(b: Number) -> Number:
    return Number.of(2 ** max(0, min(63, b.whole)))


def operation(operator: str, a: Number, b: Number, *, is_whole: bool) -> Number | None:
    """Return a number for an operator of C, None for others and for a division by zero."""
    if operator == "/":
        return _quotient(a, b, is_whole)
    if operator == ">>":
        return _quotient(a, _power_of_two(b), True)
    if operator == "<<":
        return _product(a, _power_of_two(b))
    if operator == "%":
        return _made(a.value % b.value, f"({_part(a)}%{_part(b)})", a, b) if b.value else None
    if operator in OPERATORS:
        return OPERATORS[operator](a, b)
    if operator in COMPARISONS:
        return Number.of(COMPARISONS[operator](a.value, b.value))
    if operator in BITS:
        return Number.of(BITS[operator](a.whole, b.whole))
    return None


OPERATORS: Mapping[str, Callable[[Number, Number], Number]] = {
    "+": _sum("+"), "-": _sum("-"), "*": _product,
}  # fmt: skip
COMPARISONS: Mapping[str, Callable[[Fraction, Fraction], bool]] = {
    "<": lambda a, b: a < b, ">": lambda a, b: a > b, "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
    "&&": lambda a, b: bool(a and b), "||": lambda a, b: bool(a or b),
}  # fmt: skip
BITS: Mapping[str, Callable[[int, int], int]] = {
    "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
}  # fmt: skip


def called(function: str, given: list[Number]) -> Number | None:
    """Return what a function of C's library returns, None for others."""
    name = function.rpartition("::")[2].removesuffix("f") if function != "f" else function
    if name in ("ceil", "min", "max", "fmin", "fmax") and given:
        word = name.removeprefix("f")
        values = [one.value for one in given]
        value = {"ceil": lambda: Fraction(math.ceil(values[0])), "min": lambda: min(values),
                 "max": lambda: max(values)}[word]()  # fmt: skip
        return _made(value, f"{word}({','.join(one.written for one in given)})", *given)
    if name == "ceil_div" and len(given) == 2 and given[1].value:  # of libcu++
        a, b = given
        value = Fraction(math.ceil(a.value / b.value))
        return _made(value, f"ceil({a.written}/{_part(b)})", a, b)
    if name in FUNCTIONS and given:
        try:
            return Number.of(FUNCTIONS[name](*(float(one.value) for one in given)))
        except (ArithmeticError, ValueError, TypeError):
            return None
    return None


FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "floor": math.floor, "sqrt": math.sqrt, "pow": math.pow, "log2": math.log2, "abs": abs,
    "fabs": abs, "exp2": lambda x: 2.0**x, "log": math.log, "round": round, "exp": math.exp,
}  # fmt: skip
