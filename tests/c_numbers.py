"""Numbers that compute as the dialect says, one at a time: the reference for random kernels.

Written from docs/dialect.md on Python's integers and NumPy's scalars, and sharing no code with
the compiler or the machine. A bare Python number is a literal of the source and takes the type of
what it meets.
"""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, lru_cache
from types import SimpleNamespace
from typing import Any

import lane_runner
import numpy as np

BITS = {"bool": 1, "int8": 8, "uint8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32,
        "int64": 64, "uint64": 64}  # fmt: skip
FLOATS = {"float32": np.float32, "float64": np.float64}


def is_float(dtype: str) -> bool:
    return dtype in FLOATS


@cache
def limits(dtype: str) -> tuple[int, int]:
    bits = BITS[dtype]
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype[0] == "i" else (0, (1 << bits) - 1)


def wrapped(value: int, dtype: str) -> int:
    low, high = limits(dtype)
    return (value - low) % (high - low + 1) + low


@cache
def promoted(dtype: str) -> str:
    return "int32" if BITS.get(dtype, 64) < 32 else dtype


@cache
def common(a: str, b: str) -> str:
    """The type in which C brings two types together."""
    a, b = promoted(a), promoted(b)
    if is_float(a) or is_float(b):
        return max((t for t in (a, b) if is_float(t)), key=lambda t: int(t[5:]))
    if BITS[a] != BITS[b]:
        return a if BITS[a] > BITS[b] else b
    return a if a[0] == "u" else b


def alone(literal: Any) -> str:
    """The type of a literal that meets nothing."""
    if isinstance(literal, bool):
        return "bool"
    if isinstance(literal, float):
        return "float64"
    return next(t for t in ("int32", "int64", "uint64") if limits(t)[0] <= literal <= limits(t)[1])


def meeting(*operands: Any) -> str:
    """The type in which operands meet; literals come last."""
    found = ""
    for operand in operands:
        if isinstance(operand, Number):
            found = common(found or operand.dtype, operand.dtype)
    for operand in operands:
        if not isinstance(operand, Number):
            found = with_literal(operand, found) if found else promoted(alone(operand))
    return found


def with_literal(literal: Any, dtype: str) -> str:
    if isinstance(literal, float):
        return dtype if is_float(dtype) else "float64"
    if is_float(dtype) or isinstance(literal, bool):
        return dtype
    low, high = limits(dtype)
    low = -(high + 1) // 2 if dtype[0] == "u" else low  # a negative literal wraps
    return dtype if low <= literal <= high else common(dtype, alone(literal))


class Number:
    """A value of one of the dialect's types: a Python integer, or a NumPy float."""

    __slots__ = ("dtype", "value")

    def __init__(self, dtype: str, value: Any) -> None:
        self.dtype, self.value = dtype, value

    def __repr__(self) -> str:
        return f"{self.dtype}({self.value})"

    def __bool__(self) -> bool:
        return bool(self.value != 0)

    def __int__(self) -> int:
        return int(self.value)

    __index__ = __int__

    def __hash__(self) -> int:
        return hash(self.value)


@cache
def name_of(dtype: np.dtype[Any]) -> str:
    """The name of a type of arrays."""
    return str(dtype)


def of(scalar: Any) -> Any:
    """A NumPy scalar as a number; anything else as it is."""
    if not isinstance(scalar, np.generic):
        return scalar
    dtype = name_of(scalar.dtype)
    return Number(dtype, scalar if is_float(dtype) else int(scalar))


def converted(operand: Any, dtype: str) -> Any:
    """The bare value of an operand after a conversion: integers wrap, floats saturate."""
    value = operand
    if isinstance(operand, Number):
        value = operand.value
        if operand.dtype == dtype:
            return value
    if is_float(dtype):
        if isinstance(value, int) and -(2**63) <= value < 2**64:
            value = np.uint64(value) if value >= 2**63 else np.int64(value)
        with np.errstate(all="ignore"):
            return FLOATS[dtype](value)
    if dtype == "bool":
        return int(value != 0)
    if isinstance(value, int):
        return wrapped(value, dtype)
    low, high = limits(dtype)
    if math.isnan(value):
        return 0
    return low if value <= low else high if value >= high else int(value)


class Cast:
    """What `np.int8` and its like are in a kernel; narrow integers are computed with as int32."""

    def __init__(self, dtype: str) -> None:
        self.dtype = np.dtype(dtype)

    def __call__(self, operand: Any) -> Number:
        dtype = name_of(self.dtype)
        made = "bool" if dtype == "bool" else promoted(dtype)
        return Number(made, converted(operand, dtype))


def stored(operand: Any, dtype: np.dtype[Any]) -> Any:
    """What an array of `dtype` holds of an operand."""
    return dtype.type(converted(operand, name_of(dtype)))


