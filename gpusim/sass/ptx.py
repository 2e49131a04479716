"""The PTX of a compilation: qualifiers, masks, columns and functions, which machine code lacks.

Each row of the listing names its line of PTX (`nvdisasm -gp`). A compilation's own text has places
in the source; the text that a cubin keeps beside its code has the same lines without them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)
_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:,\s*function_name\s+([^,]+),(.*))?")
_INLINED = re.compile(r"inlined_at\s+(\d+)\s+(\d+)\s+(\d+)")
_NAME = re.compile(r"^(\S+):\s*\n((?:\.b8 [\d,]+\n)+)", re.MULTILINE)
_BYTE = re.compile(r"\b\d+\b")
_ROW = re.compile(r"(?:\{|\s|\w+:\s)*(?:@\s*(!?%?\w+)\s+)?([a-z][\w.:]*)\s*(.*?)\s*$", re.DOTALL)
_FUNCTION = re.compile(r"(?:\.\w+\s+)*\.(?:entry|func)\b")
_WRITTEN = re.compile(
    r"\s*(?:@!?%\w+\s+)?(?:mov\.[bsu]32\s+(?P<moved>%\w+),\s*(?P<value>[^;]*);"
    r"|[a-z][\w.:]*\s+\{?(?P<other>%\w+))"
)
_NUMBER = re.compile(r"-?(?:0x[0-9a-fA-F]+|\d+)U?")
_OPERAND = re.compile(r"\[[^]]*\]|\{[^}]*\}|[^,\s][^,]*")


@dataclass(frozen=True)
class Position:
    """A position in a source file, and the symbol of its function where that is inlined."""

    file: str
    line: int
    column: int
    function: str = ""


@dataclass(frozen=True)
class PtxRow:
    """An instruction of PTX: opcode with qualifiers, operands, and guard predicate.

    `chain` are its position and those of the calls that it was inlined by, innermost first.
    """

    name: str
    operands: tuple[str, ...]
    guard: str
    chain: tuple[Position, ...]

    @property
    def mnemonic(self) -> str:
        """The opcode without its qualifiers."""
        return self.words[0]

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The opcode and its qualifiers, without the second part of one such as shared::cta."""
        return tuple(word.partition("::")[0] for word in self.name.split("."))


class Ptx:
    """The text of a compilation's PTX, by line."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self._files = dict(_FILE.findall(text))
        self._names = {
            label: bytes(map(int, _BYTE.findall(held))).rstrip(b"\0").decode(errors="replace")
            for label, held in _NAME.findall(text)
        }
        self._rows: dict[int, tuple[PtxRow, ...]] = {}

    def rows(self, line: int) -> tuple[PtxRow, ...]:
        """Return the instructions in a line, counted from 1: several, where `asm` has them so."""
        if line not in self._rows:
            text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
            found = map(_ROW.match, text.partition("//")[0].split(";")[:-1])
            self._rows[line] = tuple(self._row(one, line) for one in found if one is not None)
        return self._rows[line]

    def number(self, operand: str, line: int) -> int | None:
        """Return the value of an operand of a line's: a number, or a register set to one alone."""
        is_register = operand.startswith("%")
        values = self._values[self._function[line - 1]][operand] if is_register else {operand}
        found = _NUMBER.fullmatch(next(iter(values))) if len(values) == 1 else None
        return None if found is None else int(found[0].removesuffix("U"), 0)

    @cached_property
    def _function(self) -> list[int]:
        """The number of the function that each line is in."""
        return list(accumulate(bool(_FUNCTION.match(text)) for text in self.lines))

    @cached_property
    def _values(self) -> Mapping[int, Mapping[str, set[str]]]:
        """The sources of the moves to each register, "" for other results, by function."""
        found: dict[int, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for text, function in zip(self.lines, self._function, strict=True):
            if written := _WRITTEN.match(text):
                register = written["moved"] or written["other"]
                found[function][register].add(written["value"] or "")
        return found

    def chain(self, line: int) -> tuple[Position, ...]:
        """Return the position of a line, and those of the calls that it was inlined by."""
        return self._chains[line - 1] if 0 < line <= len(self._chains) else ()

    def _row(self, found: re.Match[str], line: int) -> PtxRow:
        operands = tuple(one.strip() for one in _OPERAND.findall(found[3]))
        return PtxRow(found[2], operands, found[1] or "", self.chain(line))

    @cached_property
    def _chains(self) -> list[tuple[Position, ...]]:
        """The chain of places of each line of the text."""
        chain: tuple[Position, ...] = ()
        known: dict[tuple[str, ...], tuple[Position, ...]] = {}
        chains = []
        for text in self.lines:
            if found := _LOC.match(text):
                chain = self._chain(found, known)
                known[found.group(1, 2, 3)] = chain
            chains.append(chain)
        return chains

    @cached_property
    def _functions(self) -> Mapping[tuple[tuple[str, int], ...], tuple[str, ...]]:
        return {
            tuple((one.file, one.line) for one in chain): tuple(one.function for one in chain)
            for chain in dict.fromkeys(self._chains)
        }

    def functions(self, places: Sequence[tuple[str, int]]) -> tuple[str, ...]:
        """Return the functions' symbols of places, each inlined at the next; "" if unknown."""
        return self._functions.get(tuple(places), ("",) * len(places))

    def _chain(
        self, found: re.Match[str], known: Mapping[tuple[str, ...], tuple[Position, ...]]
    ) -> tuple[Position, ...]:
        """Return the chain of a `.loc`: that of the call has been named before it (PTX ISA)."""
        file, line, column, label, call = found.groups()
        position = self._position((file, line, column), self._names.get(label or "", label or ""))
        if label is None or not (at := _INLINED.search(call)):
            return (position,)
        return (position, *known.get(at.groups(), (self._position(at.groups()),)))

    def _position(self, place: tuple[str, ...], function: str = "") -> Position:
        file, line, column = place
        return Position(self._files.get(file, file), int(line), int(column), function)


@lru_cache(maxsize=8)
def ptx_of(text: str) -> Ptx:
    """Return PTX by its text, read once for all kernels of a file."""
    return Ptx(text)
