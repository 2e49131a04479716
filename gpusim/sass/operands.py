"""Operands as the disassembler writes them: registers, constants, addresses, numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

ZEROS = ("RZ", "URZ", "SRZ")
TRUES = ("PT", "UPT")


@dataclass(frozen=True)
class Term:
    """A register of an address: how many bits it has, and what it is multiplied by.

    It is unsigned where the disassembler says so, which makes it 32 bits in any address.
    """

    register: str
    bits: int = 32
    scale: int = 1
    unsigned: bool = False


@dataclass(frozen=True)
class Operand:
    """One operand.

    `kind` is "R" for a register of either file, "P" for a predicate, "I" for a whole number, "F"
    for a floating-point number, "C" for a constant bank, "M" for an address in memory, "L" for a
    label, "S" for a special register, "B" for a convergence barrier, or "X" for what only the
    instruction itself knows. `name` is the register, label or text. A register `is_reused` where
    the code says that what was read of it is kept for the next instruction.
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


_REGISTER = re.compile(r"(U?R(?:\d+|Z)|SRZ)((?:\.\w+)*)$")
_PREDICATE = re.compile(r"(U?P(?:\d+|T))$")
_BARRIER = re.compile(r"B\d+$")
_SPECIAL = re.compile(r"SR_[\w.]+$")
_LABEL = re.compile(r"`\((.*)\)$")
_BANK = re.compile(r"c\[(0x[0-9a-f]+)\]\s*\[(.*)\]((?:\.\w+)*)$")
_WHOLE = re.compile(r"0x[0-9a-f]+$")
_FLOATING = re.compile(r"[+-]?(\d+\.?\d*(e[+-]?\d+)?|INF|[QS]NAN)$", re.IGNORECASE)
_ADDRESS = re.compile(r"(?:desc\[(UR\d+|URZ)\])?(?:g?desc)?\[(.*)\]((?:\.\w+)*)$")
_TERM = re.compile(r"(U?R(?:\d+|Z))((?:\.\w+)*)$")


def operands_of(text: str) -> Iterator[Operand]:
    """Yield the operands of an instruction, which commas part."""
    depth, begin = 0, 0
    for place, char in enumerate(text):
        if char in "[(":
            depth += 1
        elif char in "])":
            depth -= 1
        elif char == "," and not depth:
            yield from _spaced(text[begin:place])
            begin = place + 1
    if text[begin:].strip():
        yield from _spaced(text[begin:])


def _spaced(text: str) -> Iterator[Operand]:
    """Yield what stands between two commas: a register and a label may share a place."""
    text = text.strip()
    if "`(" in text and not text.startswith("`("):
        before, _, label = text.partition("`(")
        if before.strip():
            yield operand(before.strip())
        yield operand("`(" + label)
        return
    yield operand(text)


def operand(text: str) -> Operand:
    """Return one operand."""
    plain, negated, inverted, absolute = text, False, False, False
    if plain[:1] in "-!" and not _FLOATING.match(plain):
        plain, negated = plain[1:].strip(), True
    if plain[:1] == "~":
        plain, inverted = plain[1:].strip(), True
    if plain[:1] == "|":
        inside, _, after = plain[1:].partition("|")
        plain, absolute = inside + after, True
    found = _plain(plain)
    return replace(found, negated=negated, inverted=inverted, absolute=absolute)


def _plain(text: str) -> Operand:
    if match := _REGISTER.match(text):
        said = match[2].split(".")[1:]
        suffixes = tuple(s for s in said if s != "reuse")
        return Operand("R", match[1], suffixes=suffixes, is_reused="reuse" in said)
    if match := _PREDICATE.match(text):
        return Operand("P", match[1])
    if match := _LABEL.match(text):
        return Operand("L", match[1])
    if match := _BANK.match(text):
        terms, offset = _address(match[2])
        suffixes = tuple(s for s in match[3].split(".") if s)
        return Operand("C", bank=int(match[1], 16), number=offset, terms=terms, suffixes=suffixes)
    if _WHOLE.match(text):
        return Operand("I", text, int(text, 16))
    if _FLOATING.match(text):
        return Operand("F", text)
    if _SPECIAL.match(text):
        return Operand("S", text)
    if _BARRIER.match(text):
        return Operand("B", text)
    if match := _ADDRESS.match(text):
        terms, offset = _address(match[2])
        return Operand("M", match[1] or "", offset, terms=terms)
    return Operand("X", text)


def _address(text: str) -> tuple[tuple[Term, ...], int]:
    """Return the registers of an address and the number of bytes that is added to them."""
    terms: list[Term] = []
    offset = 0
    for part in text.replace("+-", "+ -").split("+"):
        part = part.strip()
        if not part:
            continue
        if match := _TERM.match(part):
            suffixes = match[2].split(".")[1:]
            scale = next((int(s[1:]) for s in suffixes if re.fullmatch(r"X\d+", s)), 1)
            bits = 64 if "64" in suffixes else 32
            terms.append(Term(match[1], bits, scale, "U32" in suffixes))
        else:
            offset += int(part.replace(" ", ""), 16)
    return tuple(terms), offset
