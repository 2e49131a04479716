"""The disassembler's listing as rows: address, guard, mnemonic, operands, and the source line.

The text of `nvdisasm -c -gi -gp` is read, as it names every operand; its JSON drops some. A row's
line is the innermost one in the kernel's file: code inlined from a header has the call's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpusim.errors import InputError
from gpusim.sass.operands import Operand, operands_of
from gpusim.sass.ptx import Ptx

BYTES_PER_ROW = 16
_IMMEDIATE = 32  # bits below an immediate in an instruction (7.5 to 12.0)

_PLACE = re.compile(r'\s*//## File "([^"]*)", line (\d+)(.*)')
# A linked file has several texts of PTX, with numbers: their lines are not known here.
_PTX_PLACE = re.compile(r'\s*//## File "\.nv_debug_ptx_txt(\.\d+)?", line (\d+)')
_LABEL = re.compile(r"(\S+):\s*$")
_ROW = re.compile(r"\s+/\*([0-9a-f]{4,})\*/\s+\{?\s*(?:@(!?)(U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*)")
_TARGETS = re.compile(r'\(\*"BRANCH_TARGETS\s+([^"]*)"\*\)')
_ANNOTATION = re.compile(r'\s*\(\*"[^"]*"\*\)\s*$')
# An address of a label in the same section that is left to the linker: its low or high 32 bits.
_RELOCATED = re.compile(r"32@(lo|hi)\(\(\S+ \+ (\S+)@srel\)\)")
_TRAILER = re.compile(r"\s*/\* 0x[0-9a-f]+ \*/\s*$")


@dataclass(frozen=True)
class Place:
    """A line of a source file."""

    file: str
    line: int


NOWHERE = Place("", 0)


@dataclass(frozen=True)
class Guard:
    """The guard predicate of an instruction; if `negated`, lanes take part where it is false."""

    register: str
    negated: bool


@dataclass(frozen=True)
class Row:
    """One machine instruction as the disassembler writes it, with its 128 bits where known.

    `inlined` is its place and those of the calls that it was inlined by, in any file, innermost
    first. `ptx_line` is the line of the PTX that it became of, 0 where that is not known.
    """

    address: int
    mnemonic: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    place: Place
    text: str
    targets: tuple[str, ...] = ()
    bits: int | None = None
    ptx_line: int = 0
    inlined: tuple[Place, ...] = ()

    @property
    def immediate(self) -> int | None:
        """The 32 bits at the place of a number in the instruction."""
        return None if self.bits is None else self.bits >> _IMMEDIATE & 0xFFFFFFFF

    def with_immediate(self, value: int) -> Row:
        """Return the row with 32 bits at the place of a number where it has none."""
        return self if self.bits is None else replace(self, bits=self.bits | value << _IMMEDIATE)

    @property
    def name(self) -> str:
        """The mnemonic with its modifiers."""
        return ".".join((self.mnemonic, *self.modifiers))


@dataclass
class Section:
    """The rows of a kernel, or of a function of its own, and the addresses of its labels."""

    name: str
    rows: list[Row] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)


def section(
    text: str, name: str, files: Sequence[str] = (), code: bytes = b"", begin_address: int = 0
) -> Section | None:
    """Return the section of a kernel or function, None where the listing has none of that name.

    `files` are the user's own, preferred for lines, else the kernel's; `code` are the
    instructions' bytes. Addresses count from `begin_address` on. InputError where the listing has
    other rows than `code`.
    """
    begin = text.find(f".section\t.text.{name},")
    if begin < 0:
        return None
    end = text.find("\t.section\t", begin + 1)
    text = text[begin : end if end >= 0 else len(text)]
    found = _section(name, text, frozenset(files), begin_address)
    found = replace(found, rows=list(_at_known_offsets(found)))
    return _with_bits(found, code, begin_address) if code else found


def _at_known_offsets(found: Section) -> Iterator[Row]:
    """Yield rows, where loads of constants by a register that the row before sets name the place.

    Unoptimised code loads the driver's words in this way.
    """
    begins, before = set(found.labels.values()), None
    for row in found.rows:
        if row.mnemonic in ("LDC", "ULDC", "LDCU") and row.address not in begins:
            row = replace(row, operands=tuple(_placed(one, before) for one in row.operands))
        yield row
        before = row


def _placed(operand: Operand, before: Row | None) -> Operand:
    """Return a constant's operand with the number that the row before moves to its register."""
    if before is None or before.guard or before.name not in ("MOV", "UMOV"):
        return operand
    register, source, *_ = before.operands
    if operand.kind != "C" or source.kind != "I" or len(operand.terms) != 1:
        return operand
    term = operand.terms[0]
    if (term.register, term.bits, term.scale) != (register.name, 32, 1):
        return operand
    return replace(operand, number=operand.number + source.number, terms=())


