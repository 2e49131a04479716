"""Decoding of the listing's rows into steps: operation, registers read and written.

A row becomes one step of code, preceded by steps that are never issued for compound operands:
the sum of an address, a second predicate. Registers still have the
hardware's names here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpusim.errors import GpusimError
from gpusim.isa.lanes import NEGATED
from gpusim.isa.matrices import MatrixProduct, alignment
from gpusim.isa.ops import COUNT_UP, LOCAL_HIGH, SHARED_HIGH, SPIN, Memory
from gpusim.sass import immediates
from gpusim.sass import operands as written
from gpusim.sass.form import REGISTERS, Form, Signs, joined
from gpusim.sass.listing import BYTES_PER_ROW, Guard, Row
from gpusim.sass.mnemonics import ROOMS
from gpusim.sass.mnemonics.matrices import SHAPES
from gpusim.sass.mnemonics.predicate import PREDICATES
from gpusim.sass.operands import TRUES, Operand, Term
from gpusim.sass.slots import SLOTS
from gpusim.sass.table import Mnemonic, find

assert ROOMS


class UnknownFormError(GpusimError):
    """Machine code in a form outside the table."""


class RefusedError(UnknownFormError):
    """Machine code for a unit of the GPU that is not simulated; its text names the unit."""


# Mnemonics of unsupported units, by the units' usual names.
REFUSED = {
    name: unit
    for unit, names in {
        "textures in this form are": "TEX TLD",
        "surfaces in this form are": "SULD SUST",
        "gathers, gradients and queries of textures are": "TLD4 TXD TXQ TMML",
        "atomics and queries of surfaces are": "SUATOM SURED SUQUERY",
        "tensor cores in this form are": "HMMA IMMA DMMA BMMA QMMA OMMA LDSM STSM",
        "matrix products of warp groups (wgmma) are": "HGMMA IGMMA QGMMA BGMMA WARPGROUP "
        "WARPGROUPSET",
        "tensor memory and its matrix products (tcgen05) are": "UTCHMMA UTCIMMA LDTM STTM",
        "the tensor memory accelerator and its barriers are": "UTMALDG UTMASTG UTMAPF UTMAREDG "
        "UTMACCTL UTMACMDFLUSH UBLKCP UBLKRED UBLKPF SYNCS",
        "clusters of blocks are": "UCGABAR_GET UCGABAR_SET MAPA STAS",
    }.items()
    for name in names.split()
}


@dataclass(frozen=True)
class BankWord:
    """A register's worth of a constant bank."""

    bank: int
    offset: int


# A source operand: a register by name, a number, a word of a constant bank.
Source = str | np.generic | BankWord


@dataclass(frozen=True)
class Micro:
    """One instruction to be, with the hardware's names for registers.

    `row` is the place of its row in the listing. `targets` are labels, one of
    them the next step. `mask` is the register with its mask, where that is no operand.
    """

    op: str
    row: int
    detail: Any = None
    sources: tuple[Source, ...] = ()
    results: tuple[str, ...] = ()
    guard: Guard | None = None
    memory: Memory | None = None
    label: str = ""
    issued: bool = True
    targets: tuple[str, ...] = ()
    mask: str = ""


ZERO = np.uint32(0)
ALL_PREDICATES = "PR"
_REGISTER_AND_OFFSET = re.compile(r"(R\d+)(?: (-?0x[0-9a-f]+))?$")
SPECIAL_REGISTERS = {
    **{f"SR_TID.{axis}": f"tid.{axis.lower()}" for axis in "XYZ"},
    **{f"SR_CTAID.{axis}": f"ctaid.{axis.lower()}" for axis in "XYZ"},
    **{f"SR_NTID.{axis}": f"ntid.{axis.lower()}" for axis in "XYZ"},
    **{f"SR_NCTAID.{axis}": f"nctaid.{axis.lower()}" for axis in "XYZ"},
    "SR_LANEID": "laneid",
    "SR_LMEMHIOFF": "zero",  # where a thread's stack ends: it grows down to 0
    "SR_SWINHI": "shared_window",
    "SR_CgaCtaId": "zero",
    "SR_CgaSize": "zero",  # where the driver's words on clusters lie: one of two places
    "SR_SMEMSZ": "shared_bytes",
    "SR_VIRTID": "warp_place",
    "SR_VIRTUALSMID": "zero",  # all blocks run on the one multiprocessor that there is
    "SRZ": "zero",
    **{f"SR_{which}MASK": f"lanes_{which.lower()}" for which in ("LT", "LE", "GT", "GE", "EQ")},
}


SECOND_ARGUMENT = ("R6", "R7")
FIRST_ARGUMENT = ("R4", "R5")  # of a call: its lower and upper half; the result comes there
# By the half of the time that comes first.
CLOCKS = {
    "SR_CLOCKLO": "lower", "SR_GLOBALTIMERLO": "lower",
    "SR_CLOCKHI": "upper", "SR_GLOBALTIMERHI": "upper",
}  # fmt: skip


def pair(name: str) -> tuple[str, str]:
    """Return the names of a register and the one after it."""
    if name.endswith("Z"):
        return name, name
    letters = name.rstrip("0123456789")
    return name, f"{letters}{int(name[len(letters) :]) + 1}"


def several(name: str, count: int) -> tuple[str, ...]:
    """Return the names of `count` consecutive registers."""
    if not name[-1].isdigit():  # zeros, or true
        return (name,) * count
    letters = name.rstrip("0123456789")
    first = int(name[len(letters) :])
    return tuple(f"{letters}{first + number}" for number in range(count))


class Decoder:
    """Decodes the rows of a kernel.

    `window` is where shared memory begins in addresses, `labels` are addresses in the code,
    `arch` is the compute capability as in sm_90.
    """

    def __init__(
        self, window: int, labels: Mapping[str, int] | None = None, arch: int = 90
    ) -> None:
        self.window, self.arch = window, arch
        self.labels = labels or {}

    def micros(self, row: Row, place: int) -> Iterator[Micro]:
        """Yield the steps of a row; UnknownFormError for a form outside the table."""
        found = find(row.mnemonic, row.modifiers)
        if found is None:
            raise (
                RefusedError(REFUSED[row.mnemonic])
                if row.mnemonic in REFUSED
                else (UnknownFormError(row.name))
            )
        if found.kind != "compute":
            _expect_shape(found, row)
        yield from _DECODERS[found.kind](self, row, place, found)


def _number(operand: Operand) -> int:
    value = int(operand.number)
    return -value if operand.negated else value


def _expect(condition: bool, row: Row) -> None:
    if not condition:
        raise UnknownFormError(row.text)


def _expect_shape(found: Mnemonic, row: Row) -> None:
    """Refuse operands, signs and suffixes that a row does not name."""
    operands = list(row.operands)
    for slot, may_be_missing in found.shaped:
        if operands and slot.fits(operands[0]):
            _expect(slot.takes(operands.pop(0)), row)
        else:
            _expect(may_be_missing, row)
    _expect(not operands, row)


# -- operands ------------------------------------------------------------------------------


