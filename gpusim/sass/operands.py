"""Operands as the disassembler writes them: registers, constants, addresses, numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

ZEROS = ("RZ", "URZ", "SRZ")
TRUES = ("PT", "UPT")
# The register of the return address, which holds a word where a kernel has no register left.
RETURN_ADDRESS = {"Rpc.LO": "RPC0", "Rpc.HI": "RPC1"}


@dataclass(frozen=True)
class Term:
    """A register of an address: its size in bits, and its factor.

    It is unsigned if the disassembler shows it so, which makes it 32 bits in any address.
    """

    register: str
    bits: int = 32
    scale: int = 1
    unsigned: bool = False


@dataclass(frozen=True)
class Operand:
    """One operand.

    `kind` is "R" for a register of either file, "K" for a list of scoreboards, "P" for a predicate,
    "I" for a whole number, "F" for a floating-point number, "C" for a constant bank, "M" for an
    address in memory, "G" for descriptors of matrices in shared memory, "L" for a label, "S" for a
    special register, "B" for a convergence barrier, or "X" for an operand of one instruction only.
    `name` is the register, label or text. A register `is_reused` if its reuse flag is set: its
    value is kept in the operand cache for the next instruction.
    """

    kind: str
    name: str = ""
    number: int | float = 0
    negated: bool = False  # - of a number, ! of a predicate
    inverted: bool = False
    absolute: bool = False
    suffixes: tuple[str, ...] = ()
    bank: int = 0
    terms: tuple[Term, ...] = ()
    is_reused: bool = False

    @property
    def is_zero(self) -> bool:
        """Whether it is the register that is always zero."""
        return self.kind == "R" and self.name in ZEROS

    @property
    def is_true(self) -> bool:
        """Whether it is the predicate that is always true."""
        return self.kind == "P" and self.name in TRUES


_SUFFIXES = r"((?:\.\w+)*)$"
_REGISTER = re.compile(r"(U?R(?:\d+|Z)|SRZ)" + _SUFFIXES)
_SCOREBOARDS = re.compile(r"\{\d(,\d)*\}")
_PREDICATE = re.compile(r"(U?P(?:\d+|T))$")
_BARRIER = re.compile(r"B\d+$")
_SPECIAL = re.compile(r"SR_[\w.]+$")
_LABEL = re.compile(r"`\((.*)\)$")
_BANK = re.compile(r"c\[(0x[0-9a-f]+)\]\s*\[(.*)\]" + _SUFFIXES)
_WHOLE = re.compile(r"0x[0-9a-f]+$")
_FLOATING = re.compile(r"[+-]?(\d+\.?\d*(e[+-]?\d+)?|INF|[QS]NAN)$", re.IGNORECASE)
_MATRICES = re.compile(r"gdesc\[(UR\d+|URZ)\]" + _SUFFIXES)
_ADDRESS = re.compile(r"(?:desc\[(UR\d+|URZ)\])?\[(.*)\]" + _SUFFIXES)
_TERM = re.compile(r"(U?R(?:\d+|Z))(\.64|\.U32)?(?:\.X(4|8|16))?$")
_OFFSET = re.compile(r"-?\s*0x[0-9a-f]+$")

# The kinds of operand that each sign may stand before.
_SIGNED = {"-": "RCI", "~": "RC", "!": "P"}


def operands_of(text: str) -> Iterator[Operand]:
    """Yield the operands of an instruction, separated by commas."""
    depth, begin = 0, 0
    for place, char in enumerate(text):
        if char in "[({":
            depth += 1
        elif char in "])}":
            depth -= 1
        elif char == "," and not depth:
            yield from _spaced(text[begin:place])
            begin = place + 1
    if text[begin:].strip():
        yield from _spaced(text[begin:])


def _spaced(text: str) -> Iterator[Operand]:
    """Yield the operands between two commas: a register and a label may share a place."""
    text = text.strip()
    if "`(" in text and not text.startswith("`("):
        before, _, label = text.partition("`(")
        if before.strip():
            yield operand(before.strip())
        yield operand("`(" + label)
        return
    yield operand(text)


@lru_cache(maxsize=1 << 14)
def operand(text: str) -> Operand:
    """Return one operand; of kind "X" where it is written in a way that is not known."""
    if _FLOATING.match(text):
        return Operand("F", text)
    sign = text[:1] if text[:1] in _SIGNED else ""
    plain = text[len(sign) :].strip()
    absolute = plain.startswith("|")
    if absolute:
        inside, _, after = plain[1:].partition("|")
        plain = inside + after
    found = _plain(plain)
    if found.kind not in _SIGNED.get(sign, found.kind) or (absolute and found.kind not in "RC"):
        return Operand("X", text)
    return replace(found, negated=sign in ("-", "!"), inverted=sign == "~", absolute=absolute)


def _plain(text: str) -> Operand:
    if text in RETURN_ADDRESS:
        return Operand("R", RETURN_ADDRESS[text])
    if match := _REGISTER.match(text):
        said = match[2].split(".")[1:]
        suffixes = tuple(s for s in said if s != "reuse")
        return Operand("R", match[1], suffixes=suffixes, is_reused="reuse" in said)
    if match := _PREDICATE.match(text):
        return Operand("P", match[1])
    if _SCOREBOARDS.fullmatch(text):
        return Operand("K", text)
    if match := _LABEL.match(text):
        return Operand("L", match[1])
    if match := _BANK.match(text):
        return _placed(text, Operand("C", bank=int(match[1], 16)), match[2], match[3])
    if _WHOLE.match(text):
        return Operand("I", text, int(text, 16))
    if _SPECIAL.match(text):
        return Operand("S", text)
    if _BARRIER.match(text):
        return Operand("B", text)
    if match := _MATRICES.match(text):
        return Operand("G", match[1], suffixes=tuple(match[2].split(".")[1:]))
    if match := _ADDRESS.match(text):
        return _placed(text, Operand("M", match[1] or ""), match[2], match[3])
    return Operand("X", text)


def _placed(text: str, found: Operand, address: str, suffixes: str) -> Operand:
    """Return an operand in memory with its address; "X" if the address has an unknown form."""
    terms: list[Term] = []
    offset = 0
    for part in filter(None, map(str.strip, address.replace("+-", "+ -").split("+"))):
        if match := _TERM.match(part):
            kind = match[2] or ""
            bits = 64 if kind == ".64" else 32
            terms.append(Term(match[1], bits, int(match[3] or 1), kind == ".U32"))
        elif _OFFSET.match(part):
            offset += int(part.replace(" ", ""), 16)
        else:
            return Operand("X", text)
    said = tuple(suffixes.split(".")[1:])
    return replace(found, number=offset, terms=tuple(terms), suffixes=said)