def quotient(a: int, b: int) -> int:
    if b == 0:
        return -1  # all bits are set
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def power(a: int, b: int, dtype: str) -> int:
    if b >= 0:
        return pow(a, b, 1 << BITS[dtype])
    return {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)


def real_power(a: Any, b: Any) -> Any:
    """C's pow. NumPy takes a root for 0.5, which is no power of -0 and -infinity."""
    return abs(a) if b == 0.5 and (a == 0 or math.isinf(a)) else np.power(a, b)


INTEGERS: dict[str, Callable[[int, int, str], int]] = {
    "add": lambda a, b, _: a + b,
    "sub": lambda a, b, _: a - b,
    "mul": lambda a, b, _: a * b,
    "floordiv": lambda a, b, _: quotient(a, b),
    "mod": lambda a, b, _: a - quotient(a, b) * b if b else -1,
    "pow": power,
    "and": lambda a, b, _: a & b,
    "or": lambda a, b, _: a | b,
    "xor": lambda a, b, _: a ^ b,
}
REALS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "truediv": lambda a, b: a / b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "pow": real_power,
}


def arithmetic(name: str, a: Any, b: Any) -> Number:
    dtype = meeting(a, b)
    if name in ("and", "or", "xor") and all(
        isinstance(x, bool) or (isinstance(x, Number) and x.dtype == "bool") for x in (a, b)
    ):
        dtype = "bool"
    if name == "truediv" and not is_float(dtype):
        dtype = "float64"
    left, right = converted(a, dtype), converted(b, dtype)
    if is_float(dtype):
        with np.errstate(all="ignore"):
            return Number(dtype, REALS[name](left, right))
    return Number(dtype, wrapped(INTEGERS[name](left, right, dtype), dtype))


def shift(name: str, a: Any, b: Any) -> Number:
    dtype = meeting(a)
    value, count = converted(a, dtype), converted(b, dtype)
    over = not 0 <= count < BITS[dtype]
    if name == "lshift":
        return Number(dtype, 0 if over else wrapped(value << count, dtype))
    return Number(dtype, (-1 if value < 0 else 0) if over else value >> count)


COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


def compare(name: str, a: Any, b: Any) -> Number:
    dtype = meeting(a, b)
    return Number("bool", int(COMPARE[name](converted(a, dtype), converted(b, dtype))))


def _operators() -> None:
    """Give Number its operators, with a literal on either side."""

    def add(method: str, function: Callable[..., Any], name: str) -> None:
        setattr(Number, f"__{method}__", lambda self, other: function(name, self, other))
        if function is not compare:
            setattr(Number, f"__r{method}__", lambda self, other: function(name, other, self))

    for name in (*INTEGERS, "truediv"):
        add(name, arithmetic, name)
    for name in ("lshift", "rshift"):
        add(name, shift, name)
    for name in COMPARE:
        add(name, compare, name)


_operators()


def unary(change: Callable[[Any], Any]) -> Callable[[Number], Number]:
    def operator(number: Number) -> Number:
        dtype = promoted(number.dtype)
        value = change(converted(number, dtype))
        return Number(dtype, value if is_float(dtype) else wrapped(value, dtype))

    return operator


for _name, _change in (("neg", lambda x: -x), ("invert", lambda x: ~x), ("abs", abs)):
    setattr(Number, f"__{_name}__", unary(_change))
Number.__pos__ = unary(lambda x: x)  # type: ignore[attr-defined]


def extreme(name: str) -> Callable[..., Any]:
    """`min` or `max`: a number wins over NaN, and -0 is less than +0."""

    def choose(*operands: Any) -> Number:
        dtype = meeting(*operands)
        best = converted(operands[0], dtype)
        for operand in operands[1:]:
            value = converted(operand, dtype)
            if is_float(dtype):
                if math.isnan(best) or math.isnan(value):
                    best = value if math.isnan(best) else best
                    continue
                key = (value, math.copysign(1, value)), (best, math.copysign(1, best))
            else:
                key = (value, 0), (best, 0)
            if key[0] < key[1] if name == "min" else key[0] > key[1]:
                best = value
        return Number(dtype, best)

    return choose


def choice(condition: Any, yes: Any, no: Any) -> Number:
    """`yes if condition else no`, in the type in which both meet."""
    kinds = {x.dtype if isinstance(x, Number) else alone(x) for x in (yes, no)}
    dtype = "bool" if kinds == {"bool"} else meeting(yes, no)
    return Number(dtype, converted(yes if condition else no, dtype))


