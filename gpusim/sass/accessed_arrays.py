"""The arrays in shared and constant memory that accesses name: PTX keeps them, machine code not.

A register of PTX holds addresses in the variables that it was computed from. Each row of machine
code names its instruction of PTX; an access that may name several variables, or none that is known,
has no array here.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache

from gpusim.isa.ops import ConstantIndex, Instruction, NamedArray
from gpusim.program.dataflow import reachable, solve
from gpusim.sass.ptx import Ptx, PtxRow

_FUNCTION = re.compile(r"^\s*(?:\.\w+\s+)*\.(entry|func)\s+(?:\([^)]*\)\s*)?([\w$]+)")
_WORD = re.compile(r"%[\w$.]+|[\w$]+")
_FIXED = re.compile(r"\[([\w$]+)(?:\+?(-?\d+))?\]")
_ALIGNED = re.compile(r"\.align\s+(\d+)\s+\.\w+\s+(\w+)\s*\[")
_BITS = re.compile(r"\.[a-z]+(\d+)$")
# What these write is no address in the variables that their operands name.
_NO_ADDRESSES = {"ld", "ldu", "atom", "ldmatrix", "setp", "call"}

Register = tuple[int, str]  # of a function of the text, by its number


class Accesses:
    """The accesses in a compilation's PTX, with the variables that their addresses name."""

    def __init__(self, ptx: Ptx) -> None:
        self._ptx = ptx
        self._functions: list[str] = [""]  # "" for all that are no kernels
        self._function_of: dict[int, int] = {}
        for line, text in enumerate(ptx.lines, 1):
            if head := _FUNCTION.match(text):
                self._functions.append(head[2] if head[1] == "entry" else "")
            elif text.rstrip().endswith(";") and not text.lstrip().startswith("."):
                self._function_of[line] = len(self._functions) - 1

    def named_at(self, line: int) -> frozenset[str]:
        """Return the symbols that the accesses of a line may name; none where one is not known."""
        found: set[str] = set()
        function = self._function_of.get(line, 0)
        for row in self._ptx.rows(line):
            for address in filter(_is_address, row.operands):
                words = _WORD.findall(address.partition("+")[0])
                symbols = {word for word in words if not word.startswith("%")}
                for register in filter(_is_register, words):
                    symbols |= self._pointed.get((function, register), frozenset())
                if not symbols:
                    return frozenset()
                found |= symbols
        return frozenset(found)

    def element_bytes(self, lines: Iterable[int]) -> Mapping[str, int]:
        """Return the bytes of an element of each symbol: the fewest of its accesses in lines."""
        found: dict[str, int] = {}
        for line in lines:
            for row in self._ptx.rows(line):
                bits = _BITS.search(row.name)
                if bits is not None and any(map(_is_address, row.operands)):
                    parts = next((int(w[1:]) for w in row.words if re.fullmatch("v[248]", w)), 1)
                    for symbol in self.named_at(line):
                        whole = parts * int(bits[1]) // 8
                        least = max(self._alignments.get(symbol, 1), int(bits[1]) // 8)
                        found[symbol] = min(found.get(symbol, 16), whole, least)
        return found

    @cached_property
    def _alignments(self) -> Mapping[str, int]:
        """The alignment of each symbol: that of its elements, where it is not wider."""
        return {
            name: int(bytes_) for line in self._ptx.lines for bytes_, name in _ALIGNED.findall(line)
        }

    def is_fixed(self, line: int) -> bool:
        """Return whether the accesses of a line have constant addresses."""
        function = self._function_of.get(line, 0)
        words = (
            word
            for row in self._ptx.rows(line)
            for address in filter(_is_address, row.operands)
            for word in _WORD.findall(address)
        )
        return not any(_is_register(word) and (function, word) in self._varying for word in words)

    @cached_property
    def _varying(self) -> set[Register]:
        """Registers that are computed from more than addresses of variables and numbers."""
        results: dict[Register, list[Register]] = defaultdict(list)
        times = Counter[Register]()
        loaded: set[Register] = set()
        for function, row, written in self._written:
            times.update(written)
            loaded.update(written if row.mnemonic in _NO_ADDRESSES else ())
            for word in filter(_is_register, _WORD.findall(" ".join(row.operands[1:]))):
                results[function, word] += written
        unknown = {one for one in results if one not in times}
        return reachable(
            unknown | loaded | {one for one, count in times.items() if count > 1},
            lambda register: results.get(register, ()),
        )

    @cached_property
    def _written(self) -> Sequence[tuple[int, PtxRow, list[Register]]]:
        """The rows with sources, by function, each with the registers that it writes."""
        return [
            (function, row, [(function, word) for word in filter(_is_register, words)])
            for line, function in self._function_of.items()
            for row in self._ptx.rows(line)
            if len(row.operands) > 1 and not _is_address(row.operands[0])
            for words in [_WORD.findall(row.operands[0])]
        ]

    @cached_property
    def _pointed(self) -> Mapping[Register, frozenset[str]]:
        """The symbols that each register was computed from."""
        results: dict[Register, list[Register]] = defaultdict(list)
        named: dict[Register, frozenset[str]] = {}
        for function, row, written in self._written:
            if row.mnemonic in _NO_ADDRESSES:
                continue
            for word in _WORD.findall(" ".join(row.operands[1:])):
                if _is_register(word):
                    results[function, word] += written
                elif not word[0].isdigit():
                    named |= {one: named.get(one, frozenset()) | {word} for one in written}
        return solve(
            named,
            lambda register, symbols: ((one, symbols) for one in results[register]),
            frozenset.union,
        )

    def outside(
        self, kernel: str, arrays: Mapping[str, NamedArray]
    ) -> Iterator[tuple[int, NamedArray, int, int]]:
        """Yield a kernel's accesses at fixed places outside their array.

        Each has its line, the array, the place in bytes, and the bytes of an element.
        """
        for line, function in self._function_of.items():
            if self._functions[function] not in ("", kernel):
                continue
            for row in self._ptx.rows(line):
                address = next(filter(_is_address, row.operands), "")
                fixed = _FIXED.fullmatch(address)
                if fixed is None or fixed[1] not in arrays:
                    continue
                array, offset = arrays[fixed[1]], int(fixed[2] or 0)
                if array.size is not None and not 0 <= offset < array.size:
                    bits = _BITS.search(row.name)
                    yield line, array, offset, int(bits[1]) // 8 if bits else 1


def _is_register(word: str) -> bool:
    return word.startswith("%")


def _is_address(operand: str) -> bool:
    return operand.startswith("[")


_accesses_of = lru_cache(maxsize=8)(Accesses)


def accessed_arrays(
    ptx: Ptx | None,
    instructions: Sequence[Instruction],
    lines: Sequence[int],
    arrays: Mapping[str, NamedArray],
) -> dict[int, NamedArray]:
    """Return the array of each access for which it is known, by pc.

    Neighbours at fixed places may be loaded at once: their array has no bounds here. `lines` are
    the instructions' lines of PTX, `arrays` the variables by their symbols.
    """
    found: dict[int, NamedArray] = {}
    if ptx is None or not arrays:
        return found
    sizes = _accesses_of(ptx).element_bytes(set(lines))
    arrays = {
        symbol: one if one.each else replace(one, each=sizes.get(symbol, 0))
        for symbol, one in arrays.items()
    }
    for pc, row in enumerate(instructions):
        memory = row.memory
        is_shared = memory is not None and memory.space == "shared"
        if is_shared or row.looks_up_constants:
            named = _accesses_of(ptx).named_at(lines[pc])
            known = [arrays[symbol] for symbol in named if symbol in arrays]
            if len(named) == 1 == len(known):
                is_fixed = _accesses_of(ptx).is_fixed(lines[pc])
                found[pc] = replace(known[0], first=0, size=None) if is_fixed else known[0]
    return found


def constant_indices(
    ptx: Ptx | None,
    kernel: str,
    instructions: Sequence[Instruction],
    lines: Sequence[int],
    arrays: Mapping[str, NamedArray],
) -> tuple[ConstantIndex, ...]:
    """Return a kernel's accesses at constant indices outside their array, by source line.

    As a constant address has no instruction of its own, the next one that has gives the line.
    """
    if ptx is None or not arrays:
        return ()
    known = sorted((line, row.line) for line, row in zip(lines, instructions, strict=True) if line)
    found = []
    for line, array, offset, each in _accesses_of(ptx).outside(kernel, arrays):
        following = known[bisect_left(known, (line, 0)) :][:1]
        whole = array.each or each
        found += [ConstantIndex(at, array, offset // whole, whole) for _, at in following]
    return tuple(dict.fromkeys(found))
