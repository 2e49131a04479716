"""Arrays in shared memory by their source names: from the PTX that a cubin keeps beside its code.

A cubin has no symbols of a block's static shared memory. With `-lineinfo` it holds the PTX, whose
declarations ptxas lays out in their order, each at its alignment (observed with NVRTC 13; where the
sum is not the size of a kernel's shared memory, its arrays have no names).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest

from gpusim.isa.ops import SharedArray
from gpusim.program.dataflow import reachable

_DECLARED = re.compile(
    r"(?P<outside>\.extern\s+)?\.shared\s+(?:\.align\s+(?P<align>\d+)\s+)?\.[busf](?P<bits>\d+)\s+"
    r"(?P<symbol>[\w$]+)\s*(?P<array>\[(?P<count>\d*)\])?\s*;"
)
_FUNCTION = re.compile(r"\.(?:entry|func)\s+(?:\([^)]*\)\s*)?(?P<symbol>[\w$]+)")
PADDING = 16  # bytes to whose multiple a kernel's static shared memory is filled up at times
_WORD = re.compile(r"[\w$]+")
_NUMBERED = re.compile(r"(?<!\d)(\d+)")


@dataclass(frozen=True)
class _Declaration:
    """A variable in shared memory, with its function; one of dynamic shared memory has no size."""

    symbol: str
    function: str
    align: int
    size: int


def shared_arrays(ptx: str, kernel: str, size: int) -> tuple[SharedArray, ...]:
    """Return a kernel's arrays in shared memory; none where the PTX does not tell.

    `size` are the bytes of its static shared memory.
    """
    mine = _declared(ptx, kernel)
    made, end = [], 0
    for one in mine:
        if one.size:
            first = -(-end // one.align) * one.align
            made.append(SharedArray(source_name(one.symbol), first, one.size))
            end = first + one.size
    if size not in (end, -(-end // PADDING) * PADDING):
        return ()
    dynamic = [one for one in mine if not one.size]
    if len(dynamic) == 1:
        first = -(-size // dynamic[0].align) * dynamic[0].align
        made.append(SharedArray(source_name(dynamic[0].symbol), first, None))
    return tuple(made)


def _declared(ptx: str, kernel: str) -> list[_Declaration]:
    """Return the variables in shared memory that a kernel and its functions use, as laid out.

    Those of the kernel itself come first, then those of several functions.
    """
    heads = list(_FUNCTION.finditer(ptx))
    bodies = {"": ptx[: heads[0].start()] if heads else ptx}
    for head, following in zip_longest(heads, heads[1:]):
        body = ptx[head.end() : following.start() if following else len(ptx)]
        bodies[head["symbol"]] = bodies.get(head["symbol"], "") + body
    if kernel not in bodies:
        return []
    words = {name: set(_WORD.findall(_DECLARED.sub("", body))) for name, body in bodies.items()}
    functions = reachable([kernel], lambda name: words[name] & bodies.keys())
    used = {word for name in functions for word in words[name]}
    found = [
        _declaration(match, name)
        for name, body in bodies.items()
        for match in _DECLARED.finditer(body)
        if match["symbol"] in used
    ]
    return sorted(found, key=lambda one: one.function != kernel)


def _declaration(found: re.Match[str], function: str) -> _Declaration:
    each = int(found["bits"]) // 8
    count = int(found["count"] or 0) if found["array"] else 1
    size = 0 if found["outside"] else each * count
    return _Declaration(found["symbol"], function, int(found["align"] or each), size)


def source_name(symbol: str) -> str:
    """Return the name of a variable from its mangled symbol, of its last component."""
    if not symbol.startswith("_Z"):
        return symbol
    plain = re.sub(r"_\d+$", "", symbol)
    ends = [
        plain[found.end() :]
        for found in _NUMBERED.finditer(plain)
        if 0 < len(plain) - found.end() == int(found[1])
    ]
    return ends[0] if ends else symbol
