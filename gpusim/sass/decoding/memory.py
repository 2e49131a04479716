"""Loads, stores, atomics, and queries of an address's memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gpusim.isa.ops import COUNT_UP, LOCAL_HIGH, RANK_SHIFT, SHARED_HIGH, SPIN, Memory
from gpusim.sass.decoding.addresses import summed_address, window_of
from gpusim.sass.decoding.constants import RANK
from gpusim.sass.decoding.sources import both_guards, expect, words_of
from gpusim.sass.decoding.steps import ZERO, Context, Decode, Micro, Source, several
from gpusim.sass.form import Form, Signs
from gpusim.sass.listing import Row
from gpusim.sass.operands import Operand
from gpusim.sass.table import Mnemonic

_SMALL = {"U8": np.uint8, "S8": np.int8, "U16": np.uint16, "S16": np.int16}


def accessed_memory(row: Row, space: str) -> tuple[Memory, int]:
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


def _load(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    space = str(found.detail)
    expect(len(row.operands) == 2 and row.operands[0].kind == "R", row)
    address = summed_address(row.operands[1], row, place, window_of(context, space))
    yield address
    memory, words = accessed_memory(row, space)
    result = row.operands[0]
    results = () if result.is_zero else several(result.name, words)
    yield Micro(row.mnemonic, place, None, address.results, results, row.guard, memory)


def _store(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    space = str(found.detail)
    expect(len(row.operands) == 2 and row.operands[1].kind == "R", row)
    address = summed_address(row.operands[0], row, place, window_of(context, space))
    yield address
    memory, words = accessed_memory(row, space)
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


def atomic_memory(row: Row, space: str) -> tuple[Memory, int, str]:
    """Return the memory of an atomic operation, its value's words, and the operation."""
    kind = next((kind for name, kind in _ATOMIC_KINDS if name in row.modifiers), np.uint32)
    operation = next((o for name, o in _OPERATIONS.items() if name in row.modifiers), "")
    of_sums = [sum_of for name, sum_of in _SUMS.items() if name in row.modifiers]
    expect(operation == "add" or bool(operation and not of_sums), row)
    dtype = np.dtype(kind)
    memory = Memory(space, _NAMES[space], dtype, by_address=True, of_block=_is_of_block(row))
    return memory, dtype.itemsize // 4, of_sums[0] if of_sums else operation