def counting(*parts: Any) -> Iterator[Number]:
    """`range`: Python's numbers, in the type in which start, stop and step meet."""
    start, stop, step = (0, parts[0], 1) if len(parts) == 1 else (*parts, 1)[:3]
    dtype = meeting(start, stop, step)
    for value in range(int(start), int(stop), int(step)):
        yield Number(dtype, wrapped(value, dtype))


def fma(a: Any, b: Any, c: Any) -> Number:
    dtype = meeting(a, b, c)
    dtype = dtype if is_float(dtype) else "float64"
    x, y, z = (converted(operand, dtype) for operand in (a, b, c))
    with np.errstate(all="ignore"):
        rough = x * y + z
    if not all(map(math.isfinite, (x, y, z))) or not x * y or not z:
        return Number(dtype, rough)
    exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    return Number(dtype, rounded(exact, dtype) if exact else FLOATS[dtype](0))


def rounded(exact: Fraction, dtype: str) -> Any:
    """A fraction rounded to the nearest float, ties to even."""
    digits, least = (24, -149) if dtype == "float32" else (53, -1074)
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    unit = Fraction(2) ** max(exponent - digits + 1, least)
    whole = round(size / unit)  # Python rounds ties to even
    with np.errstate(all="ignore"):
        try:
            return FLOATS[dtype](float(whole * unit) * (1 if exact > 0 else -1))
        except OverflowError:
            return FLOATS[dtype](math.inf if exact > 0 else -math.inf)


def bits_of(number: Any) -> tuple[int, int]:
    dtype = meeting(number) if not isinstance(number, Number) else number.dtype
    return converted(number, dtype) % (1 << BITS[dtype]), BITS[dtype]


def population(number: Any) -> Number:
    return Number("int32", bits_of(number)[0].bit_count())


def first_set(number: Any) -> Number:
    bits = bits_of(number)[0]
    return Number("int32", (bits & -bits).bit_length())


def leading_zeros(number: Any) -> Number:
    bits, size = bits_of(number)
    return Number("int32", size - bits.bit_length())


def reversed_bits(number: Any) -> Number:
    bits, size = bits_of(number)
    return Number(number.dtype, wrapped(int(f"{bits:0{size}b}"[::-1], 2), number.dtype))


class Spelled(ast.NodeTransformer):
    """Spells out what Python's own syntax would do in another way than the dialect.

    Conditionals are given the type of both sides, `and`, `or` and `not` give truth values.
    """

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        return _call("choice_", node.test, node.body, node.orelse)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        return _call("truth_", node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return _call("truth_", node) if isinstance(node.op, ast.Not) else node


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def truth(value: Any) -> Number:
    return Number("bool", int(bool(value)))


@lru_cache(maxsize=8)
def spelled(function: Any) -> Any:
    """The code of a function with Python's own syntax spelled out."""
    lines, _ = inspect.getsourcelines(function)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    tree = ast.fix_missing_locations(Spelled().visit(tree))
    scope: dict[str, Any] = {}
    exec(compile(tree, f"{function.__name__} spelled out", "exec"), scope)
    return scope[function.__name__].__code__


def function(compute: Callable[..., Any], *, gives_truth: bool = False) -> Callable[..., Number]:
    """A function of `math`, in the operands' type or float64."""

    def call(*operands: Any) -> Number:
        dtype = meeting(*operands)
        dtype = dtype if is_float(dtype) else "float64"
        with np.errstate(all="ignore"):
            found = compute(*(converted(operand, dtype) for operand in operands))
        return Number("bool", int(found)) if gives_truth else Number(dtype, found)

    return call


FUNCTIONS = {
    **{name: function(getattr(np, name)) for name in (
        "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan",
        "sinh", "cosh", "tanh", "floor", "ceil", "trunc", "fabs", "fmod", "hypot", "copysign")},
    **{name: function(getattr(np, numpys)) for name, numpys in (
        ("asin", "arcsin"), ("acos", "arccos"), ("atan", "arctan"), ("atan2", "arctan2"))},
    "pow": function(real_power),
    **{name: function(getattr(np, name), gives_truth=True)
       for name in ("isnan", "isinf", "isfinite")},
}  # fmt: skip


# The numbers as the thread-per-lane runner takes them.
C = lane_runner.Arithmetic(
    of=of,
    stored=stored,
    code=spelled,
    minimum=extreme("min"),
    maximum=extreme("max"),
    names={
        "choice_": choice,
        "truth_": truth,
        "range": counting,
        "len": lambda array: array.shape[0],
        "np": SimpleNamespace(**{name: Cast(name) for name in (*BITS, *FLOATS) if name != "bool"},
                              bool_=Cast("bool")),
        "math": SimpleNamespace(**FUNCTIONS),
    },
    words={
        "fma": fma, "popc": population, "ffs": first_set, "clz": leading_zeros,
        "brev": reversed_bits,
    },
)  # fmt: skip
