"""Typed Python in WebAssembly computes as CPython does; the rest is refused with line and caret."""

from __future__ import annotations

import math
import re
from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import wasmtime
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typed_python import Compiled

from gpusim.gpu.memory import LINE_BYTES
from gpusim.prediction.arithmetic import elementary
from gpusim.wasm.module import module_of
from gpusim.wasm.sources import NotTranslatedError

WHOLE = st.integers(-(2**40), 2**40)
FLOATS = st.floats(-1e15, 1e15)


# -- operators, one by one -----------------------------------------------------------------


def divided_down(a: int, b: int) -> int:
    return a // b


def rest(a: int, b: int) -> int:
    return a % b


def by_sixteen(a: int, b: int) -> int:
    return a // 16 * 1000 + a % 16 + b


def quotient(a: int, b: int) -> float:
    return a / b


def product(a: int, b: int) -> int:
    return a * b - (a + b) * -a


def low_bits(a: int, b: int) -> float:
    return (a * (b * b + 1) + b) * 0x9E3779B97F4A7C15 % 18446744073709551616 / 18446744073709551616


def extremes(a: int, b: int) -> int:
    return min(a, b, 7) * 3 + max(a, 5, b)


def chain(a: int, b: int) -> bool:
    return a > b > 0 or not (a == b or b != 3)


def chosen(a: int, b: int) -> int:
    return a if a and b else -b


@pytest.mark.parametrize(
    "function",
    [divided_down, rest, by_sixteen, quotient, product, low_bits, extremes, chain, chosen],
)
def test_operators_of_whole_numbers_compute_as_in_python(function: Callable[..., Any]) -> None:
    run = Compiled(function)

    @settings(max_examples=40)
    @given(WHOLE, WHOLE.filter(bool))
    @example(-7, 2)
    @example(7, -2)
    @example(-16, 16)
    @example(4, 3)
    def compare(a: int, b: int) -> None:
        small = function in (product, low_bits)
        a, b = (a >> 12, b >> 12 or 1) if small else (a, b)
        assert run(a, b) == function(a, b)

    compare()


def rounded(a: float, b: float) -> int:
    return round(a) + round(b / 2) * 2


def cut(a: float, b: float) -> int:
    return int(a) - int(b)


def fraction(a: float, b: float) -> float:
    return (a + b) % 1.0


def sums(a: float, b: float) -> float:
    return a * b + a - b / 3.0 - -a


def mixed(a: float, b: float) -> float:
    return 3 * a + (1 if a < b else 2)


def float_extremes(a: float, b: float) -> float:
    return max(a, b) - min(a, b, 0.5)


def logarithm(a: float, b: float) -> float:
    return elementary.log(abs_of(a) + 1e-9) + elementary.exp(-abs_of(b) / 1e6)


def root(a: float, b: float) -> float:
    return elementary.power(max(fraction(a, b), 1e-30), 0.3)


def abs_of(a: float) -> float:
    return -a if a < 0 else a


def parts(a: float, b: float) -> tuple[float, int]:
    mantissa, exponent = math.frexp(a * a + 1e-3)
    return math.ldexp(mantissa, exponent - 3) + b, exponent


@pytest.mark.parametrize(
    "function",
    [rounded, cut, fraction, sums, mixed, float_extremes, logarithm, root, parts],
)
def test_operators_of_floats_compute_as_in_python(function: Callable[..., Any]) -> None:
    """To the last bit; rounding is half to even."""
    run = Compiled(function)

    @settings(max_examples=40)
    @given(FLOATS, FLOATS)
    @example(0.5, 1.5)
    @example(2.5, -3.0)
    @example(-0.5, 5.0)
    def compare(a: float, b: float) -> None:
        assert run(a, b) == function(a, b)

    compare()


# -- lists, objects and loops ----------------------------------------------------------------


def sorted_pairs(seed: int, n: int) -> int:
    """Sort pairs, take them from the front, and return them as one number."""
    pairs: list[tuple[int, int]] = []
    for number in range(n):
        seed = seed * 1103515245 % 1000003
        insort(pairs, (seed % 17, number))
    mixed = 0
    while pairs:
        key, number = pairs[0]
        del pairs[0]
        mixed = (mixed * 31 + key * 64 + number) % 1000003
    return mixed


def taken_from_the_end(seed: int, n: int) -> int:
    """Sort pairs, take them from the end, all but the first; return them as one number."""
    pairs: list[tuple[int, int]] = []
    for number in range(n):
        seed = seed * 1103515245 % 1000003
        insort(pairs, (-(seed % 17), number))
    mixed = 0
    while len(pairs) > 1:
        key, number = pairs[-1]
        del pairs[-1]
        mixed = (mixed * 31 - key * 64 + number + pairs[-1][1]) % 1000003
    return mixed


def inserted(seed: int, n: int) -> int:
    """Insert, delete and look for numbers; return all as one."""
    items: list[int] = []
    for number in range(n):
        seed = seed * 1103515245 % 1000003
        insort(items, seed % 50)
        if number % 3 == 2:
            del items[seed % len(items)]
    mixed = 1 if 7 in items else 0
    for place, item in enumerate(items):
        if item == 13:
            continue
        if item > 45:
            break
        mixed = (mixed * 31 + item + place) % 1000003
    items.clear()
    return mixed + len(items)