def _atomic(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    operands, guard = list(row.operands), row.guard
    served = operands.pop(0) if operands[0].kind == "P" else None
    space = str(found.detail)
    expect(len(operands) >= 3 and operands[0].kind == "R", row)
    address = summed_address(operands[1], row, place, window_of(context, space))
    yield address
    memory, words, operation = atomic_memory(row, space)
    expect(len(operands) == 3 + (operation == "cas"), row)
    sources: list[Source] = [*address.results]
    for operand in operands[2:]:
        sources += _values(operand, words, row)
    if served is not None and not served.is_true:
        expect(space == "generic", row)
        yield _where_served(row, place, served, operation in ("cas", "exch"))
        before, guard = both_guards(row, place, served)
        yield from before
    result = operands[0]
    results = () if result.is_zero else several(result.name, words)
    yield Micro(row.mnemonic, place, operation, tuple(sources), results, guard, memory)


def _values(operand: Operand, words: int, row: Row) -> tuple[Source, ...]:
    """Return the registers of a value of `words` words."""
    if words <= 2:
        return words_of(operand, "U" if words == 2 else "u", row)
    expect(operand.kind == "R", row)
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


def _space(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Test the memory space of an address; only in clusters do blocks share theirs with others."""
    verdict, rest, where = row.operands
    expect(rest.is_zero, row)
    yield summed_address(where, row, place, wide=True)
    wanted, inside = _WINDOWS[str(found.detail)]
    results = () if verdict.is_true else (verdict.name,)
    sources: tuple[Source, ...] = (f"A{place}",)
    signs: tuple[Signs, ...] = (Signs(inverted=not inside),)
    of_block = None
    if context.clusters and "shared" in str(found.detail):
        wanted, of_block = (SHARED_HIGH,), found.detail == "shared"
        rank = f"C{place}"
        yield Micro(".S2R", place, RANK, (), (rank,), row.guard, issued=False)
        sources, signs = (*sources, rank), (*signs, Signs(inverted=not of_block))
    evaluate = _is_in_window if of_block is None else _is_in_block
    codes = "r" + "u" * (len(sources) - 1)
    form = Form(row.name, evaluate, frozenset(), codes, "p", signs, numbers=wanted)
    yield Micro("QSPC", place, form, sources, results, row.guard)


# The windows of a memory's addresses; False: outside of all of them.
_WINDOWS = {
    "shared": ((SHARED_HIGH,), True),
    "local": ((LOCAL_HIGH,), True),
    "shared by a cluster": ((), True),
    "global": ((SHARED_HIGH, LOCAL_HIGH), False),
}


def _is_in_window(form: Form, address: Any) -> Any:
    return np.isin(address >> np.int64(32), form.numbers, invert=form.signs[0].inverted)


def _is_in_block(form: Form, address: Any, rank: Any) -> Any:
    """Whether an address is in the shared memory of the block with a rank, or (inverted) others."""
    is_own = ((address.astype(np.uint32) >> np.uint32(RANK_SHIFT)) == rank) ^ form.signs[1].inverted
    return _is_in_window(form, address) & is_own


def _reduction(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    expect(len(row.operands) == 2, row)
    address = summed_address(row.operands[0], row, place)
    yield address
    memory, words, operation = atomic_memory(row, str(found.detail))
    sources = (*address.results, *_values(row.operands[1], words, row))
    yield Micro("RED", place, operation, sources, (), row.guard, memory)


def _count_up(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    expect(len(row.operands) == 2 and row.operands[0].is_zero, row)
    address = summed_address(row.operands[1], row, place, context.window)
    yield address
    memory = Memory("shared", "shared", np.dtype(np.uint32), by_address=True)
    sources: tuple[Source, ...] = (*address.results, np.uint32(1))
    yield Micro(COUNT_UP, place, "add", sources, (), row.guard, memory)


def _cast_spin(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Compare and swap, and set a 1 on success, or from compute capability 10.0 on a predicate."""
    *said, where, expected, value = row.operands
    expect(bool(said), row)
    result = said.pop()
    expect(all(one.is_true for one in said), row)
    space = str(found.detail)
    address = summed_address(where, row, place, window_of(context, space))
    yield address
    wide = "64" in row.modifiers
    kind = np.dtype(np.uint64 if wide else np.uint32)
    memory = Memory(space, _NAMES[space], kind, by_address=True, of_block=_is_of_block(row))
    width = "U" if wide else "u"
    words = words_of(expected, width, row)
    old = tuple(f"T{place}.{number}" for number in range(len(words)))
    sources = (*address.results, *words, *words_of(value, width, row))
    op = SPIN if space == "shared" else row.mnemonic
    yield Micro(op, place, "cas", sources, old, row.guard, memory)
    given = "p" if result.kind == "P" else width
    form = Form(row.name, _were_equal, frozenset(), width * 2, given, (Signs(), Signs()))
    results = () if result.is_true else several(result.name, 1 if given == "p" else len(words))
    yield Micro(".SAME", place, form, (*old, *words), results, row.guard, issued=False)


def _were_equal(form: Form, old: Any, expected: Any) -> Any:
    equal = old == expected
    return equal if form.results == "p" else equal.astype(old.dtype)


DECODERS: Mapping[str, Decode] = {
    "load": _load,
    "store": _store,
    "atomic": _atomic,
    "reduction": _reduction,
    "count_up": _count_up,
    "cast_spin": _cast_spin,
    "space": _space,
}