def _with_bits(found: Section, code: bytes, begin: int) -> Section:
    """Return a section with the bits of each row."""
    places = [row.address - begin for row in found.rows]
    if places != list(range(0, len(code), BYTES_PER_ROW)):
        raise InputError(
            f"the listing of {found.name} has {len(places)} instructions in another order than "
            f"its {len(code)} bytes of machine code"
        )
    rows = [
        replace(row, bits=int.from_bytes(code[row.address - begin :][:BYTES_PER_ROW], "little"))
        if row.bits is None
        else row
        for row in found.rows
    ]
    return replace(found, rows=rows)


def _section(name: str, text: str, own: frozenset[str], begin: int) -> Section:
    made = Section(name)
    made.labels.update((label, begin + address) for label, address in _labels(text))
    chain: list[Place] = []
    waits = False  # for the place that the one before was inlined at
    inlined: tuple[Place, ...] = ()
    ptx_line = 0
    for line in text.splitlines():
        if match := _ROW.match(line):
            if chain:
                inlined, chain, waits = tuple(chain), [], False
            row = _row(match, _place(inlined, own), made.labels)
            address = begin + row.address
            made.rows.append(replace(row, address=address, ptx_line=ptx_line, inlined=inlined))
        elif match := _PTX_PLACE.match(line):
            ptx_line = 0 if match[1] else int(match[2])
        elif match := _PLACE.match(line):
            if not waits:
                chain = []
            chain.append(Place(match[1], int(match[2])))
            waits = "inlined at" in match[3]
    return made


def _labels(text: str) -> Iterator[tuple[str, int]]:
    """Yield each label with its address."""
    address = 0
    for line in text.splitlines():
        if _ROW.match(line):
            address += BYTES_PER_ROW
        elif match := _LABEL.match(line):
            yield match[1], address


def with_calls(found: Section, ptx: Ptx, files: Sequence[str]) -> Section:
    """Return a section with the calls of inlined rows as PTX has them.

    The disassembler keeps the calls of the row before where the innermost line has the same number.
    """

    def row_with_calls(row: Row) -> Row:
        chain = tuple(Place(one.file, one.line) for one in ptx.chain(row.ptx_line))
        if not chain or not row.inlined or chain[0].line != row.inlined[0].line:
            return row
        return replace(row, inlined=chain, place=_place(chain, files))

    return replace(found, rows=[row_with_calls(row) for row in found.rows])


def _place(inlined: Sequence[Place], own: Collection[str]) -> Place:
    """Return the innermost place in a file of the user's, else in the kernel's."""
    if not inlined:
        return NOWHERE
    kernel = inlined[-1].file
    mine = [place for place in inlined if place.file in own]
    return next(iter(mine), next(place for place in inlined if place.file == kernel))


def _row(match: re.Match[str], place: Place, labels: Mapping[str, int] = {}) -> Row:
    address, negated, predicate, name, rest = match.groups()
    rest = _TRAILER.sub("", rest).rstrip().rstrip("}").rstrip().removesuffix(";").rstrip()
    targets: tuple[str, ...] = ()
    if found := _TARGETS.search(rest):
        targets = tuple(part.strip() for part in found[1].split(",") if part.strip())
        rest = rest[: found.start()].rstrip()
    rest = _ANNOTATION.sub("", rest)
    number = None
    if (found := _RELOCATED.search(rest)) and found[2] in labels:
        number = labels[found[2]] if found[1] == "lo" else 0
        rest = f"{rest[: found.start()]}{number:#x}{rest[found.end() :]}"
    mnemonic, *modifiers = name.split(".")
    guard = Guard(predicate, bool(negated)) if predicate else None
    shown = f"@{negated}{predicate} " if predicate else ""
    return Row(
        address=int(address, 16),
        mnemonic=mnemonic,
        modifiers=tuple(modifiers),
        operands=tuple(operands_of(rest)),
        guard=guard,
        place=place,
        text=f"{shown}{name} {rest}".strip(),
        targets=targets,
        bits=None if number is None else number << _IMMEDIATE,
    )


def row_of_text(text: str, bits: int | None = None) -> Row:
    """Return a row written as in a listing, without its address, and with its bits if known."""
    match = _ROW.match(f"        /*0000*/ {text} ;")
    assert match is not None, text
    return replace(_row(match, NOWHERE), bits=bits)


def without_padding(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows up to the jump to itself and the NOPs that fill the section up."""
    last = len(rows)
    while last and rows[last - 1].mnemonic == "NOP":
        last -= 1
    yield from rows[:last]