@dataclass
class Pair:
    """A dataclass, with a default."""

    first: int
    second: float = 0.5

    def sum(self, *, times: int) -> float:
        return (self.first + self.second) * times


class Chained:
    """A class with an `__init__`, and another object of its kind or None."""

    pair: Pair
    counts: list[int]
    before: Chained | None

    def __init__(self, pair: Pair, before: Chained | None) -> None:
        self.pair = pair
        self.counts = [3] * 4
        self.before = before


def of_objects(seed: int, n: int) -> int:
    last: Chained | None = None
    for number in range(n):
        last = Chained(Pair(number), last)
        last.counts[number % 4] += seed
    total = 0.0
    while last is not None:
        last.pair.second += 1
        total += last.pair.sum(times=2) + last.counts[0]
        last = last.before
    return round(total)


def first_above(items: list[int], least: int) -> int:
    for place, item in enumerate(items):
        if item > least:
            return place
    return -1


def factorial(n: int) -> int:
    return n * factorial(n - 1) if n > 1 else 1


def of_small_functions(seed: int, n: int) -> int:
    """What is written out where it is called returns from there alone, and may call itself."""
    items: list[int] = []
    found = 0
    for number in range(n):
        items.append(seed * number % 19)
        found = found * 7 + first_above(items, number % 5) - first_above(items, 17)
        found = found % 1000003 + factorial(number % 7)
    return found


FIRST, SECOND = divided_down, rest
BOTH = (FIRST, SECOND)


def of_a_table(a: int, b: int) -> int:
    return BOTH[a % 2](a, b + 1)


MANY = (divided_down, rest, product, extremes, chosen, by_sixteen)


def of_a_long_table(a: int, b: int) -> int:
    return MANY[a % 6](a, b + 1)


def beyond_a_table(a: int, b: int) -> int:
    return BOTH[a](b, 3)


@pytest.mark.parametrize(
    "function",
    [
        sorted_pairs,
        taken_from_the_end,
        inserted,
        of_objects,
        of_small_functions,
        of_a_table,
        of_a_long_table,
    ],
)
def test_lists_objects_and_tables_do_as_in_python(function: Callable[..., Any]) -> None:
    run = Compiled(function)
    for seed, n in ((1, 1), (2, 40), (77, 200), (4242, 25)):
        assert run(seed, n) == function(seed, n)


def element(a: int, b: int) -> int:
    items = [5] * 3
    return items[a] + b


def last_element(a: int, b: int) -> int:
    items = [5] * a
    return items[-1] + b


def without_the_last(a: int, b: int) -> int:
    items = [5] * a
    del items[-1]
    return len(items) + b


def quotient_of_floats(a: float, b: float) -> float:
    return a / b


def test_what_python_raises_is_a_trap() -> None:
    """An index outside of a list or a table, a division by zero."""
    assert Compiled(element)(2, 1) == 6
    assert Compiled(last_element)(1, 1) == 6
    assert Compiled(without_the_last)(1, 1) == 1
    assert Compiled(beyond_a_table)(1, 7) == 1
    for function, arguments in (
        (element, (3, 1)),
        (last_element, (0, 1)),
        (without_the_last, (0, 1)),
        (beyond_a_table, (2, 7)),
        (divided_down, (1, 0)),
        (rest, (1, 0)),
        (quotient_of_floats, (1.0, 0.0)),
    ):
        with pytest.raises(wasmtime.Trap):
            Compiled(function)(*arguments)


# -- what is refused -------------------------------------------------------------------------


def with_a_comprehension(a: int) -> int:
    return max([b * b for b in range(a)])


def with_a_dictionary(a: int) -> int:
    there = {1: a}
    return there[1]


def with_a_text(a: int) -> int:
    return len("text") + a


def with_a_library(a: float) -> float:
    return math.sin(a)


def with_two_kinds(a: int) -> float:
    b = 1
    if a:
        b = 2.5 * a  # type: ignore[assignment]
    return b


def with_a_foreign_number(a: int) -> int:
    return a + LINE_BYTES


@pytest.mark.parametrize(
    ("function", "message", "marked"),
    [
        (
            with_a_comprehension,
            "the minimum or maximum of a list is not translated",
            "max([b * b for b in range(a)])",
        ),
        (with_a_dictionary, "Dict is not translated", "{1: a}"),
        (with_a_text, "Constant is not translated", '"text"'),
        (with_a_library, "sin> is not translated", "math.sin(a)"),
        (with_two_kinds, "this is float, where int is expected", "2.5 * a"),
        (with_a_foreign_number, "a number of gpusim.gpu.memory is not known", "LINE_BYTES"),
    ],
)
def test_other_python_is_refused_with_line_and_caret(
    function: Callable[..., Any], message: str, marked: str
) -> None:
    with pytest.raises(NotTranslatedError, match=re.escape(message)) as caught:
        module_of(function, {})
    first, line, carets = str(caught.value).splitlines()
    assert first.startswith(f"{__file__}:")
    begin = carets.index("^")
    assert line[begin : begin + carets.count("^")] == marked
