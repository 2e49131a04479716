"""Products of matrices on tensor cores, and loads and stores of their fragments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gpusim.isa.matrices import MatrixProduct, alignment
from gpusim.isa.ops import WARPGROUP_COMMIT, WARPGROUP_WAIT, Memory
from gpusim.isa.warpgroups import K_BYTES, WarpgroupProduct
from gpusim.sass.decoding.addresses import summed_address
from gpusim.sass.decoding.sources import both_guards, expect, registers_of, words_of
from gpusim.sass.decoding.steps import Context, Decode, Micro, several
from gpusim.sass.form import Form, Signs
from gpusim.sass.listing import Guard, Row
from gpusim.sass.mnemonics.matrices import SHAPES
from gpusim.sass.operands import Operand
from gpusim.sass.table import Mnemonic


def _matrix_product(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    named = [name for name in row.modifiers if name in SHAPES]
    expect(len(named) == 1, row)
    a, b, sums, operation = found.detail
    form = MatrixProduct(
        *SHAPES[named[0]], a, b, sums, alignment(context.arch, a), "SAT" in row.modifiers, operation
    )
    result, *factors = row.operands
    counts = form.registers
    sources = [w for one, n in zip(factors, counts, strict=True) for w in registers_of(one, n)]
    results = () if result.is_zero else several(result.name, counts[2])
    yield Micro(row.mnemonic, place, form, tuple(sources), results, row.guard)


def _warpgroup_product(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """A product of a warpgroup: of two descriptors, or of four registers and the second one."""
    result, *factors = row.operands
    if result.is_zero:  # a group without products
        yield Micro("WARPGROUP.ARRIVE", place, None, (), (), row.guard)
    else:
        yield _product_of_group(context, row, place, found)
    if any(one.kind == "X" for one in factors):  # gsb0
        yield Micro(WARPGROUP_COMMIT, place, None, (), (), row.guard, issued=False)


def _product_of_group(context: Context, row: Row, place: int, found: Mnemonic) -> Micro:
    [shape] = [name for name in row.modifiers if name.startswith("64x")]
    _, n, k = (int(size) for size in shape.split("x"))
    a, b, sums, operation = found.detail
    aligned = replace(alignment(context.arch, a), bytes_at_once=K_BYTES)
    form = MatrixProduct(16, n, k, a, b, sums, aligned, "SAT" in row.modifiers, operation)
    result, *factors = row.operands
    held = factors.pop(0) if factors[0].kind == "R" else None
    where, c, *rest = factors
    of_b, said = several(where.name, 4), set(where.suffixes)
    predicates = [one for one in rest if one.kind == "P"]
    expect(all(one.is_true or not one.negated for one in predicates[:1]), row)
    expect(len(predicates) < 2, row)
    detail = WarpgroupProduct(
        form,
        held is not None,
        ("tnspA" in said, "tnspB" in said),
        ("negA" in said or (held is not None and held.negated), "negB" in said),
        context.window,
    )
    keeps = words_of(predicates[0], "p", row) if predicates else (np.bool_(True),)
    first = registers_of(held, 4) if held else of_b[:2]
    sources = (*keeps, *first, *of_b[2:], *registers_of(c, form.registers[2]))
    results = several(result.name, form.registers[2])
    return Micro(row.mnemonic, place, detail, sources, results, row.guard)


def _warpgroup_arrive(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    yield Micro("WARPGROUP.ARRIVE", place, None, (), (), row.guard)


def _warpgroup_wait(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    yield Micro(WARPGROUP_WAIT, place, int(row.operands[1].number), (), (), row.guard)


def _matrices(row: Row) -> tuple[int, bool]:
    """Return how many matrices are loaded or stored, and whether they are transposed."""
    said = set(row.modifiers)
    expect("16" in said and len(said & {"M88", "MT88"}) == 1 and len(said & {"2", "4"}) < 2, row)
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
    before, guard = both_guards(row, place, Operand("P", f"L{place}"))
    return [*_lanes_of_rows(row, place, matrices), *before], guard


def _matrix_load(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Load rows of matrices, a lane each, and exchange them for fragments."""
    count, transposed = _matrices(row)
    result, where = row.operands
    address = summed_address(where, row, place, context.window)
    yield address
    before, guard = _rows_of(row, place, count)
    yield from before
    held = tuple(f"T{place}.{number}" for number in range(4))
    memory = Memory("shared", "shared", np.dtype(np.uint32), 4, by_address=True)
    yield Micro("LDSM", place, None, address.results, held, guard, memory)
    results = () if result.is_zero else several(result.name, count)
    detail = (count, transposed)
    yield Micro(".FRAGMENTS", place, detail, held, results, row.guard, issued=False)


def _matrix_store(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Exchange fragments of matrices for their rows, and store these, a lane each."""
    count, transposed = _matrices(row)
    where, value = row.operands
    address = summed_address(where, row, place, context.window)
    yield address
    before, guard = _rows_of(row, place, count)
    yield from before
    held = tuple(f"T{place}.{number}" for number in range(4))
    sources = registers_of(value, count)
    yield Micro(".ROWS", place, (count, transposed), sources, held, row.guard, issued=False)
    memory = Memory("shared", "shared", np.dtype(np.uint32), 4, by_address=True)
    yield Micro("STSM", place, None, (*address.results, *held), (), guard, memory)


DECODERS: Mapping[str, Decode] = {
    "matrix_product": _matrix_product,
    "warpgroup_product": _warpgroup_product,
    "warpgroup_arrive": _warpgroup_arrive,
    "warpgroup_wait": _warpgroup_wait,
    "matrix_load": _matrix_load,
    "matrix_store": _matrix_store,
}
