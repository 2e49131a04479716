"""Other inputs of a launch, for `gpusim check --explore`: each is a command line of its own.

Sizes around multiples of the block, empty, one and odd; numbers and elements on either side of what
the kernel compares them with; other orders of warps and blocks where these communicate. One option
is changed at a time, then several at random.
"""

from __future__ import annotations

import math
import re
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gpusim.catalogue import Entry
from gpusim.cli.arguments import FILLINGS, ZEROS, argument, parted_by_name
from gpusim.cli.expressions import parts_of
from gpusim.cli.inputs import fits, whole_number
from gpusim.cli.launches import grid_of, named_in_order, sizes_given
from gpusim.isa.ops import OPS, Program
from gpusim.program.influence import Influence, influence
from gpusim.program.polling import polls
from gpusim.typing import DType

WARP = 32
LIKELY = 2  # of that many options one is changed where several are
_NUMBER = re.compile(
    r"(?P<before>(?:[A-Za-z_][\w.]*=)?(?:\w+\()?)(?P<value>[^=@\[\]()]+)(?P<after>\)?)"
)
_ARRAY = re.compile(
    r"(?P<before>(?:[A-Za-z_][\w.]*=)?\w+\[)(?P<shape>[^\]]*)\](?:=(?P<filling>.*))?", re.DOTALL
)

Change = Callable[[Namespace], Namespace]


@dataclass(frozen=True)
class Axis:
    """The changes of one thing, such as a size: those with a reason, and others by a seed."""

    changes: Sequence[Change]
    by_seed: Callable[[int], Change] | None = None


def variants(chosen: Namespace, axes: Sequence[Axis], seed: int) -> Iterator[Namespace]:
    """Yield other options, one change at a time by turns of the axes, then several at random."""
    yield from _single(chosen, axes)
    random = np.random.default_rng(seed)
    used = [axis for axis in axes if axis.changes or axis.by_seed]
    while used:
        made = chosen
        for axis in used:
            if len(used) > 1 and random.integers(LIKELY):
                continue
            if axis.by_seed is not None and (not axis.changes or random.integers(LIKELY)):
                change = axis.by_seed(int(random.integers(1, 1000)))
            else:
                change = axis.changes[int(random.integers(len(axis.changes)))]
            made = change(made)
        yield made


def _single(chosen: Namespace, axes: Sequence[Axis]) -> Iterator[Namespace]:
    for number in range(max((len(axis.changes) for axis in axes), default=0)):
        for axis in axes:
            if number < len(axis.changes):
                yield axis.changes[number](chosen)


# -- axes ------------------------------------------------------------------------------


def catalogue_axes(entry: Entry, block: int, n: int) -> list[Axis]:
    """Return sizes, blocks, operations and orders of a kernel of the catalogue."""
    rule = entry.block_rule
    blocks = sorted({one for size in (1, WARP, 96, 100, 1024) for one in rule.nearest(size)})
    return [
        Axis([_given("n", str(size)) for size in _sizes(block * entry.per_thread, n, 1)]),
        Axis([_given("block", str(one)) for one in blocks if one != block]),
        Axis([_given("op", one) for one in entry.operations[1:]]),
        _orders(),
    ]


def own_axes(chosen: Namespace, program: Program, parameters: Sequence[str]) -> list[Axis]:
    """Return the sizes, numbers, elements and orders for the user's kernel."""
    names = named_in_order([parted_by_name(one)[0] for one in chosen.arg or ()], parameters)
    sizes, tied = _size_axis(chosen)
    axes = [sizes]
    known = sizes_given(chosen)
    for at, text in enumerate(chosen.arg or ()):
        value = argument(text, filling=ZEROS, names=known).value
        if isinstance(value, np.ndarray):
            used = influence(program, names[at], is_array=True)
            axes.append(_elements(at, text, value, used))
        elif isinstance(value, int | float | np.generic) and at not in tied:
            used = influence(program, names[at], is_array=False)
            axes.append(_numbers(at, text, value, used))
    if communicates(program):
        axes.append(_orders())
    return axes


def communicates(program: Program) -> bool:
    """Return whether blocks or warps learn of each other without a barrier: by atomics or flags."""
    if polls(program):
        return True
    return any(OPS[row.op].kind == "atomic" and row.dst for row in program.instructions)


def _orders() -> Axis:
    return Axis(
        [_given("order", str(seed)) for seed in (0, 1)], lambda seed: _given("order", str(seed))
    )


def _given(name: str, text: str) -> Change:
    """Return the change that gives an option."""
    return lambda chosen: Namespace(**{**vars(chosen), name: text})