def _words(operand: Operand, code: str, row: Row) -> tuple[Source, ...]:
    """Return the registers, numbers or constants that an operand of a code stands for."""
    count = REGISTERS[code]
    if operand.kind == "R":
        if operand.is_zero:
            return (ZERO,) * count
        return several(operand.name, count)
    if operand.kind == "C":
        _expect(not operand.terms, row)
        return tuple(BankWord(operand.bank, int(operand.number) + 4 * k) for k in range(count))
    if operand.kind == "P":
        return (np.bool_(not operand.negated),) if operand.is_true else (operand.name,)
    _expect(operand.kind == "I", row)
    value = np.uint32(_number(operand) & 0xFFFFFFFF)
    return (value,) if count == 1 else (value, ZERO)


def _computed_words(operand: Operand, code: str, row: Row) -> tuple[Source, ...]:
    """Return the sources of an operand of a computing row: immediates come from its bits."""
    if operand.kind not in "IF":
        return _words(operand, code, row)
    if code in "UI" and (wide := immediates.wide(operand, row)) is not None:
        return np.uint32(wide & immediates.LOW), np.uint32(wide >> 32)
    value = np.uint32(_immediate(operand, code, row))
    if code == "d" or (row.mnemonic == "I2F" and REGISTERS[code] == 2):
        return ZERO, value  # an instruction holds the upper word alone
    # Whether the upper word of a negative number is all ones is not known.
    _expect(REGISTERS[code] == 1 or not operand.negated, row)
    return (value,) if REGISTERS[code] == 1 else (value, ZERO)


def _immediate(operand: Operand, code: str, row: Row) -> int:
    """Return the bits of a number that the instruction holds."""
    if operand.kind == "I":
        return immediates.whole(operand, row)
    return immediates.floating(operand, row, is_double=code in "dD")


def _signs(operand: Operand) -> Signs:
    if operand.kind in "IF" or operand.is_true:
        return Signs()  # the number itself has them
    return Signs(
        negated=operand.negated,
        inverted=operand.inverted,
        absolute=operand.absolute,
        suffixes=operand.suffixes,
        is_zero=operand.is_zero and not operand.inverted,
    )


def _of_predicate(operand: Operand, row: Row) -> str:
    """Return the code of a predicate, or of a register with its sign taken as a predicate."""
    if operand.kind == "P":
        return "p"
    _expect(operand.suffixes == ("SIGN",), row)
    return "n"


def _typed(code: str, row: Row) -> str:
    if code in "xX":
        unsigned = bool({"U32", "U64"} & set(row.modifiers))
        return {"x": "ui", "X": "UI"}[code][not unsigned]
    return code


# -- computing rows ------------------------------------------------------------------------


def _results(found: Mnemonic, operands: list[Operand], row: Row) -> tuple[str, list[list[str]]]:
    """Take the results off the operands: their codes, and the registers that each fills."""
    codes, names = "", []
    must, _, may = found.results.partition("|")
    optional = set(range(len(must), len(must) + len(may)))
    if found.results.startswith("|"):  # a predicate that may stand before the rest
        must, optional = may, {0}
    else:
        must += may
    for number, code in enumerate(must):
        slot = SLOTS["q" if code == "p" else "o"]
        if not operands or not slot.fits(operands[0]):
            _expect(number in optional, row)
            continue
        operand = operands.pop(0)
        _expect(slot.takes(operand), row)
        code = _typed(code, row)
        codes += code
        names.append(list(several(operand.name, REGISTERS[code])))
    return codes, names


