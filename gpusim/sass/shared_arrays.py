"""Arrays in shared memory by their source names: from the PTX that a cubin keeps beside its code.

A cubin has no symbols of a block's static shared memory. With `-lineinfo` it holds the PTX, whose
declarations ptxas lays out in their order, each at its alignment (observed with NVRTC 13; where the
sum is not the size of a kernel's shared memory, its arrays have no names).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest

from gpusim.isa.ops import NamedArray
from gpusim.program.dataflow import reachable

_DECLARED = re.compile(
    r"(?P<outside>\.extern\s+)?\.shared\s+(?:\.align\s+(?P<align>\d+)\s+)?\.[busf](?P<bits>\d+)\s+"
    r"(?P<symbol>[\w$]+)\s*(?P<array>\[(?P<count>\d*)\])?\s*;"
)
_FUNCTION = re.compile(r"\.(?:entry|func)\s+(?:\([^)]*\)\s*)?(?P<symbol>[\w$]+)")
PADDING = 16  # bytes to whose multiple a kernel's static shared memory is filled up at times
_WORD = re.compile(r"[\w$]+")
_NUMBERED = re.compile(r"(?<=[EZL])(\d+)")  # a length, where a component begins


@dataclass(frozen=True)
class _Declaration:
    """A variable in shared memory, with its function; one of dynamic shared memory has no size."""

    symbol: str
    function: str
    align: int
    size: int


@dataclass(frozen=True)
class _Function:
    """The words of a function's body, and its variables in shared memory."""

    words: frozenset[str]
    declarations: tuple[_Declaration, ...]


def shared_arrays(ptx: str, kernel: str, size: int) -> dict[str, NamedArray]:
    """Return a kernel's arrays in shared memory by symbol; none where the PTX does not tell.

    `size` are the bytes of its static shared memory.
    """
    mine = _declared(ptx, kernel)
    made: dict[str, NamedArray] = {}
    end = 0
    for one in mine:
        if one.size:
            first = -(-end // one.align) * one.align
            made[one.symbol] = NamedArray(source_name(one.symbol), first, one.size)
            end = first + one.size
    if size not in (end, -(-end // PADDING) * PADDING):
        return {}
    dynamic = [one for one in mine if not one.size]
    if len(dynamic) == 1:
        first = -(-size // dynamic[0].align) * dynamic[0].align
        symbol = dynamic[0].symbol
        made[symbol] = NamedArray(source_name(symbol), first, None)
    return made


def _declared(ptx: str, kernel: str) -> list[_Declaration]:
    """Return the variables in shared memory that a kernel and its functions use, as laid out.

    Those of the kernel itself come first, then those of several functions.
    """
    functions = _functions(ptx)
    if kernel not in functions:
        return []
    called = reachable([kernel], lambda name: functions[name].words & functions.keys())
    used = {word for name in called for word in functions[name].words}
    found = [one for each in functions.values() for one in each.declarations if one.symbol in used]
    return sorted(found, key=lambda one: one.function != kernel)


@lru_cache(maxsize=4)
def _functions(ptx: str) -> Mapping[str, _Function]:
    """Return the functions of a file by their symbols; what precedes them has the symbol ""."""
    heads = list(_FUNCTION.finditer(ptx))
    bodies = {"": ptx[: heads[0].start()] if heads else ptx}
    for head, following in zip_longest(heads, heads[1:]):
        body = ptx[head.end() : following.start() if following else len(ptx)]
        bodies[head["symbol"]] = bodies.get(head["symbol"], "") + body
    return {
        name: _Function(
            frozenset(_WORD.findall(_DECLARED.sub("", body))),
            tuple(_declaration(match, name) for match in _DECLARED.finditer(body)),
        )
        for name, body in bodies.items()
    }


def _declaration(found: re.Match[str], function: str) -> _Declaration:
    each = int(found["bits"]) // 8
    count = int(found["count"] or 0) if found["array"] else 1
    size = 0 if found["outside"] else each * count
    return _Declaration(found["symbol"], function, int(found["align"] or each), size)


def source_name(symbol: str) -> str:
    """Return the name of a variable from its mangled symbol, of its last component."""
    if not symbol.startswith("_Z"):
        return symbol
    plain = re.sub(r"(_\$)?_\d+$", "", symbol)
    ends = [
        plain[found.end() :]
        for found in _NUMBERED.finditer(plain)
        if 0 < len(plain) - found.end() == int(found[1])
    ]
    return ends[0] if ends else symbol
