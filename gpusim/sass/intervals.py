"""Interval analysis of a kernel's integers for one launch: sums without overflow.

Numbers of the launch are known; loaded ones may be anything of their type. A branch that dominates
a block bounds its comparison's operands (Harrison, "Compiler Analysis of the Value Ranges for
Variables", 1977).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gpusim.compiler.dominators import dominators
from gpusim.compiler.ir import Block, Function, Value
from gpusim.compiler.operations import OPERATIONS, SPECIAL_REGISTERS
from gpusim.launch.grid import Launch
from gpusim.typing import DType

DEPTH = 24  # the depth to which operands are followed


class Interval(NamedTuple):
    """The least and the greatest that an integer may be."""

    low: int
    high: int

    def within(self, other: Interval) -> bool:
        """Return whether no number of it lies outside another one."""
        return other.low <= self.low and self.high <= other.high

    def meet(self, other: Interval) -> Interval:
        """Return the numbers of both; this one where there are none."""
        found = Interval(max(self.low, other.low), min(self.high, other.high))
        return found if found.low <= found.high else self


def of_dtype(dtype: DType) -> Interval:
    """Return all numbers of an integer type."""
    if dtype.kind == "b":
        return Interval(0, 1)
    limits = np.iinfo(dtype)
    return Interval(int(limits.min), int(limits.max))


@dataclass(frozen=True)
class Known:
    """A launch's facts about a kernel's integers: parameters, lengths, sizes of grid and block."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    launch: Launch | None = None

    def of_parameter(self, name: str) -> int | None:
        """Return an integer parameter's number."""
        value = self.parameters.get(name)
        return None if value is None or np.ndim(value) else int(value)

    def of_length(self, detail: tuple[str, int | None]) -> int | None:
        """Return an array's length along an axis, or in all."""
        name, axis = detail
        array = self.parameters.get(name)
        if array is None:
            return None
        return int(array.size if axis is None else array.shape[axis])

    def of_shape(self, name: str) -> tuple[int, ...] | None:
        """Return the sizes of an array along its axes."""
        array = self.parameters.get(name)
        return None if array is None else tuple(array.shape)

    def of_register(self, name: str) -> Interval:
        """Return the interval of a special register."""
        kind, _, axis = name.partition(".")
        traits = SPECIAL_REGISTERS[name]
        if self.launch is None or not axis:
            return Interval(int(traits.is_of_launch), traits.largest)
        sizes = self.launch.block if kind in ("tid", "ntid") else self.launch.grid
        size = sizes["xyz".index(axis)]
        return Interval(size, size) if traits.is_of_launch else Interval(0, size - 1)


Numbers = Callable[[Interval, Interval], Interval]


def _corners(compute: Callable[[int, int], int]) -> Numbers:
    def interval(a: Interval, b: Interval) -> Interval:
        found = [compute(x, y) for x in a for y in b]
        return Interval(min(found), max(found))

    return interval


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: Interval, b: Interval) -> Interval:
    most = max(abs(b.low), abs(b.high)) - 1
    return Interval(max(a.low, -most) if a.low < 0 else 0, min(a.high, most) if a.high > 0 else 0)


def _and(a: Interval, b: Interval) -> Interval:
    least = [one.high for one in (a, b) if one.low >= 0]
    if not least:
        return Interval(min(a.low, b.low) * 2, max(a.high, b.high))
    return Interval(0, min(least))


def _or(a: Interval, b: Interval) -> Interval:
    bits = 1 << max(abs(end) for one in (a, b) for end in one).bit_length()
    return Interval(-bits if min(a.low, b.low) < 0 else 0, bits - 1)


# The exact result of an operation, before it wraps around.
EXACT: Mapping[str, Numbers] = {
    "add": _corners(lambda a, b: a + b),
    "sub": lambda a, b: Interval(a.low - b.high, a.high - b.low),
    "mul": _corners(lambda a, b: a * b),
    "min": _corners(min),
    "max": _corners(max),
    "and": _and,
    "or": _or,
    "xor": _or,
}
# Operations with a defined result in C only if the second operand is in a range.
SHIFTS: Mapping[str, Numbers] = {
    "shl": _corners(lambda a, b: a << b),
    "shr": _corners(lambda a, b: a >> b),
}
DIVISIONS: Mapping[str, Numbers] = {"idiv": _corners(_quotient), "rem": _remainder}
# For two numbers in a comparison, the interval of the first given the second's.
BOUNDS: Mapping[str, Callable[[Interval, Interval], Interval]] = {
    "lt": lambda own, other: Interval(own.low, other.high - 1),
    "le": lambda own, other: Interval(own.low, other.high),
    "gt": lambda own, other: Interval(other.low + 1, own.high),
    "ge": lambda own, other: Interval(other.low, own.high),
    "eq": lambda own, other: other,
}


