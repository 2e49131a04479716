"""The memory order of loads, stores and atomics: the PTX that became the machine code has it.

Machine code keeps neither `volatile` in shared memory nor an acquire in block scope. The PTX of the
same compilation has both, by source line: all accesses of a kind on a line are of one order, or
there are as many in the machine code, in the same sequence. Elsewhere the machine code alone
decides: an acquire in a wider scope drops the lines of the L1 cache (`CCTL.IVALL`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gpusim.isa.ops import OPS, Memory
from gpusim.sass.decode import Micro
from gpusim.sass.listing import Row

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)
_FUNCTION = re.compile(r"^(?:\.\w+\s+)*\.(entry|func)\b.*?([\w$]+)\s*\(", re.MULTILINE)
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+\d+(.*)")
_INLINED = re.compile(r"inlined_at\s+(\d+)\s+(\d+)")
_ACCESS = re.compile(r"(?:@!?%\w+\s+)?(ld|st|atom|red)((?:\.\w+)+)[\s\[]")
_KINDS = {"ld": "load", "st": "store", "atom": "atomic", "red": "atomic"}
_ORDERS = ("volatile", "relaxed", "acquire", "release", "acq_rel")
_MEETING = re.compile(r"(?:@!?%\w+\s+)?(?:vote|redux|shfl|match|activemask|bar\.warp)\b")
_NO_FLAGS = {"param", "const", "local", "nc"}  # spaces and caches without strong accesses
_ACQUIRES = ("acquire", "acq_rel")

Bucket = tuple[int, str, bool]  # source line, kind of access, whether to shared memory


@dataclass(frozen=True)
class PtxOrders:
    """The orders of a kernel's accesses in PTX, in their sequence: "" for a weak one.

    `meetings` are the lines with operations among the lanes of a warp.
    """

    by_bucket: Mapping[Bucket, Sequence[str]]
    meetings: frozenset[int]

    @classmethod
    def of(cls, ptx: str, symbol: str, file: str) -> PtxOrders:
        """Return the orders of a kernel and of functions that it may call, by lines of a file."""
        own = {number for number, name in _FILE.findall(ptx) if name == file}
        found: dict[Bucket, list[str]] = defaultdict(list)
        meetings: set[int] = set()
        for text in _bodies(ptx, symbol):
            line = 0
            for row in text.splitlines():
                if place := _LOC.search(row):
                    line = _line(place, own)
                elif access := _ACCESS.match(row.strip()):
                    words = access[2].split(".")
                    if _NO_FLAGS.isdisjoint(words):
                        bucket = line, _KINDS[access[1]], "shared" in _spaces(words)
                        found[bucket].append(_order(access[1], words))
                elif _MEETING.match(row.strip()):
                    meetings.add(line)
        return cls(found, frozenset(meetings))

    def joins_atomics(self, micro: Micro, row: Row) -> bool:
        """Return whether the compiler lets lanes meet there, to make one atomic of theirs."""
        line = row.place.line
        has_atomic = (line, "atomic", False) in self.by_bucket
        has_atomic |= (line, "atomic", True) in self.by_bucket
        return OPS[micro.op].orders_lanes and has_atomic and line not in self.meetings

    def given_to(self, micros: Sequence[Micro], rows: Sequence[Row]) -> dict[int, str]:
        """Return the order of each step of the machine code for which PTX decides."""
        buckets: dict[Bucket, list[int]] = defaultdict(list)
        for step, micro in enumerate(micros):
            memory = micro.memory
            if memory is not None and micro.issued and not OPS[micro.op].copies:
                line, kind = rows[micro.row].place.line, OPS[micro.op].kind
                buckets[line, kind, memory.space == "shared"].append(step)
        found: dict[int, str] = {}
        for bucket, steps in buckets.items():
            orders = self.by_bucket.get(bucket, ())
            if len(set(orders)) == 1:
                found |= dict.fromkeys(steps, orders[0])
            elif len(orders) == len(steps):
                found |= dict(zip(steps, orders, strict=True))
        return found


def ordered(micros: Sequence[Micro], rows: Sequence[Row], ptx: PtxOrders | None) -> Iterator[Micro]:
    """Yield the steps of a kernel, their accesses with the order that PTX or machine code has."""
    known = {} if ptx is None else ptx.given_to(micros, rows)
    for step, micro in enumerate(micros):
        memory = micro.memory
        if memory is None or not OPS[micro.op].kind or OPS[micro.op].copies:
            yield micro
        elif step in known:
            is_atomic = OPS[micro.op].kind == "atomic"
            yield replace(micro, memory=_with_order(memory, known[step], is_atomic=is_atomic))
        else:
            yield replace(micro, memory=_as_the_code_says(memory, micro, rows))


def _bodies(ptx: str, symbol: str) -> Iterator[str]:
    """Yield the texts of a kernel and of all functions that are no kernels."""
    starts = list(_FUNCTION.finditer(ptx))
    ends = [*(one.start() for one in starts[1:]), len(ptx)]
    for one, end in zip(starts, ends, strict=False):
        if one[1] == "func" or one[2] == symbol:
            yield ptx[one.start() : end]


def _line(place: re.Match[str], own: set[str]) -> int:
    """Return the line of the outermost place in the user's own file, as for machine code."""
    chain = [(place[1], place[2]), *_INLINED.findall(place[3])]
    mine = [line for file, line in chain if file in own]
    return int((mine or [line for _, line in chain])[-1])


def _spaces(words: Sequence[str]) -> set[str]:
    return {word.partition("::")[0] for word in words}


def _order(mnemonic: str, words: Sequence[str]) -> str:
    """Return an access's order; an atomic without one is relaxed (PTX ISA, atom)."""
    named = next((word for word in words if word in _ORDERS), "")
    return named or ("relaxed" if _KINDS[mnemonic] == "atomic" else "")


def _with_order(memory: Memory, order: str, *, is_atomic: bool) -> Memory:
    return replace(
        memory,
        volatile=memory.volatile or (bool(order) and not is_atomic),
        relaxed=order not in ("", "volatile"),
        acquires=order in _ACQUIRES,
    )


def _as_the_code_says(memory: Memory, micro: Micro, rows: Sequence[Row]) -> Memory:
    """Return an access with the order that its row and the next one show.

    Volatile ones are of system scope. Acquires in block scope look as relaxed ones: all count.
    """
    row, behind = rows[micro.row], rows[micro.row + 1 : micro.row + 2]
    if memory.space == "shared":
        return memory
    drops = any(one.name == "CCTL.IVALL" and one.guard == row.guard for one in behind)
    is_relaxed = memory.volatile and "SYS" not in row.modifiers
    return replace(memory, relaxed=is_relaxed or drops, acquires=drops or memory.of_block)