def _compute(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    if found.evaluate is None:
        _expect_shape(found, row)
        yield Micro(_op(found), place, guard=row.guard)
        return
    operands = list(row.operands)
    kept: list[int] = []
    results: list[str] = []
    if found.results == "?":
        _expect(operands.pop(0).name == ALL_PREDICATES, row)
        result_codes, names = "p" * 7, [[name] for name in PREDICATES]
    else:
        result_codes, names = _results(found, operands, row)
    codes, sources, signs, numbers = _operands(found, operands, row)
    for number, registers in enumerate(names):
        masked = found.results == "?" and not numbers[0] >> number & 1
        if registers[0][-1] not in "ZT" and not masked:
            kept.append(number)
            results += registers
    # The result that a register keeps of two is not known.
    _expect(len(set(results)) == len(results), row)
    form = Form(
        found.name,
        found.evaluate,
        frozenset(row.modifiers),
        codes,
        result_codes,
        tuple(signs),
        tuple(kept),
        tuple(numbers),
    )
    _expect(found.refuses is None or not found.refuses(form), row)
    yield Micro(_op(found), place, form, tuple(sources), tuple(results), row.guard)


def _operands(
    found: Mnemonic, operands: list[Operand], row: Row
) -> tuple[str, list[Source], list[Signs], list[int]]:
    must, _, may = found.sources.partition("|")
    codes = ""
    sources: list[Source] = []
    signs: list[Signs] = []
    numbers: list[int] = []
    # The optional operand is a carry, or the comparison of the lower words.
    is_extended = bool({"X", "EX"} & set(row.modifiers))
    if "EX" in row.modifiers and len(operands) == len(must):
        operands.append(Operand("P", TRUES[0]))  # nvdisasm leaves out a comparison that is PT
    _expect(not may or is_extended == (len(operands) > len(must)), row)
    for number, (code, slot) in enumerate(zip(must + may, found.slots, strict=True)):
        if not operands:
            _expect(number >= len(must), row)
            break
        operand = operands.pop(0)
        _expect(slot.takes(operand), row)
        if code == "#":
            numbers.append(_number(operand))
        elif code == "0":
            continue
        elif code == "?":
            _expect(operand.name in (ALL_PREDICATES, f"U{ALL_PREDICATES}"), row)
            codes += "p" * len(PREDICATES)
            uniform = operand.name.removesuffix(ALL_PREDICATES)
            sources += [f"{uniform}{name}" for name in PREDICATES]
            signs += [Signs()] * len(PREDICATES)
        elif code == "h" and operand.kind == "F":
            codes += code
            _expect(bool(operands) and operands[0].kind == "F", row)
            sources.append(np.uint32(immediates.halves(operand, operands.pop(0), row)))
            signs.append(Signs())
        else:
            code = _of_predicate(operand, row) if code == "v" else _typed(code, row)
            codes += code
            sources += _computed_words(operand, code, row)
            signs.append(_signs(operand))
    _expect(not operands, row)
    return codes, sources, signs, numbers


def _op(found: Mnemonic) -> str:
    return found.op or f"bits.{found.name}"


# -- addresses -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Address:
    """How an address is added up: the scale of each register or pair, and a number of bytes."""

    terms: tuple[tuple[int, int, bool], ...]  # bits, scale, and whether unsigned
    offset: int

    def __str__(self) -> str:
        return f"{self.offset:+#x}"

    def computed(self, *registers: Any) -> Any:
        """Return addresses, 64-bit, from the registers that they are made of."""
        total: Any = None
        place = 0
        for bits, scale, unsigned in self.terms:
            if bits == 64:
                value = joined(*registers[place : place + 2]).view(np.int64)
                place += 2
            else:
                # Within a window of 2^32 bytes offsets may be negative.
                word = registers[place]
                value = (word if unsigned else word.view(np.int32)).astype(np.int64)
                place += 1
            if scale != 1:
                value = value * np.int64(scale)
            total = value if total is None else total + value
        if total is None:
            return np.full((1, 1, 1), self.offset, dtype=np.int64)
        return total + np.int64(self.offset) if self.offset else total


# Accesses of memory beyond 2^32 bytes: a register alone stands for a pair.
WIDE_ADDRESSES = frozenset(
    ("LDG", "STG", "LD", "ST", "ATOMG", "ATOM", "RED", "REDG", "LDGSTS")
)  # fmt: skip


def _whole(terms: tuple[Term, ...], wide: bool) -> tuple[Term, ...]:
    """Return an address's registers with the bits that each has."""
    if not wide:
        return terms
    return tuple(term if term.unsigned else replace(term, bits=64) for term in terms)


def _address(
    operand: Operand, row: Row, place: int, less: int = 0, *, wide: bool | None = None
) -> Micro:
    """Return the step that sums an address, into a register of its own."""
    _expect(operand.kind == "M", row)
    sources: list[Source] = []
    terms = []
    is_wide = row.mnemonic in WIDE_ADDRESSES if wide is None else wide
    for term in _whole(operand.terms, is_wide):
        if term.register.endswith("Z"):
            continue
        sources += pair(term.register) if term.bits == 64 else (term.register,)
        terms.append((term.bits, term.scale, term.unsigned))
    form = Address(tuple(terms), int(operand.number) - less)
    made = (f"A{place}",)
    return Micro(".ADDRESS", place, form, tuple(sources), made, row.guard, issued=False)


# -- memory --------------------------------------------------------------------------------

_SMALL = {"U8": np.uint8, "S8": np.int8, "U16": np.uint16, "S16": np.int16}


def _accessed(row: Row, space: str) -> tuple[Memory, int]:
    """Return the memory accessed by a row, and the number of registers it fills."""
    name, volatile, narrow = _NAMES[space], "STRONG" in row.modifiers, _is_of_block(row)
    for modifier, kind in _SMALL.items():
        if modifier in row.modifiers:
            held = np.dtype(kind)
            memory = Memory(space, name, held, volatile=volatile, by_address=True, of_block=narrow)
            return memory, 1
    words = 4 if "128" in row.modifiers else 2 if "64" in row.modifiers else 1
    dtype = np.dtype(np.uint32)
    memory = Memory(space, name, dtype, words, volatile=volatile, by_address=True, of_block=narrow)
    return memory, words


def _is_of_block(row: Row) -> bool:
    """Return whether an access is strong in block scope only (PTX .cta), on one SM."""
    return "SM" in row.modifiers or "CTA" in row.modifiers


_NAMES = {"global": "", "shared": "shared", "local": "local", "generic": "generic"}


def _less(decoder: Decoder, space: str) -> int:
    return decoder.window if space == "shared" else 0


def _load(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    space = str(found.detail)
    _expect(len(row.operands) == 2 and row.operands[0].kind == "R", row)
    address = _address(row.operands[1], row, place, _less(decoder, space))
    yield address
    memory, words = _accessed(row, space)
    result = row.operands[0]
    results = () if result.is_zero else several(result.name, words)
    yield Micro(row.mnemonic, place, None, address.results, results, row.guard, memory)


def _store(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    space = str(found.detail)
    _expect(len(row.operands) == 2 and row.operands[1].kind == "R", row)
    address = _address(row.operands[0], row, place, _less(decoder, space))
    yield address
    memory, words = _accessed(row, space)
    value = row.operands[1]
    stored = (ZERO,) * words if value.is_zero else several(value.name, words)
    sources = (*address.results, *stored)
    yield Micro(row.mnemonic, place, None, sources, (), row.guard, memory)


_WHOLE_OF_16 = np.dtype([("low", "<u8"), ("high", "<u8")])
_ATOMIC_KINDS = (
    ("F64", np.float64), ("F32", np.float32), ("S64", np.int64), ("U64", np.uint64),
    ("64", np.uint64), ("S32", np.int32), ("U32", np.uint32), ("128", _WHOLE_OF_16),
    ("F32x2", np.uint64), ("F32x4", _WHOLE_OF_16),
)  # fmt: skip
_OPERATIONS = {
    "ADD": "add", "MIN": "min", "MAX": "max", "INC": "inc", "DEC": "dec", "AND": "and",
    "OR": "or", "XOR": "xor", "EXCH": "exch", "CAS": "cas",
}  # fmt: skip
# Sums of several numbers, and sums with subnormal numbers flushed to 0.
_SUMS = {
    "F16x2": "add_halves", "BF16x2": "add_brain_halves", "F32x2": "add_floats",
    "F32x4": "add_floats", "FTZ": "add_flushed", "F64": "add_doubles",
}  # fmt: skip


def _atomic_memory(row: Row, space: str) -> tuple[Memory, int, str]:
    kind = next((kind for name, kind in _ATOMIC_KINDS if name in row.modifiers), np.uint32)
    operation = next((o for name, o in _OPERATIONS.items() if name in row.modifiers), "")
    of_sums = [sum_of for name, sum_of in _SUMS.items() if name in row.modifiers]
    _expect(operation == "add" or bool(operation and not of_sums), row)
    dtype = np.dtype(kind)
    memory = Memory(space, _NAMES[space], dtype, by_address=True, of_block=_is_of_block(row))
    return memory, dtype.itemsize // 4, of_sums[0] if of_sums else operation


def _atomic(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    operands, guard = list(row.operands), row.guard
    served = operands.pop(0) if operands[0].kind == "P" else None
    space = str(found.detail)
    _expect(len(operands) >= 3 and operands[0].kind == "R", row)
    address = _address(operands[1], row, place, _less(decoder, space))
    yield address
    memory, words, operation = _atomic_memory(row, space)
    _expect(len(operands) == 3 + (operation == "cas"), row)
    sources: list[Source] = [*address.results]
    for operand in operands[2:]:
        sources += _values(operand, words, row)
    if served is not None and not served.is_true:
        _expect(space == "generic", row)
        yield _where_served(row, place, served, operation in ("cas", "exch"))
        before, guard = _both(row, place, served)
        yield from before
    result = operands[0]
    results = () if result.is_zero else several(result.name, words)
    yield Micro(row.mnemonic, place, operation, tuple(sources), results, guard, memory)


def _values(operand: Operand, words: int, row: Row) -> tuple[Source, ...]:
    """Return the registers of a value of `words` words."""
    if words <= 2:
        return _words(operand, "U" if words == 2 else "u", row)
    _expect(operand.kind == "R", row)
    return (ZERO,) * words if operand.is_zero else several(operand.name, words)


def _where_served(row: Row, place: int, served: Operand, also_shared: bool) -> Micro:
    """Compute the lanes served by an atomic operation with generic addresses.

    Lanes in local memory are not, nor lanes in shared memory if the GPU has no such
    operation there. Lanes with a false guard keep their values.
    """
    others = (LOCAL_HIGH,) if also_shared else (LOCAL_HIGH, SHARED_HIGH)
    sources: tuple[Source, ...] = (f"A{place}",)
    signs: tuple[Signs, ...] = (Signs(),)
    if row.guard is not None:
        sources += (row.guard.register, served.name)
        signs += (Signs(negated=row.guard.negated), Signs())
    codes = "r" + "p" * (len(sources) - 1)
    form = Form("served", _is_served, frozenset(), codes, "p", signs, numbers=others)
    return Micro(".PREDICATE", place, form, sources, (served.name,), issued=False)


def _is_served(form: Form, address: Any, *guard_and_old: Any) -> Any:
    window = address >> np.int64(32)
    served = np.logical_and.reduce([window != other for other in form.numbers])
    if not guard_and_old:
        return served
    guard, old = guard_and_old
    return np.where(guard, served, old)


def _space(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Test the memory space of an address; blocks share none of theirs with others."""
    verdict, rest, where = row.operands
    _expect(rest.is_zero, row)
    yield _address(where, row, place, wide=True)
    wanted, inside = _WINDOWS[str(found.detail)]
    signs = (Signs(inverted=not inside),)
    form = Form(row.name, _is_in_window, frozenset(), "r", "p", signs, numbers=wanted)
    results = () if verdict.is_true else (verdict.name,)
    yield Micro("QSPC", place, form, (f"A{place}",), results, row.guard)


# The windows of a memory's addresses; False: outside of all of them.
_WINDOWS = {
    "shared": ((SHARED_HIGH,), True),
    "local": ((LOCAL_HIGH,), True),
    "shared by a cluster": ((), True),
    "global": ((SHARED_HIGH, LOCAL_HIGH), False),
}


def _is_in_window(form: Form, address: Any) -> Any:
    return np.isin(address >> np.int64(32), form.numbers, invert=form.signs[0].inverted)


def _reduction(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    _expect(len(row.operands) == 2, row)
    address = _address(row.operands[0], row, place)
    yield address
    memory, words, operation = _atomic_memory(row, str(found.detail))
    sources = (*address.results, *_values(row.operands[1], words, row))
    yield Micro("RED", place, operation, sources, (), row.guard, memory)


def _count_up(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    _expect(len(row.operands) == 2 and row.operands[0].is_zero, row)
    address = _address(row.operands[1], row, place, decoder.window)
    yield address
    memory = Memory("shared", "shared", np.dtype(np.uint32), by_address=True)
    sources: tuple[Source, ...] = (*address.results, np.uint32(1))
    yield Micro(COUNT_UP, place, "add", sources, (), row.guard, memory)


def _cast_spin(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Compare and swap, and set a 1 on success, or from compute capability 10.0 on a predicate."""
    *said, where, expected, value = row.operands
    _expect(bool(said), row)
    result = said.pop()
    _expect(all(one.is_true for one in said), row)
    space = str(found.detail)
    address = _address(where, row, place, _less(decoder, space))
    yield address
    wide = "64" in row.modifiers
    kind = np.dtype(np.uint64 if wide else np.uint32)
    memory = Memory(space, _NAMES[space], kind, by_address=True, of_block=_is_of_block(row))
    code = "U" if wide else "u"
    words = _words(expected, code, row)
    old = tuple(f"T{place}.{number}" for number in range(len(words)))
    sources = (*address.results, *words, *_words(value, code, row))
    op = SPIN if space == "shared" else row.mnemonic
    yield Micro(op, place, "cas", sources, old, row.guard, memory)
    given = "p" if result.kind == "P" else code
    form = Form(row.name, _were_equal, frozenset(), code * 2, given, (Signs(), Signs()))
    results = () if result.is_true else several(result.name, 1 if given == "p" else len(words))
    yield Micro(".SAME", place, form, (*old, *words), results, row.guard, issued=False)


# -- barriers in shared memory ---------------------------------------------------------------


def _barrier_memory(kind: Any, words: int = 1) -> Memory:
    return Memory(
        "shared", "shared", np.dtype(kind), words, volatile=True, by_address=True, of_block=True
    )


def _fenced(row: Row, place: int) -> Micro:
    """Return the fence of an arrival (release) or a wait (acquire)."""
    return Micro("MEMBAR", place, "block", (), (), row.guard, issued=False)


def _set_barrier(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Set a barrier, once for a warp on the uniform datapath."""
    result, where, value = row.operands
    _expect(result.is_zero, row)
    address = _address(where, row, place, decoder.window)
    yield address
    first = Operand("P", name=f"E{place}")
    yield Micro("ELECT.LANES", place, (False, True), (), (first.name,), row.guard, issued=False)
    before, guard = _both(row, place, first)
    yield from before
    sources = (*address.results, *_words(value, "U", row))
    yield Micro("STS", place, None, sources, (), guard, _barrier_memory(np.uint32, 2))


def _arrive_at_word(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    result, where, *rest = row.operands
    many = "ART0" in row.modifiers
    _expect(many or all(operand.is_zero for operand in rest), row)
    count = _words(rest[0], "u", row) if many else (np.uint32(1),)
    address = _address(where, row, place, decoder.window)
    yield address
    yield _fenced(row, place)
    in_halves, drops = row.mnemonic == "ATOMS", "OPTOUT" in row.modifiers
    how = "arrive_in_halves" if in_halves else "arrive_and_drop" if drops else "arrive"
    if "A0T1" in row.modifiers:
        how = "expect_transactions"
    results = () if result.is_zero else several(result.name, 2)
    sources: tuple[Source, ...] = (*address.results, *count, ZERO)
    yield Micro("ATOMS", place, how, sources, results, row.guard, _barrier_memory(np.uint64))


def _arrive_behind_copies(
    decoder: Decoder, row: Row, place: int, found: Mnemonic
) -> Iterator[Micro]:
    """Arrive at a barrier, or end a transaction of it, once the lanes' copies so far have landed.

    They land where the instruction is issued.
    """
    (where,) = row.operands
    address = _address(where, row, place, decoder.window)
    yield address
    for op, detail in (("LDGDEPBAR", None), ("DEPBAR", 0)):
        yield Micro(op, place, detail, (), (), row.guard, issued=False)
    yield _fenced(row, place)
    how = "complete_transactions" if "TRANSCNT" in row.modifiers else "arrive"
    sources: tuple[Source, ...] = (*address.results, np.uint32(1), ZERO)
    memory = _barrier_memory(np.uint64)
    yield Micro("ATOMS", place, how, sources, (), row.guard, memory)


def _ask_for_phase(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Say whether a barrier is in another phase than the highest bit of a register says."""
    verdict, where, phase = row.operands
    address = _address(where, row, place, decoder.window - _UPPER_HALF)
    yield address
    held = (f"T{place}.0",)
    yield Micro("LDS", place, None, address.results, held, row.guard, _barrier_memory(np.uint32))
    yield _fenced(row, place)
    form = Form(row.name, _phases_differ, frozenset(), "uu", "p", (Signs(), Signs()))
    sources = (*held, *_words(phase, "u", row))
    results = () if verdict.is_true else (verdict.name,)
    yield Micro(".PREDICATE", place, form, sources, results, row.guard, issued=False)


_UPPER_HALF = 4  # bytes from a word of 64 bits to its phase


def _phases_differ(form: Form, word: Any, phase: Any) -> Any:
    return np.asarray((word ^ phase) >> np.uint32(31), bool)


def _commit_copies(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    yield Micro("LDGDEPBAR", place, None, (), (), row.guard)


def _await_copies(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Wait until at most a number of groups of copies, counted on SB0, are pending."""
    names = [one.name for one in row.operands]
    groups = row.operands[1].number if names[:1] == ["SB0"] and len(names) > 1 else None
    yield Micro("DEPBAR", place, groups, (), (), row.guard)


def _were_equal(form: Form, old: Any, expected: Any) -> Any:
    equal = old == expected
    return equal if form.results == "p" else equal.astype(old.dtype)


def _copy_to_shared(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Copy from global to shared memory without a register between; it is there when awaited.

    Lanes with a false third operand, a predicate, store zeros. With ZFILL the address encodes
    the number of zeros in a copy, by its distance behind the source (PTX ISA,
    cp.async with a size of the source; compilers' code).
    """
    _expect(len(row.operands) in (2, 3), row)
    to, origin, *wanted = row.operands
    source = _address(origin, row, place)
    yield source
    held, words = _accessed(row, "global")
    passing = tuple(f"T{place}.{number}" for number in range(words))
    guard, fills = row.guard, "ZFILL" in row.modifiers
    for predicate in wanted:
        _expect(predicate.kind == "P", row)
        before, guard = _both(row, place, predicate)
        yield from before
    if wanted or fills:
        yield from _zeros(row, place, passing)
    if fills:
        parts = _in_parts(row, place, source.results, guard, 4 * words)
        yield from parts.before
        yield Micro("LDGSTS", place, None, source.results, passing, parts.whole, held)
        yield from parts.behind
    else:
        yield Micro("LDGSTS", place, None, source.results, passing, guard, held)
    target = replace(
        _address(to, row, place, decoder.window, wide=False), results=(f"A{place}.to",)
    )
    yield target
    shared, _ = _accessed(row, "shared")
    yield Micro(
        ".STS", place, None, (*target.results, *passing), (), row.guard, shared, issued=False
    )


def _zeros(row: Row, place: int, names: tuple[str, ...]) -> Iterator[Micro]:
    zeros = Form("zero", _itself, frozenset(), "u", "u", (Signs(),))
    for name in names:
        yield Micro(".SAME", place, zeros, (ZERO,), (name,), row.guard, issued=False)


@dataclass(frozen=True)
class Parts:
    """A copy of all or the first bytes by lane: steps around it, and the lanes that copy all."""

    before: tuple[Micro, ...]
    whole: Guard
    behind: tuple[Micro, ...]


@dataclass(frozen=True)
class Start:
    """The start of a copy with its number of missing bytes in an address, and a byte of it."""

    width: int
    byte: int

    def computed(self, address: Any) -> Any:
        """Return the address of the byte."""
        return (address & np.int64(-self.width)) + np.int64(self.byte)


def _in_parts(
    row: Row, place: int, address: tuple[Source, ...], guard: Guard | None, width: int
) -> Parts:
    """Return the copies of lanes that want fewer bytes than the whole: byte by byte."""
    first = _covered(place, "whole", address, guard, (width, -1))
    behind: list[Micro] = []
    memory = Memory("global", "", np.dtype(np.uint8), by_address=True)
    for byte in range(width - 1):
        name, where, value = (f"{letter}{place}.{byte}" for letter in "QAB")
        behind.append(_covered(place, str(byte), address, guard, (width, byte)))
        start = Start(width, byte)
        behind.append(Micro(".ADDRESS", place, start, address, (where,), issued=False))
        behind += _zeros(replace(row, guard=None), place, (value,))
        load = Micro(".LDG", place, None, (where,), (value,), Guard(name, False), memory)
        behind.append(replace(load, issued=False))
    for word in range(width // 4):
        held = f"T{place}.{word}"
        count = min(4, width - 1 - 4 * word)
        sources = (held, *(f"B{place}.{4 * word + byte}" for byte in range(count)))
        codes, signs = "u" * len(sources), (Signs(),) * len(sources)
        form = Form("joined", _with_bytes, frozenset(), codes, "u", signs)
        behind.append(Micro(".SAME", place, form, sources, (held,), issued=False))
    return Parts((first,), Guard(f"Q{place}.whole", False), tuple(behind))


def _covered(
    place: int,
    name: str,
    address: tuple[Source, ...],
    guard: Guard | None,
    numbers: tuple[int, int],
) -> Micro:
    """Compute the lanes that copy a single byte, or -1 for all bytes at once."""
    predicates = () if guard is None else (guard,)
    sources = (*address, *(one.register for one in predicates))
    signs = (Signs(), *(Signs(negated=one.negated) for one in predicates))
    codes = "r" + "p" * len(predicates)
    form = Form("covered", _is_covered, frozenset(), codes, "p", signs, numbers=numbers)
    return Micro(".PREDICATE", place, form, sources, (f"Q{place}.{name}",), issued=False)


def _is_covered(form: Form, address: Any, *wanted: Any) -> Any:
    width, byte = form.numbers
    lacking = address & np.int64(width - 1)
    covered = lacking == 0 if byte < 0 else (lacking != 0) & (lacking < width - byte)
    return np.logical_and(covered, wanted[0]) if wanted else covered


def _with_bytes(form: Form, word: Any, *parts: Any) -> Any:
    for place, part in enumerate(parts):
        word = word | part << np.uint32(8 * place)
    return word


_BANK_TYPES = {"U8": (1, False), "S8": (1, True), "U16": (2, False), "S16": (2, True)}


def _bank(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    _expect(len(row.operands) == 2 and row.operands[1].kind == "C", row)
    where = row.operands[1]
    size, signed = next(
        (held for name, held in _BANK_TYPES.items() if name in row.modifiers), (4, False)
    )
    words = 4 if "128" in row.modifiers else 2 if "64" in row.modifiers else 1
    terms = [term for term in where.terms if not term.register.endswith("Z")]
    _expect(all(term.bits == 32 and term.scale == 1 for term in terms), row)
    sources = tuple(term.register for term in terms)
    detail = ("bank", (where.bank, int(where.number), size, signed))
    results = several(row.operands[0].name, words)
    yield Micro(str(found.detail), place, detail, sources, results, row.guard)


def _special(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    _expect(len(row.operands) == 2, row)
    result, source = row.operands
    name = SPECIAL_REGISTERS.get(source.name)
    wide = row.mnemonic == "CS2R" and "32" not in row.modifiers
    results = several(result.name, 2 if wide else 1)
    if source.name in CLOCKS:
        half = CLOCKS[source.name]
        _expect(half == "lower" or not wide, row)
        yield Micro("CS2R.CLOCK", place, half, (), results, row.guard)
        return
    _expect(name is not None and (not wide or name == "zero"), row)
    yield Micro(row.mnemonic, place, name, (), results, row.guard)


# -- control -------------------------------------------------------------------------------


def _both(row: Row, place: int, extra: Operand) -> tuple[list[Micro], Guard | None]:
    """Return a guard that combines the row's own with one more predicate, and the steps for it."""
    if extra.is_true and not extra.negated:
        return [], row.guard
    if row.guard is None and not extra.is_true:
        return [], Guard(extra.name, extra.negated)
    sources: list[Source] = [] if row.guard is None else [row.guard.register]
    signs = [] if row.guard is None else [Signs(negated=row.guard.negated)]
    sources += _words(extra, "p", row)
    signs.append(_signs(extra))
    form = Form("and", _conjunction, frozenset(), "p" * len(sources), "p", tuple(signs))
    both = Micro(".PREDICATE", place, form, tuple(sources), (f"Q{place}",), issued=False)
    return [both], Guard(f"Q{place}", False)


def _conjunction(form: Form, *predicates: Any) -> Any:
    result = predicates[0]
    for predicate in predicates[1:]:
        result = result & predicate
    return result


def _branch(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    *predicates, target = row.operands
    _expect(target.kind == "L" and len(predicates) <= 1, row)
    guard = row.guard
    if predicates:
        _expect(predicates[0].kind == "P", row)
        before, guard = _both(row, place, predicates[0])
        yield from before
    if "ANY" in row.modifiers and guard is not None:  # all lanes branch where one would
        vote = (NEGATED["any"] if guard.negated else "any",)
        yield Micro("VOTE.LANES", place, vote, (guard.register,), (f"A{place}",), issued=False)
        guard = Guard(f"A{place}", False)
    yield Micro("BRA", place, guard=guard, label=target.name)


def _branch_if_apart(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    *operands, label = row.operands
    masks = [operand for operand in operands if not operand.is_true]
    _expect(all(one.kind != "P" and (one.is_zero or not one.inverted) for one in masks), row)
    # Before compute capability 8.0 it asks about all lanes.
    every: tuple[Source, ...] = (np.uint32(0xFFFFFFFF),)
    named = bool(masks) and not masks[0].inverted
    sources = _words(masks[0], "u", row) if named else every
    whom = "together" if "CONV" in row.modifiers else "apart"
    yield Micro("BRA.APART", place, whom, sources, (), row.guard, label=label.name)


def _call(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    *pointer, target = row.operands
    _expect(target.kind == "L" and len(pointer) <= 1, row)
    if pointer:
        added = decoder.labels[target.name] if target.name else 0
        yield from _jump(decoder, row, place, "CALL.REG", pointer[0], added)
    else:
        yield Micro("CALL.REL", place, guard=row.guard, label=target.name)


def _jump(
    decoder: Decoder, row: Row, place: int, op: str, register: Operand, added: int
) -> Iterator[Micro]:
    """Jump to the address in a register plus an offset in bytes."""
    _expect(register.kind == "R" and not register.is_zero, row)
    made = (f"A{place}",)
    form = Address(((32, 1, True),), added)
    yield Micro(".ADDRESS", place, form, (register.name,), made, row.guard, issued=False)
    yield Micro(op, place, None, made, (), row.guard, targets=row.targets)


def _indexed_branch(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Go on at an address behind this row, such as a table in constant memory holds."""
    _expect(len(row.operands) == 1 and row.operands[0].kind == "X" and bool(row.targets), row)
    match = _REGISTER_AND_OFFSET.match(row.operands[0].name)
    _expect(match is not None, row)
    assert match is not None
    added = row.address + BYTES_PER_ROW + int(match[2] or "0", 16)
    yield from _jump(decoder, row, place, "BRX", written.operand(match[1]), added)


def _call_driver(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Call a function of the driver, with two arguments and its result."""
    _expect(len(row.operands) == 1 and row.operands[0].kind in "RC", row)
    sources = (*_words(row.operands[0], "u", row), *FIRST_ARGUMENT, *SECOND_ARGUMENT)
    yield Micro("CALL.ABS", place, None, sources, FIRST_ARGUMENT, row.guard)


def _trap(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    yield Micro("BPT.TRAP", place, None, (), (), row.guard)


def _address_of_code(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Give the address of a label, or of this row."""
    result, *label = row.operands
    _expect(result.kind == "R" and all(one.kind == "L" for one in label), row)
    form = Form(row.name, _itself, frozenset(), "U", "U", (Signs(),))
    address = decoder.labels[label[0].name] if label else row.address
    sources = (np.uint32(address), ZERO)
    yield Micro("bits.LEPC", place, form, sources, several(result.name, 2), row.guard)


def _itself(form: Form, value: Any) -> Any:
    return value


def _return(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    register, label = row.operands
    _expect(
        decoder.labels.get(label.name, 0) == 0, row
    )  # the register counts from the code's begin
    yield Micro("RET.REL", place, None, (register.name,), (), row.guard)


def _exit(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    guard = row.guard
    if row.operands:
        _expect(len(row.operands) == 1 and row.operands[0].kind == "P", row)
        before, guard = _both(row, place, row.operands[0])
        yield from before
    yield Micro("EXIT", place, guard=guard)


def _token(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    guard = row.guard
    named = [operand for operand in row.operands if operand.kind == "B"]
    _expect(len(named) == 1, row)
    for operand in row.operands:
        if operand.kind == "P":
            before, guard = _both(row, place, operand)
            yield from before
    label = next((operand.name for operand in row.operands if operand.kind == "L"), "")
    yield Micro(row.mnemonic, place, int(named[0].name[1:]), (), (), guard, label=label)


def _move_token(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Keep a convergence barrier in a register, or take it back, around a function's own use."""
    _expect(len(row.operands) == 2, row)
    to, origin = row.operands
    if to.kind == "B":
        sources = _words(origin, "u", row)
        yield Micro("BMOV.SET", place, int(to.name[1:]), sources, (), row.guard)
    elif to.is_zero:  # no lane takes it back
        yield Micro("bits.BMOV.32.CLEAR", place, guard=row.guard)
    else:
        _expect(origin.kind == "B" and "CLEAR" in row.modifiers, row)
        number = int(origin.name[1:])
        yield Micro("BMOV.GET", place, number, (), (to.name,), row.guard)


def _warpsync(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    if "ALL" in row.modifiers:
        mask: tuple[Source, ...] = (np.uint32(0xFFFFFFFF),)
    else:
        _expect(len(row.operands) == 1, row)
        mask = _words(row.operands[0], "u", row)
    whom = "all" if "ALL" in row.modifiers else None
    op = "WARPSYNC.EXCLUSIVE" if "EXCLUSIVE" in row.modifiers else "WARPSYNC.MASK"
    yield Micro(op, place, whom, mask, (), row.guard)


def _collective(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Gather the lanes that a mask names; they go on at the label after ENDCOLLECTIVE.

    Compilers put the label right behind that, so that nothing has to jump.
    """
    *lanes, label = row.operands
    _expect(label.kind == "L" and len(lanes) == ("ALL" not in row.modifiers), row)
    every: tuple[Source, ...] = (np.uint32(0xFFFFFFFF),)
    mask = _words(lanes[0], "u", row) if lanes else every
    yield Micro("WARPSYNC.COLLECTIVE", place, None, mask, (), row.guard)


def _to_uniform(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Move to a uniform register, or find the lanes with another value than the first one's.

    Compilers do so for the masks of a vote: where they differ, each mask's lanes are gathered. With
    a uniform register they go around until the first lane's value has been every lane's.
    """
    if row.operands[0].kind != "P":
        yield from _compute(decoder, row, place, found)
        return
    verdict, result, value = row.operands
    sources = _words(value, "u", row)
    _expect(not verdict.is_true, row)
    if not result.is_zero:
        asked = (np.bool_(True),) if row.guard is None else (row.guard.register,)
        is_negated = row.guard is not None and row.guard.negated
        results, first = (result.name,), "R2UR.FIRST"
        yield Micro(first, place, is_negated, (*sources, *asked), results, issued=False)
    others = (verdict.name,) if "OR" in row.modifiers else ()
    yield Micro("R2UR.DIFFERS", place, None, (*sources, *others), (verdict.name,), row.guard)


_AXES_OF_TEXTURES = {
    "1D": (1, False), "2D": (2, False), "3D": (3, False),
    "ARRAY_1D": (1, True), "ARRAY_2D": (2, True),
}  # fmt: skip


def _texture(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Fetch channels: the first two come to one pair of registers, the others to another."""
    registers = [one for one in row.operands if one.kind == "R"]
    where = next(number for number, one in enumerate(row.operands) if one.kind == "X")
    kind = row.operands[where].name
    if kind not in _AXES_OF_TEXTURES or registers[-1].name[0] != "U":
        raise RefusedError(REFUSED[row.mnemonic])
    axes, has_layer = _AXES_OF_TEXTURES[kind]
    upper, lower, coordinates, *_, handle = registers
    mask = [_number(one) for one in row.operands[where + 1 :]] or [0xF]
    channels = tuple(number for number in range(4) if mask[0] >> number & 1)
    names = [*several(lower.name, 2), *several(upper.name, 2)][: len(channels)]
    _expect(not any(name.endswith("Z") for name in names), row)
    sources = (handle.name, *_several_words(coordinates, axes + has_layer))
    form = (axes, has_layer, row.mnemonic == "TLD", channels)
    yield Micro(row.mnemonic, place, form, sources, tuple(names), row.guard)


def _several_words(operand: Operand, count: int) -> tuple[Source, ...]:
    return (ZERO,) * count if operand.is_zero else several(operand.name, count)


_WIDTHS_OF_SURFACES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}


def _surface(row: Row, place: int, address: Operand, handle: Operand) -> tuple[Any, Any]:
    """Return the form of an access to a surface, and the registers of handle and coordinates."""
    said = set(row.modifiers)
    kind = next((one for one in row.modifiers if one[0] in "123" and one[1:2] == "D"), "")
    signed = {"S8", "S16"} & said and row.mnemonic == "SULD"
    if not kind or handle.name[0] != "U" or signed:
        raise RefusedError(REFUSED[row.mnemonic])
    width = next((_WIDTHS_OF_SURFACES[one] for one in said & _WIDTHS_OF_SURFACES.keys()), 4)
    boundary = "trap" if "TRAP" in said else "zero" if "IGN" in said else "clamp"
    axes, has_layer = int(kind[0]), kind.endswith("ARRAY")
    _expect(len(address.terms) == 1 and not address.number, row)
    first = Operand("R", address.terms[0].register)
    sources = (handle.name, *_several_words(first, axes + has_layer))
    return (axes, has_layer, width, boundary), sources


def _surface_load(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    result, address, handle = row.operands[:3]
    form, sources = _surface(row, place, address, handle)
    results = () if result.is_zero else several(result.name, -(-form[2] // 4))
    yield Micro("SULD", place, form, sources, results, row.guard)


def _surface_store(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    address, value, handle = row.operands[:3]
    form, sources = _surface(row, place, address, handle)
    sources = (*sources, *_several_words(value, -(-form[2] // 4)))
    yield Micro("SUST", place, form, sources, (), row.guard)


_REDUCTIONS = {"POPC": "count", "AND": "and", "OR": "or"}
RESULT_OF_BARRIER = "BR"


def _barrier_reduction(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Wait at the barrier; its result is read by B2R.RESULT."""
    _expect(len(row.operands) == 2 and row.operands[0].number == 0, row)
    before, condition = _both(replace(row, guard=None), place, row.operands[1])
    yield from before
    source: Source = np.bool_(True) if condition is None else condition.register
    if condition is not None and condition.negated:
        form = Form("not", _conjunction, frozenset(), "p", "p", (Signs(negated=True),))
        yield Micro(".PREDICATE", place, form, (source,), (f"Q{place}",), issued=False)
        source = f"Q{place}"
    detail = next(name for word, name in _REDUCTIONS.items() if word in row.modifiers)
    yield Micro("BAR", place, detail, (source,), (RESULT_OF_BARRIER,), row.guard)


def _barrier_result(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    count, *predicate = row.operands
    results = [] if count.is_zero else [count.name]
    results += [operand.name for operand in predicate if not operand.is_true]
    kept = tuple(k for k, wanted in enumerate((not count.is_zero, bool(predicate))) if wanted)
    form = Form("B2R.RESULT", _of_barrier, frozenset(), "u", "up", (Signs(),), kept)
    sources = (RESULT_OF_BARRIER,)
    yield Micro("bits.B2R.RESULT", place, form, sources, tuple(results), row.guard)


def _of_barrier(form: Form, value: Any) -> Any:
    return value, value != 0


def _barrier(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    number, *_ = row.operands
    if len(row.operands) == 1 and number.kind == "I" and number.number == 0:
        yield Micro("BAR", place, "sync", (), (), row.guard)
    else:
        yield Micro("BAR.SYNC", place, _form_of_barrier(row), _named_barrier(row), (), row.guard)


def _barrier_of_cluster(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    _expect(not row.operands, row)
    yield Micro("BAR", place, "sync", (), (), row.guard)


def _form_of_barrier(row: Row) -> str:
    """Return "packed" where one register holds the number, and the threads in its upper half."""
    return "packed" if len({one.name for one in row.operands}) < len(row.operands) else "apart"


def _arrive(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    _expect(len(row.operands) == 2, row)
    yield Micro("BAR.ARV", place, _form_of_barrier(row), _named_barrier(row), (), row.guard)


def _named_barrier(row: Row) -> tuple[Source, ...]:
    """Return a barrier's number, and how many threads it waits for: 0 for all of the block."""
    _expect(len(row.operands) in (1, 2), row)
    sources = tuple(source for one in row.operands for source in _words(one, "u", row))
    return sources if len(sources) == 2 else (*sources, ZERO)


def _fence(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    scope = "block" if "CTA" in row.modifiers else "gpu"
    op = "MEMBAR" if found.name == "MEMBAR" else "ERRBAR"
    yield Micro(op, place, scope, (), (), row.guard)


_SHUFFLES = {"IDX": "idx", "UP": "up", "DOWN": "down", "BFLY": "bfly"}


def _exchange(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    _expect(len(row.operands) == 5 and row.operands[0].kind == "P", row)
    inside, result, value, lane, limits = row.operands
    mode = next(mode for name, mode in _SHUFFLES.items() if name in row.modifiers)
    sources: list[Source] = []
    for operand in (value, lane, limits):
        sources += _words(operand, "u", row)
    wants_value = not result.is_zero
    wants_inside = not inside.is_true
    results = ((result.name,) if wants_value else ()) + ((inside.name,) if wants_inside else ())
    named = (("value",) if wants_value else ()) + (("inside",) if wants_inside else ())
    detail = (mode, *named)
    yield Micro("SHFL.LANES", place, detail, tuple(sources), results, row.guard)


_VOTES = {"ALL": "all", "ANY": "any", "EQ": "alike"}


def _vote(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    operands = list(row.operands)
    lanes = operands.pop(0) if operands[0].kind == "R" else None
    _expect(len(operands) == 2 and all(o.kind == "P" for o in operands), row)
    verdict, asked = operands
    wanted = []
    if lanes is not None and not lanes.is_zero:
        wanted.append(("ballot", lanes.name))
    if not verdict.is_true:
        mode = next((mode for name, mode in _VOTES.items() if name in row.modifiers), "any")
        wanted.append((mode, verdict.name))
    is_negated = asked.negated and not asked.is_true
    detail = tuple(NEGATED[result] if is_negated else result for result, _ in wanted)
    results = tuple(name for _, name in wanted)
    yield Micro("VOTE.LANES", place, detail, _words(asked, "p", row), results, row.guard)


def _elect(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Compute the number of the first active lane, and a predicate true in that lane."""
    verdict, number, asked = row.operands
    _expect(asked.is_true and not asked.negated, row)
    results = (() if number.is_zero else (number.name,)) + (
        () if verdict.is_true else (verdict.name,)
    )
    detail = (not number.is_zero, not verdict.is_true)
    yield Micro("ELECT.LANES", place, detail, (), results, row.guard)


def _match(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    operands = list(row.operands)
    verdict = operands.pop(0) if operands[0].kind == "P" else None
    _expect(len(operands) == 2, row)
    lanes, value = operands
    wanted = []
    if not lanes.is_zero:
        wanted.append(("all" if "ALL" in row.modifiers else "any", lanes.name))
    if verdict is not None and not verdict.is_true:
        wanted.append(("agree", verdict.name))
    detail, results = (tuple(one[place] for one in wanted) for place in (0, 1))
    sources = _words(value, "U" if "U64" in row.modifiers else "u", row)
    yield Micro("MATCH.LANES", place, detail, sources, results, row.guard)


_REDUCED = {"SUM": "add", "MIN": "min", "MAX": "max", "OR": "or", "XOR": "xor"}


def _redux(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    _expect(len(row.operands) == 2, row)
    result, value = row.operands
    operation = next((o for name, o in _REDUCED.items() if name in row.modifiers), "and")
    detail = (operation, "S32" in row.modifiers)
    yield Micro("REDUX.LANES", place, detail, _words(value, "u", row), (result.name,), row.guard)


def _transpose(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    _expect("16" in row.modifiers and "MT88" in row.modifiers, row)
    result, value = row.operands
    yield Micro("MOVM.LANES", place, None, _words(value, "u", row), (result.name,), row.guard)


# -- matrices ------------------------------------------------------------------------------


def _matrix_product(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    named = [name for name in row.modifiers if name in SHAPES]
    _expect(len(named) == 1, row)
    a, b, sums, operation = found.detail
    form = MatrixProduct(
        *SHAPES[named[0]], a, b, sums, alignment(decoder.arch, a), "SAT" in row.modifiers, operation
    )
    result, *factors = row.operands
    counts = form.registers
    sources = [w for one, n in zip(factors, counts, strict=True) for w in _several_words(one, n)]
    results = () if result.is_zero else several(result.name, counts[2])
    yield Micro(row.mnemonic, place, form, tuple(sources), results, row.guard)


def _matrices(row: Row) -> tuple[int, bool]:
    """Return how many matrices are loaded or stored, and whether they are transposed."""
    said = set(row.modifiers)
    _expect("16" in said and len(said & {"M88", "MT88"}) == 1 and len(said & {"2", "4"}) < 2, row)
    return 4 if "4" in said else 2 if "2" in said else 1, "MT88" in said


def _lanes_of_rows(row: Row, place: int, matrices: int) -> Iterator[Micro]:
    """Compute the lanes with the address of a row: eight for each matrix."""
    lane, holds = f"T{place}.lane", f"L{place}"
    yield Micro(".LANE", place, "laneid", (), (lane,), issued=False)
    form = Form("rows", _is_below, frozenset(), "u", "p", (Signs(),), numbers=(8 * matrices,))
    yield Micro(".PREDICATE", place, form, (lane,), (holds,), issued=False)


def _is_below(form: Form, lane: Any) -> Any:
    return lane < np.uint32(form.numbers[0])


def _rows_of(row: Row, place: int, matrices: int) -> tuple[list[Micro], Guard | None]:
    """Return the steps before an access to the rows of matrices, and its guard."""
    if matrices == 4:
        return [], row.guard
    before, guard = _both(row, place, Operand("P", f"L{place}"))
    return [*_lanes_of_rows(row, place, matrices), *before], guard


def _matrix_load(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Load rows of matrices, a lane each, and exchange them for fragments."""
    count, transposed = _matrices(row)
    result, where = row.operands
    address = _address(where, row, place, decoder.window)
    yield address
    before, guard = _rows_of(row, place, count)
    yield from before
    held = tuple(f"T{place}.{number}" for number in range(4))
    memory = Memory("shared", "shared", np.dtype(np.uint32), 4, by_address=True)
    yield Micro("LDSM", place, None, address.results, held, guard, memory)
    results = () if result.is_zero else several(result.name, count)
    detail = (count, transposed)
    yield Micro(".FRAGMENTS", place, detail, held, results, row.guard, issued=False)


def _matrix_store(decoder: Decoder, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Exchange fragments of matrices for their rows, and store these, a lane each."""
    count, transposed = _matrices(row)
    where, value = row.operands
    address = _address(where, row, place, decoder.window)
    yield address
    before, guard = _rows_of(row, place, count)
    yield from before
    held = tuple(f"T{place}.{number}" for number in range(4))
    sources = _several_words(value, count)
    yield Micro(".ROWS", place, (count, transposed), sources, held, row.guard, issued=False)
    memory = Memory("shared", "shared", np.dtype(np.uint32), 4, by_address=True)
    yield Micro("STSM", place, None, (*address.results, *held), (), guard, memory)


_DECODERS: Mapping[str, Callable[[Decoder, Row, int, Mnemonic], Iterator[Micro]]] = {
    "compute": _compute,
    "transpose": _transpose,
    "matrix_product": _matrix_product,
    "matrix_load": _matrix_load,
    "matrix_store": _matrix_store,
    "load": _load,
    "store": _store,
    "atomic": _atomic,
    "reduction": _reduction,
    "count_up": _count_up,
    "bank": _bank,
    "special": _special,
    "branch": _branch,
    "branch_if_apart": _branch_if_apart,
    "call": _call,
    "return": _return,
    "exit": _exit,
    "bssy": _token,
    "bsync": _token,
    "break": _token,
    "move_token": _move_token,
    "call_driver": _call_driver,
    "trap": _trap,
    "address_of_code": _address_of_code,
    "indexed_branch": _indexed_branch,
    "arrive": _arrive,
    "warpsync": _warpsync,
    "collective": _collective,
    "elect": _elect,
    "barrier": _barrier,
    "barrier_of_cluster": _barrier_of_cluster,
    "barrier_reduction": _barrier_reduction,
    "barrier_result": _barrier_result,
    "copy_to_shared": _copy_to_shared,
    "commit_copies": _commit_copies,
    "await_copies": _await_copies,
    "cast_spin": _cast_spin,
    "set_barrier": _set_barrier,
    "arrive_at_word": _arrive_at_word,
    "arrive_behind_copies": _arrive_behind_copies,
    "ask_for_phase": _ask_for_phase,
    "space": _space,
    "to_uniform": _to_uniform,
    "match": _match,
    "redux": _redux,
    "texture": _texture,
    "surface_load": _surface_load,
    "surface_store": _surface_store,
    "fence": _fence,
    "exchange": _exchange,
    "vote": _vote,
}


def decoded(rows: Sequence[Row], decoder: Decoder) -> Iterator[Micro]:
    """Yield the steps of rows; UnknownFormError, with line and text to report, if unknown."""
    for place, row in enumerate(rows):
        try:
            yield from decoder.micros(row, place)
        except RefusedError as unit:
            where = f"{row.place.file}, line {row.place.line}" if row.place.line else "its code"
            raise RefusedError(f"{where}: {unit} not simulated ({row.name})") from None
        except (UnknownFormError, immediates.Disagreement) as error:
            where = f"{row.place.file}, line {row.place.line}" if row.place.line else "its code"
            raise UnknownFormError(
                f"{where}: the machine instruction {row.name} is not known in this form: "
                f"{row.text!r}; please report this line ({error})"
            ) from None