class Intervals:
    """The intervals of a function's integers in a launch with some known facts."""

    def __init__(self, function: Function, known: Known) -> None:
        self._known = known
        self._tree = dominators(function)
        self._home = {
            value: block
            for block in function.blocks
            for value in (*block.phis, *block.body)
        }  # fmt: skip
        self._found: dict[Value, Interval] = {}
        self._asked: set[Value] = set()
        for block in self._tree.order:
            for value in (*block.phis, *block.body):
                if value.dtype is not None and value.dtype.kind in "biu":
                    self.of(value)

    def exact(self, value: Value) -> Interval | None:
        """Return the result of an operation before it wraps around, None if unknown."""
        compute = EXACT.get(value.op) or SHIFTS.get(value.op) or DIVISIONS.get(value.op)
        if value.op == "neg":
            own = self.operand(value, 0)
            return Interval(-own.high, -own.low)
        if compute is None:
            return None
        a, b = self.operand(value, 0), self.operand(value, 1)
        if value.op in SHIFTS and not b.within(_counts(value)):
            return None
        if value.op in DIVISIONS and b.low <= 0 <= b.high:
            return None
        return compute(a, b)

    def keeps_to_its_type(self, value: Value) -> bool:
        """Return whether an operation of integers has a result that its type holds."""
        assert value.dtype is not None
        found = self.exact(value)
        return found is not None and found.within(of_dtype(value.dtype))

    def counts_within(self, value: Value) -> bool:
        """Return whether a shift's count is 0 at least and less than the bits of its type."""
        return self.operand(value, 1).within(_counts(value))

    def may_leave_an_axis(self, bounds: Value) -> bool:
        """Return whether an index may be below zero, or beyond its axis of an array."""
        array = bounds.detail
        sizes = array.shape if array.space != "global" else self._known.of_shape(array.name)
        if sizes is None:
            return True
        indices = (self.operand(bounds, axis) for axis in range(len(bounds.args)))
        inside = (Interval(0, size - 1) for size in sizes)
        return not all(one.within(axis) for one, axis in zip(indices, inside, strict=True))

    def operand(self, value: Value, position: int) -> Interval:
        """Return the interval of an operand at an operation's place."""
        one = value.args[position]
        return self._refined(one, self._home.get(value))

    def _refined(self, value: Value, block: Block | None) -> Interval:
        found = self.of(value)
        for comparison, first, second in self._conditions(block):
            if value is first:
                found = found.meet(BOUNDS[comparison](found, self.of(second)))
            elif value is second and comparison in BOUNDS:
                swapped = OPERATIONS[comparison].swapped
                found = found.meet(BOUNDS[swapped](found, self.of(first)))
        return found

    def _conditions(self, block: Block | None) -> Iterator[tuple[str, Value, Value]]:
        """Yield the comparisons that hold in a block, because of branches that lead to it."""
        while block is not None and block in self._tree.parent:
            above = self._tree.parent[block]
            if block.preds == [above] and above is not None and len(above.targets) == 2:
                assert above.condition is not None
                if above.targets[0] is not above.targets[1]:
                    yield from self._held(above.condition, above.targets[0] is block)
            block = above

    def _held(self, condition: Value, is_true: bool) -> Iterator[tuple[str, Value, Value]]:
        """Yield the comparisons that a condition means, being true or false."""
        if condition.op == ("and" if is_true else "or"):
            for part in condition.args:
                yield from self._held(part, is_true)
        elif condition.op == "not":
            yield from self._held(condition.args[0], not is_true)
        elif condition.op == "select" and self._is_certain(condition.args[0]):
            yield from self._held(condition.args[1], is_true)
        elif condition.operation.is_comparison:
            comparison = condition.op if is_true else condition.operation.inverse
            kinds = {one.dtype.kind for one in condition.args if one.dtype is not None}
            if comparison in BOUNDS and kinds <= {"i", "u"}:
                first, second = condition.args
                yield comparison, first, second

    def _is_certain(self, condition: Value) -> bool:
        """Return whether one value is greater than another throughout their intervals."""
        if condition.op != "gt":
            return False
        first, second = condition.args
        return self.of(first).low > self.of(second).high

    def of(self, value: Value) -> Interval:
        """Return the interval of a value at its definition."""
        assert value.dtype is not None
        whole = of_dtype(value.dtype) if value.dtype.kind in "biu" else Interval(0, 0)
        if value in self._found:
            return self._found[value]
        if value in self._asked or len(self._asked) > DEPTH or value.dtype.kind == "f":
            return whole
        self._asked.add(value)
        found = self._computed(value, whole)
        self._asked.discard(value)
        found = found if found.within(whole) else whole
        self._found[value] = found  # at a cyclic reference the interval is the whole type
        return found

    def _computed(self, value: Value, whole: Interval) -> Interval:
        if value.op in _OF_LAUNCH:
            return _OF_LAUNCH[value.op](self._known, value) or whole
        if value.op == "cast" and value.args[0].dtype is not None:
            return self.operand(value, 0) if value.args[0].dtype.kind in "biu" else whole
        if value.op == "select":
            return _both([self.operand(value, 1), self.operand(value, 2)])
        if value.op == "phi":
            return self._of_phi(value, whole)
        return self.exact(value) or whole

    def _of_phi(self, phi: Value, whole: Interval) -> Interval:
        """Return the interval of an induction variable: bounded by its start on one side."""
        starts = [one for one in phi.args if not _follows(one, phi)]
        nexts = [one for one in phi.args if _follows(one, phi)]
        if not starts:
            return whole
        if not nexts:
            return _both([self._on_edge(phi, k) for k in range(len(phi.args))])
        start = _both([self.of(one) for one in starts])
        ways = {self._way(one, phi, start) for one in nexts}
        if ways == {"up"}:
            return Interval(start.low, whole.high)
        if ways == {"down"}:
            return Interval(whole.low, start.high)
        return Interval(min(start.low, 0), max(start.high, 0)) if ways == {"in"} else whole

    def _on_edge(self, phi: Value, position: int) -> Interval:
        block = self._home[phi]
        return self._refined(phi.args[position], block.preds[position])

    def _way(self, following: Value, phi: Value, start: Interval) -> str:
        """Return the direction of an induction variable: "up", "down", "in" toward zero, or ""."""
        if following is phi:
            return "in"
        if following.op in ("shr", "idiv") and following.args[0] is phi:
            by = self.operand(following, 1)
            return "in" if by.low >= (1 if following.op == "idiv" else 0) else ""
        if following.op not in ("add", "sub", "mul"):
            return ""
        other = following.args[1] if following.args[0] is phi else following.args[0]
        step = self._refined(other, self._home.get(following))
        if following.op == "sub":
            if following.args[0] is not phi:
                return ""
            step = Interval(-step.high, -step.low)
        if not self._stays(following, phi, step, start):
            return ""
        if following.op == "mul":
            return "up" if start.low >= 0 and step.low >= 1 else ""
        return "up" if step.low >= 0 else "down" if step.high <= 0 else ""

    def _stays(self, following: Value, phi: Value, step: Interval, start: Interval) -> bool:
        """Return whether an induction variable stays within its type in the next iteration."""
        assert following.dtype is not None
        whole = of_dtype(following.dtype)
        behind = self._home.get(following)
        now = whole
        if following.op == "mul" or step.low >= 0:
            now = Interval(start.low, whole.high)
        elif step.high <= 0:
            now = Interval(whole.low, start.high)
        for comparison, first, second in self._conditions(behind):
            if first is phi:
                now = now.meet(BOUNDS[comparison](now, self.of(second)))
            elif second is phi:
                now = now.meet(BOUNDS[OPERATIONS[comparison].swapped](now, self.of(first)))
        exact = EXACT["mul" if following.op == "mul" else "add"](now, step)
        return exact.within(whole)


def _follows(value: Value, phi: Value) -> bool:
    """Return whether a value is the next value of an induction variable, computed from it."""
    return value is phi or (value.op in ("add", "sub", "mul", "shr", "idiv") and phi in value.args)


def _both(intervals: list[Interval]) -> Interval:
    return Interval(min(one.low for one in intervals), max(one.high for one in intervals))


def _counts(value: Value) -> Interval:
    assert value.dtype is not None
    return Interval(0, 8 * value.dtype.itemsize - 1)


def _exactly(number: int | None) -> Interval | None:
    return None if number is None else Interval(number, number)


_OF_LAUNCH: Mapping[str, Callable[[Known, Value], Interval | None]] = {
    "const": lambda known, value: _exactly(int(value.detail)),
    "undef": lambda known, value: Interval(0, 0),
    "param": lambda known, value: _exactly(known.of_parameter(value.detail)),
    "length": lambda known, value: _exactly(known.of_length(value.detail)),
    "stride": lambda known, value: None,
    "sreg": lambda known, value: known.of_register(value.detail),
}
