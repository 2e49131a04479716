"""Products of matrices on tensor cores, and loads and stores of their fragments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gpusim.isa.matrices import MatrixProduct, alignment
from gpusim.isa.ops import Memory
from gpusim.sass.decoding.addresses import summed_address
from gpusim.sass.decoding.sources import both_guards, expect, registers_of
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
    "matrix_load": _matrix_load,
    "matrix_store": _matrix_store,
}