def _sizes(unit: int, n: int, least: int) -> list[int]:
    """Return sizes around multiples of a unit and of a warp; none much above those given."""
    near = [1, unit + 1, unit - 1, n - 1, unit, 2 * unit + 1, 3, WARP + 1, 2 * unit - 1, n // 2, 2]
    near += [WARP - 1, WARP, n // 2 + 1, unit // 2, n // 3, 5 * unit // 2]
    most = max(n, 3 * unit)
    return [size for size in dict.fromkeys(near) if least <= size <= most and size != n]


def _size_axis(chosen: Namespace) -> tuple[Axis, set[int]]:
    """Return the sizes of a launch, and the arguments that are one of them, by position.

    With -n, n is the size. Else a number is one that is an array's length, too; or what the grid's
    threads are a multiple of.
    """
    sizes = sizes_given(chosen)
    unit = sizes.get("block", WARP)
    texts = list(chosen.arg or ())
    if "n" in sizes:
        tied = {at for at, text in enumerate(texts) if not _ARRAY.fullmatch(text) and _has_n(text)}
        found: list[Change] = [_given("n", str(size)) for size in _sizes(unit, sizes["n"], 1)]
        return Axis(found[:1] + _empty(tied) + found[1:]), tied
    grid = math.prod(grid_of(chosen.grid, sizes))
    lengths = {length for text in texts for length in _lengths(text)}
    numbers = {at: int(text) for at, text in enumerate(map(_plain, texts)) if text.isdigit()}
    tied = {at for at, number in numbers.items() if number > 1 and number in lengths}
    if tied:
        largest = max(numbers[at] for at in tied)
        changes = [_resized(largest, size, unit, grid) for size in _sizes(unit, largest, 1)]
        return Axis(changes[:1] + _empty(tied) + changes[1:]), tied
    if grid > 1 and "x" not in chosen.grid:
        return Axis([_regridded(grid, size) for size in (1, 2, 3, grid - 1) if size < grid]), set()
    return Axis([]), set()


def _has_n(text: str) -> bool:
    return re.search(r"(?<!\w)n(?!\w|=)", text) is not None


def _plain(text: str) -> str:
    """Return the digits of an argument that is a number, else ""."""
    found = _NUMBER.fullmatch(text.strip())
    value = whole_number(found["value"]) if found else None
    return str(value) if value is not None and value >= 0 else ""


def _lengths(text: str) -> list[int]:
    """Return the lengths of an array's dimensions as they are written, and their product."""
    found = _ARRAY.fullmatch(text.strip())
    if not found:
        return []
    lengths = [whole_number(part) for part in parts_of(found["shape"])]
    known = [length for length in lengths if length is not None]
    return [*known, math.prod(known)] if len(known) == len(lengths) else []


def _empty(tied: set[int]) -> list[Change]:
    """Return the change of all sizes among the numbers to 0; arrays keep their elements."""

    def change(chosen: Namespace) -> Namespace:
        texts = list(chosen.arg)
        for at in tied:
            texts[at] = _with_number(texts[at], "0")
        return Namespace(**{**vars(chosen), "arg": texts})

    return [change] if tied else []


def _with_number(text: str, value: str) -> str:
    found = _NUMBER.fullmatch(text.strip())
    if found is None:  # an expression
        name, equals, _ = text.partition("=")
        return f"{name}={value}" if equals else value
    return f"{found['before']}{value}{found['after']}"


def _resized(size: int, new: int, block: int, grid: int) -> Change:
    """Return the change of one size wherever it stands: numbers, lengths, and the grid's rule."""

    def change(chosen: Namespace) -> Namespace:
        texts = [
            _with_number(text, str(new))
            if _plain(text) == str(size)
            else _relengthed(text, size, new)
            for text in chosen.arg
        ]
        options = {**vars(chosen), "arg": texts}
        if grid == -(-size // block) and "x" not in chosen.grid:
            options["grid"] = str(max(1, -(-new // block)))
        return Namespace(**options)

    return change


def _regridded(grid: int, new: int) -> Change:
    """Return the change of the number of blocks, with the lengths that are multiples of it."""

    def change(chosen: Namespace) -> Namespace:
        texts = []
        for text in chosen.arg or ():
            for length in _lengths(text)[:-1]:
                if length % grid == 0:
                    text = _relengthed(text, length, length // grid * new)
            texts.append(text)
        return Namespace(**{**vars(chosen), "arg": texts, "grid": str(new)})

    return change


def _relengthed(text: str, size: int, new: int) -> str:
    found = _ARRAY.fullmatch(text.strip())
    if not found:
        return text
    shape = [str(new) if whole_number(part) == size else part for part in parts_of(found["shape"])]
    filling = "" if found["filling"] is None else f"={found['filling']}"
    return f"{found['before']}{','.join(shape)}]{filling}"


def _numbers(at: int, text: str, value: Any, used: Influence) -> Axis:
    """Return other values of a number: on either side of its comparisons' operands, and near it.

    Numbers that reach addresses stay within their range.
    """
    kind = np.asarray(value).dtype
    if kind.kind == "b":
        others: list[Any] = [not value]
    elif kind.kind == "f":
        near = [side for one in _constants(used, kind) for side in (one, one + 1.0, one - 1.0)]
        others = [*near, 0.0, -value, value + 1.0]
    else:
        near = [side for one in _constants(used, kind) for side in (one, one + 1, one - 1)]
        others = [*near, 0, 1, int(value) - 1, int(value) + 1]
        if used.in_addresses:
            others = [one for one in others if 0 <= one <= value]
    if not used.is_read or not _NUMBER.fullmatch(text.strip()):
        return Axis([])
    found = dict.fromkeys(one for one in others if one != value and fits(one, kind))
    return Axis([_argument(at, _with_number(text, str(one))) for one in found])


def _elements(at: int, text: str, array: Any, used: Influence) -> Axis:
    """Return other elements of an array; in addresses, those between the least and the most."""
    found = _ARRAY.fullmatch(text.strip())
    if not found or not used.is_read or not array.size or array.dtype.kind == "V":
        return Axis([])
    kind = array.dtype
    least, most = array.min().item(), array.max().item()
    near = [] if kind.kind == "b" else _constants(used, kind)
    ranges = [(least, most)]
    if used.in_addresses and kind.kind != "f":
        near = [one for one in near if least <= one < most]
    else:
        ranges = [_around(one, least, most, kind) for one in near] or [
            (min(least, 0), max(most, 1))
        ]
    fillings = [f"full:{one}" for one in near]
    fillings += [f"full:{one + 1}" for one in near if fits(one + 1, kind)]
    if kind.kind != "f" and used.in_addresses:
        fillings += [f"full:{one}" for one in (least, most)]
    else:
        fillings += [*FILLINGS]

    ranges = [one for one in ranges if one[0] < one[1]]
    fillings = [*("random:1:{}:{}".format(*one) for one in ranges), *fillings]
    by_seed = partial(_random_elements, at, ranges) if ranges else None
    given = found["filling"] or ZEROS
    return Axis(
        [partial(_refilled, at, one) for one in dict.fromkeys(fillings) if one != given], by_seed
    )


def _random_elements(at: int, ranges: Sequence[tuple[Any, Any]], seed: int) -> Change:
    low, high = ranges[seed % len(ranges)]
    return partial(_refilled, at, f"random:{seed}:{low}:{high}")


def _around(one: Any, least: Any, most: Any, kind: DType) -> tuple[Any, Any]:
    """Return a range of elements that has about as many on either side of a constant."""
    low, high = min(least, one - 1), max(2 * one - least, one + 1)
    return (low if fits(low, kind) else least), (high if fits(high, kind) else max(most, one))


def _refilled(at: int, filling: str, chosen: Namespace) -> Namespace:
    texts = list(chosen.arg)
    found = _ARRAY.fullmatch(texts[at].strip())
    assert found is not None
    texts[at] = f"{found['before']}{found['shape']}]={filling}"
    return Namespace(**{**vars(chosen), "arg": texts})


def _argument(at: int, text: str) -> Change:
    def change(chosen: Namespace) -> Namespace:
        texts = list(chosen.arg)
        texts[at] = text
        return Namespace(**{**vars(chosen), "arg": texts})

    return change


def _constants(used: Influence, kind: DType) -> list[Any]:
    """Return what values are compared with, in their type; a compiler's words may be floats."""
    found: dict[Any, None] = {}
    for one in used.compared:
        if kind.kind == "f":
            is_word = one.dtype == np.uint32
            value: Any = float(one.view(np.float32)) if is_word else float(one)
            if not math.isfinite(value) or (value and abs(value) < np.finfo(np.float32).tiny):
                continue
        else:
            if one.dtype.kind == "f" and not float(one).is_integer():
                value = math.floor(one)
            else:
                value = (
                    int(one.view(np.int32))
                    if one.dtype == np.uint32 and kind.kind == "i"
                    else int(one)
                )
        if fits(value, kind):
            found[value] = None
    return list(found)
